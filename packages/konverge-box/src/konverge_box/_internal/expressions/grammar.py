"""The syntax tree of an expression, built by Jinja2's lexer and parser with four additions.

* Each node has the *offset* of its text in the field where Jinja2 has a line; Jinja2's parser passes on the value of
the
  lexer without using it. Line and column are computed from the offset.
* A leading dot of a path is dropped: ``.cross.db.status`` is ``cross.db.status``.
* The nesting of brackets and prefix operators is limited because the parser recurses for each.
* Comprehensions are expressions: ``[m.name for m in spec.members if m.active]``, ``{m.name: m.port for m in …}``. Each
  is a `nodes.List` or `nodes.Dict` whose only item is a `nodes.For`: Jinja2 allows no other classes of nodes.

Comments are ``{{# … #}}`` because Jinja2's own ``{#`` occurs in many shell scripts that contain expressions. Nothing
else of Jinja2 is used: it neither compiles nor runs anything here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import jinja2
from jinja2 import nodes
from jinja2.lexer import Token, TokenStream
from jinja2.parser import Parser

__all__ = ["GrammarError", "find_comprehension", "parse_expression"]

_MAX_DEPTH = 30
_MAX_TOKENS = 10_000
# After one of these, a dot continues a path; elsewhere it is a leading dot.
_ENDS = frozenset({"name", "rbracket", "rparen", "rbrace", "string", "integer", "float"})
_WORDS = frozenset({"and", "or", "not", "in", "is", "if", "elif", "else"})
_OPENING = frozenset({"lparen", "lbracket", "lbrace"})
_CLOSING = frozenset({"rparen", "rbracket", "rbrace"})
_PREFIXES = frozenset({"not", "sub", "add"})


class GrammarError(Exception):
    """The string is not a valid template.

    Args:
        at: The offset of the error.
        problem: What was expected and what was found.
    """

    def __init__(self, at: int, problem: str) -> None:
        super().__init__(problem)
        self.at = at
        self.problem = problem


class _OffsetEnvironment(jinja2.Environment):
    def _tokenize(
        self, source: str, name: str | None, filename: str | None = None, state: str | None = None
    ) -> TokenStream:
        tokens = self.lexer.wrap(
            _add_offsets(source, self.lexer.tokeniter(source, name, filename, state)), name, filename
        )
        return TokenStream(_drop_leading_dots(_limit_nesting(tokens)), name, filename)


_ENVIRONMENT = _OffsetEnvironment(
    comment_start_string="{{#",
    comment_end_string="#}}",
    trim_blocks=True,
    lstrip_blocks=True,
    keep_trailing_newline=True,
)


class _ComprehensionParser(Parser):
    """Jinja2's parser with comprehensions in brackets and braces."""

    def parse_list(self) -> nodes.List:
        token = self.stream.expect("lbracket")
        return nodes.List(self._parse_items("rbracket", self.parse_expression), lineno=token.lineno)

    def parse_dict(self) -> nodes.Dict:
        token = self.stream.expect("lbrace")
        return nodes.Dict(self._parse_items("rbrace", self._parse_pair), lineno=token.lineno)

    def _parse_pair(self) -> nodes.Pair:
        key = self.parse_expression()
        self.stream.expect("colon")
        return nodes.Pair(key, self.parse_expression(), lineno=key.lineno)

    def _parse_items(self, end: str, parse_item: Callable[[], nodes.Node]) -> list[Any]:
        """Parse the items up to the closing bracket; a comprehension is the only item."""
        items: list[nodes.Node] = []
        while self.stream.current.type != end:
            if items:
                self.stream.expect("comma")
            if self.stream.current.type == end:
                break
            items.append(parse_item())
            if len(items) == 1 and self.stream.current.test("name:for"):
                items = [self._parse_loop(items[0])]
                break
        self.stream.expect(end)
        return items

    def _parse_loop(self, element: nodes.Node) -> nodes.For:
        at = self.stream.expect("name:for").lineno
        target = self.parse_assign_target(extra_end_rules=("name:in",))
        self.stream.expect("name:in")
        items = self.parse_expression(with_condexpr=False)
        test: nodes.Expr | None = None
        while self.stream.skip_if("name:if"):
            more = self.parse_expression(with_condexpr=False)
            test = more if test is None else nodes.And(test, more, lineno=more.lineno)
        body = self._parse_loop(element) if self.stream.current.test("name:for") else element
        return nodes.For(target, items, [body], [], test, False, lineno=at)


def find_comprehension(node: nodes.List | nodes.Dict | nodes.Tuple) -> nodes.For | None:
    """Return the loop of a comprehension; None for other lists and mappings."""
    first: nodes.Node | None = node.items[0] if len(node.items) == 1 else None
    return first if isinstance(first, nodes.For) else None


def parse_expression(text: str) -> nodes.Template:
    """Parse a template whose lines end with a newline alone; `lineno` of each node is an offset in the string.

    Raises:
        GrammarError: The string is not a valid template.
    """
    try:
        return _ComprehensionParser(_ENVIRONMENT, text).parse()
    except jinja2.TemplateSyntaxError as error:
        raise GrammarError(error.lineno, (error.message or "").replace(", got ", ", found ")) from None
    except RecursionError:
        raise GrammarError(0, "nested too deeply") from None


def _add_offsets(text: str, tokens: Iterator[tuple[int, str, str]]) -> Iterator[tuple[int, str, str]]:
    """Yield the tokens with offsets in place of lines. The lexer skips only whitespace between two tokens."""
    at = 0
    while True:
        try:
            _, kind, value = next(tokens)
        except StopIteration:
            return
        except jinja2.TemplateSyntaxError as error:
            raise jinja2.TemplateSyntaxError(error.message or "", at + _count_blanks(text, at)) from None
        start = max(at, text.find(value, at))
        at = start + len(value)
        if kind == "integer" and len(value) > 25:
            raise jinja2.TemplateSyntaxError("expected a number of 64 bits, found a larger one", start)
        yield start, kind, value


def _count_blanks(text: str, at: int) -> int:
    return len(text[at:]) - len(text[at:].lstrip())


def _limit_nesting(tokens: Iterable[Token]) -> Iterator[Token]:
    depth = prefixes = branches = 0
    for number, token in enumerate(tokens):
        if number > _MAX_TOKENS:
            raise jinja2.TemplateSyntaxError(f"expected at most {_MAX_TOKENS} tokens, found more", token.lineno)
        word = token.value if token.type == "name" else token.type
        if word in _OPENING:
            depth += 1
        elif word in _CLOSING:
            depth -= 1
        elif word == "else":
            branches += 1
        elif word in ("variable_begin", "block_begin"):
            depth = branches = 0
        prefixes = prefixes + 1 if word in _PREFIXES else 0
        if max(depth, prefixes, branches) > _MAX_DEPTH:
            raise jinja2.TemplateSyntaxError(f"nested deeper than {_MAX_DEPTH} levels", token.lineno)
        yield token


def _drop_leading_dots(tokens: Iterable[Token]) -> Iterator[Token]:
    goes_on = False
    is_dropped = False
    for token in tokens:
        if token.type == "dot" and not goes_on and not is_dropped:
            is_dropped = True
            continue
        is_dropped = False
        goes_on = token.type in _ENDS and not (token.type == "name" and token.value in _WORDS)
        yield token
