"""Which known word a misspelt one may stand for, wherever a name is not there. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from itertools import islice

__all__ = ["closest_match", "did_you_mean"]

_MAX_KNOWN, _MAX_LENGTH = 1000, 200


def closest_match(word: str, candidates: Iterable[str]) -> str:
    """The known word that is most like another one, whatever the case of either; empty for none.

    Args:
        word: What was written.
        candidates: What there is. It may be anybody's: the first thousand are looked at, and what is long or cannot be
            printed is none.
    """
    words = [
        each for each in islice(candidates, _MAX_KNOWN) if each and len(each) <= _MAX_LENGTH and each.isprintable()
    ]
    by_lower_case = {each.lower(): each for each in words}
    near = get_close_matches(word[:_MAX_LENGTH].lower(), by_lower_case, 1)
    found = by_lower_case[near[0]] if near else ""
    return "" if found == word else found


def did_you_mean(word: str, candidates: Iterable[str]) -> str:
    """The end of a message about a word that is not among those; empty where none is like it.

    Args:
        word: What was written.
        candidates: As for `closest_match`.
    """
    near = closest_match(word, candidates)
    return f"; did you mean {near!r}?" if near else ""
