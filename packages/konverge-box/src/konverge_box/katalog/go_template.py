"""Go's text/template, the part that Katalogs use, as a tree.

A text becomes nodes or a `TemplateProblemError` that says what it has that cannot be read. Nothing is evaluated. The
length, the number of words and the depth are bounded, so a text of anybody's can be given.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

__all__ = [
    "ActionNode",
    "CallNode",
    "ChainNode",
    "DotNode",
    "Expression",
    "IfNode",
    "LiteralNode",
    "Node",
    "RangeNode",
    "SetNode",
    "TemplateProblemError",
    "TextNode",
    "VariableNode",
    "WithNode",
    "parse_template",
]

_MAX_LENGTH = 1 << 16
_MAX_TOKENS = 10_000
_MAX_DEPTH = 30


class TemplateProblemError(Exception):
    """A template cannot be carried over.

    Args:
        why: What it has that stands against that.
        instead: What can be done.
    """

    def __init__(self, why: str, instead: str = "write the expression by hand") -> None:
        super().__init__(why)
        self.why = why
        self.instead = instead


@dataclass(frozen=True, slots=True)
class LiteralNode:
    """Text, a number, a boolean, or nil."""

    value: str | int | float | bool | None


@dataclass(frozen=True, slots=True)
class DotNode:
    """The dot, which is the object at first, and below it the fields of a path: ``.spec.replicas``."""

    path: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class VariableNode:
    """A variable and the fields below it: ``$host.name``; ``$`` alone has no name and is the object."""

    name: str
    path: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class CallNode:
    """A function and its arguments; what is piped in is the last one."""

    name: str
    arguments: tuple[Expression, ...] = ()
    is_piped: bool = False


@dataclass(frozen=True, slots=True)
class ChainNode:
    """Fields below what an expression in brackets gives: ``(index .spec.hosts 0).name``."""

    start: Expression
    path: tuple[str, ...]


Expression: TypeAlias = LiteralNode | DotNode | VariableNode | CallNode | ChainNode


@dataclass(frozen=True, slots=True)
class TextNode:
    """What stands outside of the braces."""

    text: str


@dataclass(frozen=True, slots=True)
class ActionNode:
    """An expression whose value is written."""

    expression: Expression


@dataclass(frozen=True, slots=True)
class SetNode:
    """A variable that gets its value."""

    name: str
    expression: Expression


@dataclass(frozen=True, slots=True)
class IfNode:
    """One body or the other."""

    test: Expression
    body: tuple[Node, ...]
    otherwise: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class RangeNode:
    """A body for each item; the variables are empty where they are not named."""

    items: Expression
    key: str
    value: str
    body: tuple[Node, ...]
    otherwise: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class WithNode:
    """A body whose dot is the value, unless that is empty."""

    value: Expression
    name: str
    body: tuple[Node, ...]
    otherwise: tuple[Node, ...]


Node: TypeAlias = TextNode | ActionNode | SetNode | IfNode | RangeNode | WithNode


class _TemplateToken(NamedTuple):
    kind: str
    text: str


_ACTION = re.compile(r"\{\{(?P<left>- |-\n|-\t)?")
_CLOSING = re.compile(r"(?P<trims>\s+-)?\}\}")
_WORDS = re.compile(
    r"""(?P<blank>\s+)
    |(?P<comment>/\*[\s\S]*?\*/)
    |(?P<text>"(?:[^"\\\n]|\\.)*"|`[^`]*`)
    |(?P<number>[-+]?(?:0[xX][0-9a-fA-F]+|[0-9]+(?:\.[0-9]*)?(?:[eE][-+]?[0-9]+)?)(?![\w.]))
    |(?P<variable>\$[A-Za-z0-9_]*)
    |(?P<field>\.[A-Za-z_]\w*)
    |(?P<dot>\.(?![\w.]))
    |(?P<name>[A-Za-z_]\w*)
    |(?P<sign>:=|[=|(),])""",
    re.VERBOSE,
)
_UNSUPPORTED = {"template", "define", "block", "break", "continue"}
_MAX_INTEGER = 1 << 63


def parse_template(text: str) -> tuple[Node, ...]:
    """Read a template.

    Raises:
        TemplateProblemError: It is none, or has what cannot be carried over.
    """
    if len(text) > _MAX_LENGTH:
        raise TemplateProblemError(f"the template has more than {_MAX_LENGTH} letters")
    return _TemplateParser(_split_parts(text)).parse_nodes()


class _TemplatePart(NamedTuple):
    """Text, or the words of an action."""

    text: str
    words: tuple[_TemplateToken, ...] | None


def _split_parts(text: str) -> list[_TemplatePart]:
    """Text and actions by turns; what the dashes of an action trim is trimmed."""
    found: list[_TemplatePart] = []
    at = count = 0
    trims = False
    while (opening := _ACTION.search(text, at)) is not None:
        before = text[at : opening.start()]
        before = before.lstrip() if trims else before
        found.append(_TemplatePart(before.rstrip() if opening["left"] else before, None))
        words, at, trims = _tokenize_action(text, opening.end())
        count += len(words)
        if count > _MAX_TOKENS:
            raise TemplateProblemError(f"the template has more than {_MAX_TOKENS} words and signs")
        found.append(_TemplatePart("", words))
    rest = text[at:]
    found.append(_TemplatePart(rest.lstrip() if trims else rest, None))
    return [piece for piece in found if piece.words is not None or piece.text]


def _tokenize_action(text: str, at: int) -> tuple[tuple[_TemplateToken, ...], int, bool]:
    """The words of the action that begins there, where it ends, and whether it trims what follows."""
    words: list[_TemplateToken] = []
    joined = True
    while True:
        closing = _CLOSING.match(text, at)
        if closing is not None:
            return tuple(words), closing.end(), closing["trims"] is not None
        found = _WORDS.match(text, at)
        if found is None:
            shown = text[at : at + 20].splitlines()[0] if at < len(text) else "the end of the text"
            raise TemplateProblemError(f"no Go template: expected a word or }}}}, found {shown!r}")
        at = found.end()
        kind = found.lastgroup or ""
        if kind == "field" and joined and words and words[-1].kind in ("field", "below", "variable", "name", "close"):
            kind = "below"  # it goes on with the word in front of it, without a blank between them
        if kind not in ("blank", "comment"):
            words.append(_TemplateToken("close" if found[0] == ")" else kind, found[0]))
        joined = kind != "blank"


class _TemplateParser:
    def __init__(self, pieces: list[_TemplatePart]) -> None:
        self._pieces = pieces
        self._at = 0
        self._depth = 0

    def parse_nodes(self) -> tuple[Node, ...]:
        nodes, ended = self._parse_body()
        if ended is not None:
            raise TemplateProblemError(f"no Go template: {ended[0].text} without an if, range or with")
        return nodes

    def _parse_body(self) -> tuple[tuple[Node, ...], tuple[_TemplateToken, ...] | None]:
        """Nodes up to else or end, and the words of that; None at the end of the text."""
        self._depth += 1
        if self._depth > _MAX_DEPTH:
            raise TemplateProblemError(f"the template nests deeper than {_MAX_DEPTH} levels")
        found: list[Node] = []
        ended: tuple[_TemplateToken, ...] | None = None
        while self._at < len(self._pieces):
            piece = self._pieces[self._at]
            self._at += 1
            if piece.words is None:
                found.append(TextNode(piece.text))
            elif piece.words:  # a comment alone has none
                if piece.words[0] in (_TemplateToken("name", "else"), _TemplateToken("name", "end")):
                    ended = piece.words
                    break
                found.append(self._parse_action(piece.words))
        self._depth -= 1
        return tuple(found), ended

    def _parse_action(self, words: tuple[_TemplateToken, ...]) -> Node:
        first = words[0].text if words[0].kind == "name" else ""
        if first in _UNSUPPORTED:
            raise TemplateProblemError(f"{{{{ {first} }}}} has no counterpart")
        if first in ("if", "with", "range"):
            return self._parse_block(first, words[1:])
        names, rest = _split_declaration(words)
        if len(names) == 1:
            return SetNode(names[0], _PipelineParser(rest).parse_whole())
        if names:
            raise TemplateProblemError("no Go template: two variables outside of a range")
        return ActionNode(_PipelineParser(words).parse_whole())

    def _parse_block(self, kind: str, words: tuple[_TemplateToken, ...]) -> Node:
        names, rest = _split_declaration(words)
        value = _PipelineParser(rest).parse_whole()
        body, ended = self._parse_body()
        otherwise: tuple[Node, ...] = ()
        if ended is not None and ended[0].text == "else":
            if len(ended) > 1:  # else if, else with: a block of its own, which has the same end
                self._depth += 1
                if self._depth > _MAX_DEPTH:
                    raise TemplateProblemError(f"the template nests deeper than {_MAX_DEPTH} levels")
                otherwise, ended = (self._parse_block(ended[1].text, ended[2:]),), ()
                self._depth -= 1
            else:
                otherwise, ended = self._parse_body()
        if ended is None or (ended and ended[0].text != "end"):
            raise TemplateProblemError(f"no Go template: {kind} without its end")
        if kind == "range":
            key, item = ("", names[0]) if len(names) == 1 else (names or ("", ""))[:2]
            return RangeNode(value, key, item, body, otherwise)
        if len(names) > 1 or (names and kind == "if" and len(names) != 1):
            raise TemplateProblemError(f"no Go template: two variables in {kind}")
        if kind == "with":
            return WithNode(value, names[0] if names else "", body, otherwise)
        if names:
            raise TemplateProblemError("an if that declares a variable has no counterpart")
        return IfNode(value, body, otherwise)


def _split_declaration(words: tuple[_TemplateToken, ...]) -> tuple[tuple[str, ...], tuple[_TemplateToken, ...]]:
    """The variables that are declared in front of a pipeline, and the rest."""
    for at, word in enumerate(words[:4]):
        if word == _TemplateToken("sign", "="):
            raise TemplateProblemError("a variable that gets a second value has no counterpart")
        if word == _TemplateToken("sign", ":="):
            names = [each.text[1:] for each in words[:at] if each.kind == "variable"]
            if not names or len(names) > 2:
                raise TemplateProblemError("no Go template: expected a variable before :=")
            return tuple(names), words[at + 1 :]
    return (), words


class _PipelineParser:
    """Reads one pipeline."""

    def __init__(self, words: tuple[_TemplateToken, ...]) -> None:
        self._words = words
        self._at = 0
        self._depth = 0

    def parse_whole(self) -> Expression:
        found = self._parse_pipeline()
        if self._at < len(self._words):
            raise TemplateProblemError(f"no Go template: unexpected {self._words[self._at].text!r}")
        return found

    def _peek_token(self) -> _TemplateToken | None:
        return self._words[self._at] if self._at < len(self._words) else None

    def _parse_pipeline(self) -> Expression:
        self._depth += 1
        if self._depth > _MAX_DEPTH:
            raise TemplateProblemError(f"the template nests deeper than {_MAX_DEPTH} levels")
        found = self._parse_command(None)
        for number in range(_MAX_TOKENS):
            if self._peek_token() != _TemplateToken("sign", "|"):
                break
            if number > _MAX_DEPTH:
                raise TemplateProblemError(f"the template has more than {_MAX_DEPTH} pipes in a row")
            self._at += 1
            found = self._parse_command(found)
        self._depth -= 1
        return found

    def _parse_command(self, piped: Expression | None) -> Expression:
        operands = list(self._iter_operands())
        if not operands:
            raise TemplateProblemError("no Go template: an empty pipeline")
        first, rest = operands[0], operands[1:]
        if isinstance(first, CallNode) and not first.arguments and not first.is_piped:
            given = (*rest, piped) if piped is not None else tuple(rest)
            return CallNode(first.name, given, piped is not None)
        if rest or piped is not None:
            raise TemplateProblemError("no Go template: only a function can have arguments")
        return first

    def _iter_operands(self) -> Iterator[Expression]:
        while (word := self._peek_token()) is not None and word.kind != "close" and word != _TemplateToken("sign", "|"):
            self._at += 1
            yield self._parse_fields(self._parse_term(word))

    def _parse_term(self, word: _TemplateToken) -> Expression:
        match word.kind:
            case "field":
                return DotNode((word.text[1:],))
            case "dot":
                return DotNode()
            case "variable":
                return VariableNode(word.text[1:])
            case "text" | "number":
                return LiteralNode(_parse_literal(word))
            case "name":
                constants: dict[str, bool | None] = {"true": True, "false": False, "nil": None}
                return LiteralNode(constants[word.text]) if word.text in constants else CallNode(word.text)
        if word == _TemplateToken("sign", "("):
            inside = self._parse_pipeline()
            closing = self._peek_token()
            if closing is None or closing.kind != "close":
                raise TemplateProblemError("no Go template: a bracket that is not closed")
            self._at += 1
            return ChainNode(inside, ())  # a call in brackets is a value: what stands behind it is no argument of it
        raise TemplateProblemError(f"no Go template: unexpected {word.text!r}")

    def _parse_fields(self, start: Expression) -> Expression:
        path: list[str] = []
        while (word := self._peek_token()) is not None and word.kind == "below":
            path.append(word.text[1:])
            self._at += 1
        if not path:
            return start
        match start:
            case DotNode():
                return DotNode((*start.path, *path))
            case VariableNode():
                return VariableNode(start.name, (*start.path, *path))
            case ChainNode():
                return ChainNode(start.start, tuple(path))
            case CallNode():
                return CallNode(
                    start.name, (DotNode(tuple(path)),), True
                )  # a function and its argument, without a blank
        return ChainNode(start, tuple(path))


def _parse_literal(word: _TemplateToken) -> str | int | float:
    if word.kind == "text":
        if word.text[0] == "`":
            return word.text[1:-1]
        try:
            text: str = json.loads(re.sub(r"\\(.)", _convert_escape, word.text))
        except ValueError:
            raise TemplateProblemError(f"no Go template: a text that cannot be read: {word.text[:30]}") from None
        return text
    try:
        number: int | float = (
            int(word.text, 0) if re.fullmatch(r"[-+]?(0[xX]\w+|\d{1,20})", word.text) else float(word.text)
        )
    except ValueError:
        raise TemplateProblemError(f"no number that is the same here: {word.text[:30]}") from None
    if not -_MAX_INTEGER <= number < _MAX_INTEGER:
        raise TemplateProblemError(f"a number of more than 64 bits: {word.text[:30]}")
    return number


def _convert_escape(found: re.Match[str]) -> str:
    """An escape as JSON has it."""
    if found[1] in '"\\/bfnrtu':
        return found[0]
    known = {"a": "\\u0007", "v": "\\u000b", "'": "'"}
    if found[1] not in known:
        raise TemplateProblemError(f"an escape that has no counterpart: \\{found[1]}")
    return known[found[1]]
