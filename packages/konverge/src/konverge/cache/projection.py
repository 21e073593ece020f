"""How much of an object is held: all of it, its metadata, or what the author's transform leaves. Pure."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

import msgspec

from konverge.cache.cached_object import CachedObject, RawObject, parse_object
from konverge.cache.informer_statistics import InformerStatistics
from konverge.cache.options import CacheOptions
from konverge.kube import GroupVersionKind, Object, format_identity

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

    def __init__(self, gvk: GroupVersionKind, options: CacheOptions, statistics: InformerStatistics) -> None:
        self._gvk = gvk
        self._transform = options.transform
        self._is_partial = options.metadata_only
        self._statistics = statistics
        self._has_failed = False
        self._api_version, self._kind = gvk.api_version, gvk.kind

    def matches_kind(self, received: RawObject) -> bool:
        """Tell whether the object says that it is of the kind, or the metadata of some object where that is held."""
        kind, api_version = received.kind, received.api_version
        if kind == self._kind and api_version == self._api_version:
            return True
        return self._is_partial and (api_version, kind) == _PARTIAL

    def project(self, received: RawObject) -> CachedObject | None:
        """What to hold of it; None when the transform fails."""
        project = received.to_metadata_body if self._is_partial else received.to_body
        body = project(self._api_version, self._kind)
        if self._transform is not None:
            try:
                body = _encode(self._transform(msgspec.json.decode(body, type=dict)))
                if not body.startswith(b"{"):
                    raise TypeError("it returned something that is no object")
            except Exception as error:  # noqa: BLE001  # an author's mistake in a transform must not end a watch
                self._record_failure(received, error)
                return None
        return CachedObject(received.meta, body)

    def project_object(self, obj: Mapping[str, Any]) -> Object:
        """A whole object as a read gives it; as it is when the transform fails on it."""
        entry = self.project(parse_object(obj))
        return dict(obj) if entry is None else entry.decode()

    def _record_failure(self, received: RawObject, error: Exception) -> None:
        self._statistics.left_out += 1
        # Once at that level: a transform that fails fails on many objects, and again on each event.
        level = logging.DEBUG if self._has_failed else logging.WARNING
        self._has_failed = True
        # The text could hold what the object holds.
        why = type(error).__name__ if self._gvk.is_secret else f"{type(error).__name__}: {error}"
        _logger.log(
            level, "%s is not held: its transform failed: %s", format_identity(self._gvk, received.meta.key), why
        )
