"""Functions of Go templates whose translation depends on their arguments."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Protocol

from konverge_box._internal.katalog.go_functions import CRON_FIELDS
from konverge_box._internal.katalog.go_template import CallNode, Expression, LiteralNode, TemplateProblemError
from konverge_box._internal.katalog.operands import Operand, quote_text

__all__ = ["SPECIAL", "TranslatorProtocol"]

_LAYOUT = (
    ("2006", "%Y"), ("January", "%B"), ("Jan", "%b"), ("01", "%m"), ("02", "%d"), ("15", "%H"), ("04", "%M"),
    ("05", "%S"), ("Monday", "%A"), ("Mon", "%a"),
)  # fmt: skip
_IDENTIFIER = re.compile(r"[A-Za-z_]\w*")


class TranslatorProtocol(Protocol):
    """The translator of the template that contains a call."""

    def translate_expression(self, expression: Expression) -> Operand:
        """Return the translation of an expression."""

    def translate_path(self, path: tuple[str, ...]) -> Operand:
        """Return the translation of a path of the object."""

    def translate_steps(self, start: Operand, path: tuple[str, ...]) -> Operand:
        """Return the translation of fields below an operand."""

    def translate_argument(self, name: str, made: Operand) -> Operand:
        """Return an argument of the named function; it may be the object itself."""


def _translate_default(call: CallNode, there: TranslatorProtocol) -> Operand:
    """Translate ``default``: the literal is the fallback; with no literal, the intended fallback is ambiguous."""
    if len(call.arguments) != 2:
        raise TemplateProblemError(f"default: expected 2 arguments, found {len(call.arguments)}")
    first, second = call.arguments
    if isinstance(first, LiteralNode) == isinstance(second, LiteralNode) and not call.is_piped:
        raise TemplateProblemError(
            "default: expected one literal, found two or none: either argument can be the fallback",
            "write value | default(fallback)",
        )
    fallback, value = (first, second) if call.is_piped or isinstance(first, LiteralNode) else (second, first)
    other, made = there.translate_expression(fallback), there.translate_expression(value)
    text = other.to_operand("''")
    if other.type == "text" and made.type in ("", "text"):
        return Operand(f"coalesce({made.text}, {text})", "text" if made.type == "text" else "")
    return Operand(f"({made.text} | default({text}))", made.type or "")


def _translate_coalesce(call: CallNode, there: TranslatorProtocol) -> Operand:
    if not call.arguments:
        raise TemplateProblemError("coalesce: expected an argument, found none")
    given = [there.translate_expression(argument) for argument in call.arguments]
    types = {made.type for made in given}
    return Operand(f"coalesce({', '.join(made.text for made in given)})", types.pop() if len(types) == 1 else "")


def _translate_logic(call: CallNode, there: TranslatorProtocol) -> Operand:
    if not call.arguments:
        raise TemplateProblemError(f"{call.name}: expected an argument, found none")
    given = [there.translate_expression(argument) for argument in call.arguments]
    type_ = "bool" if all(made.type == "bool" for made in given) else ""
    return Operand("(" + f" {call.name} ".join(made.to_operand("false") for made in given) + ")", type_)


def _translate_equal(call: CallNode, there: TranslatorProtocol) -> Operand:
    if len(call.arguments) < 2:
        raise TemplateProblemError("eq: expected 2 arguments, found fewer")
    first, *rest = (there.translate_expression(argument).to_operand("null") for argument in call.arguments)
    return Operand("(" + " or ".join(f"{first} == {other}" for other in rest) + ")", "bool")


def _translate_index(call: CallNode, there: TranslatorProtocol) -> Operand:
    if len(call.arguments) < 2:
        raise TemplateProblemError("index: expected 2 arguments, found fewer")
    made = there.translate_expression(call.arguments[0])
    if not made.text:
        raise TemplateProblemError("index of the whole object has no counterpart")
    for argument in call.arguments[1:]:
        key = there.translate_expression(argument)
        value = argument.value if isinstance(argument, LiteralNode) else None
        if isinstance(value, str) and made.path[:1] in (("cross",), ("external",), ("children",)):
            made = there.translate_path((*made.path, value))
            if len(made.path) > 2 and not _IDENTIFIER.fullmatch(value):
                raise TemplateProblemError("an index with this key has no counterpart")
        elif isinstance(value, str) and _IDENTIFIER.fullmatch(value):
            made = there.translate_steps(made, (value,))
        else:
            type_ = "text" if made.path[:2] in (("metadata", "labels"), ("metadata", "annotations")) else ""
            made = Operand(f"{made.text}[{key.to_operand('null')}]", type_, True)
    return made


def _translate_slice(call: CallNode, there: TranslatorProtocol) -> Operand:
    if not 1 <= len(call.arguments) <= 3:
        raise TemplateProblemError("slice with a capacity has no counterpart")
    made, *bounds = (there.translate_expression(argument) for argument in call.arguments)
    first, last = ([each.text for each in bounds] + ["", ""])[:2]
    return Operand(f"{made.text}[{first}:{last}]", made.type)


def _translate_printf(call: CallNode, there: TranslatorProtocol) -> Operand:
    layout, given = (call.arguments[0], list(call.arguments[1:])) if call.arguments else (None, [])
    if not isinstance(layout, LiteralNode) or not isinstance(layout.value, str):
        raise TemplateProblemError("printf without a constant layout has no counterpart")
    parts: list[str] = []
    for piece in re.split(r"(%.)", layout.value, flags=re.DOTALL):
        if piece == "%%":
            parts.append("'%'")
        elif piece in ("%s", "%d", "%v"):
            if not given:
                raise TemplateProblemError("printf has fewer values than its layout requires")
            parts.append(there.translate_expression(given.pop(0)).to_operand("''"))
        elif piece.startswith("%"):
            raise TemplateProblemError(f"printf with {piece} has no counterpart", "write the value as a string")
        elif piece:
            parts.append(quote_text(piece))
    if given:
        raise TemplateProblemError("printf has more values than its layout requires")
    return _join_operands(parts or ["''"])


def _translate_print(call: CallNode, there: TranslatorProtocol) -> Operand:
    given = [there.translate_expression(argument) for argument in call.arguments]
    if not given or any(made.type != "text" for made in given[1:]):
        raise TemplateProblemError("print puts spaces between values that are not strings", "use ~ between the values")
    return _join_operands([made.to_operand("''") for made in given])


def _join_operands(parts: list[str]) -> Operand:
    """Concatenate operands, at least one, to a string."""
    return Operand(f"({' ~ '.join(parts)})" if len(parts) > 1 else f"asString({parts[0]})", "text")


def _translate_get(call: CallNode, there: TranslatorProtocol) -> Operand:
    steps = [each.value if isinstance(each, LiteralNode) else None for each in call.arguments[1:]]
    if not steps or not all(isinstance(step, str) for step in steps):
        raise TemplateProblemError("get with a computed key has no counterpart", "use brackets: value[key]")
    made = there.translate_argument(
        "spec" if steps[0] == "spec" else "meta", there.translate_expression(call.arguments[0])
    )
    return Operand(f"get({made.text}, [{', '.join(quote_text(str(step)) for step in steps)}])", "", False)


def _translate_collection(call: CallNode, there: TranslatorProtocol) -> Operand:
    if len(call.arguments) != 1:
        raise TemplateProblemError(f"{call.name}: expected 1 argument, found {len(call.arguments)}")
    made = there.translate_expression(call.arguments[0])
    type_ = "list" if call.name == "asList" else "map"
    if made.type != type_:
        raise TemplateProblemError(
            f"{call.name} parses a JSON string in a Katalog, and the value may not be a {type_}",
            "use fromJSON(text) for a string",
        )
    return Operand(f"{call.name}({made.text})", type_)


def _translate_keyed(call: CallNode, there: TranslatorProtocol) -> Operand:
    if len(call.arguments) < 2:
        raise TemplateProblemError(f"{call.name}: expected 2 arguments, found fewer")
    made, *keys = (there.translate_expression(argument) for argument in call.arguments)
    if any(key.type != "text" for key in keys):
        raise TemplateProblemError(f"{call.name} with keys that are not strings has no counterpart")
    return Operand(f"{call.name}(asMap({made.text}), {', '.join(key.text for key in keys)})", "map")


def _translate_cron_field(call: CallNode, there: TranslatorProtocol) -> Operand:
    number = _get_second_literal(call)
    if type(number) is not int or not 0 <= number < len(CRON_FIELDS):
        raise TemplateProblemError("cronField with a computed index has no counterpart")
    return Operand(f"cronField({there.translate_expression(call.arguments[0]).text}, '{CRON_FIELDS[number]}')", "text")


def _translate_time_format(call: CallNode, there: TranslatorProtocol) -> Operand:
    layout = _get_second_literal(call)
    if not isinstance(layout, str):
        raise TemplateProblemError("timeFormat with a computed layout has no counterpart")
    made = layout.replace("%", "%%")
    for go, here in _LAYOUT:
        made = made.replace(go, here)
    if re.search(r"(?<!%)\d|(?<!%)[A-Z]{3}|PM|pm", made):
        raise TemplateProblemError(f"the layout {layout[:40]!r} has no counterpart", "write it with %Y %m %d %H %M %S")
    return Operand(f"timeFormat({there.translate_expression(call.arguments[0]).text}, {quote_text(made)})", "text")


def _get_second_literal(call: CallNode) -> str | float | bool | None:
    """Return the second of two arguments if it is a literal."""
    second = call.arguments[1] if len(call.arguments) == 2 else None
    return second.value if isinstance(second, LiteralNode) else None


def _translate_container(call: CallNode, there: TranslatorProtocol) -> Operand:
    """Translate a read of the first container: a Katalog selects it by index, a box by name."""
    object_, *rest = call.arguments or (LiteralNode(None),)
    if not rest or rest[0] != LiteralNode(0):
        raise TemplateProblemError(
            f"{call.name} of a container by its index has no counterpart", f"{call.name}(object, …, 'container')"
        )
    made = there.translate_expression(object_)
    more = [there.translate_expression(argument).text for argument in rest[1:]]
    if call.name == "containerPort" and len(more) == 1:
        return Operand(f"({more[0]} in containerPorts({made.text}))", "bool")
    if len(more) != (1 if call.name == "containerEnv" else 0):
        raise TemplateProblemError(f"{call.name} has unexpected arguments")
    return Operand(f"{call.name}({', '.join([made.text, *more])})", "list" if call.name.endswith("s") else "text")


SPECIAL: Mapping[str, Callable[[CallNode, TranslatorProtocol], Operand]] = {
    "default": _translate_default,
    "coalesce": _translate_coalesce,
    "and": _translate_logic,
    "or": _translate_logic,
    "eq": _translate_equal,
    "index": _translate_index,
    "slice": _translate_slice,
    "printf": _translate_printf,
    "print": _translate_print,
    "get": _translate_get,
    "asList": _translate_collection,
    "asMap": _translate_collection,
    "mapPick": _translate_keyed,
    "mapOmit": _translate_keyed,
    "cronField": _translate_cron_field,
    "timeFormat": _translate_time_format,
    "containerImage": _translate_container,
    "containerEnv": _translate_container,
    "containerPort": _translate_container,
    "containerPorts": _translate_container,
}
"""The translators by name of the function."""
