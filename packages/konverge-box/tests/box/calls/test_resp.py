"""The encoding and parsing of the Redis protocol."""

from __future__ import annotations

from typing import Any

import pytest

from konverge_box._internal.calls import CallAttemptError
from konverge_box._internal.calls.resp import RedisReplyError, encode_command, parse_reply


def read(sent: bytes) -> Any:
    """Feed a reply as its parser requests it; raise an AssertionError if it requests too much."""
    parser = parse_reply()
    wanted = next(parser)
    while True:
        end = sent.find(b"\n") + 1 if wanted is None else wanted
        assert 0 < end <= len(sent), f"more is wanted: {wanted}"
        piece, sent = sent[:end], sent[end:]
        try:
            wanted = parser.send(piece)
        except StopIteration as ended:
            assert sent == b""
            return ended.value


@pytest.mark.parametrize(
    ("sent", "value"),
    [
        (b"+PONG\r\n", "PONG"),
        (b":42\r\n", 42),
        (b":-1\r\n", -1),
        (b"$5\r\nh\r\nlo\r\n", "h\r\nlo"),
        (b"$0\r\n\r\n", ""),
        (b"$-1\r\n", None),
        (b"*-1\r\n", None),
        (b"*0\r\n", []),
        (b"*2\r\n$1\r\na\r\n*2\r\n:1\r\n$-1\r\n", ["a", [1, None]]),
        (b"$2\r\n\xff\xfe\r\n", "\N{REPLACEMENT CHARACTER}" * 2),
    ],
)
def test_each_kind_of_reply_has_its_value(sent: bytes, value: Any) -> None:
    assert read(sent) == value


def test_an_error_is_told_apart_from_a_value() -> None:
    with pytest.raises(RedisReplyError) as refusal:
        read(b"-ERR no such command\r\n")
    assert refusal.value.server_message == "ERR no such command"


@pytest.mark.parametrize(
    "sent",
    [
        b"HTTP/1.1 400 Bad Request\r\n",
        b"\r\n",
        b":\r\n",
        b":1_000\r\n",
        b":" + b"9" * 5000 + b"\r\n",
        b"$536870912\r\n",
        b"*2000000000\r\n",
        b"*1\r\n" * 10,
        b"*100000\r\n" + b"*1\r\n" * 20,
    ],
)
def test_a_reply_that_is_none_or_announces_too_much_is_refused_before_it_is_read(sent: bytes) -> None:
    with pytest.raises(CallAttemptError):
        read(sent)


def test_no_word_of_a_command_can_become_two() -> None:
    assert encode_command(("GET", "a\r\nDEL b")) == b"*2\r\n$3\r\nGET\r\n$8\r\na\r\nDEL b\r\n"
