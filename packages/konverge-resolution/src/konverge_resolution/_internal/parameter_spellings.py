"""Spellings of parameters, so that policies compare values and not texts. Pure.

A policy permits the values that it names, in any spelling. Its requirements also apply to values that only may be one
of these: ``refs/heads/main`` and ``HEAD`` may be ``main``. Otherwise another spelling could use a wider policy to
escape a stricter one (`source_prefix` does the same for addresses).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, runtime_checkable

__all__ = ["ParameterSpeller", "SpellingResolver", "may_be_named", "names_value", "spell_plainly"]

ParameterSpeller = Callable[[str, str], Sequence[str]]
"""Return the spellings of a value by the name of its parameter, as `SpellingResolver.spell_parameter` does."""


@runtime_checkable
class SpellingResolver(Protocol):
    """Resolver whose values have several spellings: one optional method besides those of `Resolver`."""

    def spell_parameter(self, name: str, value: str) -> Sequence[str]:
        """Return the spellings of a value of a reference or of a policy, without a connection.

        Args:
            name: The parameter.
            value: Any text; it need not be valid.

        Returns:
            First the one form of all spellings that certainly mean the same, then other values that may mean the same.
            These can end with ``*``, for all values that begin so.
        """


def spell_plainly(_name: str, value: str) -> Sequence[str]:
    """Return the value itself, for resolvers whose values have one spelling."""
    return (value,)


def names_value(pattern: str, name: str, value: str, spell: ParameterSpeller) -> bool:
    """Tell whether a pattern of a policy names a value for certain.

    Args:
        pattern: The value of the policy, ``release-*`` for all that begin so.
        name: The parameter.
        value: The value of the reference.
        spell: Returns the spellings.
    """
    canonical = spell(name, value)[0]
    if pattern.endswith("*"):
        return value.startswith(pattern[:-1]) or canonical.startswith(pattern[:-1])
    return pattern == value or spell(name, pattern)[0] == canonical


def may_be_named(pattern: str, name: str, value: str, spell: ParameterSpeller) -> bool:
    """Tell whether a value may be one that a pattern names; arguments as for `names_value`."""
    patterns = [pattern] if pattern.endswith("*") else [pattern, spell(name, pattern)[0]]
    values = [value, *spell(name, value)]
    return any(_overlaps(each.casefold(), text.casefold()) for each in patterns for text in values)


def _overlaps(one: str, other: str) -> bool:
    if one.endswith("*") and other.endswith("*"):
        return one[:-1].startswith(other[:-1]) or other[:-1].startswith(one[:-1])
    for pattern, text in ((one, other), (other, one)):
        if pattern.endswith("*"):
            return text.startswith(pattern[:-1])
    return one == other
