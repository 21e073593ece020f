"""A watch: the stream of changes of a collection."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Mapping
from typing import Any, Self

import msgspec

from konverge._internal.client.json_decoding import DECODE_ERRORS
from konverge._internal.client.line_splitter import LineSplitter
from konverge._internal.client.object_list import extract_metadata
from konverge._internal.client.server_text_filter import ServerTextFilter
from konverge._internal.client.transport import StreamingResponse
from konverge._internal.kube import GroupVersionKind, Object
from konverge.errors import ApiError, ConnectionFailedError

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
"""The annotation of the bookmark after which a watch with initial events has delivered all objects that existed."""


class WatchEvent(msgspec.Struct, frozen=True):
    """One change: the type and the whole object (a bookmark has only a resourceVersion)."""

    type: str
    object: Object


_decoder = msgspec.json.Decoder(WatchEvent)


class SilentWatchError(ConnectionFailedError):
    """A watch sent nothing for too long, not even a bookmark.

    The connection may be dead. Or the server has not reached the resource version (its storage was restored from a
    backup): then it waits forever without an event, and only a new list helps.
    """


class Watch:
    """An open watch: iterate over it for events, or read its lines.

    It ends when the server ends it after the requested timeout. All methods raise
    `konverge.errors.ConnectionFailedError` if the connection breaks (also in the middle of an event), is silent for
    too long, or sends anything other than events.

    Args:
        response: The open stream.
        idle_timeout_seconds: The maximum time until the next whole event or bookmark; bookmarks come about once a
            minute. It may be changed while the watch is open, and applies from the next wait.
        metadata_of: The kind of the objects if only their metadata was requested: the events' objects get that kind.
        texts: The filter that removes values of Secrets from the server's texts, and remembers those of the objects.
        path: The path of the watch.
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
        """Return the next undecoded events, as many as arrived together; None at the end.

        It is faster than an iteration over the events; do not use both. Objects with only metadata have the kind
        ``PartialObjectMetadata`` here.
        """
        try:
            # Wait for a whole event: API servers send nothing else to keep a watch alive, and other bytes, like blank
            # lines, do not show that the watch works.
            async with asyncio.timeout(self.idle_timeout_seconds):
                async for chunk in self._chunks:
                    if lines := self._splitter.feed(chunk):
                        return lines
        except TimeoutError:
            raise SilentWatchError(
                f"watch: no data: expected an event or a bookmark within {self.idle_timeout_seconds:g} s"
            ) from None
        if self._splitter.unfinished:
            raise ConnectionFailedError("watch: the stream ended in the middle of an event")
        return None

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> WatchEvent:
        """Return the next event.

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
            raise ConnectionFailedError(
                f"watch: the server sent an invalid line: expected an event: {error}"
            ) from error
        if event.type == ERROR:
            raise self._texts.filter_error(build_watch_error(event.object), self._path)
        if self._metadata_of is not None:
            return WatchEvent(event.type, extract_metadata(event.object, self._metadata_of))
        self._texts.remember_object(event.object)
        return event


def build_watch_error(status: Mapping[str, Any]) -> ApiError:
    """Build the error from the object of an ``ERROR`` event."""
    code = status.get("code")
    return ApiError.from_status(code if isinstance(code, int) else 500, status)
