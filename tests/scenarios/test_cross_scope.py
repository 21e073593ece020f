"""Objects outside their owner's namespace, which it cannot own."""

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
    """An object in another namespace; owned unless it is released."""
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
async def elsewhere(stage: ScenarioHarness) -> AsyncIterator[str]:
    """A second namespace."""
    name = f"{stage.namespace}-elsewhere"
    await stage.client.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    yield name
    await stage.delete(Namespace.gvk, ObjectKey("", name))


async def test_an_object_in_another_namespace_is_refused_or_made_without_an_owner(
    stage: ScenarioHarness, elsewhere: str
) -> None:
    key = ObjectKey(elsewhere, "far")
    options = RunOptions(namespaces=(stage.namespace, elsewhere))
    async with stage.running_operator(new_operator(), SAMPLE, options=options):
        sample = await stage.create(Sample, "far", elsewhere)
        refused = await stage.wait_for_condition(sample, "False Error")
        absent = await stage.find(ConfigMap.gvk, key)

        await stage.change(sample, released=True)
        await stage.wait_for_condition(sample, "True Healthy")
        live = await stage.client.get(ConfigMap.gvk, key)
        await stage.client.patch(ConfigMap.gvk, key, {"data": {"of": "nobody"}}, patch_type="merge")

        async def is_put_back() -> bool:
            return bool((await stage.client.get(ConfigMap.gvk, key))["data"] == {"of": "far"})

        await stage.wait_for(is_put_back, describe="the object in the other namespace is put back")
        await stage.delete(SAMPLE, ObjectKey.of(sample))
        await stage.wait_until_gone(SAMPLE, ObjectKey.of(sample))

    assert f"cannot own an object in namespace '{elsewhere}'" in refused.message
    assert absent is None
    assert find_controller(live) is None
    assert await stage.find(ConfigMap.gvk, key), "it outlives its owner"
