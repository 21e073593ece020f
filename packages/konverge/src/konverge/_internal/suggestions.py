"""Suggestions for misspelled names in error messages. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from itertools import islice

__all__ = ["closest_match", "did_you_mean"]

_MAX_CANDIDATES, _MAX_LENGTH = 1000, 200


def closest_match(word: str, candidates: Iterable[str]) -> str:
    """Return the candidate that is most similar to a word, regardless of case; empty for none.

    Args:
        word: The misspelled word.
        candidates: The existing names. They can come from untrusted input: only the first thousand count, and long or
            unprintable ones are ignored.
    """
    words = [
        candidate
        for candidate in islice(candidates, _MAX_CANDIDATES)
        if candidate and len(candidate) <= _MAX_LENGTH and candidate.isprintable()
    ]
    by_lower_case = {candidate.lower(): candidate for candidate in words}
    near = get_close_matches(word[:_MAX_LENGTH].lower(), by_lower_case, 1)
    match = by_lower_case[near[0]] if near else ""
    return "" if match == word else match


def did_you_mean(word: str, candidates: Iterable[str]) -> str:
    """Return the end of an error message about an unknown word; empty if no candidate is similar.

    Args:
        word: The misspelled word.
        candidates: As for `closest_match`.
    """
    near = closest_match(word, candidates)
    return f"; did you mean {near!r}?" if near else ""
