"""Whether a live value still says what was applied, in other words, or something else. Pure.

A server, and a webhook that decodes an object into types of its own, write many values in a form of their own:
quantities, durations and times in one spelling, defaults inside a value that is owned as a whole, zero values left out.
Such a value means the same. Any other value is somebody's who overrides ours on its way into the storage.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from konverge.apply.schema import ABSENT
from konverge.apply.typed_values import is_same_value
from konverge.kube import parse_time
from konverge.kube.durations import parse_microseconds
from konverge.kube.quantities import quantity_to_fraction

__all__ = ["is_override"]


def is_override(desired: Any, live: Any) -> bool:
    """Tell whether the live value says something else than the one that was applied.

    Args:
        desired: What was applied.
        live: What is stored; None or `konverge.apply.ABSENT` for nothing.
    """
    return not _is_kept(desired, live)


def _is_kept(desired: Any, live: Any) -> bool:
    if desired is None:
        return True  # it asks for the default
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
    """Tell whether only the order is another one."""
    left = list(live)
    for item in desired:
        place = next((place for place, other in enumerate(left) if is_same_value(item, other)), None)
        if place is None:
            return False
        del left[place]
    return True


def _is_equivalent(one: str, other: str, read: Callable[[str], object]) -> bool:
    try:
        return read(one) == read(other)
    except (ValueError, OverflowError):
        return False


_PARSERS: tuple[Callable[[str], object], ...] = (quantity_to_fraction, parse_microseconds, parse_time)
