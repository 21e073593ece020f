"""Functions of Go templates that are more than a form: what stands for them depends on what they are given."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Protocol

from konverge.box.katalog.go_functions import CRON_FIELDS
from konverge.box.katalog.go_template import Call, Expression, Literal, TemplateProblemError
from konverge.box.katalog.operands import Made, quoted

__all__ = ["SPECIAL", "Translating"]

_LAYOUT = (
    ("2006", "%Y"), ("January", "%B"), ("Jan", "%b"), ("01", "%m"), ("02", "%d"), ("15", "%H"), ("04", "%M"),
    ("05", "%S"), ("Monday", "%A"), ("Mon", "%a"),
)  # fmt: skip
_IDENTIFIER = re.compile(r"[A-Za-z_]\w*")


class Translating(Protocol):
    """Whoever translates the template that a call stands in."""

    def expression(self, expression: Expression) -> Made:
        """What an expression becomes."""

    def path(self, path: tuple[str, ...]) -> Made:
        """What a path of the object becomes."""

    def steps(self, start: Made, path: tuple[str, ...]) -> Made:
        """What lies further on from there."""

    def argument(self, name: str, made: Made) -> Made:
        """The argument of the function of that name, which may be the object itself."""


def _default(call: Call, there: Translating) -> Made:
    """The literal is the fallback: of two that are none, nobody knows which was meant."""
    if len(call.arguments) != 2:
        raise TemplateProblemError(f"default takes 2 arguments, found {len(call.arguments)}")
    first, second = call.arguments
    if isinstance(first, Literal) == isinstance(second, Literal) and not call.is_piped:
        raise TemplateProblemError(
            "default of two values, of which either may be the fallback", "write value | default(fallback)"
        )
    fallback, value = (first, second) if call.is_piped or isinstance(first, Literal) else (second, first)
    other, made = there.expression(fallback), there.expression(value)
    text = other.operand("''")
    if other.type == "text" and made.type in ("", "text"):
        return Made(f"coalesce({made.text}, {text})", "text" if made.type == "text" else "")
    return Made(f"({made.text} | default({text}))", made.type or "")


def _coalesce(call: Call, there: Translating) -> Made:
    if not call.arguments:
        raise TemplateProblemError("coalesce of nothing")
    given = [there.expression(argument) for argument in call.arguments]
    types = {made.type for made in given}
    return Made(f"coalesce({', '.join(made.text for made in given)})", types.pop() if len(types) == 1 else "")


def _logic(call: Call, there: Translating) -> Made:
    if not call.arguments:
        raise TemplateProblemError(f"{call.name} of nothing")
    given = [there.expression(argument) for argument in call.arguments]
    type_ = "bool" if all(made.type == "bool" for made in given) else ""
    return Made("(" + f" {call.name} ".join(made.operand("false") for made in given) + ")", type_)


def _equal(call: Call, there: Translating) -> Made:
    if len(call.arguments) < 2:
        raise TemplateProblemError("eq takes 2 arguments, found fewer")
    first, *rest = (there.expression(argument).operand("null") for argument in call.arguments)
    return Made("(" + " or ".join(f"{first} == {other}" for other in rest) + ")", "bool")


def _index(call: Call, there: Translating) -> Made:
    if len(call.arguments) < 2:
        raise TemplateProblemError("index takes 2 arguments, found fewer")
    made = there.expression(call.arguments[0])
    if not made.text:
        raise TemplateProblemError("index of the whole object has no counterpart")
    for argument in call.arguments[1:]:
        key = there.expression(argument)
        value = argument.value if isinstance(argument, Literal) else None
        if isinstance(value, str) and made.path[:1] in (("cross",), ("external",), ("children",)):
            made = there.path((*made.path, value))
            if len(made.path) > 2 and not _IDENTIFIER.fullmatch(value):
                raise TemplateProblemError("an index with this key has no counterpart")
        elif isinstance(value, str) and _IDENTIFIER.fullmatch(value):
            made = there.steps(made, (value,))
        else:
            type_ = "text" if made.path[:2] in (("metadata", "labels"), ("metadata", "annotations")) else ""
            made = Made(f"{made.text}[{key.operand('null')}]", type_, True)
    return made


def _slice(call: Call, there: Translating) -> Made:
    if not 1 <= len(call.arguments) <= 3:
        raise TemplateProblemError("slice with a capacity has no counterpart")
    made, *bounds = (there.expression(argument) for argument in call.arguments)
    first, last = ([each.text for each in bounds] + ["", ""])[:2]
    return Made(f"{made.text}[{first}:{last}]", made.type)


def _printf(call: Call, there: Translating) -> Made:
    layout, given = (call.arguments[0], list(call.arguments[1:])) if call.arguments else (None, [])
    if not isinstance(layout, Literal) or not isinstance(layout.value, str):
        raise TemplateProblemError("printf without a text for its layout has no counterpart")
    parts: list[str] = []
    for piece in re.split(r"(%.)", layout.value, flags=re.DOTALL):
        if piece == "%%":
            parts.append("'%'")
        elif piece in ("%s", "%d", "%v"):
            if not given:
                raise TemplateProblemError("printf has fewer values than its layout asks for")
            parts.append(there.expression(given.pop(0)).operand("''"))
        elif piece.startswith("%"):
            raise TemplateProblemError(f"printf with {piece} has no counterpart", "write the value as text")
        elif piece:
            parts.append(quoted(piece))
    if given:
        raise TemplateProblemError("printf has more values than its layout asks for")
    return _joined(parts or ["''"])


def _print(call: Call, there: Translating) -> Made:
    given = [there.expression(argument) for argument in call.arguments]
    if not given or any(made.type != "text" for made in given[1:]):
        raise TemplateProblemError("print puts blanks between values that are no text", "use ~ between the values")
    return _joined([made.operand("''") for made in given])


def _joined(parts: list[str]) -> Made:
    """The text of operands, one after the other; at least one."""
    return Made(f"({' ~ '.join(parts)})" if len(parts) > 1 else f"asString({parts[0]})", "text")


def _get(call: Call, there: Translating) -> Made:
    steps = [each.value if isinstance(each, Literal) else None for each in call.arguments[1:]]
    if not steps or not all(isinstance(step, str) for step in steps):
        raise TemplateProblemError("get with a key that is computed has no counterpart", "use brackets: value[key]")
    made = there.argument("spec" if steps[0] == "spec" else "meta", there.expression(call.arguments[0]))
    return Made(f"get({made.text}, [{', '.join(quoted(str(step)) for step in steps)}])", "", False)


def _as_collection(call: Call, there: Translating) -> Made:
    if len(call.arguments) != 1:
        raise TemplateProblemError(f"{call.name} takes 1 argument, found {len(call.arguments)}")
    made = there.expression(call.arguments[0])
    type_ = "list" if call.name == "asList" else "map"
    if made.type != type_:
        raise TemplateProblemError(
            f"{call.name} reads JSON out of a text there, and it is not known to be a {type_}",
            "use fromJSON(text) for a text",
        )
    return Made(f"{call.name}({made.text})", type_)


def _keyed(call: Call, there: Translating) -> Made:
    if len(call.arguments) < 2:
        raise TemplateProblemError(f"{call.name} takes 2 arguments, found fewer")
    made, *keys = (there.expression(argument) for argument in call.arguments)
    if any(key.type != "text" for key in keys):
        raise TemplateProblemError(f"{call.name} with keys that are no text has no counterpart")
    return Made(f"{call.name}(asMap({made.text}), {', '.join(key.text for key in keys)})", "map")


def _cron_field(call: Call, there: Translating) -> Made:
    number = _second_of_two(call)
    if type(number) is not int or not 0 <= number < len(CRON_FIELDS):
        raise TemplateProblemError("cronField with a place that is computed has no counterpart")
    return Made(f"cronField({there.expression(call.arguments[0]).text}, '{CRON_FIELDS[number]}')", "text")


def _time_format(call: Call, there: Translating) -> Made:
    layout = _second_of_two(call)
    if not isinstance(layout, str):
        raise TemplateProblemError("timeFormat with a layout that is computed has no counterpart")
    made = layout.replace("%", "%%")
    for go, here in _LAYOUT:
        made = made.replace(go, here)
    if re.search(r"(?<!%)\d|(?<!%)[A-Z]{3}|PM|pm", made):
        raise TemplateProblemError(f"the layout {layout[:40]!r} has no counterpart", "write it with %Y %m %d %H %M %S")
    return Made(f"timeFormat({there.expression(call.arguments[0]).text}, {quoted(made)})", "text")


def _second_of_two(call: Call) -> str | float | bool | None:
    """The second of two arguments, if it is a literal."""
    second = call.arguments[1] if len(call.arguments) == 2 else None
    return second.value if isinstance(second, Literal) else None


def _container(call: Call, there: Translating) -> Made:
    """The first container: here it is asked for by name, there by its place."""
    object_, *rest = call.arguments or (Literal(None),)
    if not rest or rest[0] != Literal(0):
        raise TemplateProblemError(f"{call.name} of a container by its place", f"{call.name}(object, …, 'container')")
    made = there.expression(object_)
    more = [there.expression(argument).text for argument in rest[1:]]
    if call.name == "containerPort" and len(more) == 1:
        return Made(f"({more[0]} in containerPorts({made.text}))", "bool")
    if len(more) != (1 if call.name == "containerEnv" else 0):
        raise TemplateProblemError(f"{call.name} has other arguments than are known")
    return Made(f"{call.name}({', '.join([made.text, *more])})", "list" if call.name.endswith("s") else "text")


SPECIAL: Mapping[str, Callable[[Call, Translating], Made]] = {
    "default": _default,
    "coalesce": _coalesce,
    "and": _logic,
    "or": _logic,
    "eq": _equal,
    "index": _index,
    "slice": _slice,
    "printf": _printf,
    "print": _print,
    "get": _get,
    "asList": _as_collection,
    "asMap": _as_collection,
    "mapPick": _keyed,
    "mapOmit": _keyed,
    "cronField": _cron_field,
    "timeFormat": _time_format,
    "containerImage": _container,
    "containerEnv": _container,
    "containerPort": _container,
    "containerPorts": _container,
}
"""By name."""
