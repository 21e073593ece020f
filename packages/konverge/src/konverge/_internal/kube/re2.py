"""Regular expressions of schemas, in the real server's dialect (RE2), matched in bounded time.

Python's `re` tries one alternative after the other: the pattern ``^(a+)+$`` and forty letters block the process for
days. This module follows all alternatives at once, letter by letter, in a finite automaton. It caches the step from a
set of states by a letter. Only the existence of a match matters, so groups capture nothing and laziness has no effect.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import NamedTuple, TypeAlias

from konverge._internal.kube.unicode_classes import find_unicode_class

__all__ = ["MatchTooCostlyError", "Pattern", "PatternSyntaxError", "compile_pattern"]

Test: TypeAlias = Callable[[str], bool]

_MAX_STATES = 10_000
_MAX_REPEATS = 1_000
_MAX_DEPTH = 100
# The maximum number of states in the cached steps of one pattern.
_MAX_CACHED_SETS = 50_000
# The maximum number of states to visit for one text, about a second. Cached steps cost nothing.
_MAX_VISITS = 2_000_000

_COUNT = re.compile(r"\{([0-9]+)(,([0-9]*))?\}")
_GROUP = re.compile(r"\?P?<[A-Za-z0-9_]+>")
_FLAGS = re.compile(r"\?([imsU]*)(?:-([imsU]+))?([:)])")
_LITERALS = {"a": "\a", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}


class PatternSyntaxError(ValueError):
    """A pattern cannot be parsed; the message is the real server's text after "error parsing regexp"."""


class MatchTooCostlyError(ValueError):
    """The match of a text needs more work than the limit for one request."""


class _AutomatonState(NamedTuple):
    """One state: a letter to pass (`test`), a position to be at (`assertion`), or a fork; the match has neither."""

    next_states: tuple[int, ...]
    test: Test | None = None
    assertion: str = ""


_StateBuilder: TypeAlias = Callable[[int], int]
"""A function that adds the states of a part before the state that follows it, and returns the part's first state."""


class Pattern:
    """A compiled pattern.

    Args:
        text: The pattern.

    Raises:
        PatternSyntaxError: The pattern cannot be parsed.
    """

    def __init__(self, text: str) -> None:
        self._states: list[_AutomatonState] = [_AutomatonState(())]
        self._start = _PatternParser(text, self._states).parse()(0)
        self._steps: dict[tuple[frozenset[int], str, str], frozenset[int] | None] = {}
        self._cached_states = 0

    def matches(self, text: str, *, maximum_visits: int = _MAX_VISITS) -> bool:
        """Return True if the pattern matches anywhere in the text.

        Args:
            text: The text to search.
            maximum_visits: The maximum number of states to visit; two million take about a second.

        Raises:
            MatchTooCostlyError: The search exceeded the limit.
        """
        at: frozenset[int] = frozenset()
        before, visits = "start", 0
        for letter in text:
            step = (at, before, letter)
            if step not in self._steps:
                reached = self._follow_empty(at, before, letter)
                visits += len(reached)
                if visits > maximum_visits:
                    raise MatchTooCostlyError
                self._cached_states += len(reached)
                if self._cached_states > _MAX_CACHED_SETS:
                    self._steps.clear()
                    self._cached_states = len(reached)
                self._steps[step] = None if 0 in reached else self._advance(reached, letter)
            then = self._steps[step]
            if then is None:
                return True
            at, before = then, _categorize(letter)
        return 0 in self._follow_empty(at, before, "")

    def _follow_empty(self, at: frozenset[int], before: str, letter: str) -> set[int]:
        """Return all states between the two letters; a match may begin anywhere."""
        reached: set[int] = set()
        waiting = [self._start, *at]
        while waiting:
            number = waiting.pop()
            if number in reached:
                continue
            reached.add(number)
            state = self._states[number]
            if state.test is None and (not state.assertion or _is_at(state.assertion, before, letter)):
                waiting += state.next_states
        return reached

    def _advance(self, reached: Iterable[int], letter: str) -> frozenset[int]:
        states = (self._states[number] for number in reached)
        return frozenset(state.next_states[0] for state in states if state.test is not None and state.test(letter))


@lru_cache(maxsize=64)
def compile_pattern(text: str) -> Pattern | None:
    """Compile the pattern; return None if it cannot be parsed."""
    try:
        return Pattern(text)
    except PatternSyntaxError:
        return None


def _categorize(letter: str) -> str:
    return "newline" if letter == "\n" else "word" if _is_word(letter) else "other"


def _is_at(assertion: str, before: str, letter: str) -> bool:
    match assertion:
        case "start":
            return before == "start"
        case "end":
            return not letter
        case "line start":
            return before in ("start", "newline")
        case "line end":
            return letter in ("", "\n")
        case _:
            is_edge = (before == "word") != _is_word(letter)
            return is_edge if assertion == "edge" else not is_edge


def _is_word(letter: str) -> bool:
    return letter.isascii() and (letter.isalnum() or letter == "_")


class _PatternParser:
    """A recursive descent parser for one pattern."""

    def __init__(self, text: str, states: list[_AutomatonState]) -> None:
        self._text = text
        self._states = states
        self._at = 0
        self._depth = 0
        self._copies = 0
        self._flags: frozenset[str] = frozenset()

    def parse(self) -> _StateBuilder:
        whole = self._parse_alternatives()
        if self._at < len(self._text):
            raise PatternSyntaxError("unexpected ): `" + self._text + "`")
        return whole

    def _parse_alternatives(self) -> _StateBuilder:
        branches = [self._parse_sequence()]
        while self._take("|"):
            branches.append(self._parse_sequence())
        if len(branches) == 1:
            return branches[0]
        return lambda then: self._add_state(_AutomatonState(tuple(branch(then) for branch in branches)))

    def _parse_sequence(self) -> _StateBuilder:
        parts: list[_StateBuilder] = []
        while self._at < len(self._text) and self._text[self._at] not in "|)":
            parts.append(self._parse_repetition(self._parse_atom()))

        def build(then: int) -> int:
            for part in reversed(parts):
                then = part(then)
            return then

        return build

    def _parse_repetition(self, atom: _StateBuilder) -> _StateBuilder:
        begin = self._at
        bounds = self._parse_repeat_count()
        if bounds is None:
            return atom
        low, high = bounds
        self._take("?")
        again = self._at
        if self._parse_repeat_count() is not None:
            raise PatternSyntaxError(f"invalid nested repetition operator: `{self._text[begin : self._at]}`")
        self._at = again
        if low > _MAX_REPEATS or (high is not None and (high > _MAX_REPEATS or high < low)):
            raise PatternSyntaxError(f"invalid repeat count: `{self._text[begin : self._at]}`")

        def build(then: int) -> int:
            # An empty part adds no state, no matter how often it is repeated.
            self._copies += low if high is None else high
            if self._copies > _MAX_STATES:
                raise self._size_error()
            if high is None:
                loop = self._add_state(_AutomatonState(()))
                self._states[loop] = _AutomatonState((atom(loop), then))
                then = loop
            else:
                end = then
                for _ in range(high - low):
                    then = self._add_state(_AutomatonState((atom(then), end)))
            for _ in range(low):
                then = atom(then)
            return then

        return build

    def _parse_repeat_count(self) -> tuple[int, int | None] | None:
        """Parse the minimum and maximum count of a repetition operator, if there is one here."""
        for sign, bounds in (("*", (0, None)), ("+", (1, None)), ("?", (0, 1))):
            if self._take(sign):
                return bounds
        counted = _COUNT.match(self._text, self._at)
        if counted is None:
            return None
        self._at = counted.end()
        low, ranged, high = counted.groups()
        # A count with more digits is too large in any case.
        return int(low[:5]), int(low[:5]) if ranged is None else int(high[:5]) if high else None

    def _parse_atom(self) -> _StateBuilder:
        letter = self._next()
        match letter:
            case "(":
                return self._parse_group()
            case "[":
                return self._build_letter(self._parse_class())
            case ".":
                is_any = "s" in self._flags
                return self._build_letter(lambda char: is_any or char != "\n")
            case "^":
                return self._build_assertion("line start" if "m" in self._flags else "start")
            case "$":
                return self._build_assertion("line end" if "m" in self._flags else "end")
            case "*" | "+" | "?":
                raise PatternSyntaxError(f"missing argument to repetition operator: `{letter}`")
            case "\\":
                return self._parse_escape()
            case _:
                return self._build_letter(self._match_letter(letter))

    def _parse_group(self) -> _StateBuilder:
        begin, outside = self._at - 1, self._flags
        self._depth += 1
        if self._depth > _MAX_DEPTH:
            raise PatternSyntaxError("expression nests too deeply: `" + self._text + "`")
        if named := _GROUP.match(self._text, self._at):
            self._at = named.end()
        elif flagged := _FLAGS.match(self._text, self._at):
            self._at = flagged.end()
            self._flags = (self._flags | set(flagged[1])) - set(flagged[2] or "")
            if flagged[3] == ")":
                # These flags apply to the rest of the enclosing group.
                self._depth -= 1
                return lambda then: then
        elif self._text.startswith("?", self._at):
            raise PatternSyntaxError(f"invalid or unsupported Perl syntax: `{self._text[begin : self._at + 2]}`")
        inside = self._parse_alternatives()
        if not self._take(")"):
            raise PatternSyntaxError(f"missing closing ): `{self._text}`")
        self._flags = outside
        self._depth -= 1
        return inside

    def _parse_escape(self) -> _StateBuilder:
        letter = self._peek()
        for name, assertion in (("A", "start"), ("z", "end"), ("b", "edge"), ("B", "no edge")):
            if letter == name:
                self._at += 1
                return self._build_assertion(assertion)
        return self._build_letter(self._parse_escaped_letter())

    def _parse_escaped_letter(self) -> Test:
        """Parse a letter, or a set of letters, after a backslash."""
        begin = self._at - 1
        letter = self._next()
        if letter in ("p", "P"):
            return self._parse_property(is_negated=letter == "P")
        if letter in _SETS:
            return _SETS[letter]
        if letter.upper() in _SETS or letter.lower() in _SETS:
            positive = _SETS[letter.lower()]
            return lambda char: not positive(char)
        return self._match_letter(self._parse_literal(letter, begin))

    def _parse_literal(self, letter: str, begin: int) -> str:
        if letter in _LITERALS:
            return _LITERALS[letter]
        if letter == "x":
            coded = re.compile(r"\{([0-9A-Fa-f]{1,6})\}|([0-9A-Fa-f]{2})").match(self._text, self._at)
            if coded is not None and int(coded[1] or coded[2], 16) <= 0x10FFFF:
                self._at = coded.end()
                return chr(int(coded[1] or coded[2], 16))
        elif letter == "0":
            return "\0"
        elif letter and not letter.isalnum():
            return letter
        problem = "invalid escape sequence" if letter else "trailing backslash at end of expression"
        raise PatternSyntaxError(f"{problem}: `{self._text[begin : self._at]}`")

    def _parse_property(self, *, is_negated: bool) -> Test:
        begin = self._at - 2
        if self._take("{"):
            end = self._text.find("}", self._at)
            name = self._text[self._at : end] if end >= 0 else ""
            self._at = end + 1 if end >= 0 else len(self._text)
        else:
            name = self._next()
        test = find_unicode_class(name.removeprefix("^"))
        if test is None:
            raise PatternSyntaxError(f"invalid character class range: `{self._text[begin : self._at]}`")
        is_negated ^= name.startswith("^")
        return lambda char: test(char) is not is_negated

    def _parse_class(self) -> Test:
        begin = self._at - 1
        is_negated = self._take("^")
        tests: list[Test] = []
        is_first = True
        while is_first or self._peek() != "]":
            if not self._peek():
                raise PatternSyntaxError(f"missing closing ]: `{self._text[begin:]}`")
            is_first = False
            tests.append(self._parse_class_item(begin))
        self._at += 1
        return lambda char: any(test(char) for test in tests) is not is_negated

    def _parse_class_item(self, begin: int) -> Test:
        named = re.compile(r"\[:(\^?)(.*?):\]", re.DOTALL).match(self._text, self._at)
        if named is not None:
            if named[2] not in _NAMED:
                raise PatternSyntaxError(f"invalid character class range: `{named[0]}`")
            self._at = named.end()
            test, is_negated = _NAMED[named[2]], bool(named[1])
            return lambda char: test(char) is not is_negated
        if self._peek() == "\\" and self._text[self._at + 1 : self._at + 2] in tuple("dDsSwWpP"):
            self._at += 1
            return self._parse_escaped_letter()
        low = self._parse_class_letter()
        high = low
        if self._peek() == "-" and self._text[self._at + 1 : self._at + 2] not in ("]", ""):
            self._at += 1
            high = self._parse_class_letter()
        if high < low:
            raise PatternSyntaxError(f"invalid character class range: `{self._text[begin : self._at]}`")
        if "i" in self._flags:
            return lambda char: any(low <= variant <= high for variant in (char, char.lower(), char.upper()))
        return lambda char: low <= char <= high

    def _parse_class_letter(self) -> str:
        begin = self._at
        letter = self._next()
        return self._parse_literal(self._next(), begin) if letter == "\\" else letter

    def _match_letter(self, letter: str) -> Test:
        if "i" in self._flags:
            return lambda char: char == letter or char.lower() == letter.lower()
        return lambda char: char == letter

    def _build_letter(self, test: Test) -> _StateBuilder:
        return lambda then: self._add_state(_AutomatonState((then,), test))

    def _build_assertion(self, assertion: str) -> _StateBuilder:
        return lambda then: self._add_state(_AutomatonState((then,), assertion=assertion))

    def _add_state(self, state: _AutomatonState) -> int:
        if len(self._states) >= _MAX_STATES:
            raise self._size_error()
        self._states.append(state)
        return len(self._states) - 1

    def _size_error(self) -> PatternSyntaxError:
        return PatternSyntaxError(f"expression is too large: `{self._text}`")

    def _peek(self) -> str:
        return self._text[self._at : self._at + 1]

    def _next(self) -> str:
        letter = self._peek()
        self._at += 1
        return letter

    def _take(self, letter: str) -> bool:
        if self._peek() != letter:
            return False
        self._at += 1
        return True


def _one_of(letters: str) -> Test:
    return lambda char: char in letters


_SETS: dict[str, Test] = {
    "d": _one_of("0123456789"),
    "s": _one_of("\t\n\f\r "),
    "w": _is_word,
}
_NAMED: dict[str, Test] = {
    "alnum": lambda char: char.isascii() and char.isalnum(),
    "alpha": lambda char: char.isascii() and char.isalpha(),
    "ascii": str.isascii,
    "blank": _one_of("\t "),
    "cntrl": lambda char: char < " " or char == "\x7f",
    "digit": _SETS["d"],
    "graph": lambda char: "!" <= char <= "~",
    "lower": lambda char: "a" <= char <= "z",
    "print": lambda char: " " <= char <= "~",
    "punct": lambda char: "!" <= char <= "~" and not char.isalnum(),
    "space": _one_of("\t\n\v\f\r "),
    "upper": lambda char: "A" <= char <= "Z",
    "word": _is_word,
    "xdigit": _one_of("0123456789abcdefABCDEF"),
}
