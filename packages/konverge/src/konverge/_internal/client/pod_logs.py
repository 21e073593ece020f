"""The log of a container, as a stream of lines."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Self

from konverge._internal.client.transport import StreamingResponse
from konverge.clock import Clock
from konverge.errors import ConnectionFailedError

__all__ = ["MAX_LOG_LINE_BYTES", "LogLineSplitter", "PodLog"]

MAX_LOG_LINE_BYTES = 64 * 1024
"""The size of the pieces of longer lines; container runtimes split lines at 16 KiB."""


class LogLineSplitter:
    """A splitter of chunks into lines without their newlines; a line that is too long becomes several pieces.

    Args:
        max_line_bytes: The maximum length of a piece.
    """

    def __init__(self, max_line_bytes: int = MAX_LOG_LINE_BYTES) -> None:
        self._max = max_line_bytes
        self._rest = bytearray()

    def feed(self, chunk: bytes) -> list[bytes]:
        """Add a chunk and return the lines that it completes, including empty ones."""
        lines: list[bytes] = []
        *complete, rest = chunk.split(b"\n")
        for piece in complete:
            self._rest += piece
            self._split_into(lines)
            lines.append(bytes(self._rest))
            self._rest.clear()
        self._rest += rest
        self._split_into(lines)
        return lines

    def flush(self) -> list[bytes]:
        """Return the rest of a log that ends without a newline."""
        rest = bytes(self._rest)
        self._rest.clear()
        return [rest] if rest else []

    def _split_into(self, lines: list[bytes]) -> None:
        at = 0
        while len(self._rest) - at > self._max:
            lines.append(bytes(self._rest[at : at + self._max]))
            at += self._max
        del self._rest[:at]


class PodLog:
    """An open log: iterate over it for its lines.

    Args:
        response: The open stream.
        name: The name of the Pod, for messages.
        clock: The source of time.
        timeout_seconds: The time limit for the whole log; None for none.
        max_line_bytes: The size of the pieces of longer lines.
    """

    def __init__(
        self,
        response: StreamingResponse,
        *,
        name: str,
        clock: Clock,
        timeout_seconds: float | None,
        max_line_bytes: int,
    ) -> None:
        self._chunks = aiter(response.chunks())
        self._name = name
        self._clock = clock
        self._timeout_seconds = timeout_seconds
        self._deadline = None if timeout_seconds is None else clock.monotonic() + timeout_seconds
        self._splitter = LogLineSplitter(max_line_bytes)
        self._lines: deque[bytes] = deque()
        self._has_ended = False

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> str:
        """Return the next line; invalid UTF-8 in it is replaced.

        Raises:
            konverge.errors.ConnectionFailedError: The connection broke, or the deadline has passed.
        """
        while not self._lines:
            if self._has_ended:
                raise StopAsyncIteration
            chunk = await self._next_chunk()
            self._has_ended = chunk is None
            self._lines.extend(self._splitter.flush() if chunk is None else self._splitter.feed(chunk))
        return self._lines.popleft().decode("utf-8", "replace")

    async def _next_chunk(self) -> bytes | None:
        left = None if self._deadline is None else max(0.0, self._deadline - self._clock.monotonic())
        try:
            async with asyncio.timeout(left):
                return await anext(self._chunks, None)
        except TimeoutError:
            raise ConnectionFailedError(
                f"the log of {self._name} did not end within {self._timeout_seconds:g} s"
            ) from None
