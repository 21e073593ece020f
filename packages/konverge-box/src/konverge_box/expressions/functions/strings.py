"""Functions of text."""

from __future__ import annotations

import re
import textwrap
from functools import lru_cache
from typing import Any

from konverge.kube.re2 import MatchTooCostlyError, Pattern, PatternSyntaxError
from konverge_box.expressions.functions.function import build_group
from konverge_box.expressions.values import format_scalar

__all__ = ["MAX_TEXT_LENGTH", "TEXTS", "compile_cached_pattern", "has_match"]

MAX_TEXT_LENGTH = 1 << 20
_MAX_PATTERN_LENGTH = 1000
_MAX_VISITS = 100_000  # a twentieth of a second's worth
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


@lru_cache(maxsize=1024)
def compile_cached_pattern(text: str) -> Pattern:
    """A regular expression in RE2's dialect.

    Raises:
        ValueError: It is none.
    """
    if len(text) > _MAX_PATTERN_LENGTH:
        raise ValueError(f"expected a regular expression of at most {_MAX_PATTERN_LENGTH} letters, found {len(text)}")
    try:
        return Pattern(text)
    except PatternSyntaxError as error:
        raise ValueError(f"expected a regular expression (RE2), found one that cannot be read: {error}") from None


def has_match(expression: Pattern, text: str) -> bool:
    """Tell whether the text has the pattern anywhere.

    Raises:
        ValueError: That cannot be told in bounded time.
    """
    try:
        return expression.matches(text, maximum_visits=_MAX_VISITS)
    except MatchTooCostlyError:
        raise ValueError("the regular expression takes too much work on this text") from None


def _check_size(size: int) -> None:
    if size > MAX_TEXT_LENGTH:
        raise ValueError(f"comes to more than {MAX_TEXT_LENGTH} letters")


def to_lower(text: str) -> str:
    """In small letters: `toLower("Web")` is `web`."""
    return text.lower()


def to_upper(text: str) -> str:
    """In capital letters: `toUpper("web")` is `WEB`."""
    return text.upper()


def trim_space(text: str) -> str:
    """Without blanks, tabs and newlines at both ends."""
    return text.strip()


def trim(text: str, letters: str) -> str:
    """Without any of these letters at both ends: `trim("--web-", "-")` is `web`."""
    return text.strip(letters) if letters else text


def trim_prefix(text: str, prefix: str) -> str:
    """Without the prefix, if it has it: `trimPrefix("v1.2", "v")` is `1.2`."""
    return text.removeprefix(prefix)


def trim_suffix(text: str, suffix: str) -> str:
    """Without the suffix, if it has it: `trimSuffix("a.yaml", ".yaml")` is `a`."""
    return text.removesuffix(suffix)


def has_prefix(text: str, prefix: str) -> bool:
    """Whether it begins so."""
    return text.startswith(prefix)


def has_suffix(text: str, suffix: str) -> bool:
    """Whether it ends so."""
    return text.endswith(suffix)


def contains(text: str, part: str) -> bool:
    """Whether it has this part anywhere; for lists there is `listHas`."""
    return part in text


def matches(text: str, expression: str) -> bool:
    r"""Whether the regular expression (RE2) is found anywhere in it: `matches("web-1", "-[0-9]+$")` is true."""
    return has_match(compile_cached_pattern(expression), text)


def replace(text: str, old: str, new: str) -> str:
    """With each `old` replaced: `replace("a.b", ".", "-")` is `a-b`."""
    if not old:
        raise ValueError("expected text to replace, found empty text")
    _check_size(len(text) + text.count(old) * (len(new) - len(old)))
    return text.replace(old, new)


def split(text: str, separator: str) -> list[str]:
    """The parts between the separators: `split("a,b", ",")` is `["a", "b"]`; empty text has no part."""
    if not separator:
        raise ValueError("expected a separator, found empty text")
    return text.split(separator) if text else []


def join(items: list[Any], separator: str = "") -> str:
    """The items' texts with a separator between them: `join(["a", 1], "-")` is `a-1`."""
    texts = [format_scalar(item) for item in items]
    _check_size(sum(map(len, texts)) + len(separator) * len(texts))
    return separator.join(texts)


def repeat(text: str, count: int) -> str:
    """So many times: `repeat("ab", 2)` is `abab`."""
    _check_size(len(text) * max(0, count))
    return text * max(0, count)


def camel_to_kebab(text: str) -> str:
    """With dashes for humps, in small letters: `camelToKebab("maxPoolSize")` is `max-pool-size`."""
    return _HUMP.sub("-", text).lower()


def truncate(text: str, length: int, ending: str = "") -> str:
    """At most so many letters, the ending among them: `truncate("abcdef", 4, "…")` is `abc…`."""
    if length < len(ending):
        raise ValueError(f"expected a length of at least that of the ending, {len(ending)}, found {length}")
    return text if len(text) <= length else text[: length - len(ending)] + ending


def indent(text: str, spaces: int) -> str:
    """With so many blanks in front of each line that is not blank."""
    if not 0 <= spaces <= 100:
        raise ValueError(f"expected 0 to 100 blanks, found {spaces}")
    _check_size(len(text) + (text.count("\n") + 1) * spaces)
    return textwrap.indent(text, " " * spaces)


TEXTS = build_group(
    "Text",
    "",
    to_lower,
    to_upper,
    trim_space,
    trim,
    trim_prefix,
    trim_suffix,
    has_prefix,
    has_suffix,
    contains,
    matches,
    replace,
    split,
    join,
    repeat,
    camel_to_kebab,
    truncate,
    indent,
)
