"""RESP2, the protocol of Redis, as far as reads need it: a command out, a value in. No I/O.

The redis library reads whatever length the server announces, up to half a gigabyte, and makes its connections itself,
to names that it resolves itself. What is needed of it is less than what would have to be changed in it.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

from konverge_box.calls.call_errors import CallAttemptError
from konverge_box.calls.call_result import MAX_BODY_BYTES, build_too_long_error

__all__ = ["READ_COMMANDS", "RedisReplyError", "encode_command", "parse_reply"]

READ_COMMANDS = frozenset(
    {"GET", "GETRANGE", "MGET", "STRLEN", "BITCOUNT", "EXISTS", "TYPE", "TTL", "PTTL"}
    | {"HGET", "HMGET", "HGETALL", "HKEYS", "HVALS", "HLEN", "HEXISTS", "HSTRLEN"}
    | {"LLEN", "LINDEX", "LRANGE", "SCARD", "SISMEMBER", "SMEMBERS", "XLEN"}
    | {"ZCARD", "ZCOUNT", "ZRANGE", "ZRANK", "ZSCORE", "DBSIZE", "INFO", "PING"}
)
"""The commands that a call may have: those that change nothing, wait for nothing and search no whole database."""

_MAX_ITEMS = 100_000
_MAX_DEPTH = 8
_MAX_LINE_LENGTH = 4096


class RedisReplyError(CallAttemptError):
    """The server answered with an error, whose text is in ``said``."""

    def __init__(self, said: str) -> None:
        super().__init__("the server refuses the command")
        self.server_message = said


def encode_command(words: tuple[str, ...]) -> bytes:
    """A command as it is sent. Each word has its length before it, so no word can become two."""
    parts = [word.encode() for word in words]
    return b"*%d\r\n" % len(parts) + b"".join(b"$%d\r\n%b\r\n" % (len(part), part) for part in parts)


def parse_reply() -> Generator[int | None, bytes, Any]:
    """Read a reply: asks for bytes, is sent them, and returns the value.

    It yields how many bytes it needs, or None for a line, with its end. Texts are UTF-8; what is not is replaced.

    Raises:
        CallAttemptError: It is no reply, longer than `MAX_BODY_BYTES`, or nests too deeply; `RedisReplyError` for an
        error.
    """
    budget = _ReplyBudget()
    return (yield from _parse_value(budget, 0))


class _ReplyBudget:
    def __init__(self) -> None:
        self.bytes = MAX_BODY_BYTES
        self.items = _MAX_ITEMS

    def consume(self, *, bytes_: int = 0, items: int = 0) -> None:
        self.bytes -= bytes_
        self.items -= items
        if self.bytes < 0 or self.items < 0:
            raise build_too_long_error()


def _parse_value(budget: _ReplyBudget, depth: int) -> Generator[int | None, bytes, Any]:
    if depth > _MAX_DEPTH:
        raise CallAttemptError(f"expected a reply of at most {_MAX_DEPTH} levels, found a deeper one")
    line = yield None
    budget.consume(bytes_=len(line), items=1)
    kind, rest = line[:1], line[1:].removesuffix(b"\r\n")
    if kind == b"+":
        return rest.decode(errors="replace")
    if kind == b"-":
        raise RedisReplyError(rest[:_MAX_LINE_LENGTH].decode(errors="replace"))
    number = _parse_number(rest)
    if kind == b":":
        return number
    if kind == b"$":
        if number < 0:
            return None
        budget.consume(bytes_=number)
        text = yield number + 2
        return text[:-2].decode(errors="replace")
    if kind == b"*":
        if number < 0:
            return None
        budget.consume(items=number)
        items: list[Any] = []
        for _ in range(number):
            items.append((yield from _parse_value(budget, depth + 1)))
        return items
    raise _build_unknown_error()


def _parse_number(digits: bytes) -> int:
    plain = digits.removeprefix(b"-")
    if not (0 < len(plain) < 20 and plain.isdigit()):
        raise _build_unknown_error()
    return int(digits)


def _build_unknown_error() -> CallAttemptError:
    return CallAttemptError("expected a reply of Redis, found something else")
