"""Cache of resolved content by tenant. Pure: times come in, decisions go out.

An entry belongs to a tenant: the namespace and the user of the request. Only the content of a source that a policy
declares public is shared. The cache has a limit in bytes besides its number of entries, since a thousand definitions
can be a gigabyte. Failures are cached for a short time, so that a broken reference does not overload its remote.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from konverge_resolution._internal.errors import ResolutionError
from konverge_resolution._internal.reference import Parameters, to_canonical_json
from konverge_resolution._internal.resolved_content import ResolvedContent

__all__ = ["CacheKey", "CacheLimits", "CacheMode", "ContentCache", "build_cache_key", "is_cacheable"]

_FAILURE_BYTES = 1000


class CacheMode(StrEnum):
    """Mode of the cache: store only content with a permanent name (``auto``), all content, or none."""

    AUTO = "auto"
    ALWAYS = "always"
    NEVER = "never"


def is_cacheable(*, operator: CacheMode | None, asked: CacheMode | None, is_pinned: bool) -> bool:
    """Tell whether content is read from the cache and written to it. The operator's mode takes precedence."""
    mode = operator or asked or CacheMode.AUTO
    return mode is CacheMode.ALWAYS or (mode is CacheMode.AUTO and is_pinned)


@dataclass(frozen=True, slots=True)
class CacheLimits:
    """Limits of the cache.

    Args:
        entries: Maximum number of entries.
        size_bytes: Maximum number of bytes of content, parameters and annotations.
        lifetime: Lifetime of content.
        failure_lifetime: Lifetime of a failure.
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
    """Return the cache key of content.

    Args:
        resolver: The name of the resolver.
        params: The parameters with all defaults, without those that change only how content is fetched.
        settings: The selected settings: with other settings the same parameters can mean another source.
        tenant: The tenant that may use the entry; empty for all tenants.
        has_signatures: Whether the signatures beside the content were fetched, too.
    """
    return resolver, to_canonical_json([params, settings, has_signatures]), tenant


@dataclass(frozen=True, slots=True)
class _CacheItem:
    value: ResolvedContent | ResolutionError
    expires_at: datetime
    size_bytes: int


class ContentCache:
    """Content and failures by key; the least recently used entry is evicted first.

    Args:
        limits: The limits.
    """

    def __init__(self, limits: CacheLimits | None = None) -> None:
        self.limits: CacheLimits = limits or CacheLimits()
        self.size_bytes: int = 0
        self._entries: OrderedDict[CacheKey, _CacheItem] = OrderedDict()

    def __len__(self) -> int:
        return len(self._entries)

    def get(self, key: CacheKey, now: datetime) -> ResolvedContent | ResolutionError | None:
        """Return the content or failure of a key; None if the cache has none."""
        entry = self._entries.get(key)
        if entry is None:
            return None
        if now >= entry.expires_at:
            self._drop(key)
            return None
        self._entries.move_to_end(key)
        return entry.value

    def store(self, key: CacheKey, answer: ResolvedContent | ResolutionError, now: datetime) -> None:
        """Store content or a failure. Skip a value that is larger than the whole cache."""
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
    attached = sum(len(signature.payload) + len(signature.signature) for signature in answer.attached)
    return len(answer.data) + len(answer.source.uri) + texts + attached + len(to_canonical_json(answer.pinned))
