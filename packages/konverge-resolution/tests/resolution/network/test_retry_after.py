"""How long a server wants to be left alone."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from konverge_resolution.network import parse_retry_after

NOW = datetime(2026, 11, 1, 12, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        ("7", 7.0),
        ("Sun, 01 Nov 2026 12:00:30 GMT", 30.0),
        ("Sun, 01 Nov 2026 11:00:00 GMT", 0.0),
        ("", None),
        ("soon", None),
        ("-5", None),
        ("9" * 400, None),
        ("٣", None),
    ],
)
def test_retry_after_is_a_number_or_a_date(header: str, seconds: float | None) -> None:
    assert parse_retry_after(header, NOW) == seconds
