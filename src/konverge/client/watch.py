"""A watch: the changes of a collection, as they happen."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from typing import Any

import msgspec

from konverge.client.lines import LineSplitter
from konverge.client.transport import StreamingResponse
from konverge.errors import ApiError, ConnectionFailedError
from konverge.kube import Object

__all__ = ["ADDED", "BOOKMARK", "DELETED", "ERROR", "INITIAL_EVENTS_END", "MODIFIED", "Watch", "WatchEvent"]

ADDED, MODIFIED, DELETED, BOOKMARK, ERROR = "ADDED", "MODIFIED", "DELETED", "BOOKMARK", "ERROR"

INITIAL_EVENTS_END = "k8s.io/initial-events-end"
"""The annotation of the bookmark after which a watch with initial events has delivered all that existed."""


class WatchEvent(msgspec.Struct, frozen=True):
    """One change: the type and the whole object (a bookmark's holds its resourceVersion alone)."""

    type: str
    object: Object


_decoder = msgspec.json.Decoder(WatchEvent)


class Watch:
    """An open watch; iterate over it once, for events or for lines.

    It ends when the server ends it, which it does after the time-out that was asked for.

    Args:
        response: The stream.
        idle_timeout_seconds: How long the server may be silent. Bookmarks come about once a minute.
    """

    def __init__(self, response: StreamingResponse, *, idle_timeout_seconds: float) -> None:
        self._response = response
        self._idle_timeout_seconds = idle_timeout_seconds

    async def lines(self) -> AsyncIterator[list[bytes]]:
        """The events as the server sent them, undecoded, all that came in one piece together: for who is in a hurry.

        Raises:
            konverge.errors.ConnectionFailedError: The connection broke (also in the middle of a line), was silent for
                too long, or a line was too long.
        """
        splitter = LineSplitter()
        chunks = aiter(self._response.chunks())
        while True:
            try:
                # Around the wait alone: a deadline that spans a yield would cancel whatever the consumer does then.
                async with asyncio.timeout(self._idle_timeout_seconds):
                    chunk = await anext(chunks, None)
            except TimeoutError:
                raise ConnectionFailedError(
                    f"a watch was silent for {self._idle_timeout_seconds:g} s, although bookmarks were asked for"
                ) from None
            if chunk is None:
                break
            lines = splitter.feed(chunk)
            if lines:
                yield lines
        if splitter.unfinished:
            raise ConnectionFailedError("a watch ended in the middle of an event")

    async def __aiter__(self) -> AsyncIterator[WatchEvent]:
        """The events, decoded.

        Raises:
            konverge.errors.ApiError: The server sent an error event, for example `ExpiredError`.
            konverge.errors.ConnectionFailedError: As for `lines`, or a line is no event.
        """
        async for lines in self.lines():
            for line in lines:
                try:
                    event = _decoder.decode(line)
                except msgspec.DecodeError as error:
                    raise ConnectionFailedError(f"a watch sent something that is no event: {error}") from error
                if event.type == ERROR:
                    raise error_of(event.object)
                yield event


def error_of(status: Mapping[str, Any]) -> ApiError:
    """The error that an ``ERROR`` event carries as its object."""
    code = status.get("code")
    return ApiError.from_status(code if isinstance(code, int) else 500, status)
