"""The part of RESP2, the Redis protocol, that reads need: it encodes a command and parses a value. No I/O.

The redis library reads any length that the server announces, up to 512 MB. It also resolves names and opens
connections itself. Replacing these parts would take more code than this module.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

from konverge_box._internal.calls.call_errors import CallAttemptError
from konverge_box._internal.calls.call_result import MAX_BODY_BYTES, build_too_long_error

__all__ = ["READ_COMMANDS", "RedisReplyError", "encode_command", "parse_reply"]

READ_COMMANDS = frozenset(
    {"GET", "GETRANGE", "MGET", "STRLEN", "BITCOUNT", "EXISTS", "TYPE", "TTL", "PTTL"}
    | {"HGET", "HMGET", "HGETALL", "HKEYS", "HVALS", "HLEN", "HEXISTS", "HSTRLEN"}
    | {"LLEN", "LINDEX", "LRANGE", "SCARD", "SISMEMBER", "SMEMBERS", "XLEN"}
    | {"ZCARD", "ZCOUNT", "ZRANGE", "ZRANK", "ZSCORE", "DBSIZE", "INFO", "PING"}
)
"""The allowed commands: they change nothing, wait for nothing and scan no whole database."""

_MAX_ITEMS = 100_000
_MAX_DEPTH = 8
_MAX_LINE_LENGTH = 4096


class RedisReplyError(CallAttemptError):
    """An error reply of the server, with its text in `server_message`."""

    def __init__(self, server_message: str) -> None:
        super().__init__("the server rejects the command")
        self.server_message = server_message


def encode_command(words: tuple[str, ...]) -> bytes:
    """Encode a command. The length precedes each word, so that no word can become two."""
    parts = [word.encode() for word in words]
    return b"*%d\r\n" % len(parts) + b"".join(b"$%d\r\n%b\r\n" % (len(part), part) for part in parts)


def parse_reply() -> Generator[int | None, bytes, Any]:
    """Parse a reply: request bytes by yielding, receive them, and return the value.

    It yields the number of bytes that it needs, or None for a line including its end. Texts are UTF-8; invalid bytes
    are replaced.

    Raises:
        CallAttemptError: The reply is invalid, longer than `MAX_BODY_BYTES`, or nests too deeply. An error reply raises
        `RedisReplyError`.
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
    return CallAttemptError("expected a Redis reply, found another format")
