"""How much of an object is held: all of it, its metadata, or what the author's transform leaves. Pure."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

import msgspec

from konverge.cache.entries import Entry, Received, received_object
from konverge.cache.options import CacheOptions
from konverge.cache.statistics import Statistics
from konverge.kube import GroupVersionKind, Object, identity

__all__ = ["Projection"]

_logger = logging.getLogger(__name__)

# What a server says of an object of which it sends the metadata alone.
_PARTIAL = ("meta.k8s.io/v1", "PartialObjectMetadata")

_encode = msgspec.json.Encoder().encode


class Projection:
    """Makes entries of what comes in.

    Args:
        gvk: The kind.
        options: Says how much to hold.
        statistics: Counts what a transform fails on.
    """

    def __init__(self, gvk: GroupVersionKind, options: CacheOptions, statistics: Statistics) -> None:
        self._gvk = gvk
        self._transform = options.transform
        self._is_partial = options.metadata_only
        self._statistics = statistics
        self._has_failed = False
        self._api_version, self._kind = gvk.api_version, gvk.kind

    def is_of_the_kind(self, received: Received) -> bool:
        """Tell whether the object says that it is of the kind, or the metadata of some object where that is held."""
        kind, api_version = received.kind, received.api_version
        if kind == self._kind and api_version == self._api_version:
            return True
        return self._is_partial and (api_version, kind) == _PARTIAL

    def entry(self, received: Received) -> Entry | None:
        """What to hold of it; None when the transform fails."""
        project = received.metadata_body if self._is_partial else received.body
        body = project(self._api_version, self._kind)
        if self._transform is not None:
            try:
                body = _encode(self._transform(msgspec.json.decode(body, type=dict)))
                if not body.startswith(b"{"):
                    raise TypeError("it returned something that is no object")
            except Exception as error:  # noqa: BLE001  # an author's mistake in a transform must not end a watch
                self._leave_out(received, error)
                return None
        return Entry(received.meta, body)

    def of(self, obj: Mapping[str, Any]) -> Object:
        """A whole object as a read gives it; as it is when the transform fails on it."""
        entry = self.entry(received_object(obj))
        return dict(obj) if entry is None else entry.decode()

    def _leave_out(self, received: Received, error: Exception) -> None:
        self._statistics.left_out += 1
        # Once at that level: a transform that fails fails on many objects, and again on each event.
        level = logging.DEBUG if self._has_failed else logging.WARNING
        self._has_failed = True
        # The text could hold what the object holds.
        why = type(error).__name__ if self._gvk.is_secret else f"{type(error).__name__}: {error}"
        _logger.log(level, "%s is not held: its transform failed: %s", identity(self._gvk, received.meta.key), why)
