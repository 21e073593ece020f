"""Detection of overrides: live values that differ from the applied ones in meaning, not only in form. Pure.

A server, or a webhook that decodes an object into its own types, writes many values in its own form: quantities,
durations and times in a canonical form, defaults inside a value that is owned as a whole, no zero values. Such a value
has the same meaning. A value with another meaning is an override: it was changed between the request and the storage.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from konverge._internal.apply.schema import ABSENT
from konverge._internal.apply.typed_values import is_same_value
from konverge._internal.kube import parse_time
from konverge._internal.kube.durations import parse_microseconds
from konverge._internal.kube.quantities import quantity_to_fraction

__all__ = ["is_override"]


def is_override(desired: Any, live: Any) -> bool:
    """Return True if the live value differs in meaning from the applied one.

    Args:
        desired: The applied value.
        live: The stored value; None or `apply.ABSENT` if absent.
    """
    return not _is_kept(desired, live)


def _is_kept(desired: Any, live: Any) -> bool:
    if desired is None:
        return True  # null requests the default
    if live is None or live is ABSENT:
        return not desired
    if isinstance(desired, dict):
        return isinstance(live, dict) and all(_is_kept(value, live.get(name)) for name, value in desired.items())
    if isinstance(desired, list):
        if not isinstance(live, list) or len(live) != len(desired):
            return False
        return all(map(_is_kept, desired, live)) or _has_same_items(desired, live)
    if isinstance(live, dict | list):
        return False
    if is_same_value(desired, live):
        return True
    if isinstance(desired, bool) or isinstance(live, bool):
        return False
    one, other = str(desired).strip(), str(live).strip()
    return one.casefold() == other.casefold() or any(_is_equivalent(one, other, read) for read in _PARSERS)


def _has_same_items(desired: list[Any], live: list[Any]) -> bool:
    """Return True if the lists differ only in order."""
    left = list(live)
    for item in desired:
        position = next((position for position, other in enumerate(left) if is_same_value(item, other)), None)
        if position is None:
            return False
        del left[position]
    return True


def _is_equivalent(one: str, other: str, read: Callable[[str], object]) -> bool:
    try:
        return read(one) == read(other)
    except (ValueError, OverflowError):
        return False


_PARSERS: tuple[Callable[[str], object], ...] = (quantity_to_fraction, parse_microseconds, parse_time)
