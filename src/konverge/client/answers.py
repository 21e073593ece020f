"""Whole answers of HTTP/1.1 (RFC 9112), from the bytes of one connection. Pure.

It takes what servers write and no more: what could be read in two ways (two lengths, a folded header, an encoding that
was not asked for) is refused instead of guessed at.
"""

from __future__ import annotations

import re
from collections.abc import Generator
from dataclasses import dataclass

__all__ = ["Answer", "AnswerReader", "BadAnswerError"]

_MAX_HEAD_BYTES = 256 * 1024
_MAX_LINE_BYTES = 16 * 1024

_STATUS_LINE = re.compile(r"HTTP/1\.([01]) ([1-9]\d\d)(?: .*)?", re.ASCII)
_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_CHUNK_SIZE = re.compile(rb"([0-9A-Fa-f]{1,15})[ \t]*(?:;.*)?", re.DOTALL)

_SWITCHING_PROTOCOLS = 101
_BODILESS = frozenset({204, 304})


class BadAnswerError(Exception):
    """What came is no answer of HTTP/1.1, or a longer one than is taken."""


@dataclass(frozen=True, slots=True)
class Answer:
    """A whole answer.

    Args:
        status: The status code.
        headers: By names in lower case; one that came several times is joined, as HTTP has it.
        body: All of it.
        is_last: Nothing more can be asked on this connection.
    """

    status: int
    headers: dict[str, str]
    body: bytes
    is_last: bool = False


class AnswerReader:
    """Reads the answer to one request from whatever pieces it arrives in.

    Args:
        method: The request's; what answers a HEAD has no body.
        max_body_bytes: How long a body may be.
    """

    __slots__ = ("_arrived", "_has_ended", "_max_body_bytes", "_may_have_body", "_place", "_reading")

    def __init__(self, method: str, max_body_bytes: int) -> None:
        self._may_have_body = method != "HEAD"
        self._max_body_bytes = max_body_bytes
        # What came last, with what was not read of what came before; and up to where it has been read.
        self._arrived = b""
        self._place = 0
        self._has_ended = False
        self._reading = self._read()
        next(self._reading)

    def feed(self, data: bytes) -> Answer | None:
        """Take what has arrived; the answer, when it is whole.

        Raises:
            BadAnswerError: It will never be one.
        """
        unread = self._arrived[self._place :]
        self._arrived, self._place = unread + data if unread else data, 0
        return self._go_on()

    def end(self) -> Answer | None:
        """The server has closed the connection: the answer if that is how it ends; None when none has begun.

        Raises:
            BadAnswerError: It will never be one.
        """
        if not self._arrived:
            return None
        self._has_ended = True
        return self._go_on()

    def _go_on(self) -> Answer | None:
        try:
            next(self._reading)
        except StopIteration as finished:
            found: Answer = finished.value
            return found
        return None

    def _read(self) -> Generator[None, None, Answer]:
        yield
        while True:
            version, status, headers = _head((yield from self._until(b"\r\n\r\n", _MAX_HEAD_BYTES)))
            if status == _SWITCHING_PROTOCOLS:
                raise BadAnswerError("it switches to another protocol")
            if status >= 200:
                break
        coding, length = headers.get("transfer-encoding"), headers.get("content-length")
        is_last = version == "0" or "close" in headers.get("connection", "").lower()
        if not self._may_have_body or status in _BODILESS:
            body = b""
        elif coding is not None:
            if coding.lower() != "chunked" or length is not None:
                raise BadAnswerError("its length is not clear")
            body = yield from self._chunks()
        elif length is not None:
            body = b"".join((yield from self._exactly(_length(length), 0)))
        else:
            body, is_last = (yield from self._rest()), True
        return Answer(status, headers, body, is_last or self._place < len(self._arrived))

    def _until(self, mark: bytes, limit: int) -> Generator[None, None, bytes]:
        """What comes before the mark."""
        searched = 0
        while (end := self._arrived.find(mark, self._place + searched)) < 0:
            searched = max(0, len(self._arrived) - self._place - len(mark) + 1)
            if searched > limit or self._has_ended:
                raise BadAnswerError("its head or a line of it is too long, or cut off")
            yield
        found = self._arrived[self._place : end]
        self._place = end + len(mark)
        return found

    def _exactly(self, count: int, before: int) -> Generator[None, None, list[bytes]]:
        """So many bytes, in pieces; `before` of the body have come already."""
        if before + count > self._max_body_bytes:
            raise BadAnswerError(f"it is longer than {self._max_body_bytes} bytes")
        pieces: list[bytes] = []
        while True:
            piece = self._arrived[self._place : self._place + count]
            pieces.append(piece)
            self._place += len(piece)
            count -= len(piece)
            if not count:
                return pieces
            if self._has_ended:
                raise BadAnswerError("it is cut off")
            yield

    def _chunks(self) -> Generator[None, None, bytes]:
        pieces: list[bytes] = []
        size = 0
        while True:
            line = _CHUNK_SIZE.fullmatch((yield from self._until(b"\r\n", _MAX_LINE_BYTES)))
            if line is None:
                raise BadAnswerError("a chunk of it has no size")
            count = int(line[1], 16)
            if not count:
                break
            pieces += yield from self._exactly(count, size)
            size += count
            if (yield from self._until(b"\r\n", _MAX_LINE_BYTES)):
                raise BadAnswerError("a chunk of it is longer than it says")
        while (yield from self._until(b"\r\n", _MAX_LINE_BYTES)):  # trailers, which nobody here asks for
            pass
        return b"".join(pieces)

    def _rest(self) -> Generator[None, None, bytes]:
        pieces: list[bytes] = []
        size = 0
        while True:
            piece = self._arrived[self._place :]
            pieces.append(piece)
            self._place += len(piece)
            size += len(piece)
            if size > self._max_body_bytes:
                raise BadAnswerError(f"it is longer than {self._max_body_bytes} bytes")
            if self._has_ended:
                return b"".join(pieces)
            yield


def _head(head: bytes) -> tuple[str, int, dict[str, str]]:
    """The minor version, the status and the headers."""
    first, *lines = head.decode("utf-8", "surrogateescape").split("\r\n")
    found = _STATUS_LINE.fullmatch(first)
    if found is None:
        raise BadAnswerError("it does not begin as one")
    headers: dict[str, str] = {}
    for line in lines:
        name, colon, value = line.partition(":")
        if not colon or not _NAME.fullmatch(name):
            raise BadAnswerError("a header of it is none")
        name, value = name.lower(), value.strip(" \t")
        headers[name] = f"{headers[name]}, {value}" if name in headers else value
    return found[1], int(found[2]), headers


def _length(text: str) -> int:
    if not (text.isascii() and text.isdecimal() and len(text) <= 15):
        raise BadAnswerError("its length is none")
    return int(text)
