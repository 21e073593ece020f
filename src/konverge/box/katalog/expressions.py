"""Go templates as expressions of a box: the same meaning, or a `TemplateProblemError` that says why there is none.

What a Go template reads and does not find is empty text; here it is an error. So what may be absent gets what the place
where it stands makes of empty text (`Use`). What the schema of the custom resource says is always there, gets nothing.
"""

from __future__ import annotations

import re
from enum import Enum

from konverge.box.katalog.go_calls import SPECIAL
from konverge.box.katalog.go_functions import FORMS, UNKNOWN
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
from konverge.box.katalog.operands import Made, bare, quoted

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
        self._dot: Made | None = None  # None: the object
        self._variables: dict[str, Made] = {}
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
        return f"{{{{ {bare(self._finished(alone))} }}}}"

    def _finished(self, made: Made) -> str:
        """An expression that stands alone, as its use needs it."""
        match self._use:
            case Use.REQUIRED | Use.FIELD:
                return made.text
            case Use.TEXT:
                if made.type == "text":
                    return made.or_else("''")
                return f"asString({bare(made.text)})" if made.text else "''"
            case Use.PLAIN:
                return made.or_else("''")
            case Use.NUMBER if made.type == "text":
                return f"toInt({made.text})"
            case Use.BOOLEAN if made.type == "text":
                return f"toBool({made.text})"
        return made.or_else("omit")

    def _alone(self, nodes: tuple[Node, ...]) -> Made | None:
        """The one expression that the nodes are; None for text with expressions in it."""
        if len(nodes) != 1:
            return None
        match nodes[0]:
            case Action(expression):
                return self.expression(expression)
            case If(test, body, otherwise):
                yes, no = self._branch(body), self._branch(otherwise)
                if yes is None or no is None:
                    return None
                type_ = yes.type if yes.type == no.type else ""
                return Made(f"({yes.text} if {self._test(test)} else {no.text})", type_)
        return None

    def _branch(self, nodes: tuple[Node, ...]) -> Made | None:
        nodes = _stripped(nodes)
        if not nodes:
            return Made("omit") if self._use in (Use.VALUE, Use.NUMBER, Use.BOOLEAN) else Made("''", "text")
        if len(nodes) == 1 and isinstance(nodes[0], Text):
            return self._scalar(nodes[0].text)
        found = self._alone(nodes)
        if found is None:
            return None
        absent = "omit" if self._use in (Use.VALUE, Use.NUMBER, Use.BOOLEAN) else "''"
        return found._replace(text=found.or_else(absent), may_be_absent=False, path=())

    def _scalar(self, text: str) -> Made:
        """The text of a branch: where a number or a boolean is wanted, it is one."""
        if self._use in (Use.NUMBER, Use.VALUE, Use.PLAIN) and _NUMBER.fullmatch(text):
            return Made(text, "number")
        if self._use in (Use.BOOLEAN, Use.VALUE, Use.PLAIN) and text in ("true", "false"):
            return Made(text, "bool")
        return Made(quoted(text), "text")

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
                    made = self.expression(expression)
                    shown = made.text if self._use is Use.REQUIRED else made.or_else("''")
                    parts.append(f"{{{{ {shown} }}}}")
                case Set(name, expression):
                    self._variables[name] = self._kept(self.expression(expression))
                case If(test, body, otherwise):
                    parts += ["{%+ if ", self._test(test), " +%}", *self._written(body)]
                    parts += self._else(otherwise)
                    parts.append("{%+ endif +%}")
                case With(value, name, body, otherwise):
                    made = self._kept(self.expression(value))
                    parts += ["{%+ if ", made.or_else("false"), " +%}", *self._inside(made, {name: made}, body)]
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
        made = self.expression(node.items)
        self._loops += 1
        item = "each" if self._loops == 1 else f"each{self._loops}"
        item_type = self._known.item_type(made.path) if made.path else ("", "")
        named: dict[str, Made] = {}
        if made.type == "list":
            head, over = item, made.or_else("[]")
            dot = Made(item, item_type[0], path=())
            if node.key:
                named[node.key] = Made("loop.index0", "number")
                if any(isinstance(each, Range) for each in node.body):
                    raise TemplateProblemError("an index of a range that has another range in it has no counterpart")
        elif made.type == "map" and node.key:
            head, over = f"{item}Key, {item}", f"mapItems({made.or_else('{}')})"
            dot = Made(item, item_type[1])
            named[node.key] = Made(f"{item}Key", "text")
        elif node.key:
            raise TemplateProblemError(
                "a range with two variables over what is not known to be a list or a map",
                "give the CustomResourceDefinition as crdFile, or write the expression by hand",
            )
        else:  # the values of a map, or the items of a list
            head, over = item, f"(mapValues({made.text}) if typeMap({made.text}) else asList({made.text}))"
            dot = Made(item)
        if node.value:
            named[node.value] = dot
        parts = ["{%+ for ", head, " in ", over, " +%}", *self._inside(dot, named, node.body)]
        return [*parts, *self._else(node.otherwise), "{%+ endfor +%}"]

    def _inside(self, dot: Made, named: dict[str, Made], body: tuple[Node, ...]) -> list[str]:
        outer, variables = self._dot, self._variables
        self._dot = dot
        self._variables = {**variables, **{name: made for name, made in named.items() if name}}
        parts = self._written(body)
        self._dot, self._variables = outer, variables
        return parts

    def _kept(self, made: Made) -> Made:
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
        return self.expression(expression).or_else("false")

    def expression(self, expression: Expression) -> Made:
        made = self._one(expression)
        self._spend(made.text)
        return made

    def _one(self, expression: Expression) -> Made:
        match expression:
            case Literal(value):
                return self._literal(value)
            case Dot(path):
                if self._dot is not None:
                    return self.steps(self._dot, path)
                return self.path(path) if path else Made("", "map", path=("",))
            case Variable(name, path):
                if not name:
                    return self.path(path) if path else Made("", "map", path=("",))
                if name not in self._variables:
                    raise TemplateProblemError(f"${name[:40]} has no value here")
                return self.steps(self._variables[name], path)
            case Chain(start, path):
                return self.steps(self.expression(start), path)
        return self._call(expression)

    @staticmethod
    def _literal(value: str | float | bool | None) -> Made:
        if isinstance(value, bool):
            return Made("true" if value else "false", "bool")
        if isinstance(value, str):
            return Made(quoted(value), "text")
        return Made("null" if value is None else repr(value), "" if value is None else "number")

    def path(self, path: tuple[str, ...]) -> Made:
        there = _known_path(path, self._known)
        text = there[0] + "".join(f".{step}" for step in there[1:])
        return Made(text, self._known.type_of(there), not self._known.is_always_there(there), there)

    def steps(self, start: Made, path: tuple[str, ...]) -> Made:
        if not path:
            return start
        if start.path and start.path[0] in _ROOTS and "[" not in start.text:
            return self.path((*start.path, *path))
        return Made(start.text + "".join(f".{step}" for step in path), "", True)

    def _call(self, call: Call) -> Made:
        special = SPECIAL.get(call.name)
        if special is not None:
            return special(call, self)
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
            made = self.argument(call.name, self.expression(argument))
            absent = form.absent[place] if place < len(form.absent) else ""
            given.append(made.text if absent in ("", "plain") else made.operand(absent))
        return Made(form.text.format(*given), form.type)

    def argument(self, name: str, made: Made) -> Made:
        """The object itself as an argument, for functions that look at one."""
        if made.text:
            return made
        if name in _OBJECT_FUNCTIONS:
            return Made("{'metadata': metadata}", "map")
        if name in ("spec", "resourceCPU", "resourceMemory"):
            return Made("{'spec': spec}", "map")
        if name in ("status", "phase", "hasCondition", "conditionReason", "conditionMessage"):
            return Made("{'status': status | default({})}", "map")
        raise TemplateProblemError(
            f"{name[:40]} of the whole object has no counterpart", "name the field that it is about"
        )

    def _note(self, call: Call, template: str) -> Made:
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
