"""Foreign text in messages keeps its limit and cannot control a terminal."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from konverge._internal.message_text import quote, shorten, to_printable


@given(st.text(), st.integers(1, 20))
def test_a_shortened_text_keeps_its_limit_and_its_beginning(text: str, limit: int) -> None:
    short = shorten(text, limit)

    assert len(short) <= limit
    assert short == text or (short.endswith("…") and text.startswith(short[:-1]))


@given(st.text())
def test_quoted_and_printable_texts_are_printable(text: str) -> None:
    assert quote(text).isprintable()
    assert to_printable(text, 40).isprintable()


def test_a_text_within_its_limit_stays() -> None:
    assert (shorten("abc", 3), quote("abc"), to_printable("abc", 3)) == ("abc", "'abc'", "abc")
    assert to_printable("a\x1b[2J", 40) == "'a\\x1b[2J'"
