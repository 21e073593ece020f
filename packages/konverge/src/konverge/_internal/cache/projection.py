"""The conversion of received objects into cached ones: whole, metadata only, or with an author's transform. Pure."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

import msgspec

from konverge._internal.cache.cached_object import CachedObject, RawObject, parse_object
from konverge._internal.cache.informer_statistics import InformerStatistics
from konverge._internal.cache.options import CacheOptions
from konverge._internal.kube import GroupVersionKind, Object, format_identity

__all__ = ["Projection"]

_logger = logging.getLogger("konverge.cache")

# The apiVersion and kind of an object that the server sends with its metadata only.
_PARTIAL = ("meta.k8s.io/v1", "PartialObjectMetadata")

_encode = msgspec.json.Encoder().encode


class Projection:
    """The conversion of the objects of one kind.

    Args:
        gvk: The kind.
        options: The cache options of the kind.
        statistics: The counters of objects for which the transform raised an error.
    """

    def __init__(self, gvk: GroupVersionKind, options: CacheOptions, statistics: InformerStatistics) -> None:
        self._gvk = gvk
        self._transform = options.transform
        self._is_partial = options.metadata_only
        self._statistics = statistics
        self._has_failed = False
        self._api_version, self._kind = gvk.api_version, gvk.kind

    def matches_kind(self, received: RawObject) -> bool:
        """Return True if the object has the kind, or is ``PartialObjectMetadata`` and only metadata is cached."""
        kind, api_version = received.kind, received.api_version
        if kind == self._kind and api_version == self._api_version:
            return True
        return self._is_partial and (api_version, kind) == _PARTIAL

    def project(self, received: RawObject) -> CachedObject | None:
        """Return the object to cache; None if the transform raises an error."""
        project = received.to_metadata_body if self._is_partial else received.to_body
        body = project(self._api_version, self._kind)
        if self._transform is not None:
            try:
                body = _encode(self._transform(msgspec.json.decode(body, type=dict)))
                if not body.startswith(b"{"):
                    raise TypeError("expected an object as the result")
            except Exception as error:  # noqa: BLE001  # an error in an author's function must not end a watch
                self._record_failure(received, error)
                return None
        return CachedObject(received.meta, body)

    def project_object(self, obj: Mapping[str, Any]) -> Object:
        """Return the object in the form of a cached read; unchanged if the transform raises an error."""
        entry = self.project(parse_object(obj))
        return dict(obj) if entry is None else entry.decode()

    def _record_failure(self, received: RawObject, error: Exception) -> None:
        self._statistics.left_out += 1
        # A warning only once: a transform that fails does so for many objects, and again at each event.
        level = logging.DEBUG if self._has_failed else logging.WARNING
        self._has_failed = True
        # The text of the error may contain values of the object.
        reason = type(error).__name__ if self._gvk.is_secret else f"{type(error).__name__}: {error}"
        _logger.log(
            level,
            "%s: cannot cache the object: the transform failed: %s",
            format_identity(self._gvk, received.meta.key), reason,
        )  # fmt: skip
