"""The wake-ups of conditions: a reconcile at each of them sees every change that a reconcile each second would see."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from konverge.kube import format_time
from konverge_box._internal.expressions import EvaluationEnvironment, compile_conditions
from konverge_box._internal.expressions.functions import LIBRARY
from konverge_box._internal.expressions.wake_ups import MAX_LOOKAHEAD, WakeUps

NOON = datetime(2026, 1, 2, 12, tzinfo=UTC)  # a Friday
WINDOW_SECONDS = 900

FIELDS = [
    "isExpired(spec.at, spec.ttl)",
    "isExpired(spec.at)",
    "now() >= spec.at",
    "now() == spec.at",
    "timeSince(spec.at) == '1m5s'",
    "timeUntil(spec.at) == '1m5s'",
    "timeUntil(spec.at) == '0s'",
    "timeAgo(spec.at) == '2m'",
    "weekday() == 'Friday'",
    "weekday(spec.at) == 'Friday'",
    "timeInWindow('11:55', '12:05')",
    "timeInWindow('23:55', '00:05')",
    "cronActive('*/10 * * * *', '90s')",
    "cronNext('*/7 * * * *') > spec.at",
    "cronPrevious('*/7 * * * *') > spec.at",
    "spec.size > 3",
]
fields = st.sampled_from(FIELDS)
values = (
    fields
    | st.builds("not ({})".format, fields)
    | st.builds("({}) and ({})".format, fields, fields)
    | st.builds("({}) or ({})".format, fields, fields)
    | st.builds("({0}) if ({1}) else ({2})".format, fields, fields, fields)
)
condition = st.fixed_dictionaries(
    {"field": values.map("{{{{ {} }}}}".format), "equals": st.booleans() | st.just("{{ isExpired(spec.at, '3m') }}")},
    optional={"negate": st.booleans(), "time": st.just({"after": "11:57", "before": "12:04"})},
)
conditions = st.fixed_dictionaries(
    {"when": st.lists(condition, max_size=2)}, optional={"or": st.lists(condition, min_size=1, max_size=2)}
)


@pytest.mark.slow
@settings(max_examples=60)
@given(conditions, st.integers(-600, 600), st.integers(0, 300), st.sampled_from([NOON, NOON.replace(hour=0)]))
def test_reconciles_at_wake_ups_see_what_reconciles_each_second_see(
    declared: dict[str, Any], at: int, ttl: int, around: datetime
) -> None:
    start = around - timedelta(seconds=WINDOW_SECONDS / 2)
    spec = {"at": format_time(around + timedelta(seconds=at)), "ttl": f"{ttl}s", "size": 4}
    compiled = compile_conditions(declared, where="x")

    due: datetime | None = start
    seen: list[bool] = []
    expected: list[bool] = []
    wakes, result = 0, False
    for second in range(WINDOW_SECONDS):
        moment = start + timedelta(seconds=second)
        expected.append(compiled.holds({"spec": spec}, environment=EvaluationEnvironment(now=moment)))
        if due is not None and due <= moment:
            wake_ups = WakeUps()
            environment = EvaluationEnvironment(now=moment, wake_ups=wake_ups)
            result = compiled.holds({"spec": spec}, environment=environment)
            moments = (wake_ups.earliest, compiled.find_next_change(moment))
            due = min((each for each in moments if each is not None), default=None)
            wakes += 1
            assert due is None or due > moment
        seen.append(result)

    assert seen == expected
    changes = sum(one is not other for one, other in pairwise(expected))
    assert wakes <= 6 * (changes + 1) + 4 * WINDOW_SECONDS // MAX_LOOKAHEAD + 20


def test_each_function_of_time_tells_when_its_result_changes() -> None:
    assert [name for name, each in LIBRARY.items() if each.needs == "time" and each.next_change is None] == []


@pytest.mark.parametrize(
    ("field", "change"),
    [
        ("isExpired(spec.at, '90d')", "2026-04-02T12:00:00Z"),
        ("isExpired(spec.at)", None),
        ("timeInWindow('22:00', '06:00')", "2026-01-02T22:00:00Z"),
        ("weekday() == 'Saturday'", "2026-01-03T00:00:00Z"),
        ("weekday() in ['Friday', 'Saturday']", "2026-01-04T00:00:00Z"),
        ("spec.at == 'x'", None),
        ("not isExpired(spec.at, '5m') and not isExpired(spec.at, '1h')", "2026-01-02T12:05:00Z"),
    ],
)
def test_a_wake_up_is_the_change_of_the_whole_condition(field: str, change: str | None) -> None:
    compiled = compile_conditions({"when": [{"field": f"{{{{ {field} }}}}", "equals": True}]}, where="x")
    wake_ups = WakeUps()

    environment = EvaluationEnvironment(now=NOON, wake_ups=wake_ups)
    compiled.holds({"spec": {"at": format_time(NOON)}}, environment=environment)

    assert (None if wake_ups.earliest is None else format_time(wake_ups.earliest)) == change


def test_an_error_that_time_brings_is_a_change() -> None:
    compiled = compile_conditions(
        {"when": [{"field": "{{ spec.absent if isExpired(spec.at, '1m') else true }}", "equals": True}]}, where="x"
    )
    wake_ups = WakeUps()

    environment = EvaluationEnvironment(now=NOON, wake_ups=wake_ups)
    compiled.holds({"spec": {"at": format_time(NOON)}}, environment=environment)

    assert wake_ups.earliest == NOON + timedelta(minutes=1)
