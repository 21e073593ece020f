"""Released objects: they outlive their owner, and another owner can adopt them."""

from __future__ import annotations

from typing import Any

import pytest

from konverge.component import Component, ComponentBuilder
from konverge.feature import BooleanGate
from konverge.kube import Object, ObjectKey, find_controller
from konverge.operator import Operator
from konverge.options import orphan_when
from konverge.primitives import ConfigMap, Deployment
from tests.scenarios.scenario_harness import AGENT, SAMPLE, Sample, ScenarioHarness, get_at

pytestmark = pytest.mark.anyio


def archive(sample: Sample) -> Component:
    """Return records with a shared name, which can be released, and an index that is deleted with its owner."""
    namespace = sample.metadata.namespace
    records = {"metadata": {"name": "records", "namespace": namespace}, "data": {"keeper": sample.metadata.name}}
    labels = {"app": sample.metadata.name}
    template = {
        "metadata": {"labels": labels},
        "spec": {"containers": [{"name": "main", "image": "konverge.test/app:1"}]},
    }
    reader = {
        "metadata": {"name": f"{sample.metadata.name}-reader", "namespace": namespace},
        "spec": {"replicas": 1, "selector": {"matchLabels": labels}, "template": template},
    }
    return (
        ComponentBuilder("archive", condition_type="SampleReady")
        .with_resource(ConfigMap(records), orphan_when(sample.spec.released))
        .with_resource(Deployment(reader))
        .with_feature_gate(BooleanGate(sample.spec.enabled))
        .suspend(sample.spec.suspended)
        .build()
    )


def new_operator() -> Operator:
    operator = Operator(AGENT)
    operator.manages(Sample, archive)
    return operator


async def keeper(harness: ScenarioHarness) -> str:
    """Return the controller of the records; empty if there is none."""
    live = await harness.client.get(ConfigMap.gvk, ObjectKey(harness.namespace, "records"))
    return str((find_controller(live) or {}).get("name", ""))


async def until_kept_by(harness: ScenarioHarness, name: str) -> None:
    async def is_kept() -> bool:
        return await keeper(harness) == name

    await harness.wait_for(is_kept, describe=f"the records belong to {name or 'no owner'}")


async def until_taken_along(harness: ScenarioHarness, sample: Object) -> None:
    """Delete the owner and wait for the garbage collector."""
    await harness.delete(SAMPLE, ObjectKey.of(sample))
    name = sample["metadata"]["name"]
    await harness.wait_until_gone(Deployment.gvk, ObjectKey(harness.namespace, f"{name}-reader"))


async def test_what_is_released_outlives_its_owner_and_is_taken_by_the_next(harness: ScenarioHarness) -> None:
    records = ObjectKey(harness.namespace, "records")
    async with harness.running_operator(new_operator(), SAMPLE):
        first = await harness.create(Sample, "first")
        await harness.wait_for_condition(first, "True Healthy")
        before = await harness.client.get(ConfigMap.gvk, records)
        kept_by = await keeper(harness)
        await harness.change(first, released=True)
        await harness.wait_for_condition(first, "True Healthy")
        await until_kept_by(harness, "")
        await until_taken_along(harness, first)
        left = await harness.client.get(ConfigMap.gvk, records)

        second = await harness.create(Sample, "second")
        await harness.wait_for_condition(second, "True Healthy")
        taken = await harness.client.get(ConfigMap.gvk, records)
        taken_by = await keeper(harness)

    assert kept_by == "first"
    assert left["metadata"]["uid"] == before["metadata"]["uid"] == taken["metadata"]["uid"]
    assert (left["data"], taken["data"]) == ({"keeper": "first"}, {"keeper": "second"})
    assert taken_by == "second"


async def test_what_is_not_released_cannot_be_taken_and_the_condition_says_whose_it_is(
    harness: ScenarioHarness,
) -> None:
    async with harness.running_operator(new_operator(), SAMPLE):
        first = await harness.create(Sample, "first")
        await harness.wait_for_condition(first, "True Healthy")
        second = await harness.create(Sample, "second")
        refused = await harness.wait_for_condition(second, "False Error")
        data = get_at(await harness.client.get(ConfigMap.gvk, ObjectKey(harness.namespace, "records")), "data.keeper")
        kept_by = await keeper(harness)
        await harness.change(first, released=True)

        # The failure is final until an input changes, and the release changes an object that it read.
        await harness.wait_for_condition(second, "True Healthy")

    assert "it is controlled by Sample first" in refused.message
    assert (data, kept_by) == ("first", "first")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        pytest.param({"suspended": True}, "True Suspended", id="suspended"),
        pytest.param({"enabled": False}, "True Disabled", id="switched off"),
    ],
)
async def test_it_is_released_while_the_component_is_at_rest(harness: ScenarioHarness, change: Any, words: str) -> None:
    async with harness.running_operator(new_operator(), SAMPLE):
        sample = await harness.create(Sample, "first")
        await harness.wait_for_condition(sample, "True Healthy")
        await harness.change(sample, released=True, **change)
        await harness.wait_for_condition(sample, words)

        await until_kept_by(harness, "")
