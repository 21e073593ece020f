"""Translation of Go templates to expressions of a box: the same meaning, or a `TemplateProblemError` with the reason.

A Go template renders an absent value as an empty string; an expression of a box fails. A value that may be absent
therefore gets the fallback that its use (`TemplateUse`) makes of an empty string. A value that the schema of the custom
resource requires gets no fallback.
"""

from __future__ import annotations

import re
from enum import Enum

from konverge_box._internal.katalog.go_call_translators import SPECIAL
from konverge_box._internal.katalog.go_functions import FORMS, UNKNOWN
from konverge_box._internal.katalog.go_template import (
    ActionNode,
    CallNode,
    ChainNode,
    DotNode,
    Expression,
    IfNode,
    LiteralNode,
    Node,
    RangeNode,
    SetNode,
    TemplateProblemError,
    TextNode,
    VariableNode,
    WithNode,
    has_template,
    parse_template,
)
from konverge_box._internal.katalog.known_fields import CHILDREN, KnownFields
from konverge_box._internal.katalog.operands import Operand, quote_text, strip_brackets

__all__ = ["TemplateUse", "translate_field_path", "translate_template"]

_MAX_LENGTH = 1 << 16
_MAX_NOTES = 10


class TemplateUse(Enum):
    """The use of a template's value, by the treatment of an absent value."""

    REQUIRED = "required"
    """The value is required: an absent one is an error."""
    TEXT = "text"
    """A string field: an empty string."""
    VALUE = "value"
    """A field of any type: left out."""
    NUMBER = "number"
    """A number field: left out; digits become a number."""
    BOOLEAN = "boolean"
    """A boolean field: left out."""
    PLAIN = "plain"
    """A value of its own type: an empty string."""
    FIELD = "field"
    """The field of a condition, which may be absent."""


_MISSING: dict[str, tuple[str, str]] = {
    "ork": ("a box does not read properties of its process", "write the value out"),
    "inputs": ("a box does not support motifs", "write the value out"),
    "git": ("a box has no git step", "call the build service with external, or use a Job"),
    "docker": ("a box has no docker step", "use a Job"),
    "metrics": ("a box does not read its own metrics", "query Prometheus with external"),
    "health": ("a box does not read its own health", "query Prometheus with external"),
    "events": ("a box does not read events", "read the conditions of children"),
    "request": ("a box does not check rules at admission", "use an admission policy"),
    "previous": ("a box does not keep the previous object", "keep values in status.fields"),
}
_ROOTS = ("apiVersion", "kind", "metadata", "spec", "status", "cross", "external", "providers", "children")
_OBJECT_FUNCTIONS = {
    "meta", "name", "namespace", "labels", "annotations", "getLabel", "getAnnotation", "generation", "isTerminating",
    "resourceName",
}  # fmt: skip
_NUMBER = re.compile(r"-?(0|[1-9][0-9]{0,17})")


def translate_field_path(field: str, known: KnownFields) -> str:
    """Return the path of a condition in the terms of a box.

    Raises:
        TemplateProblemError: The path has no counterpart.
    """
    steps = tuple(field.strip().removeprefix(".").split("."))
    return ".".join(_resolve_path(steps, known))


def translate_template(text: str, use: TemplateUse, known: KnownFields) -> str:
    """Translate a template of a Katalog to an expression of a box; other strings keep their meaning.

    Args:
        text: The template.
        use: The use of its value.
        known: The known types and names of the values that it reads.

    Raises:
        TemplateProblemError: The template has no counterpart.
    """
    if not has_template(text):
        return _escape_braces(text)
    nodes = _strip_blanks(parse_template(text))
    translated = _Translator(known, use).translate_nodes(nodes)
    if len(translated) > _MAX_LENGTH:
        raise TemplateProblemError(f"the expression would have more than {_MAX_LENGTH} characters")
    return translated


def _escape_braces(text: str) -> str:
    """Escape a string so that no brace starts a block in a box."""
    return text.replace("{%", "{{ '{%' }}") if "{%" in text else text


def _strip_blanks(nodes: tuple[Node, ...]) -> tuple[Node, ...]:
    """Remove whitespace at both ends: a Katalog trims the result of a template."""
    found = list(nodes)
    while found and isinstance(found[0], TextNode) and not found[0].text.strip():
        found.pop(0)
    while found and isinstance(found[-1], TextNode) and not found[-1].text.strip():
        found.pop()
    if found and isinstance(first := found[0], TextNode):
        found[0] = TextNode(first.text.lstrip())
    if found and isinstance(last := found[-1], TextNode):
        found[-1] = TextNode(last.text.rstrip())
    return tuple(found)


def _resolve_path(path: tuple[str, ...], known: KnownFields) -> tuple[str, ...]:
    root = path[0]
    if root in known.items:
        return path
    if root not in _ROOTS:
        why, instead = _MISSING.get(root, (f"unknown name {root[:40]!r}", "write the expression by hand"))
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
    def __init__(self, known: KnownFields, use: TemplateUse) -> None:
        self._known = known
        self._use = use
        self._dot: Operand | None = None  # None stands for the object
        self._variables: dict[str, Operand] = {}
        self._loops = 0
        self._length = 0
        self._notes = 0

    # Templates.

    def translate_nodes(self, nodes: tuple[Node, ...]) -> str:
        alone = self._translate_single(nodes)
        if alone is None:
            return "".join(self._translate_to_parts(nodes))
        if self._use is TemplateUse.FIELD and alone.path and "[" not in alone.text:
            return alone.text
        return f"{{{{ {strip_brackets(self._finish_expression(alone))} }}}}"

    def _finish_expression(self, made: Operand) -> str:
        """Return a single expression with the fallback that its use requires."""
        match self._use:
            case TemplateUse.REQUIRED | TemplateUse.FIELD:
                return made.text
            case TemplateUse.TEXT:
                if made.type == "text":
                    return made.with_fallback("''")
                return f"asString({strip_brackets(made.text)})" if made.text else "''"
            case TemplateUse.PLAIN:
                return made.with_fallback("''")
            case TemplateUse.NUMBER if made.type == "text":
                return f"toInt({made.text})"
            case TemplateUse.BOOLEAN if made.type == "text":
                return f"toBool({made.text})"
        return made.with_fallback("omit")

    def _translate_single(self, nodes: tuple[Node, ...]) -> Operand | None:
        """Return the single expression that the nodes form; None for text with expressions in it."""
        if len(nodes) != 1:
            return None
        match nodes[0]:
            case ActionNode(expression):
                return self.translate_expression(expression)
            case IfNode(test, body, otherwise):
                yes, no = self._translate_branch(body), self._translate_branch(otherwise)
                if yes is None or no is None:
                    return None
                type_ = yes.type if yes.type == no.type else ""
                return Operand(f"({yes.text} if {self._translate_test(test)} else {no.text})", type_)
        return None

    def _translate_branch(self, nodes: tuple[Node, ...]) -> Operand | None:
        nodes = _strip_blanks(nodes)
        if not nodes:
            return (
                Operand("omit")
                if self._use in (TemplateUse.VALUE, TemplateUse.NUMBER, TemplateUse.BOOLEAN)
                else Operand("''", "text")
            )
        if len(nodes) == 1 and isinstance(nodes[0], TextNode):
            return self._translate_scalar(nodes[0].text)
        found = self._translate_single(nodes)
        if found is None:
            return None
        absent = "omit" if self._use in (TemplateUse.VALUE, TemplateUse.NUMBER, TemplateUse.BOOLEAN) else "''"
        return found._replace(text=found.with_fallback(absent), may_be_absent=False, path=())

    def _translate_scalar(self, text: str) -> Operand:
        """Return the literal of a branch: a number or a boolean if the use allows one."""
        if self._use in (TemplateUse.NUMBER, TemplateUse.VALUE, TemplateUse.PLAIN) and _NUMBER.fullmatch(text):
            return Operand(text, "number")
        if self._use in (TemplateUse.BOOLEAN, TemplateUse.VALUE, TemplateUse.PLAIN) and text in ("true", "false"):
            return Operand(text, "bool")
        return Operand(quote_text(text), "text")

    def _translate_to_parts(self, nodes: tuple[Node, ...]) -> list[str]:
        outside = dict(self._variables)
        parts: list[str] = []
        for at, node in enumerate(nodes):
            match node:
                case TextNode(text):
                    escaped = _escape_braces(text)
                    if escaped.endswith("{") and at + 1 < len(nodes):
                        escaped = escaped[:-1] + "{{ '{' }}"
                    parts.append(escaped)
                case ActionNode(expression):
                    made = self.translate_expression(expression)
                    text = made.text if self._use is TemplateUse.REQUIRED else made.with_fallback("''")
                    parts.append(f"{{{{ {text} }}}}")
                case SetNode(name, expression):
                    self._variables[name] = self._check_constant(self.translate_expression(expression))
                case IfNode(test, body, otherwise):
                    parts += ["{%+ if ", self._translate_test(test), " +%}", *self._translate_to_parts(body)]
                    parts += self._translate_else(otherwise)
                    parts.append("{%+ endif +%}")
                case WithNode(value, name, body, otherwise):
                    made = self._check_constant(self.translate_expression(value))
                    parts += [
                        "{%+ if ",
                        made.with_fallback("false"),
                        " +%}",
                        *self._translate_body(made, {name: made}, body),
                    ]
                    parts += self._translate_else(otherwise)
                    parts.append("{%+ endif +%}")
                case RangeNode():
                    parts += self._translate_range(node)
            self._count_length(parts[-1] if parts else "")
        self._variables = outside
        return parts

    def _translate_else(self, nodes: tuple[Node, ...]) -> list[str]:
        return ["{%+ else +%}", *self._translate_to_parts(nodes)] if nodes else []

    def _translate_range(self, node: RangeNode) -> list[str]:
        made = self.translate_expression(node.items)
        self._loops += 1
        item = "each" if self._loops == 1 else f"each{self._loops}"
        item_type = self._known.find_item_types(made.path) if made.path else ("", "")
        named: dict[str, Operand] = {}
        if made.type == "list":
            head, over = item, made.with_fallback("[]")
            dot = Operand(item, item_type[0], path=())
            if node.key:
                named[node.key] = Operand("loop.index0", "number")
                if any(isinstance(each, RangeNode) for each in node.body):
                    raise TemplateProblemError("an index of a range that contains another range has no counterpart")
        elif made.type == "map" and node.key:
            head, over = f"{item}Key, {item}", f"mapItems({made.with_fallback('{}')})"
            dot = Operand(item, item_type[1])
            named[node.key] = Operand(f"{item}Key", "text")
        elif node.key:
            raise TemplateProblemError(
                "a range with two variables over a value of unknown type",
                "give the CustomResourceDefinition as crdFile, or write the expression by hand",
            )
        else:  # the values of a map, or the items of a list
            head, over = item, f"(mapValues({made.text}) if typeMap({made.text}) else asList({made.text}))"
            dot = Operand(item)
        if node.value:
            named[node.value] = dot
        parts = ["{%+ for ", head, " in ", over, " +%}", *self._translate_body(dot, named, node.body)]
        return [*parts, *self._translate_else(node.otherwise), "{%+ endfor +%}"]

    def _translate_body(self, dot: Operand, named: dict[str, Operand], body: tuple[Node, ...]) -> list[str]:
        outer, variables = self._dot, self._variables
        self._dot = dot
        self._variables = {**variables, **{name: made for name, made in named.items() if name}}
        parts = self._translate_to_parts(body)
        self._dot, self._variables = outer, variables
        return parts

    def _check_constant(self, made: Operand) -> Operand:
        """Return a value that replaces its variable at each use: it must be the same each time."""
        if "random" in made.text:
            raise TemplateProblemError("a variable with a random value would differ at each use")
        return made

    def _count_length(self, text: str) -> None:
        self._length += len(text)
        if self._length > _MAX_LENGTH:
            raise TemplateProblemError(f"the expression would have more than {_MAX_LENGTH} characters")

    # Expressions.

    def _translate_test(self, expression: Expression) -> str:
        return self.translate_expression(expression).with_fallback("false")

    def translate_expression(self, expression: Expression) -> Operand:
        made = self._translate_operand(expression)
        self._count_length(made.text)
        return made

    def _translate_operand(self, expression: Expression) -> Operand:
        match expression:
            case LiteralNode(value):
                return self._translate_literal(value)
            case DotNode(path):
                if self._dot is not None:
                    return self.translate_steps(self._dot, path)
                return self.translate_path(path) if path else Operand("", "map", path=("",))
            case VariableNode(name, path):
                if not name:
                    return self.translate_path(path) if path else Operand("", "map", path=("",))
                if name not in self._variables:
                    raise TemplateProblemError(f"${name[:40]} has no value here")
                return self.translate_steps(self._variables[name], path)
            case ChainNode(start, path):
                return self.translate_steps(self.translate_expression(start), path)
        return self._translate_call(expression)

    @staticmethod
    def _translate_literal(value: str | float | bool | None) -> Operand:
        if isinstance(value, bool):
            return Operand("true" if value else "false", "bool")
        if isinstance(value, str):
            return Operand(quote_text(value), "text")
        return Operand("null" if value is None else repr(value), "" if value is None else "number")

    def translate_path(self, path: tuple[str, ...]) -> Operand:
        there = _resolve_path(path, self._known)
        text = there[0] + "".join(f".{step}" for step in there[1:])
        return Operand(text, self._known.find_type(there), not self._known.is_always_there(there), there)

    def translate_steps(self, start: Operand, path: tuple[str, ...]) -> Operand:
        if not path:
            return start
        if start.path and start.path[0] in _ROOTS and "[" not in start.text:
            return self.translate_path((*start.path, *path))
        return Operand(start.text + "".join(f".{step}" for step in path), "", True)

    def _translate_call(self, call: CallNode) -> Operand:
        special = SPECIAL.get(call.name)
        if special is not None:
            return special(call, self)
        note = self._known.notes.get(call.name)
        if note is not None:
            return self._translate_note(call, note)
        form = FORMS.get(call.name)
        if form is None:
            why, instead = UNKNOWN.get(call.name, ("unknown function", "write the expression by hand"))
            raise TemplateProblemError(f"{call.name[:40]}: {why}", instead)
        if not form.least <= len(call.arguments) <= form.most:
            raise TemplateProblemError(f"{call.name}: expected {form.least} arguments, found {len(call.arguments)}")
        given: list[str] = []
        for place, argument in enumerate(call.arguments):
            made = self.translate_argument(call.name, self.translate_expression(argument))
            absent = form.absent[place] if place < len(form.absent) else ""
            given.append(made.text if absent in ("", "plain") else made.to_operand(absent))
        return Operand(form.text.format(*given), form.type)

    def translate_argument(self, name: str, made: Operand) -> Operand:
        """Return the argument of a function; the whole object becomes the part that the function reads."""
        if made.text:
            return made
        if name in _OBJECT_FUNCTIONS:
            return Operand("{'metadata': metadata}", "map")
        if name in ("spec", "resourceCPU", "resourceMemory"):
            return Operand("{'spec': spec}", "map")
        if name in ("status", "phase", "hasCondition", "conditionReason", "conditionMessage"):
            return Operand("{'status': status | default({})}", "map")
        raise TemplateProblemError(f"{name[:40]} of the whole object has no counterpart", "name the field")

    def _translate_note(self, call: CallNode, template: str) -> Operand:
        self._notes += 1
        if self._notes > _MAX_NOTES:
            raise TemplateProblemError(f"expected at most {_MAX_NOTES} notes in one expression, found more")
        if call.arguments:
            raise TemplateProblemError(f"the note {call.name[:40]} has arguments, which have no counterpart")
        outer = self._dot, self._variables
        self._dot, self._variables = None, {}
        found = self._translate_single(_strip_blanks(parse_template(template)))
        self._dot, self._variables = outer
        if found is None:
            raise TemplateProblemError(f"the note {call.name[:40]} is not a single expression")
        return found if found.path else found._replace(text=f"({found.text})")
