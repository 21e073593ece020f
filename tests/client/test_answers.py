"""Answers of HTTP/1.1, from the bytes of a connection."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from konverge.client.answers import Answer, AnswerReader, BadAnswerError

LIMIT = 1000


def read(*pieces: bytes, method: str = "GET", ends: bool = False) -> Answer | None:
    reader = AnswerReader(method, LIMIT)
    found: Answer | None = None
    for piece in pieces:
        found = reader.feed(piece)
    return reader.end() if ends else found


def head(*lines: str, first: str = "HTTP/1.1 200 OK") -> bytes:
    return "\r\n".join((first, *lines, "", "")).encode()


SIZED = head("Content-Type: application/json", "Content-Length: 4") + b"body"
CHUNKED = head("Transfer-Encoding: chunked") + b"3;why=not\r\nbod\r\n01\r\ny\r\n0\r\nTrailer: yes\r\n\r\n"


@pytest.mark.parametrize(
    ("sent", "answer"),
    [
        (SIZED, Answer(200, {"content-type": "application/json", "content-length": "4"}, b"body")),
        (CHUNKED, Answer(200, {"transfer-encoding": "chunked"}, b"body")),
        (head("Content-Length: 0", first="HTTP/1.1 404 "), Answer(404, {"content-length": "0"}, b"")),
        (head(first="HTTP/1.1 204 No Content"), Answer(204, {}, b"")),
        (head("Content-Length: 4", first="HTTP/1.1 304 Not Modified"), Answer(304, {"content-length": "4"}, b"")),
        (head(first="HTTP/1.1 103 Early Hints") + head(first="HTTP/1.1 204"), Answer(204, {}, b"")),
        (
            head("Warning: a", "warning:b \t", "Content-Length: 0"),
            Answer(200, {"warning": "a, b", "content-length": "0"}, b""),
        ),
    ],
    ids=["length", "chunks", "empty", "without a body", "length of what is not sent", "hints", "a header twice"],
)
def test_an_answer_is_read_in_whatever_pieces_it_comes(sent: bytes, answer: Answer) -> None:
    letters = [sent[place : place + 1] for place in range(len(sent))]

    assert read(sent) == answer
    assert read(*letters) == answer
    assert read(*letters[:-1]) is None


@given(body=st.binary(max_size=LIMIT), cuts=st.lists(st.integers(1, LIMIT), max_size=5), size=st.integers(1, LIMIT))
def test_chunks_make_the_body_that_was_cut_up(body: bytes, cuts: list[int], size: int) -> None:
    edges = [0, *sorted(cut for cut in set(cuts) if cut < len(body)), len(body)]
    chunks = [body[start:stop] for start, stop in pairwise(edges) if start < stop]
    sent = head("Transfer-Encoding: chunked")
    sent += b"".join(b"%X\r\n%b\r\n" % (len(chunk), chunk) for chunk in (*chunks, b""))
    found = read(*(sent[place : place + size] for place in range(0, len(sent), size)))

    assert found == Answer(200, {"transfer-encoding": "chunked"}, body)


def test_the_answer_to_a_head_has_no_body() -> None:
    assert read(head("Content-Length: 4"), method="HEAD") == Answer(200, {"content-length": "4"}, b"")


def test_a_body_without_a_length_ends_with_the_connection() -> None:
    assert read(head() + b"bo", b"dy") is None
    assert read(head() + b"bo", b"dy", ends=True) == Answer(200, {}, b"body", is_last=True)


@pytest.mark.parametrize(
    "sent",
    [
        head("Connection: Close", "Content-Length: 0"),
        head("Content-Length: 0", first="HTTP/1.0 200 OK"),
        head("Content-Length: 0") + b"HTTP/1.1 200 OK",
    ],
    ids=["it says so", "an old server", "more than was asked for"],
)
def test_a_connection_that_is_not_to_be_used_again_is_known(sent: bytes) -> None:
    found = read(sent)

    assert found is not None
    assert found.is_last


@pytest.mark.parametrize(
    "sent",
    [
        b"SSH-2.0-OpenSSH_9.6\r\n\r\n",
        head(first="HTTP/2.0 200 OK"),
        head(first="HTTP/1.1 2000 OK"),
        head(first="HTTP/1.1 101 Switching Protocols"),
        head("no header"),
        head("a name: x"),
        head("folded:", " value"),
        head("Content-Length: 4", "Transfer-Encoding: chunked"),
        head("Content-Length: 4", "Content-Length: 5"),
        head("Content-Length: -4"),
        head("Content-Length: +4"),
        head("Content-Length: 0x4"),
        head("Content-Length: ٤"),
        head(f"Content-Length: {LIMIT + 1}"),
        head(f"Content-Length: {'9' * 5000}"),
        head("Transfer-Encoding: gzip, chunked"),
        head("Transfer-Encoding: chunked") + b"x\r\n",
        head("Transfer-Encoding: chunked") + b"\r\n",
        head("Transfer-Encoding: chunked") + b"-1\r\n",
        head("Transfer-Encoding: chunked") + b"1\r\nab\r\n",
        head("Transfer-Encoding: chunked") + b"ffffffff\r\n",
        head("Transfer-Encoding: chunked") + b"1;" + b"x" * 20_000,
        head("Transfer-Encoding: chunked") + b"200\r\n%b\r\n" % (b"x" * 512) * 2,
        head() + b"x" * (LIMIT + 1),
        b"HTTP/1.1 200 OK\r\nx: " + b"x" * 300_000,
    ],
)
def test_what_is_no_answer_is_refused(sent: bytes) -> None:
    with pytest.raises(BadAnswerError):
        read(sent)


@pytest.mark.parametrize("sent", [SIZED[:-1], CHUNKED[:-1], SIZED[:20]], ids=["body", "chunks", "head"])
def test_an_answer_that_is_cut_off_is_none(sent: bytes) -> None:
    with pytest.raises(BadAnswerError, match="cut off"):
        read(sent, ends=True)


def test_a_connection_that_is_closed_before_an_answer_began_has_no_bad_one() -> None:
    assert read(ends=True) is None


@given(sent=st.binary(max_size=200))
def test_no_bytes_end_in_another_failure(sent: bytes) -> None:
    reader = AnswerReader("GET", LIMIT)
    try:
        found = reader.feed(head("Transfer-Encoding: chunked") + sent) or reader.end()
    except BadAnswerError:
        return
    assert found is not None
