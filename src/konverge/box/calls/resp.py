"""RESP2, the protocol of Redis, as far as reads need it: a command out, a value in. No I/O.

The redis library reads whatever length the server announces, up to half a gigabyte, and makes its connections itself,
to names that it resolves itself. What is needed of it is less than what would have to be changed in it.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

from konverge.box.calls.answers import LARGEST_BODY, too_long
from konverge.box.calls.failures import CallFailure

__all__ = ["READS", "RedisRefusal", "command", "reply"]

READS = frozenset(
    {"GET", "GETRANGE", "MGET", "STRLEN", "BITCOUNT", "EXISTS", "TYPE", "TTL", "PTTL"}
    | {"HGET", "HMGET", "HGETALL", "HKEYS", "HVALS", "HLEN", "HEXISTS", "HSTRLEN"}
    | {"LLEN", "LINDEX", "LRANGE", "SCARD", "SISMEMBER", "SMEMBERS", "XLEN"}
    | {"ZCARD", "ZCOUNT", "ZRANGE", "ZRANK", "ZSCORE", "DBSIZE", "INFO", "PING"}
)
"""The commands that a call may have: those that change nothing, wait for nothing and search no whole database."""

_MOST_ITEMS = 100_000
_DEEPEST = 8
_LONGEST_LINE = 4096


class RedisRefusal(CallFailure):
    """The server answered with an error, whose text is in ``said``."""

    def __init__(self, said: str) -> None:
        super().__init__("the server refuses the command")
        self.said = said


def command(words: tuple[str, ...]) -> bytes:
    """A command as it is sent. Each word has its length before it, so no word can become two."""
    parts = [word.encode() for word in words]
    return b"*%d\r\n" % len(parts) + b"".join(b"$%d\r\n%b\r\n" % (len(part), part) for part in parts)


def reply() -> Generator[int | None, bytes, Any]:
    """Read a reply: asks for bytes, is sent them, and returns the value.

    It yields how many bytes it needs, or None for a line, with its end. Texts are UTF-8; what is not is replaced.

    Raises:
        CallFailure: It is no reply, longer than `LARGEST_BODY`, or nests too deeply; `RedisRefusal` for an error.
    """
    budget = _Budget()
    return (yield from _value(budget, 0))


class _Budget:
    def __init__(self) -> None:
        self.bytes = LARGEST_BODY
        self.items = _MOST_ITEMS

    def take(self, *, bytes_: int = 0, items: int = 0) -> None:
        self.bytes -= bytes_
        self.items -= items
        if self.bytes < 0 or self.items < 0:
            raise too_long()


def _value(budget: _Budget, depth: int) -> Generator[int | None, bytes, Any]:
    if depth > _DEEPEST:
        raise CallFailure(f"expected a reply of at most {_DEEPEST} levels, found a deeper one")
    line = yield None
    budget.take(bytes_=len(line), items=1)
    kind, rest = line[:1], line[1:].removesuffix(b"\r\n")
    if kind == b"+":
        return rest.decode(errors="replace")
    if kind == b"-":
        raise RedisRefusal(rest[:_LONGEST_LINE].decode(errors="replace"))
    number = _number(rest)
    if kind == b":":
        return number
    if kind == b"$":
        if number < 0:
            return None
        budget.take(bytes_=number)
        text = yield number + 2
        return text[:-2].decode(errors="replace")
    if kind == b"*":
        if number < 0:
            return None
        budget.take(items=number)
        items: list[Any] = []
        for _ in range(number):
            items.append((yield from _value(budget, depth + 1)))
        return items
    raise _unknown()


def _number(digits: bytes) -> int:
    plain = digits.removeprefix(b"-")
    if not (0 < len(plain) < 20 and plain.isdigit()):
        raise _unknown()
    return int(digits)


def _unknown() -> CallFailure:
    return CallFailure("expected a reply of Redis, found something else")
