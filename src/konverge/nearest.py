"""Which known word a misspelt one may stand for, wherever a name is not there. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from itertools import islice

__all__ = ["did_you_mean", "nearest"]

_MOST_KNOWN, _LONGEST = 1000, 200


def nearest(word: str, known: Iterable[str]) -> str:
    """The known word that is most like another one, whatever the case of either; empty for none.

    Args:
        word: What was written.
        known: What there is. It may be anybody's: the first thousand are looked at, and what is long or cannot be
            printed is none.
    """
    words = [each for each in islice(known, _MOST_KNOWN) if each and len(each) <= _LONGEST and each.isprintable()]
    by_lower_case = {each.lower(): each for each in words}
    near = get_close_matches(word[:_LONGEST].lower(), by_lower_case, 1)
    found = by_lower_case[near[0]] if near else ""
    return "" if found == word else found


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """The end of a message about a word that is not among those; empty where none is like it.

    Args:
        word: What was written.
        known: As for `nearest`.
    """
    near = nearest(word, known)
    return f"; did you mean {near!r}?" if near else ""
