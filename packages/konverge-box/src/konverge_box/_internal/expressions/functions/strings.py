"""Functions for strings and regular expressions."""

from __future__ import annotations

import re
import textwrap
from functools import lru_cache
from typing import Any

from konverge._internal.kube.re2 import MatchTooCostlyError, Pattern, PatternSyntaxError
from konverge_box._internal.expressions.functions.function import build_group
from konverge_box._internal.expressions.values import format_scalar

__all__ = ["MAX_TEXT_LENGTH", "TEXTS", "compile_cached_pattern", "has_match"]

MAX_TEXT_LENGTH = 1 << 20
_MAX_PATTERN_LENGTH = 1000
_MAX_VISITS = 100_000  # about 50 milliseconds
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


@lru_cache(maxsize=1024)
def compile_cached_pattern(text: str) -> Pattern:
    """Compile a regular expression in the syntax of RE2.

    Raises:
        ValueError: The expression is invalid.
    """
    if len(text) > _MAX_PATTERN_LENGTH:
        raise ValueError(
            f"expected a regular expression of at most {_MAX_PATTERN_LENGTH} characters, found {len(text)}"
        )
    try:
        return Pattern(text)
    except PatternSyntaxError as error:
        raise ValueError(f"expected a regular expression (RE2), found an invalid one: {error}") from None


def has_match(expression: Pattern, text: str) -> bool:
    """Tell whether the pattern matches anywhere in the string.

    Raises:
        ValueError: The match exceeds the limit of work.
    """
    try:
        return expression.matches(text, maximum_visits=_MAX_VISITS)
    except MatchTooCostlyError:
        raise ValueError("the regular expression takes too long on this string") from None


def _check_size(size: int) -> None:
    if size > MAX_TEXT_LENGTH:
        raise ValueError(f"expected at most {MAX_TEXT_LENGTH} characters, found {size}")


def to_lower(text: str) -> str:
    """Convert to lowercase: `toLower("Web")` is `web`."""
    return text.lower()


def to_upper(text: str) -> str:
    """Convert to uppercase: `toUpper("web")` is `WEB`."""
    return text.upper()


def trim_space(text: str) -> str:
    """Remove spaces, tabs and newlines from both ends."""
    return text.strip()


def trim(text: str, letters: str) -> str:
    """Remove these characters from both ends: `trim("--web-", "-")` is `web`."""
    return text.strip(letters) if letters else text


def trim_prefix(text: str, prefix: str) -> str:
    """Remove the prefix if it is there: `trimPrefix("v1.2", "v")` is `1.2`."""
    return text.removeprefix(prefix)


def trim_suffix(text: str, suffix: str) -> str:
    """Remove the suffix if it is there: `trimSuffix("a.yaml", ".yaml")` is `a`."""
    return text.removesuffix(suffix)


def has_prefix(text: str, prefix: str) -> bool:
    """Tell whether the string starts with the prefix."""
    return text.startswith(prefix)


def has_suffix(text: str, suffix: str) -> bool:
    """Tell whether the string ends with the suffix."""
    return text.endswith(suffix)


def contains(text: str, part: str) -> bool:
    """Tell whether the string contains a part; use `listHas` for lists."""
    return part in text


def matches(text: str, expression: str) -> bool:
    r"""Tell whether the regular expression (RE2) matches anywhere: `matches("web-1", "-[0-9]+$")` is true."""
    return has_match(compile_cached_pattern(expression), text)


def replace(text: str, old: str, new: str) -> str:
    """Replace each `old` by `new`: `replace("a.b", ".", "-")` is `a-b`."""
    if not old:
        raise ValueError("expected a string to replace, found an empty one")
    _check_size(len(text) + text.count(old) * (len(new) - len(old)))
    return text.replace(old, new)


def split(text: str, separator: str) -> list[str]:
    """Split at the separators: `split("a,b", ",")` is `["a", "b"]`; an empty string has no parts."""
    if not separator:
        raise ValueError("expected a separator, found an empty string")
    return text.split(separator) if text else []


def join(items: list[Any], separator: str = "") -> str:
    """Join items as strings with a separator: `join(["a", 1], "-")` is `a-1`."""
    texts = [format_scalar(item) for item in items]
    _check_size(sum(map(len, texts)) + len(separator) * len(texts))
    return separator.join(texts)


def repeat(text: str, count: int) -> str:
    """Repeat the string: `repeat("ab", 2)` is `abab`."""
    _check_size(len(text) * max(0, count))
    return text * max(0, count)


def camel_to_kebab(text: str) -> str:
    """Convert camel case to lowercase with dashes: `camelToKebab("maxPoolSize")` is `max-pool-size`."""
    return _HUMP.sub("-", text).lower()


def truncate(text: str, length: int, ending: str = "") -> str:
    """Shorten to this length, including the ending: `truncate("abcdef", 4, "…")` is `abc…`."""
    if length < len(ending):
        raise ValueError(f"expected a length of at least that of the ending, {len(ending)}, found {length}")
    return text if len(text) <= length else text[: length - len(ending)] + ending


def indent(text: str, spaces: int) -> str:
    """Put this number of spaces before each line that is not blank."""
    if not 0 <= spaces <= 100:
        raise ValueError(f"expected 0 to 100 spaces, found {spaces}")
    _check_size(len(text) + (text.count("\n") + 1) * spaces)
    return textwrap.indent(text, " " * spaces)


TEXTS = build_group(
    "Strings",
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
