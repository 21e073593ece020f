"""The syntax tree of Go's text/template, for the part that Katalogs use.

A string becomes nodes or a `TemplateProblemError` with the unsupported part. Nothing is evaluated. Length, number of
tokens and depth are limited, so untrusted strings are safe.
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
    "has_template",
    "parse_template",
]

_MAX_LENGTH = 1 << 16
_MAX_TOKENS = 10_000
_MAX_DEPTH = 30


class TemplateProblemError(Exception):
    """A template cannot be converted.

    Args:
        why: The part without a counterpart.
        instead: The alternative.
    """

    def __init__(self, why: str, instead: str = "write the expression by hand") -> None:
        super().__init__(why)
        self.why = why
        self.instead = instead


@dataclass(frozen=True, slots=True)
class LiteralNode:
    """A literal: a string, a number, a boolean, or nil."""

    value: str | int | float | bool | None


@dataclass(frozen=True, slots=True)
class DotNode:
    """The dot, which is the object at first, with the fields of a path below it: ``.spec.replicas``."""

    path: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class VariableNode:
    """A variable with the fields below it: ``$host.name``; ``$`` alone has no name and is the object."""

    name: str
    path: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class CallNode:
    """A function and its arguments; a piped value is the last one."""

    name: str
    arguments: tuple[Expression, ...] = ()
    is_piped: bool = False


@dataclass(frozen=True, slots=True)
class ChainNode:
    """Fields below an expression in brackets: ``(index .spec.hosts 0).name``."""

    start: Expression
    path: tuple[str, ...]


Expression: TypeAlias = LiteralNode | DotNode | VariableNode | CallNode | ChainNode


@dataclass(frozen=True, slots=True)
class TextNode:
    """The text outside of the braces."""

    text: str


@dataclass(frozen=True, slots=True)
class ActionNode:
    """An expression whose value is rendered."""

    expression: Expression


@dataclass(frozen=True, slots=True)
class SetNode:
    """The declaration of a variable with its value."""

    name: str
    expression: Expression


@dataclass(frozen=True, slots=True)
class IfNode:
    """A test that selects one of two bodies."""

    test: Expression
    body: tuple[Node, ...]
    otherwise: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class RangeNode:
    """A body for each item; the names of unused variables are empty."""

    items: Expression
    key: str
    value: str
    body: tuple[Node, ...]
    otherwise: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class WithNode:
    """A body whose dot is the value, unless the value is empty."""

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


def has_template(text: str) -> bool:
    """Tell whether a string of a Katalog is a template."""
    return "{{" in text


def parse_template(text: str) -> tuple[Node, ...]:
    """Parse a template.

    Raises:
        TemplateProblemError: The string is not a template, or a part has no counterpart.
    """
    if len(text) > _MAX_LENGTH:
        raise TemplateProblemError(f"expected a template of at most {_MAX_LENGTH} characters, found a longer one")
    return _TemplateParser(_split_parts(text)).parse_nodes()


class _TemplatePart(NamedTuple):
    """Text, or the tokens of an action."""

    text: str
    words: tuple[_TemplateToken, ...] | None


def _split_parts(text: str) -> list[_TemplatePart]:
    """Split a template into alternating text and actions; the dashes of an action trim the text around it."""
    parts: list[_TemplatePart] = []
    at = count = 0
    trims = False
    while (opening := _ACTION.search(text, at)) is not None:
        before = text[at : opening.start()]
        before = before.lstrip() if trims else before
        parts.append(_TemplatePart(before.rstrip() if opening["left"] else before, None))
        words, at, trims = _tokenize_action(text, opening.end())
        count += len(words)
        if count > _MAX_TOKENS:
            raise TemplateProblemError(f"expected a template of at most {_MAX_TOKENS} tokens, found a longer one")
        parts.append(_TemplatePart("", words))
    rest = text[at:]
    parts.append(_TemplatePart(rest.lstrip() if trims else rest, None))
    return [piece for piece in parts if piece.words is not None or piece.text]


def _tokenize_action(text: str, at: int) -> tuple[tuple[_TemplateToken, ...], int, bool]:
    """Return the tokens of the action at an offset, the offset of its end, and whether it trims the text after it."""
    words: list[_TemplateToken] = []
    joined = True
    while True:
        closing = _CLOSING.match(text, at)
        if closing is not None:
            return tuple(words), closing.end(), closing["trims"] is not None
        found = _WORDS.match(text, at)
        if found is None:
            found_text = text[at : at + 20].splitlines()[0] if at < len(text) else "the end of the text"
            raise TemplateProblemError(f"invalid Go template: expected a word or }}}}, found {found_text!r}")
        at = found.end()
        kind = found.lastgroup or ""
        if kind == "field" and joined and words and words[-1].kind in ("field", "below", "variable", "name", "close"):
            kind = "below"  # it continues the word before it, without whitespace between them
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
            raise TemplateProblemError(f"invalid Go template: {ended[0].text} without an if, range or with")
        return nodes

    def _parse_body(self) -> tuple[tuple[Node, ...], tuple[_TemplateToken, ...] | None]:
        """Parse nodes up to else or end, and return them with its tokens; None at the end of the text."""
        self._depth += 1
        if self._depth > _MAX_DEPTH:
            raise TemplateProblemError(f"the template is nested deeper than {_MAX_DEPTH} levels")
        found: list[Node] = []
        ended: tuple[_TemplateToken, ...] | None = None
        while self._at < len(self._pieces):
            piece = self._pieces[self._at]
            self._at += 1
            if piece.words is None:
                found.append(TextNode(piece.text))
            elif piece.words:  # an action with only a comment has none
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
            raise TemplateProblemError("invalid Go template: two variables outside of a range")
        return ActionNode(_PipelineParser(words).parse_whole())

    def _parse_block(self, kind: str, words: tuple[_TemplateToken, ...]) -> Node:
        names, rest = _split_declaration(words)
        value = _PipelineParser(rest).parse_whole()
        body, ended = self._parse_body()
        otherwise: tuple[Node, ...] = ()
        if ended is not None and ended[0].text == "else":
            if len(ended) > 1:  # else if, else with: a separate block with the same end
                self._depth += 1
                if self._depth > _MAX_DEPTH:
                    raise TemplateProblemError(f"the template is nested deeper than {_MAX_DEPTH} levels")
                otherwise, ended = (self._parse_block(ended[1].text, ended[2:]),), ()
                self._depth -= 1
            else:
                otherwise, ended = self._parse_body()
        if ended is None or (ended and ended[0].text != "end"):
            raise TemplateProblemError(f"invalid Go template: {kind} without its end")
        if kind == "range":
            key, item = ("", names[0]) if len(names) == 1 else (names or ("", ""))[:2]
            return RangeNode(value, key, item, body, otherwise)
        if len(names) > 1 or (names and kind == "if" and len(names) != 1):
            raise TemplateProblemError(f"invalid Go template: two variables in {kind}")
        if kind == "with":
            return WithNode(value, names[0] if names else "", body, otherwise)
        if names:
            raise TemplateProblemError("an if that declares a variable has no counterpart")
        return IfNode(value, body, otherwise)


def _split_declaration(words: tuple[_TemplateToken, ...]) -> tuple[tuple[str, ...], tuple[_TemplateToken, ...]]:
    """Return the variables that are declared before a pipeline, and the remaining tokens."""
    for at, word in enumerate(words[:4]):
        if word == _TemplateToken("sign", "="):
            raise TemplateProblemError("a second assignment to a variable has no counterpart")
        if word == _TemplateToken("sign", ":="):
            names = [each.text[1:] for each in words[:at] if each.kind == "variable"]
            if not names or len(names) > 2:
                raise TemplateProblemError("invalid Go template: expected a variable before :=")
            return tuple(names), words[at + 1 :]
    return (), words


class _PipelineParser:
    """Parser of one pipeline of commands."""

    def __init__(self, words: tuple[_TemplateToken, ...]) -> None:
        self._words = words
        self._at = 0
        self._depth = 0

    def parse_whole(self) -> Expression:
        found = self._parse_pipeline()
        if self._at < len(self._words):
            raise TemplateProblemError(f"invalid Go template: unexpected {self._words[self._at].text!r}")
        return found

    def _peek_token(self) -> _TemplateToken | None:
        return self._words[self._at] if self._at < len(self._words) else None

    def _parse_pipeline(self) -> Expression:
        self._depth += 1
        if self._depth > _MAX_DEPTH:
            raise TemplateProblemError(f"the template is nested deeper than {_MAX_DEPTH} levels")
        found = self._parse_command(None)
        for number in range(_MAX_TOKENS):
            if self._peek_token() != _TemplateToken("sign", "|"):
                break
            if number > _MAX_DEPTH:
                raise TemplateProblemError(f"expected at most {_MAX_DEPTH} pipes in a row, found more")
            self._at += 1
            found = self._parse_command(found)
        self._depth -= 1
        return found

    def _parse_command(self, piped: Expression | None) -> Expression:
        operands = list(self._iter_operands())
        if not operands:
            raise TemplateProblemError("invalid Go template: an empty pipeline")
        first, rest = operands[0], operands[1:]
        if isinstance(first, CallNode) and not first.arguments and not first.is_piped:
            given = (*rest, piped) if piped is not None else tuple(rest)
            return CallNode(first.name, given, piped is not None)
        if rest or piped is not None:
            raise TemplateProblemError("invalid Go template: only a function can have arguments")
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
                raise TemplateProblemError("invalid Go template: an unclosed bracket")
            self._at += 1
            return ChainNode(inside, ())  # a call in brackets is a value: the next operand is not its argument
        raise TemplateProblemError(f"invalid Go template: unexpected {word.text!r}")

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
                )  # a function and its argument, without whitespace
        return ChainNode(start, tuple(path))


def _parse_literal(word: _TemplateToken) -> str | int | float:
    if word.kind == "text":
        if word.text[0] == "`":
            return word.text[1:-1]
        try:
            text: str = json.loads(re.sub(r"\\(.)", _convert_escape, word.text))
        except ValueError:
            raise TemplateProblemError(f"invalid Go template: an invalid string {word.text[:30]}") from None
        return text
    try:
        number: int | float = (
            int(word.text, 0) if re.fullmatch(r"[-+]?(0[xX]\w+|\d{1,20})", word.text) else float(word.text)
        )
    except ValueError:
        raise TemplateProblemError(f"a number without a counterpart: {word.text[:30]}") from None
    if not -_MAX_INTEGER <= number < _MAX_INTEGER:
        raise TemplateProblemError(f"expected a number of 64 bits, found {word.text[:30]}")
    return number


def _convert_escape(found: re.Match[str]) -> str:
    """Return an escape sequence in the form of JSON."""
    if found[1] in '"\\/bfnrtu':
        return found[0]
    known = {"a": "\\u0007", "v": "\\u000b", "'": "'"}
    if found[1] not in known:
        raise TemplateProblemError(f"an escape sequence without a counterpart: \\{found[1]}")
    return known[found[1]]
