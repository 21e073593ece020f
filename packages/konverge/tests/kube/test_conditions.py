"""Conditions from any writer, valid or not."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from konverge.kube import Condition, find_condition, set_condition


@pytest.mark.parametrize("written", ["0001-01-01T00:00:00+01:00", "9999-12-31T23:59:59-01:00"])
def test_a_time_outside_of_the_calendar_is_no_time(written: str) -> None:
    holder = {"status": {"conditions": [{"type": "Ready", "lastTransitionTime": written}]}}

    found = find_condition(holder, "Ready")

    assert found is not None
    assert found.last_transition_time is None


@pytest.mark.parametrize("status", [None, "odd", {"conditions": None}, {"conditions": {"Ready": "True"}}], ids=str)
def test_a_condition_is_put_into_a_status_of_the_wrong_type(status: object) -> None:
    obj: dict[str, Any] = {"status": status}

    set_condition(obj, Condition("Ready", "True", "Healthy"), datetime(2026, 1, 1, tzinfo=UTC))

    found = find_condition(obj, "Ready")
    assert found is not None
    assert found.reason == "Healthy"
