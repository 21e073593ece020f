"""A watch as the body of an answer: lines as they come, bookmarks in between, an end in time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable

from konverge.clock import Clock
from konverge.errors import ApiError
from konverge_cluster.embedded.response_renderer import ResponseRenderer
from konverge_cluster.embedded.server_watch import INITIAL_EVENTS_END, ServerWatch, ServerWatchEvent
from konverge_cluster.embedded.storage import StoredObject

__all__ = ["WatchStream", "stream_error"]

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
        sends_initial_events_end: Whether to say when the initial state is all told.
        on_end: Called once, when it has ended.
        prepare: Makes stored objects ready to be rendered; None when they are.
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
            self._ready += self._watch.take_events()
            if self._ready:
                batch, self._ready = self._ready[:_BATCH], self._ready[_BATCH:]
                if self._prepare is not None:
                    try:
                        await self._prepare([event.stored for event in batch if event.stored is not None])
                    except ApiError as error:
                        # What cannot be converted cannot be left out either: the watcher starts over.
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
    """The whole of a watch that asked for changes which are forgotten."""
    yield renderer.render_event(ServerWatchEvent("ERROR", error.to_status()))
