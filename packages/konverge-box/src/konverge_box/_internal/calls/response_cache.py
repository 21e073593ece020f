"""The cache of responses, which also shares one request among concurrent callers."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from konverge.clock import Clock
from konverge_box._internal.calls.call_result import CallResult

__all__ = ["FAILURE_CACHE_SECONDS", "ResponseCache"]

FAILURE_CACHE_SECONDS = 5.0
"""Maximum time for which a failure is cached, so that many owners do not all call a server that is down."""

_OVERHEAD = 1024
# A parsed JSON text takes several times the memory of its characters.
_GROWTH = 6


@dataclass(frozen=True, slots=True)
class _CachedResponse:
    answer: CallResult
    until: float
    size: int


class ResponseCache:
    """The cached results by the fingerprint of their request. The least recently used ones are removed first.

    Args:
        clock: Determines the age of results.
        entries: The maximum number of results.
        size: The approximate maximum of their total size in bytes.
    """

    def __init__(self, clock: Clock, *, entries: int = 1000, size: int = 64 << 20) -> None:
        self._clock = clock
        self._entries = entries
        self._size = size
        self._used = 0
        self._kept: OrderedDict[bytes, _CachedResponse] = OrderedDict()
        self._under_way: dict[bytes, asyncio.Event] = {}

    def __len__(self) -> int:
        return len(self._kept)

    async def get_or_call(self, key: bytes, seconds: float, ask: Callable[[], Awaitable[CallResult]]) -> CallResult:
        """Return the cached result, or else a new one. Of concurrent callers with the same key, only one sends a call.

        If that caller is cancelled, the next waiting caller takes over.

        Args:
            key: The fingerprint of everything that the result depends on.
            seconds: The time for which the result may be cached.
            ask: Sends the call.
        """
        while True:
            kept = self._kept.get(key)
            if kept is not None and self._clock.monotonic() < kept.until:
                self._kept.move_to_end(key)
                return kept.answer
            leader = self._under_way.get(key)
            if leader is None:
                break
            await leader.wait()
        ended = self._under_way[key] = asyncio.Event()
        try:
            answer = await ask()
            self._store_result(key, seconds, answer)
        finally:
            del self._under_way[key]
            ended.set()
        return answer

    def _store_result(self, key: bytes, seconds: float, answer: CallResult) -> None:
        if answer.error:
            seconds = min(seconds, FAILURE_CACHE_SECONDS)
        self._remove_entry(key)
        size = answer.size * _GROWTH + _OVERHEAD
        if size > self._size:
            return
        self._kept[key] = _CachedResponse(answer, self._clock.monotonic() + seconds, size)
        self._used += size
        while len(self._kept) > self._entries or self._used > self._size:
            self._remove_entry(next(iter(self._kept)))

    def _remove_entry(self, key: bytes) -> None:
        dropped = self._kept.pop(key, None)
        self._used -= dropped.size if dropped is not None else 0
