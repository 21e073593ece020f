"""Two owners share an object's name, one with its gate off: neither deletes the object or fights for it."""

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


async def test_an_owner_with_its_gate_off_leaves_the_object_of_another_one(harness: ScenarioHarness) -> None:
    key = ObjectKey(harness.namespace, "records")
    async with harness.running_operator(new_operator(), SAMPLE):
        first = await harness.create(Sample, "first")
        await harness.wait_for_condition(first, "True Healthy")
        before = await harness.client.get(ConfigMap.gvk, key)
        second = await harness.create(Sample, "second", enabled=False)
        disabled = await harness.wait_for_condition(second, "True Disabled")

        async def is_reported() -> bool:
            events = [event async for event in harness.client.items(EVENT, namespace=harness.namespace)]
            return any(event["reason"] == "ResourceLeftAlone" for event in events)

        await harness.wait_for(is_reported, describe="an event says what is left alone")
        await harness.change(first, version="2.0.0")
        await harness.change(second, version="2.0.0")
        await harness.wait_for_condition(second, "True Disabled")
        after = await harness.client.get(ConfigMap.gvk, key)

    events = [event async for event in harness.client.items(EVENT, namespace=harness.namespace)]
    left = [event for event in events if event["reason"] == "ResourceLeftAlone"]
    sent = [(entry.verb, entry.path) for entry in harness.cluster.list_requests(AGENT)]
    assert disabled.message == "Component is disabled."
    assert after["metadata"]["uid"] == before["metadata"]["uid"]
    assert [path for verb, path in sent if verb == "delete"] == []
    assert [(event["type"], event["regarding"]["name"]) for event in left] == [("Warning", "second")]
    assert "controlled by Sample first" in left[0]["note"]


async def test_a_kind_that_comes_later_is_applied_then(harness: ScenarioHarness) -> None:
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
    async with harness.running_operator(operator, SAMPLE):
        off = await harness.create(Sample, "off", enabled=False)
        await harness.wait_for_condition(off, "True Healthy")
        on = await harness.create(Sample, "on")
        failed = await harness.wait_for_condition(on, "False Error")
        await harness.client.create(definition)
        await harness.wait_for_condition(on, "True Healthy")
        await harness.client.delete(CRD, ObjectKey("", f"lates.{group}"))

    assert "Late" in failed.message


async def test_an_operator_that_adopts_nothing_waits_until_the_name_is_free(harness: ScenarioHarness) -> None:
    key = ObjectKey(harness.namespace, "records")
    metadata = {"name": key.name, "namespace": key.namespace}
    obj = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"theirs": "yes"}}
    await harness.client.create(obj, field_manager="painter")
    async with harness.running_operator(new_operator(adopt=False), SAMPLE):
        sample = await harness.create(Sample, "first")
        blocked = await harness.wait_for_condition(sample, "False Blocked")
        untouched = await harness.client.get(ConfigMap.gvk, key)
        await harness.client.delete(ConfigMap.gvk, key)
        await harness.wait_for_condition(sample, "True Healthy")

    assert "managed by painter, and adoption is refused" in blocked.message
    assert untouched["data"] == {"theirs": "yes"}
