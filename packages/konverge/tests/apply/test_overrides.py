"""Live values that have the same meaning as the applied ones, and overrides."""

from __future__ import annotations

from typing import Any

import pytest

from konverge._internal.apply.overrides import is_override

SAME: list[tuple[Any, Any]] = [
    ("1000m", "1"),
    ("1Gi", "1024Mi"),
    (1, "1"),
    (1, 1.0),
    ("60s", "1m0s"),
    ("1.5h", "1h30m0s"),
    ("2026-01-01T12:00:00+01:00", "2026-01-01T11:00:00Z"),
    ("text\n", "text"),
    ("Example.COM", "example.com"),
    ("", None),
    (0, None),
    ([], None),
    ({}, None),
    (None, "the default"),
    ({"path": "metadata.name"}, {"path": "metadata.name", "version": "v1"}),
    ({"path": "x", "empty": ""}, {"path": "x"}),
    ([{"port": 80}], [{"port": 80, "protocol": "TCP"}]),
    (["a", "b"], ["b", "a"]),
]
OVERRIDDEN: list[tuple[Any, Any]] = [
    ("blue", "red"),
    (1, 2),
    ("1", "2"),
    ("60s", "2m0s"),
    (True, False),
    (True, 1),
    ("blue", None),
    (1, None),
    (["a"], None),
    ({"a": 1}, None),
    ({"a": 1}, {"b": 1}),
    ({"a": {"b": "c"}}, {"a": {"b": "d"}}),
    (["a"], ["a", "b"]),
    (["a", "b"], ["a"]),
    (["a", "a"], ["a", "b"]),
    ("a", ["a"]),
    ({"a": 1}, "a"),
]


@pytest.mark.parametrize(("desired", "live"), SAME)
def test_another_form_of_a_value_is_no_override(desired: Any, live: Any) -> None:
    assert not is_override(desired, live)


@pytest.mark.parametrize(("desired", "live"), OVERRIDDEN)
def test_another_value_is_an_override(desired: Any, live: Any) -> None:
    assert is_override(desired, live)
