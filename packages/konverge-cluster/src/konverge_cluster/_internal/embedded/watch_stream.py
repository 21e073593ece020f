"""A watch as a response body: event lines, bookmarks, and an end in time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable

from konverge.clock import Clock
from konverge.errors import ApiError
from konverge_cluster._internal.embedded.response_renderer import ResponseRenderer
from konverge_cluster._internal.embedded.server_watch import INITIAL_EVENTS_END, ServerWatch, ServerWatchEvent
from konverge_cluster._internal.embedded.storage import StoredObject

__all__ = ["WatchStream", "stream_error"]

_BOOKMARK_SECONDS = 60.0
# The maximum number of events in one chunk.
_BATCH = 500


class WatchStream(AsyncIterator[bytes]):
    """The chunks of one watch.

    It ends after its time limit, when the client is too slow, or by `end`; closing or cancelling it ends its watch.

    Args:
        watch: The watch.
        renderer: The renderer of the events.
        clock: The clock for bookmarks and the end.
        timeout_seconds: The duration of the watch in seconds.
        bookmarks: True to send bookmarks.
        sends_initial_events_end: True to mark the end of the initial objects.
        on_end: Called once after the end.
        prepare: Prepares stored objects for rendering; None if that is not necessary.
    """

    def __init__(
        self,
        watch: ServerWatch,
        renderer: ResponseRenderer,
        clock: Clock,
        *,
        timeout_seconds: float,
        bookmarks: bool,
        sends_initial_events_end: bool,
        on_end: Callable[[WatchStream], None],
        prepare: Callable[[list[StoredObject]], Awaitable[None]] | None = None,
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
        self._ready: list[ServerWatchEvent] = watch.take_events()
        if sends_initial_events_end:
            self._ready.append(watch.build_bookmark(INITIAL_EVENTS_END))

    def end(self) -> None:
        """End the stream; a second call does nothing."""
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
        except BaseException:  # also a cancellation: an abandoned watch would collect events until its limit
            self.end()
            raise

    async def _next(self) -> bytes:
        while True:
            self._ready += self._watch.take_events()
            if self._ready:
                batch, self._ready = self._ready[:_BATCH], self._ready[_BATCH:]
                if self._prepare is not None:
                    try:
                        await self._prepare([event.stored for event in batch if event.stored is not None])
                    except ApiError as error:
                        # An event that cannot be converted must not be skipped: the client has to start again.
                        self.end()
                        self._ready, _ = [], self._watch.take_events()
                        return self._renderer.render_event(ServerWatchEvent("ERROR", error.to_status()))
                return b"".join(map(self._renderer.render_event, batch))
            now = self._clock.monotonic()
            if self._watch.is_ended or now >= self._end_at:
                raise StopAsyncIteration
            if self._bookmarks and now >= self._bookmark_at:
                self._bookmark_at = now + _BOOKMARK_SECONDS
                return self._renderer.render_event(self._watch.build_bookmark())
            await self._wait_for_events(min(self._end_at, self._bookmark_at if self._bookmarks else self._end_at) - now)

    async def _wait_for_events(self, seconds: float) -> None:
        self._wakened.clear()
        try:
            async with asyncio.timeout(seconds):
                await self._wakened.wait()
        except TimeoutError:
            return


async def stream_error(renderer: ResponseRenderer, error: ApiError) -> AsyncGenerator[bytes, None]:
    """Yield the only line of a watch that requested changes which are no longer available."""
    yield renderer.render_event(ServerWatchEvent("ERROR", error.to_status()))
