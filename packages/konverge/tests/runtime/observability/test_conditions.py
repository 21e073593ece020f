"""Metrics of conditions."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from konverge.component import ConditionMetrics
from konverge.kube import Condition, GroupVersionKind, ObjectKey
from konverge.observability import Metrics
from tests.runtime.observability.exposition_parsing import read_sample, scrape

pytestmark = pytest.mark.anyio

WEB_APP = GroupVersionKind("example.com", "v1", "WebApp")
MOMENT = datetime(2026, 1, 1, tzinfo=UTC)


def owner(name: str) -> dict[str, Any]:
    return {"apiVersion": "example.com/v1", "kind": "WebApp", "metadata": {"namespace": "default", "name": name}}


def ready(status: str, reason: str) -> Condition:
    return Condition("Ready", status, reason, last_transition_time=MOMENT)


def counts(metrics: Metrics) -> dict[tuple[str, str], float]:
    family = scrape(metrics).get("konverge_conditions")
    samples = [] if family is None else family.samples
    return {(sample.labels["status"], sample.labels["reason"]): sample.value for sample in samples}


async def test_owners_are_counted_by_state_and_not_by_name() -> None:
    metrics = Metrics()
    port: ConditionMetrics = metrics.conditions
    for name in ("a", "b", "c"):
        port.record(owner(name), [ready("True", "Healthy")])
        port.record(owner(name), [ready("True", "Healthy")])

    port.record(owner("c"), [ready("False", "Degraded")])

    assert counts(metrics) == {("True", "Healthy"): 2, ("False", "Degraded"): 1}
    assert "konverge_controller_condition" not in scrape(metrics)


async def test_an_owner_that_is_gone_leaves_no_series() -> None:
    metrics = Metrics(per_owner_conditions=True)
    metrics.conditions.record(owner("a"), [ready("True", "Healthy")])

    metrics.conditions.forget(WEB_APP, ObjectKey("default", "a"))
    metrics.conditions.forget(WEB_APP, ObjectKey("default", "a"))

    assert counts(metrics) == {}
    assert "konverge_controller_condition" not in scrape(metrics)


async def test_each_owner_by_name_is_one_series_a_condition_which_follows_its_state() -> None:
    metrics = Metrics(per_owner_conditions=True)
    metrics.conditions.record(owner("a"), [ready("False", "Creating")])
    metrics.conditions.record(owner("a"), [ready("True", "Healthy")])

    [sample] = scrape(metrics)["konverge_controller_condition"].samples

    assert sample.value == MOMENT.timestamp()
    assert sample.labels == {
        "controller": "WebApp",
        "kind": "WebApp",
        "name": "a",
        "namespace": "default",
        "condition": "Ready",
        "status": "True",
        "reason": "Healthy",
        "id": "default/a",
    }


async def test_a_condition_that_its_owner_has_no_more_leaves_no_series() -> None:
    metrics = Metrics(per_owner_conditions=True)
    metrics.conditions.record(owner("a"), [ready("True", "Healthy"), Condition("Old", "False", "Down")])

    metrics.conditions.record(owner("a"), [ready("True", "Healthy")])

    assert counts(metrics) == {("True", "Healthy"): 1}
    assert len(scrape(metrics)["konverge_controller_condition"].samples) == 1


async def test_reasons_without_end_become_one_series() -> None:
    metrics = Metrics()
    for number in range(2100):
        metrics.conditions.record(owner(str(number)), [ready("False", f"Reason{number}")])

    assert len(counts(metrics)) == 2001
    for number in range(2100):
        metrics.conditions.forget(WEB_APP, ObjectKey("default", str(number)))
    assert counts(metrics) == {}


async def test_conditions_of_one_owner_are_bounded_and_the_rest_is_counted() -> None:
    metrics = Metrics()
    metrics.conditions.record(owner("a"), [Condition(f"Type{number}", "True", "Healthy") for number in range(40)])

    assert len(scrape(metrics)["konverge_conditions"].samples) == 32
    assert read_sample(metrics, "konverge_conditions_left_out_total") == 8
