"""Options of the shared caches."""

from __future__ import annotations

from konverge._internal.cache import (
    CacheOptions,
    IndexFunction,
    Transform,
    label_index,
)

__all__ = [
    "CacheOptions",
    "IndexFunction",
    "Transform",
    "label_index",
]
