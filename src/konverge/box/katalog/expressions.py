"""Go templates as expressions of a box: the same meaning, or a `TemplateProblemError` that says why there is none.

What a Go template reads and does not find is empty text; here it is an error. So what may be absent gets what the place
where it stands makes of empty text (`Use`). What the schema of the custom resource says is always there, gets nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from enum import Enum
from typing import NamedTuple

from konverge.box.katalog.go_functions import CRON_FIELDS, FORMS, UNKNOWN
from konverge.box.katalog.go_template import (
    Action,
    Call,
    Chain,
    Dot,
    Expression,
    If,
    Literal,
    Node,
    Range,
    Set,
    TemplateProblemError,
    Text,
    Variable,
    With,
    parse_template,
)
from konverge.box.katalog.known_fields import CHILDREN, Known

__all__ = ["Use", "has_template", "path_of", "translated"]

_MAXIMUM_LENGTH = 1 << 16
_MAXIMUM_NOTES = 10


class Use(Enum):
    """Where the value of a template goes, by what becomes of it when there is none."""

    REQUIRED = "required"
    """It cannot do without: what is absent is an error."""
    TEXT = "text"
    """A field that is text: empty text."""
    VALUE = "value"
    """A field of any type: it is left out."""
    NUMBER = "number"
    """A field that is a number: it is left out, and digits are a number."""
    BOOLEAN = "boolean"
    """A field that is true or false: it is left out."""
    PLAIN = "plain"
    """A value of its own type: empty text."""
    FIELD = "field"
    """What a condition looks at, which may be absent."""


class _Made(NamedTuple):
    """A part of an expression.

    Args:
        text: An operand.
        type: ``text``, ``number``, ``bool``, ``list``, ``map``; empty for what is not known.
        may_be_absent: Whether it has no value for some objects.
        path: The path that it is, for what goes on from there.
    """

    text: str
    type: str = ""
    may_be_absent: bool = False
    path: tuple[str, ...] = ()


_MISSING: dict[str, tuple[str, str]] = {
    "ork": ("a box does not read facts of its process", "write the value out"),
    "inputs": ("there are no motifs", "write the value out"),
    "git": ("there is no git step", "call what builds with external, or use a Job"),
    "docker": ("there is no docker step", "use a Job"),
    "metrics": ("a box does not read its own metrics", "ask Prometheus with external"),
    "health": ("a box does not read its own health", "ask Prometheus with external"),
    "events": ("a box does not read events", "read the conditions of children"),
    "request": ("rules are not asked at admission", "use an admission policy"),
    "previous": ("a box does not keep the object as it was", "keep what you need in status.fields"),
}
_ROOTS = ("apiVersion", "kind", "metadata", "spec", "status", "cross", "external", "providers", "children")
_OBJECT_FUNCTIONS = {
    "meta", "name", "namespace", "labels", "annotations", "getLabel", "getAnnotation", "generation", "isTerminating",
    "resourceName",
}  # fmt: skip
_LAYOUT = (
    ("2006", "%Y"), ("January", "%B"), ("Jan", "%b"), ("01", "%m"), ("02", "%d"), ("15", "%H"), ("04", "%M"),
    ("05", "%S"), ("Monday", "%A"), ("Mon", "%a"),
)  # fmt: skip
_IDENTIFIER = re.compile(r"[A-Za-z_]\w*")
_NUMBER = re.compile(r"-?(0|[1-9][0-9]{0,17})")


def has_template(text: str) -> bool:
    """Tell whether a text of a Katalog is a template; any other is what it is."""
    return "{{" in text


def path_of(field: str, known: Known) -> str:
    """A path of a condition as it is called here.

    Raises:
        TemplateProblemError: Nothing here is called so.
    """
    steps = tuple(field.strip().removeprefix(".").split("."))
    return ".".join(_known_path(steps, known))


def translated(text: str, use: Use, known: Known) -> str:
    """A template of a Katalog as an expression of a box; a text without one stays as it is read there.

    Args:
        text: The template.
        use: What becomes of its value.
        known: What is known of what it reads.

    Raises:
        TemplateProblemError: It has no counterpart.
    """
    if not has_template(text):
        return _escaped(text)
    nodes = _stripped(parse_template(text))
    found = _Translator(known, use).whole(nodes)
    if len(found) > _MAXIMUM_LENGTH:
        raise TemplateProblemError(f"the expression would have more than {_MAXIMUM_LENGTH} letters")
    return found


def _escaped(text: str) -> str:
    """Text in which no brace means anything here."""
    return text.replace("{%", "{{ '{%' }}") if "{%" in text else text


def _stripped(nodes: tuple[Node, ...]) -> tuple[Node, ...]:
    """Without blanks at both ends, which a template's result does not have there."""
    found = list(nodes)
    while found and isinstance(found[0], Text) and not found[0].text.strip():
        found.pop(0)
    while found and isinstance(found[-1], Text) and not found[-1].text.strip():
        found.pop()
    if found and isinstance(first := found[0], Text):
        found[0] = Text(first.text.lstrip())
    if found and isinstance(last := found[-1], Text):
        found[-1] = Text(last.text.rstrip())
    return tuple(found)


def _bare(text: str) -> str:
    """Without brackets around all of it."""
    depth = 0
    quoted = False
    for at, letter in enumerate(text):
        if letter == "'" and text[at - 1 : at] != "\\":
            quoted = not quoted
        elif not quoted:
            depth += (letter == "(") - (letter == ")")
        if depth == 0 and at < len(text) - 1:
            return text
    return text[1:-1] if text.startswith("(") and text.endswith(")") else text


def _quoted(text: str) -> str:
    inside = (
        text.replace("\\", "\\\\").replace("'", "\\'").replace("\n", "\\n").replace("\t", "\\t").replace("\r", "\\r")
    )
    return f"'{inside}'"


def _known_path(path: tuple[str, ...], known: Known) -> tuple[str, ...]:
    root = path[0]
    if root in known.items:
        return path
    if root not in _ROOTS:
        why, instead = _MISSING.get(root, (f"nothing is called {root[:40]!r}", "write the expression by hand"))
        raise TemplateProblemError(f"{root[:40]}: {why}", instead)
    if len(path) > 1 and root == "children":
        child = CHILDREN.get(path[1].lower())
        if child is None or any(step.startswith("_") for step in path[2:]):
            raise TemplateProblemError(f"children.{path[1][:40]} has no counterpart", "read the object with cross")
        return (root, child, *path[2:])
    if len(path) > 1 and (root, path[1]) in known.renamed:
        return (root, known.renamed[root, path[1]], *path[2:])
    return path


class _Translator:
    def __init__(self, known: Known, use: Use) -> None:
        self._known = known
        self._use = use
        self._dot: _Made | None = None  # None: the object
        self._variables: dict[str, _Made] = {}
        self._loops = 0
        self._length = 0
        self._notes = 0

    # Templates.

    def whole(self, nodes: tuple[Node, ...]) -> str:
        alone = self._alone(nodes)
        if alone is None:
            return "".join(self._written(nodes))
        if self._use is Use.FIELD and alone.path and "[" not in alone.text:
            return alone.text
        return f"{{{{ {_bare(self._finished(alone))} }}}}"

    def _finished(self, made: _Made) -> str:
        """An expression that stands alone, as its use needs it."""
        match self._use:
            case Use.REQUIRED | Use.FIELD:
                return made.text
            case Use.TEXT:
                if made.type == "text":
                    return self._or(made, "''")
                return f"asString({_bare(made.text)})" if made.text else "''"
            case Use.PLAIN:
                return self._or(made, "''")
            case Use.NUMBER if made.type == "text":
                return f"toInt({made.text})"
            case Use.BOOLEAN if made.type == "text":
                return f"toBool({made.text})"
        return self._or(made, "omit")

    def _alone(self, nodes: tuple[Node, ...]) -> _Made | None:
        """The one expression that the nodes are; None for text with expressions in it."""
        if len(nodes) != 1:
            return None
        match nodes[0]:
            case Action(expression):
                return self._expression(expression)
            case If(test, body, otherwise):
                yes, no = self._branch(body), self._branch(otherwise)
                if yes is None or no is None:
                    return None
                type_ = yes.type if yes.type == no.type else ""
                return _Made(f"({yes.text} if {self._test(test)} else {no.text})", type_)
        return None

    def _branch(self, nodes: tuple[Node, ...]) -> _Made | None:
        nodes = _stripped(nodes)
        if not nodes:
            return _Made("omit") if self._use in (Use.VALUE, Use.NUMBER, Use.BOOLEAN) else _Made("''", "text")
        if len(nodes) == 1 and isinstance(nodes[0], Text):
            return self._scalar(nodes[0].text)
        found = self._alone(nodes)
        if found is None:
            return None
        absent = "omit" if self._use in (Use.VALUE, Use.NUMBER, Use.BOOLEAN) else "''"
        return found._replace(text=self._or(found, absent), may_be_absent=False, path=())

    def _scalar(self, text: str) -> _Made:
        """The text of a branch: where a number or a boolean is wanted, it is one."""
        if self._use in (Use.NUMBER, Use.VALUE, Use.PLAIN) and _NUMBER.fullmatch(text):
            return _Made(text, "number")
        if self._use in (Use.BOOLEAN, Use.VALUE, Use.PLAIN) and text in ("true", "false"):
            return _Made(text, "bool")
        return _Made(_quoted(text), "text")

    def _written(self, nodes: tuple[Node, ...]) -> list[str]:
        outside = dict(self._variables)
        parts: list[str] = []
        for at, node in enumerate(nodes):
            match node:
                case Text(text):
                    escaped = _escaped(text)
                    if escaped.endswith("{") and at + 1 < len(nodes):
                        escaped = escaped[:-1] + "{{ '{' }}"
                    parts.append(escaped)
                case Action(expression):
                    made = self._expression(expression)
                    empty = made.may_be_absent and self._use is not Use.REQUIRED
                    parts.append(f"{{{{ {self._or(made, chr(39) * 2) if empty else made.text} }}}}")
                case Set(name, expression):
                    self._variables[name] = self._kept(self._expression(expression))
                case If(test, body, otherwise):
                    parts += ["{%+ if ", self._test(test), " +%}", *self._written(body)]
                    parts += self._else(otherwise)
                    parts.append("{%+ endif +%}")
                case With(value, name, body, otherwise):
                    made = self._kept(self._expression(value))
                    parts += ["{%+ if ", self._or(made, "false"), " +%}", *self._inside(made, {name: made}, body)]
                    parts += self._else(otherwise)
                    parts.append("{%+ endif +%}")
                case Range():
                    parts += self._range(node)
            self._spend(parts[-1] if parts else "")
        self._variables = outside
        return parts

    def _else(self, nodes: tuple[Node, ...]) -> list[str]:
        return ["{%+ else +%}", *self._written(nodes)] if nodes else []

    def _range(self, node: Range) -> list[str]:
        made = self._expression(node.items)
        self._loops += 1
        item = "each" if self._loops == 1 else f"each{self._loops}"
        item_type = self._known.item_type(made.path) if made.path else ("", "")
        named: dict[str, _Made] = {}
        if made.type == "list":
            head, over = item, self._or(made, "[]")
            dot = _Made(item, item_type[0], path=())
            if node.key:
                named[node.key] = _Made("loop.index0", "number")
                if any(isinstance(each, Range) for each in node.body):
                    raise TemplateProblemError("an index of a range that has another range in it has no counterpart")
        elif made.type == "map" and node.key:
            head, over = f"{item}Key, {item}", f"mapItems({self._or(made, '{}')})"
            dot = _Made(item, item_type[1])
            named[node.key] = _Made(f"{item}Key", "text")
        elif node.key:
            raise TemplateProblemError(
                "a range with two variables over what is not known to be a list or a map",
                "give the CustomResourceDefinition as crdFile, or write the expression by hand",
            )
        else:  # the values of a map, or the items of a list
            head, over = item, f"(mapValues({made.text}) if typeMap({made.text}) else asList({made.text}))"
            dot = _Made(item)
        if node.value:
            named[node.value] = dot
        parts = ["{%+ for ", head, " in ", over, " +%}", *self._inside(dot, named, node.body)]
        return [*parts, *self._else(node.otherwise), "{%+ endfor +%}"]

    def _inside(self, dot: _Made, named: dict[str, _Made], body: tuple[Node, ...]) -> list[str]:
        outer, variables = self._dot, self._variables
        self._dot = dot
        self._variables = {**variables, **{name: made for name, made in named.items() if name}}
        parts = self._written(body)
        self._dot, self._variables = outer, variables
        return parts

    def _kept(self, made: _Made) -> _Made:
        """A value that is written where the variable stands: it must be the same each time."""
        if "random" in made.text:
            raise TemplateProblemError("a variable that is random would be another each time it stands")
        return made

    def _spend(self, text: str) -> None:
        self._length += len(text)
        if self._length > _MAXIMUM_LENGTH:
            raise TemplateProblemError(f"the expression would have more than {_MAXIMUM_LENGTH} letters")

    # Expressions.

    def _test(self, expression: Expression) -> str:
        return self._or(self._expression(expression), "false")

    def _or(self, made: _Made, fallback: str) -> str:
        return f"{made.text} | default({fallback})" if made.may_be_absent else made.text

    def _operand(self, made: _Made, fallback: str) -> str:
        found = self._or(made, fallback)
        return f"({found})" if made.may_be_absent else found

    def _expression(self, expression: Expression) -> _Made:
        made = self._one(expression)
        self._spend(made.text)
        return made

    def _one(self, expression: Expression) -> _Made:
        match expression:
            case Literal(value):
                return self._literal(value)
            case Dot(path):
                if self._dot is not None:
                    return self._steps(self._dot, path)
                return self._path(path) if path else _Made("", "map", path=("",))
            case Variable(name, path):
                if not name:
                    return self._path(path) if path else _Made("", "map", path=("",))
                if name not in self._variables:
                    raise TemplateProblemError(f"${name[:40]} has no value here")
                return self._steps(self._variables[name], path)
            case Chain(start, path):
                return self._steps(self._expression(start), path)
        return self._call(expression)

    @staticmethod
    def _literal(value: str | float | bool | None) -> _Made:
        if isinstance(value, bool):
            return _Made("true" if value else "false", "bool")
        if isinstance(value, str):
            return _Made(_quoted(value), "text")
        return _Made("null" if value is None else repr(value), "" if value is None else "number")

    def _path(self, path: tuple[str, ...]) -> _Made:
        there = _known_path(path, self._known)
        text = there[0] + "".join(f".{step}" for step in there[1:])
        return _Made(text, self._known.type_of(there), not self._known.is_always_there(there), there)

    def _steps(self, start: _Made, path: tuple[str, ...]) -> _Made:
        if not path:
            return start
        if start.path and start.path[0] in _ROOTS and "[" not in start.text:
            return self._path((*start.path, *path))
        return _Made(start.text + "".join(f".{step}" for step in path), "", True)

    def _call(self, call: Call) -> _Made:
        special = _SPECIAL.get(call.name)
        if special is not None:
            return special(self, call)
        note = self._known.notes.get(call.name)
        if note is not None:
            return self._note(call, note)
        form = FORMS.get(call.name)
        if form is None:
            why, instead = UNKNOWN.get(call.name, ("there is no such function", "write the expression by hand"))
            raise TemplateProblemError(f"{call.name[:40]}: {why}", instead)
        if not form.least <= len(call.arguments) <= form.most:
            raise TemplateProblemError(f"{call.name} takes {form.least} arguments, found {len(call.arguments)}")
        given: list[str] = []
        for place, argument in enumerate(call.arguments):
            made = self._argument(call.name, self._expression(argument))
            absent = form.absent[place] if place < len(form.absent) else ""
            given.append(made.text if absent in ("", "plain") else self._operand(made, absent))
        return _Made(form.text.format(*given), form.type)

    def _argument(self, name: str, made: _Made) -> _Made:
        """The object itself as an argument, for functions that look at one."""
        if made.text:
            return made
        if name in _OBJECT_FUNCTIONS:
            return _Made("{'metadata': metadata}", "map")
        if name in ("spec", "resourceCPU", "resourceMemory"):
            return _Made("{'spec': spec}", "map")
        if name in ("status", "phase", "hasCondition", "conditionReason", "conditionMessage"):
            return _Made("{'status': status | default({})}", "map")
        raise TemplateProblemError(
            f"{name[:40]} of the whole object has no counterpart", "name the field that it is about"
        )

    def _note(self, call: Call, template: str) -> _Made:
        self._notes += 1
        if self._notes > _MAXIMUM_NOTES:
            raise TemplateProblemError(f"more than {_MAXIMUM_NOTES} notes stand for one expression")
        if call.arguments:
            raise TemplateProblemError(f"the note {call.name[:40]} has arguments")
        outer = self._dot, self._variables
        self._dot, self._variables = None, {}
        found = self._alone(_stripped(parse_template(template)))
        self._dot, self._variables = outer
        if found is None:
            raise TemplateProblemError(f"the note {call.name[:40]} is more than one expression")
        return found if found.path else found._replace(text=f"({found.text})")

    # Functions that are more than a form.

    def _default(self, call: Call) -> _Made:
        """The literal is the fallback: of two that are none, nobody knows which was meant."""
        if len(call.arguments) != 2:
            raise TemplateProblemError(f"default takes 2 arguments, found {len(call.arguments)}")
        first, second = call.arguments
        if isinstance(first, Literal) == isinstance(second, Literal) and not call.is_piped:
            raise TemplateProblemError(
                "default of two values, of which either may be the fallback", "write value | default(fallback)"
            )
        fallback, value = (first, second) if call.is_piped or isinstance(first, Literal) else (second, first)
        other, made = self._expression(fallback), self._expression(value)
        text = self._operand(other, "''")
        if other.type == "text" and made.type in ("", "text"):
            return _Made(f"coalesce({made.text}, {text})", "text" if made.type == "text" else "")
        return _Made(f"({made.text} | default({text}))", made.type or "")

    def _coalesce(self, call: Call) -> _Made:
        if not call.arguments:
            raise TemplateProblemError("coalesce of nothing")
        given = [self._expression(argument) for argument in call.arguments]
        types = {made.type for made in given}
        return _Made(f"coalesce({', '.join(made.text for made in given)})", types.pop() if len(types) == 1 else "")

    def _logic(self, call: Call) -> _Made:
        if not call.arguments:
            raise TemplateProblemError(f"{call.name} of nothing")
        given = [self._expression(argument) for argument in call.arguments]
        type_ = "bool" if all(made.type == "bool" for made in given) else ""
        return _Made("(" + f" {call.name} ".join(self._operand(made, "false") for made in given) + ")", type_)

    def _equal(self, call: Call) -> _Made:
        if len(call.arguments) < 2:
            raise TemplateProblemError("eq takes 2 arguments, found fewer")
        first, *rest = (self._operand(self._expression(argument), "null") for argument in call.arguments)
        return _Made("(" + " or ".join(f"{first} == {other}" for other in rest) + ")", "bool")

    def _index(self, call: Call) -> _Made:
        if len(call.arguments) < 2:
            raise TemplateProblemError("index takes 2 arguments, found fewer")
        made = self._expression(call.arguments[0])
        if not made.text:
            raise TemplateProblemError("index of the whole object has no counterpart")
        for argument in call.arguments[1:]:
            key = self._expression(argument)
            value = argument.value if isinstance(argument, Literal) else None
            if isinstance(value, str) and made.path[:1] in (("cross",), ("external",), ("children",)):
                made = self._path((*made.path, value))
                if len(made.path) > 2 and not _IDENTIFIER.fullmatch(value):
                    raise TemplateProblemError("an index with this key has no counterpart")
            elif isinstance(value, str) and _IDENTIFIER.fullmatch(value):
                made = self._steps(made, (value,))
            else:
                type_ = "text" if made.path[:2] in (("metadata", "labels"), ("metadata", "annotations")) else ""
                made = _Made(f"{made.text}[{self._operand(key, 'null')}]", type_, True)
        return made

    def _slice(self, call: Call) -> _Made:
        if not 1 <= len(call.arguments) <= 3:
            raise TemplateProblemError("slice with a capacity has no counterpart")
        made, *bounds = (self._expression(argument) for argument in call.arguments)
        first, last = ([each.text for each in bounds] + ["", ""])[:2]
        return _Made(f"{made.text}[{first}:{last}]", made.type)

    def _printf(self, call: Call) -> _Made:
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
                parts.append(self._operand(self._expression(given.pop(0)), "''"))
            elif piece.startswith("%"):
                raise TemplateProblemError(f"printf with {piece} has no counterpart", "write the value as text")
            elif piece:
                parts.append(_quoted(piece))
        if given:
            raise TemplateProblemError("printf has more values than its layout asks for")
        return _Made(
            f"({' ~ '.join(parts)})" if len(parts) > 1 else f"asString({parts[0] if parts else chr(39) * 2})", "text"
        )

    def _print(self, call: Call) -> _Made:
        given = [self._expression(argument) for argument in call.arguments]
        if not given or any(made.type != "text" for made in given[1:]):
            raise TemplateProblemError("print puts blanks between values that are no text", "use ~ between the values")
        parts = [self._operand(made, "''") for made in given]
        return _Made(f"({' ~ '.join(parts)})" if len(parts) > 1 else f"asString({parts[0]})", "text")

    def _get(self, call: Call) -> _Made:
        steps = [each.value if isinstance(each, Literal) else None for each in call.arguments[1:]]
        if not steps or not all(isinstance(step, str) for step in steps):
            raise TemplateProblemError("get with a key that is computed has no counterpart", "use brackets: value[key]")
        made = self._argument("spec" if steps[0] == "spec" else "meta", self._expression(call.arguments[0]))
        return _Made(f"get({made.text}, [{', '.join(_quoted(str(step)) for step in steps)}])", "", False)

    def _as_collection(self, call: Call) -> _Made:
        if len(call.arguments) != 1:
            raise TemplateProblemError(f"{call.name} takes 1 argument, found {len(call.arguments)}")
        made = self._expression(call.arguments[0])
        type_ = "list" if call.name == "asList" else "map"
        if made.type != type_:
            raise TemplateProblemError(
                f"{call.name} reads JSON out of a text there, and it is not known to be a {type_}",
                "use fromJSON(text) for a text",
            )
        return _Made(f"{call.name}({made.text})", type_)

    def _keyed(self, call: Call) -> _Made:
        if len(call.arguments) < 2:
            raise TemplateProblemError(f"{call.name} takes 2 arguments, found fewer")
        made, *keys = (self._expression(argument) for argument in call.arguments)
        if any(key.type != "text" for key in keys):
            raise TemplateProblemError(f"{call.name} with keys that are no text has no counterpart")
        return _Made(f"{call.name}(asMap({made.text}), {', '.join(key.text for key in keys)})", "map")

    def _cron_field(self, call: Call) -> _Made:
        number = (
            call.arguments[1].value if len(call.arguments) == 2 and isinstance(call.arguments[1], Literal) else None
        )
        if type(number) is not int or not 0 <= number < len(CRON_FIELDS):
            raise TemplateProblemError("cronField with a place that is computed has no counterpart")
        return _Made(f"cronField({self._expression(call.arguments[0]).text}, '{CRON_FIELDS[number]}')", "text")

    def _time_format(self, call: Call) -> _Made:
        layout = (
            call.arguments[1].value if len(call.arguments) == 2 and isinstance(call.arguments[1], Literal) else None
        )
        if not isinstance(layout, str):
            raise TemplateProblemError("timeFormat with a layout that is computed has no counterpart")
        made = layout.replace("%", "%%")
        for go, here in _LAYOUT:
            made = made.replace(go, here)
        if re.search(r"(?<!%)\d|(?<!%)[A-Z]{3}|PM|pm", made):
            raise TemplateProblemError(
                f"the layout {layout[:40]!r} has no counterpart", "write it with %Y %m %d %H %M %S"
            )
        return _Made(f"timeFormat({self._expression(call.arguments[0]).text}, {_quoted(made)})", "text")

    def _container(self, call: Call) -> _Made:
        """The first container: here it is asked for by name, there by its place."""
        object_, *rest = call.arguments or (Literal(None),)
        if not rest or rest[0] != Literal(0):
            raise TemplateProblemError(
                f"{call.name} of a container by its place", f"{call.name}(object, …, 'container')"
            )
        made = self._expression(object_)
        more = [self._expression(argument).text for argument in rest[1:]]
        if call.name == "containerPort" and len(more) == 1:
            return _Made(f"({more[0]} in containerPorts({made.text}))", "bool")
        if len(more) != (1 if call.name == "containerEnv" else 0):
            raise TemplateProblemError(f"{call.name} has other arguments than are known")
        return _Made(f"{call.name}({', '.join([made.text, *more])})", "list" if call.name.endswith("s") else "text")


_SPECIAL: dict[str, Callable[[_Translator, Call], _Made]] = {
    "default": _Translator._default,
    "coalesce": _Translator._coalesce,
    "and": _Translator._logic,
    "or": _Translator._logic,
    "eq": _Translator._equal,
    "index": _Translator._index,
    "slice": _Translator._slice,
    "printf": _Translator._printf,
    "print": _Translator._print,
    "get": _Translator._get,
    "asList": _Translator._as_collection,
    "asMap": _Translator._as_collection,
    "mapPick": _Translator._keyed,
    "mapOmit": _Translator._keyed,
    "cronField": _Translator._cron_field,
    "timeFormat": _Translator._time_format,
    "containerImage": _Translator._container,
    "containerEnv": _Translator._container,
    "containerPort": _Translator._container,
    "containerPorts": _Translator._container,
}
