"""Lines are returned whole for any distribution of the bytes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from konverge._internal.client.line_splitter import LineSplitter
from konverge.errors import ConnectionFailedError


@given(st.binary().map(lambda data: data.replace(b"x", b"\n")), st.lists(st.integers(0, 50)))
def test_the_lines_are_those_of_the_whole(data: bytes, cuts: list[int]) -> None:
    splitter = LineSplitter()
    found: list[bytes] = []
    rest = data
    for cut in [*cuts, len(data)]:
        found += splitter.feed(rest[:cut])
        rest = rest[cut:]

    assert found == [line for line in data.split(b"\n")[:-1] if line]
    assert splitter.unfinished == (not data.endswith(b"\n") and data != b"")


@pytest.mark.parametrize(("first", "second"), [(b"", b"12345678901\n"), (b"123456", b"78901")], ids=["whole", "parts"])
def test_a_line_that_is_too_long_is_refused(first: bytes, second: bytes) -> None:
    splitter = LineSplitter(max_line_bytes=10)
    splitter.feed(first)

    with pytest.raises(ConnectionFailedError, match="expected at most 10 bytes"):
        splitter.feed(second)


def test_a_line_of_just_that_length_is_not() -> None:
    assert LineSplitter(max_line_bytes=10).feed(b"1234567890\n") == [b"1234567890"]
