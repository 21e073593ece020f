"""Events about fields that a component took over from other writers, as ``konverge explain`` reads them. Pure.

After an apply, ``managedFields`` of an object show only the component. Between two writes of a rival, these events are
the only record of it.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from datetime import datetime

from konverge._internal.kube import GroupVersionKind, Object, ObjectKey, format_identity, format_time, parse_time
from konverge._internal.message_text import shorten
from konverge._internal.primitives.field_access import read_integer, read_text

__all__ = ["TAKEN_OVER", "TAKEN_OVER_FROM", "describe_takeovers", "read_event_time"]

TAKEN_OVER = "FieldsTakenOver"
"""The reason of the event."""

TAKEN_OVER_FROM = "fields taken over from "
"""The beginning of the list of writers in its message."""

_MAX_LENGTH = 500


def read_event_time(event: Object) -> datetime | None:
    """Return the time of the last occurrence of an event; None if it has no valid time."""
    times = (
        read_text(event, "series", "lastObservedTime"),
        read_text(event, "deprecatedLastTimestamp"),
        read_text(event, "eventTime"),
        read_text(event, "metadata", "creationTimestamp"),
    )
    for text in filter(None, times):
        with suppress(ValueError):
            return parse_time(text)
    return None


def describe_takeovers(events: Iterable[Object]) -> dict[str, tuple[str, ...]]:
    """Return the writers and fields that the events report, by the identity of the object, the latest event first."""
    dated = [(time, event) for event in events if (time := read_event_time(event)) is not None]
    found: dict[str, tuple[str, ...]] = {}
    for time, event in sorted(dated, key=lambda entry: entry[0], reverse=True):
        gvk = GroupVersionKind.parse(read_text(event, "related", "apiVersion"), read_text(event, "related", "kind"))
        key = ObjectKey(read_text(event, "related", "namespace"), read_text(event, "related", "name"))
        writers = read_text(event, "note").partition(TAKEN_OVER_FROM)[2]
        times = max(1, read_integer(event, "series", "count"))
        count = "once" if times == 1 else f"{times} times"
        if writers:
            text = f"{shorten(writers, _MAX_LENGTH)}, {count}, last at {format_time(time)}"
            identity = format_identity(gvk, key)
            found[identity] = (*found.get(identity, ()), text)
    return found
