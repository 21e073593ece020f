r"""The character classes ``\p{Name}`` of Go's regular expressions: general categories and scripts.

Go ignores case, spaces, dashes and underscores in a name, and therefore finds no script whose own name has an
underscore or a capital letter inside (``Old_Italic``, ``SignWriting``). The letters of each script are data from Go's
tables (``tools/unicode_scripts``).
"""

from __future__ import annotations

import unicodedata
from bisect import bisect_right
from collections.abc import Callable, Mapping
from functools import cache, lru_cache
from importlib import resources
from typing import NamedTuple

import msgspec

__all__ = ["find_unicode_class"]

_CATEGORIES = frozenset(
    [
        "C",
        "Cc",
        "Cf",
        "Cn",
        "Co",
        "Cs",
        "L",
        "Ll",
        "Lm",
        "Lo",
        "Lt",
        "Lu",
        "M",
        "Mc",
        "Me",
        "Mn",
        "N",
        "Nd",
        "Nl",
        "No",
        "P",
        "Pc",
        "Pd",
        "Pe",
        "Pf",
        "Pi",
        "Po",
        "Ps",
        "S",
        "Sc",
        "Sk",
        "Sm",
        "So",
        "Z",
        "Zl",
        "Zp",
        "Zs",
    ]
)
_ALIASES = {
    "Closepunctuation": "Pe",
    "Cntrl": "Cc",
    "Combiningmark": "M",
    "Connectorpunctuation": "Pc",
    "Control": "Cc",
    "Currencysymbol": "Sc",
    "Dashpunctuation": "Pd",
    "Decimalnumber": "Nd",
    "Digit": "Nd",
    "Enclosingmark": "Me",
    "Finalpunctuation": "Pf",
    "Format": "Cf",
    "Initialpunctuation": "Pi",
    "Letter": "L",
    "Letternumber": "Nl",
    "Lineseparator": "Zl",
    "Lowercaseletter": "Ll",
    "Mark": "M",
    "Mathsymbol": "Sm",
    "Modifierletter": "Lm",
    "Modifiersymbol": "Sk",
    "Nonspacingmark": "Mn",
    "Number": "N",
    "Openpunctuation": "Ps",
    "Other": "C",
    "Otherletter": "Lo",
    "Othernumber": "No",
    "Otherpunctuation": "Po",
    "Othersymbol": "So",
    "Paragraphseparator": "Zp",
    "Privateuse": "Co",
    "Punct": "P",
    "Punctuation": "P",
    "Separator": "Z",
    "Spaceseparator": "Zs",
    "Spacingmark": "Mc",
    "Surrogate": "Cs",
    "Symbol": "S",
    "Titlecaseletter": "Lt",
    "Unassigned": "Cn",
    "Uppercaseletter": "Lu",
}


def find_unicode_class(name: str) -> Callable[[str], bool] | None:
    """Return the test of a class by its name; None if Go knows no class of that name."""
    canonical = "".join(letter for letter in name if letter not in "_- ").capitalize()
    if not name.isascii():
        return None
    if canonical == "Any":
        return lambda char: True
    if canonical == "Assigned":
        return lambda char: unicodedata.category(char) != "Cn"
    if canonical == "Ascii":
        return str.isascii
    if canonical in ("Lc", "Casedletter"):
        return lambda char: unicodedata.category(char) in ("Ll", "Lt", "Lu")
    category = canonical if canonical in _CATEGORIES else _ALIASES.get(canonical)
    if category is not None:
        return lambda char: unicodedata.category(char).startswith(category)
    ranges = _load_scripts().get(canonical)
    return None if ranges is None else _parse_ranges(ranges).contains


class _LetterRanges(NamedTuple):
    """The letters of a script: ranges in order, each with its first and last letter and the step between letters."""

    firsts: tuple[int, ...]
    lasts: tuple[int, ...]
    steps: tuple[int, ...]

    def contains(self, char: str) -> bool:
        """Return True if the letter belongs to the script."""
        code = ord(char)
        index = bisect_right(self.firsts, code) - 1
        return index >= 0 and code <= self.lasts[index] and (code - self.firsts[index]) % self.steps[index] == 0


@cache
def _load_scripts() -> Mapping[str, str]:
    data = resources.files("konverge._internal.kube").joinpath("unicode_scripts.json").read_bytes()
    scripts: dict[str, str] = msgspec.json.decode(data)
    return scripts


@lru_cache(maxsize=64)
def _parse_ranges(text: str) -> _LetterRanges:
    """Return the ranges of a script in the form of the data, for example ``5b-60 d7-f7/20``."""
    parsed = []
    for part in text.split():
        bounds, _, step = part.partition("/")
        first, _, last = bounds.partition("-")
        parsed.append((int(first, 16), int(last, 16), int(step or "1", 16)))
    firsts, lasts, steps = zip(*parsed, strict=True)
    return _LetterRanges(firsts, lasts, steps)
