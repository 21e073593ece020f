"""Objects outside their owner's namespace, which cannot have an owner reference."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from konverge.component import Component, ComponentBuilder
from konverge.kube import ObjectKey, find_controller
from konverge.operator import Operator, RunOptions
from konverge.options import unowned
from konverge.primitives import ConfigMap, Namespace
from tests.scenarios.scenario_harness import AGENT, SAMPLE, Sample, ScenarioHarness

pytestmark = pytest.mark.anyio


def branch(sample: Sample) -> Component:
    """Return a component with an object in another namespace, owned unless it is released."""
    elsewhere = {"name": sample.metadata.name, "namespace": sample.spec.scenario}
    return (
        ComponentBuilder("branch", condition_type="SampleReady")
        .with_resource(
            ConfigMap({"metadata": elsewhere, "data": {"of": sample.metadata.name}}),
            unowned() if sample.spec.released else None,
        )
        .build()
    )


def new_operator() -> Operator:
    operator = Operator(AGENT)
    operator.manages(Sample, branch)
    return operator


@pytest.fixture
async def elsewhere(harness: ScenarioHarness) -> AsyncIterator[str]:
    """Create a second namespace."""
    name = f"{harness.namespace}-elsewhere"
    await harness.client.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    yield name
    await harness.delete(Namespace.gvk, ObjectKey("", name))


async def test_an_object_in_another_namespace_is_refused_or_made_without_an_owner(
    harness: ScenarioHarness, elsewhere: str
) -> None:
    key = ObjectKey(elsewhere, "far")
    options = RunOptions(namespaces=(harness.namespace, elsewhere))
    async with harness.running_operator(new_operator(), SAMPLE, options=options):
        sample = await harness.create(Sample, "far", elsewhere)
        refused = await harness.wait_for_condition(sample, "False Error")
        absent = await harness.find(ConfigMap.gvk, key)

        await harness.change(sample, released=True)
        await harness.wait_for_condition(sample, "True Healthy")
        live = await harness.client.get(ConfigMap.gvk, key)
        await harness.client.patch(ConfigMap.gvk, key, {"data": {"of": "another"}}, patch_type="merge")

        async def is_put_back() -> bool:
            return bool((await harness.client.get(ConfigMap.gvk, key))["data"] == {"of": "far"})

        await harness.wait_for(is_put_back, describe="the object in the other namespace is put back")
        await harness.delete(SAMPLE, ObjectKey.of(sample))
        await harness.wait_until_gone(SAMPLE, ObjectKey.of(sample))

    assert f"cannot own an object in namespace '{elsewhere}'" in refused.message
    assert absent is None
    assert find_controller(live) is None
    assert await harness.find(ConfigMap.gvk, key), "it outlives its owner"
