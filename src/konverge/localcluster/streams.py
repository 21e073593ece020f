"""A watch as the body of an answer: lines as they come, bookmarks in between, an end in time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable

from konverge.clock import Clock
from konverge.errors import ApiError
from konverge.localcluster.rendering import Renderer
from konverge.localcluster.storage import Stored
from konverge.localcluster.watching import INITIAL_EVENTS_END, Event, Watch

__all__ = ["WatchStream", "expired"]

_BOOKMARK_SECONDS = 60.0
# So many events make one chunk.
_BATCH = 500


class WatchStream(AsyncIterator[bytes]):
    """The chunks of one watch.

    It ends when its time is up, when it was too slow, or by `end`; being closed or cancelled ends the watch behind it.

    Args:
        watch: The watch.
        renderer: Gives the events their form.
        clock: Times bookmarks and the end.
        timeout_seconds: How long the watch lasts.
        bookmarks: Whether to send bookmarks.
        tells_initial_end: Whether to say when the initial state is all told.
        on_end: Called once, when it has ended.
        prepare: Makes stored objects ready to be rendered; None when they are.
    """

    def __init__(
        self,
        watch: Watch,
        renderer: Renderer,
        clock: Clock,
        *,
        timeout_seconds: float,
        bookmarks: bool,
        tells_initial_end: bool,
        on_end: Callable[[WatchStream], None],
        prepare: Callable[[list[Stored]], Awaitable[None]] | None = None,
    ) -> None:
        self._watch = watch
        self._renderer = renderer
        self._clock = clock
        self._bookmarks = bookmarks
        self._end_at = clock.monotonic() + timeout_seconds
        self._bookmark_at = clock.monotonic() + _BOOKMARK_SECONDS
        self._on_end: Callable[[WatchStream], None] | None = on_end
        self._prepare = prepare
        self._wakened = asyncio.Event()
        watch.wake = self._wakened.set
        self._ready: list[Event] = watch.take()
        if tells_initial_end:
            self._ready.append(watch.bookmark(INITIAL_EVENTS_END))

    def end(self) -> None:
        """End the stream; safe to call twice."""
        self._watch.end()
        if self._on_end is not None:
            self._on_end(self)
            self._on_end = None

    async def aclose(self) -> None:
        """End the stream, as a generator's `aclose` does."""
        self.end()

    def __aiter__(self) -> WatchStream:
        return self

    async def __anext__(self) -> bytes:
        try:
            return await self._next()
        except BaseException:
            self.end()
            raise

    async def _next(self) -> bytes:
        while True:
            self._ready += self._watch.take()
            if self._ready:
                batch, self._ready = self._ready[:_BATCH], self._ready[_BATCH:]
                if self._prepare is not None:
                    try:
                        await self._prepare([event.stored for event in batch if event.stored is not None])
                    except ApiError as error:
                        # What cannot be converted cannot be left out either: the watcher starts over.
                        self.end()
                        self._ready, _ = [], self._watch.take()
                        return self._renderer.event(Event("ERROR", error.to_status()))
                return b"".join(map(self._renderer.event, batch))
            now = self._clock.monotonic()
            if self._watch.is_ended or now >= self._end_at:
                raise StopAsyncIteration
            if self._bookmarks and now >= self._bookmark_at:
                self._bookmark_at = now + _BOOKMARK_SECONDS
                return self._renderer.event(self._watch.bookmark())
            await self._rest(min(self._end_at, self._bookmark_at if self._bookmarks else self._end_at) - now)

    async def _rest(self, seconds: float) -> None:
        self._wakened.clear()
        try:
            async with asyncio.timeout(seconds):
                await self._wakened.wait()
        except TimeoutError:
            return


async def expired(renderer: Renderer, error: ApiError) -> AsyncGenerator[bytes, None]:
    """The whole of a watch that asked for changes which are forgotten."""
    yield renderer.event(Event("ERROR", error.to_status()))
