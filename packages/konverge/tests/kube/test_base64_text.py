from __future__ import annotations

import pytest

from konverge._internal.kube.base64_text import canonicalize_base64


@pytest.mark.parametrize(
    ("written", "stored"),
    [
        ("", ""),
        ("YWJj", "YWJj"),
        ("YWJj\nZGVm\n", "YWJjZGVm"),
        ("YW\r\nI=", "YWI="),
        ("YWJ=", "YWI="),  # bits that stand for nothing
    ],
)
def test_bytes_have_one_spelling(written: str, stored: str) -> None:
    assert canonicalize_base64(written) == stored


@pytest.mark.parametrize("text", ["hunter2", "YWI", "YW I=", "YWI==", "é===", "\u2028"])
def test_what_is_no_base64_is_refused_without_a_quote(text: str) -> None:
    with pytest.raises(ValueError, match="padding|data|ASCII") as raised:
        canonicalize_base64(text)
    assert text not in str(raised.value)
