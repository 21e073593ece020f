"""What was resolved already, kept for those who may have it. Pure: times come in, decisions go out.

An entry belongs to a tenant: the namespace and the credential that it was fetched with, unless policy says that its
source is public. It is bounded in bytes as well as in number, since a thousand definitions can be a gigabyte.
A failure is kept too, shortly, so that a broken reference does not hammer its remote.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from konverge_resolution.errors import ResolutionError
from konverge_resolution.reference import Parameters, to_canonical_json
from konverge_resolution.resolved_content import ResolvedContent

__all__ = ["CacheKey", "CacheLimits", "CacheMode", "ContentCache", "build_cache_key", "is_cacheable"]

_FAILURE_BYTES = 1000


class CacheMode(StrEnum):
    """When an answer is kept: what names its content for ever (``auto``), all, or nothing."""

    AUTO = "auto"
    ALWAYS = "always"
    NEVER = "never"


def is_cacheable(*, operator: CacheMode | None, asked: CacheMode | None, is_pinned: bool) -> bool:
    """Tell whether an answer is taken from the cache and put into it. What the operator says comes first."""
    mode = operator or asked or CacheMode.AUTO
    return mode is CacheMode.ALWAYS or (mode is CacheMode.AUTO and is_pinned)


@dataclass(frozen=True, slots=True)
class CacheLimits:
    """How much is kept.

    Args:
        entries: At most so many.
        size_bytes: At most so many bytes of content, parameters and annotations.
        lifetime: For how long.
        failure_lifetime: For how long a failure is.
    """

    entries: int = 1000
    size_bytes: int = 64 << 20
    lifetime: timedelta = timedelta(minutes=5)
    failure_lifetime: timedelta = timedelta(seconds=15)


CacheKey = tuple[str, bytes, str]
"""The resolver, its parameters and settings in canonical form, the tenant."""


def build_cache_key(
    resolver: str, params: Parameters, settings: Parameters, *, tenant: str, has_signatures: bool = False
) -> CacheKey:
    """The key of an answer.

    Args:
        resolver: Its name.
        params: With all defaults, without those that say how to fetch and not what.
        settings: The settings that were chosen: with other ones the same parameters can mean another place.
        tenant: Who may have it; empty for everybody.
        has_signatures: Whether the signatures beside the content were asked for, too.
    """
    return resolver, to_canonical_json([params, settings, has_signatures]), tenant


@dataclass(frozen=True, slots=True)
class _CacheItem:
    value: ResolvedContent | ResolutionError
    expires_at: datetime
    size_bytes: int


class ContentCache:
    """Answers by key, the least recently used going first.

    Args:
        limits: How much is kept.
    """

    def __init__(self, limits: CacheLimits | None = None) -> None:
        self.limits = limits or CacheLimits()
        self.size_bytes = 0
        self._entries: OrderedDict[CacheKey, _CacheItem] = OrderedDict()

    def __len__(self) -> int:
        return len(self._entries)

    def get(self, key: CacheKey, now: datetime) -> ResolvedContent | ResolutionError | None:
        """What is kept under a key, None for nothing."""
        entry = self._entries.get(key)
        if entry is None:
            return None
        if now >= entry.expires_at:
            self._drop(key)
            return None
        self._entries.move_to_end(key)
        return entry.value

    def store(self, key: CacheKey, answer: ResolvedContent | ResolutionError, now: datetime) -> None:
        """Keep an answer; one that is larger than all that may be kept is not."""
        self._drop(key)
        if isinstance(answer, ResolutionError):
            lifetime, size_bytes = self.limits.failure_lifetime, len(key[1]) + _FAILURE_BYTES
        else:
            lifetime, size_bytes = self.limits.lifetime, len(key[1]) + _compute_size(answer)
        if size_bytes > self.limits.size_bytes or lifetime <= timedelta(0):
            return
        self._entries[key] = _CacheItem(answer, now + lifetime, size_bytes)
        self.size_bytes += size_bytes
        while len(self._entries) > self.limits.entries or self.size_bytes > self.limits.size_bytes:
            self._drop(next(iter(self._entries)))

    def _drop(self, key: CacheKey) -> None:
        entry = self._entries.pop(key, None)
        if entry is not None:
            self.size_bytes -= entry.size_bytes


def _compute_size(answer: ResolvedContent) -> int:
    texts = sum(len(name) + len(value) for name, value in answer.annotations.items())
    attached = sum(len(each.payload) + len(each.signature) for each in answer.attached)
    return len(answer.data) + len(answer.source.uri) + texts + attached + len(to_canonical_json(answer.pinned))
