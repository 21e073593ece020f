"""A watch: the changes of a collection, as they happen."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Mapping
from typing import Any, Self

import msgspec

from konverge.client.json_decoding import DECODE_ERRORS
from konverge.client.line_splitter import LineSplitter
from konverge.client.object_list import extract_metadata
from konverge.client.server_text_filter import ServerTextFilter
from konverge.client.transport import StreamingResponse
from konverge.errors import ApiError, ConnectionFailedError
from konverge.kube import GroupVersionKind, Object

__all__ = [
    "ADDED",
    "BOOKMARK",
    "DELETED",
    "ERROR",
    "INITIAL_EVENTS_END",
    "MODIFIED",
    "SilentWatchError",
    "Watch",
    "WatchEvent",
    "build_watch_error",
]

ADDED, MODIFIED, DELETED, BOOKMARK, ERROR = "ADDED", "MODIFIED", "DELETED", "BOOKMARK", "ERROR"

INITIAL_EVENTS_END = "k8s.io/initial-events-end"
"""The annotation of the bookmark after which a watch with initial events has delivered all that existed."""


class WatchEvent(msgspec.Struct, frozen=True):
    """One change: the type and the whole object (a bookmark's holds its resourceVersion alone)."""

    type: str
    object: Object


_decoder = msgspec.json.Decoder(WatchEvent)


class SilentWatchError(ConnectionFailedError):
    """A watch carried nothing for too long, no bookmark either.

    The connection may be dead. Or the resource version is one that the server has not reached (its storage was
    restored from a backup): then it waits for ever without a word, and only a new list helps.
    """


class Watch:
    """An open watch: iterate over it for events, or take the lines as they come.

    It ends when the server ends it, which it does after the time-out that was asked for. Everything here raises
    `konverge.errors.ConnectionFailedError` when the connection breaks (also in the middle of an event), is silent for
    too long, or carries what is no event.

    Args:
        response: The stream.
        idle_timeout_seconds: How long the server may take until the next whole event or bookmark; bookmarks come about
            once a minute. It may be changed while the watch is open, and counts from the next wait on.
        metadata_of: The kind of whose objects only the metadata were asked for: the events' objects say that kind.
        texts: Takes values of Secrets out of what the server says, and remembers those of the events' objects.
        path: What is watched.
    """

    def __init__(
        self,
        response: StreamingResponse,
        *,
        idle_timeout_seconds: float,
        metadata_of: GroupVersionKind | None = None,
        texts: ServerTextFilter | None = None,
        path: str = "",
    ) -> None:
        self._chunks = aiter(response.chunks())
        self.idle_timeout_seconds = idle_timeout_seconds
        self._metadata_of = metadata_of
        self._texts = texts or ServerTextFilter()
        self._path = path
        self._splitter = LineSplitter()
        self._lines: deque[bytes] = deque()

    async def next_lines(self) -> list[bytes] | None:
        """The next events as the server sent them, undecoded, as many as came together; None at the end.

        For who is in a hurry; not to be mixed with iterating over the events. Objects that are metadata alone say
        ``PartialObjectMetadata`` here.
        """
        try:
            # Until there is a whole event: API servers send nothing else to keep a watch alive, and bytes that never
            # make one, like blank lines, tell nothing of what is watched.
            async with asyncio.timeout(self.idle_timeout_seconds):
                async for chunk in self._chunks:
                    if lines := self._splitter.feed(chunk):
                        return lines
        except TimeoutError:
            raise SilentWatchError(
                f"a watch was silent for {self.idle_timeout_seconds:g} s, although bookmarks were asked for"
            ) from None
        if self._splitter.unfinished:
            raise ConnectionFailedError("a watch ended in the middle of an event")
        return None

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> WatchEvent:
        """The next event.

        Raises:
            konverge.errors.ApiError: The server sent an error event, for example `ExpiredError`.
        """
        while not self._lines:
            lines = await self.next_lines()
            if lines is None:
                raise StopAsyncIteration
            self._lines.extend(lines)
        try:
            event = _decoder.decode(self._lines.popleft())
        except DECODE_ERRORS as error:
            raise ConnectionFailedError(f"a watch sent something that is no event: {error}") from error
        if event.type == ERROR:
            raise self._texts.filter_error(build_watch_error(event.object), self._path)
        if self._metadata_of is not None:
            return WatchEvent(event.type, extract_metadata(event.object, self._metadata_of))
        self._texts.remember_object(event.object)
        return event


def build_watch_error(status: Mapping[str, Any]) -> ApiError:
    """The error that an ``ERROR`` event carries as its object."""
    code = status.get("code")
    return ApiError.from_status(code if isinstance(code, int) else 500, status)
