"""Two owners whose components have an object of one name, one of them with its gate off: neither deletes nor fights."""

from __future__ import annotations

import pytest

from konverge.component import Component, ComponentBuilder
from konverge.feature import BooleanGate
from konverge.kube import GroupVersionKind, ObjectKey
from konverge.operator import Operator
from konverge.options import gated_by
from konverge.primitives import ConfigMap, Static
from tests.scenarios.scenario_harness import AGENT, SAMPLE, Sample, ScenarioHarness

pytestmark = pytest.mark.anyio

CRD = GroupVersionKind("apiextensions.k8s.io", "v1", "CustomResourceDefinition")
EVENT = GroupVersionKind("events.k8s.io", "v1", "Event")


def records(sample: Sample) -> Component:
    obj = {"metadata": {"name": "records", "namespace": sample.metadata.namespace}, "data": {"a": "b"}}
    return (
        ComponentBuilder("records", condition_type="SampleReady")
        .with_resource(ConfigMap(obj))
        .with_feature_gate(BooleanGate(sample.spec.enabled))
        .build()
    )


def new_operator(*, adopt: bool = True) -> Operator:
    operator = Operator(AGENT, adopt=adopt)
    operator.manages(Sample, records)
    return operator


async def test_an_owner_with_its_gate_off_leaves_the_object_of_another_one(stage: ScenarioHarness) -> None:
    key = ObjectKey(stage.namespace, "records")
    async with stage.running_operator(new_operator(), SAMPLE):
        first = await stage.create(Sample, "first")
        await stage.wait_for_condition(first, "True Healthy")
        before = await stage.client.get(ConfigMap.gvk, key)
        second = await stage.create(Sample, "second", enabled=False)
        disabled = await stage.wait_for_condition(second, "True Disabled")

        async def is_told() -> bool:
            events = [event async for event in stage.client.items(EVENT, namespace=stage.namespace)]
            return any(event["reason"] == "ResourceLeftAlone" for event in events)

        await stage.wait_for(is_told, describe="an event says what is left alone")
        await stage.change(first, version="2.0.0")
        await stage.change(second, version="2.0.0")
        await stage.wait_for_condition(second, "True Disabled")
        after = await stage.client.get(ConfigMap.gvk, key)

    events = [event async for event in stage.client.items(EVENT, namespace=stage.namespace)]
    left = [event for event in events if event["reason"] == "ResourceLeftAlone"]
    sent = [(entry.verb, entry.path) for entry in stage.cluster.list_requests(AGENT)]
    assert disabled.message == "Component is disabled."
    assert after["metadata"]["uid"] == before["metadata"]["uid"]
    assert [path for verb, path in sent if verb == "delete"] == []
    assert [(event["type"], event["regarding"]["name"]) for event in left] == [("Warning", "second")]
    assert "controlled by Sample first" in left[0]["note"]


async def test_a_kind_that_comes_later_is_applied_then(stage: ScenarioHarness) -> None:
    group = "later.konverge.test"
    names = {"kind": "Late", "plural": "lates", "singular": "late", "listKind": "LateList"}
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    definition = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"lates.{group}"},
        "spec": {
            "group": group,
            "names": names,
            "scope": "Namespaced",
            "versions": [{"name": "v1", "served": True, "storage": True, "schema": schema}],
        },
    }

    def late(sample: Sample) -> Component:
        metadata = {"name": "late", "namespace": sample.metadata.namespace}
        obj = Static({"apiVersion": f"{group}/v1", "kind": "Late", "metadata": metadata})
        gate = BooleanGate(sample.spec.enabled)
        return ComponentBuilder("late", condition_type="SampleReady").with_resource(obj, gated_by(gate)).build()

    operator = Operator(AGENT)
    operator.manages(Sample, late)
    async with stage.running_operator(operator, SAMPLE):
        off = await stage.create(Sample, "off", enabled=False)
        await stage.wait_for_condition(off, "True Healthy")
        on = await stage.create(Sample, "on")
        failed = await stage.wait_for_condition(on, "False Error")
        await stage.client.create(definition)
        await stage.wait_for_condition(on, "True Healthy")
        await stage.client.delete(CRD, ObjectKey("", f"lates.{group}"))

    assert "Late" in failed.message


async def test_an_operator_that_adopts_nothing_waits_until_the_name_is_free(stage: ScenarioHarness) -> None:
    key = ObjectKey(stage.namespace, "records")
    metadata = {"name": key.name, "namespace": key.namespace}
    obj = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"theirs": "yes"}}
    await stage.client.create(obj, field_manager="painter")
    async with stage.running_operator(new_operator(adopt=False), SAMPLE):
        sample = await stage.create(Sample, "first")
        blocked = await stage.wait_for_condition(sample, "False Blocked")
        untouched = await stage.client.get(ConfigMap.gvk, key)
        await stage.client.delete(ConfigMap.gvk, key)
        await stage.wait_for_condition(sample, "True Healthy")

    assert "managed by painter, and adoption is refused" in blocked.message
    assert untouched["data"] == {"theirs": "yes"}
