"""Components that wait for each other, and a component whose gate is turned off and on."""

from __future__ import annotations

from typing import Any, TypeAlias

import pytest

from konverge.component import Component, ComponentBuilder
from konverge.feature import VersionGate
from konverge.kube import Object, ObjectKey
from konverge.operator import Operator
from konverge.prerequisites import depends_on
from konverge.primitives import ConfigMap, Deployment
from tests.scenarios.scenario_harness import AGENT, SAMPLE, Sample, ScenarioHarness

pytestmark = pytest.mark.anyio


def backend(sample: Sample) -> Component:
    """Return pods that never become ready while the sample is failing."""
    labels = {"app": sample.metadata.name}
    image = "konverge.test/never-ready:1" if sample.spec.failing else "konverge.test/app:1"
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "main", "image": image}]}}
    spec = {"replicas": 1, "selector": {"matchLabels": labels}, "template": template}
    return (
        ComponentBuilder("backend", condition_type="BackendReady")
        .with_resource(Deployment({"metadata": build_metadata(sample, "backend"), "spec": spec}))
        .build()
    )


def cache(sample: Sample) -> Component:
    return settings(sample, "cache").with_prerequisite(depends_on("BackendReady")).build()


def frontend(sample: Sample) -> Component:
    """Return a component that waits for both others, with a gate."""
    return (
        settings(sample, "frontend")
        .with_feature_gate(VersionGate.for_range(sample.spec.version, ">=1").when(sample.spec.enabled))
        .with_prerequisite(depends_on("BackendReady"))
        .with_prerequisite(depends_on("CacheReady"))
        .suspend(sample.spec.suspended)
        .build()
    )


def settings(sample: Sample, part: str) -> ComponentBuilder:
    """Return a component of one ConfigMap with the sample's version."""
    obj = {"metadata": build_metadata(sample, part), "data": {"version": sample.spec.version}}
    return ComponentBuilder(part, condition_type=f"{part.capitalize()}Ready").with_resource(ConfigMap(obj))


def build_metadata(sample: Sample, part: str) -> Object:
    return {"name": f"{sample.metadata.name}-{part}", "namespace": sample.metadata.namespace}


def new_operator() -> Operator:
    operator = Operator(AGENT)
    operator.manages(Sample, frontend, cache, backend)  # so that each component waits for a later one
    return operator


def frontend_key(harness: ScenarioHarness) -> ObjectKey:
    return ObjectKey(harness.namespace, "web-frontend")


async def frontend_version(harness: ScenarioHarness) -> str:
    """Return the version in the frontend's object; empty if it is absent."""
    live = await harness.find(ConfigMap.gvk, frontend_key(harness))
    return "" if live is None else str(live["data"]["version"])


async def test_a_chain_of_components_becomes_ready_one_by_one(harness: ScenarioHarness) -> None:
    async with harness.running_operator(new_operator(), SAMPLE):
        sample = await harness.create(Sample, "web", failing=True)
        first = await harness.wait_for_condition(sample, "False PrerequisiteNotMet", "FrontendReady")
        await harness.wait_for_condition(sample, "False PrerequisiteNotMet", "CacheReady")
        absent = await frontend_version(harness)
        await harness.change(sample, failing=False)
        for condition_type in ("BackendReady", "CacheReady", "FrontendReady"):
            await harness.wait_for_condition(sample, "True Healthy", condition_type)
        await harness.wait_for_condition(sample, "True Healthy", "Ready")

    assert 'ondition "BackendReady"' in first.message  # not found yet, or not True
    assert absent == ""
    assert harness.history["web", "FrontendReady"] == ["False PrerequisiteNotMet", "True Healthy"]


Acts: TypeAlias = list[tuple[dict[str, Any], str]]

ARMED: dict[str, Acts] = {
    "Unknown": [],
    "PrerequisiteNotMet": [({"version": "1.1.0"}, "False PrerequisiteNotMet")],
    "Disabled": [
        ({"failing": False}, "True Healthy"),
        ({"enabled": False, "failing": True}, "True Disabled"),
        ({"enabled": True}, "False PrerequisiteNotMet"),
    ],
    "FeatureGateError": [
        ({"failing": False}, "True Healthy"),
        ({"version": "newest", "failing": True}, "False FeatureGateError"),
        ({"version": "1.1.0"}, "False PrerequisiteNotMet"),
    ],
}
PASSED: dict[str, Acts] = {
    "Healthy": [
        ({"failing": False}, "True Healthy"),
        ({"failing": True, "version": "1.1.0"}, "True Healthy"),
    ],
    "Suspended": [
        ({"failing": False}, "True Healthy"),
        ({"suspended": True, "failing": True}, "True Suspended"),
        ({"suspended": False, "version": "1.1.0"}, "True Healthy"),
    ],
}


async def play(harness: ScenarioHarness, acts: Acts) -> Object:
    """Create a sample with a failing backend, apply changes, and check the frontend's condition after each."""
    sample = await harness.create(Sample, "web", failing=True)
    await harness.wait_for_condition(sample, "False PrerequisiteNotMet", "FrontendReady")
    for change, words in acts:
        await harness.change(sample, **change)
        await harness.wait_for_condition(sample, words, "FrontendReady")
    return sample


@pytest.mark.parametrize("reason", ARMED)
async def test_these_four_reasons_arm_the_barrier(harness: ScenarioHarness, reason: str) -> None:
    async with harness.running_operator(new_operator(), SAMPLE):
        sample = await play(harness, ARMED[reason])
        backend_says = await harness.condition(sample, "BackendReady")
        version = await frontend_version(harness)

        await harness.change(sample, failing=False, version="1.2.0")
        await harness.wait_for_condition(sample, "True Healthy", "FrontendReady")

        assert await frontend_version(harness) == "1.2.0"

    assert backend_says is not None
    assert backend_says.status == "False"
    assert version in ("", "1.0.0"), "nothing is made or changed behind the barrier"


@pytest.mark.parametrize("reason", PASSED)
async def test_whoever_is_past_the_barrier_goes_on_whatever_it_depended_on_does(
    harness: ScenarioHarness, reason: str
) -> None:
    async with harness.running_operator(new_operator(), SAMPLE):
        await play(harness, PASSED[reason])

        assert await frontend_version(harness) == "1.1.0"


async def test_switched_off_it_deletes_its_objects_and_switched_on_it_starts_afresh(harness: ScenarioHarness) -> None:
    async with harness.running_operator(new_operator(), SAMPLE):
        sample = await harness.create(Sample, "web")
        await harness.wait_for_condition(sample, "True Healthy", "FrontendReady")
        await harness.change(sample, enabled=False)
        disabled = await harness.wait_for_condition(sample, "True Disabled", "FrontendReady")
        await harness.wait_until_gone(ConfigMap.gvk, frontend_key(harness))
        summary = await harness.wait_for_condition(sample, "True Healthy", "Ready")
        await harness.cluster.clock.sleep(1.0)  # times in conditions are whole seconds
        await harness.change(sample, enabled=True)
        again = await harness.wait_for_condition(sample, "True Healthy", "FrontendReady")

    assert summary.message == "2 components are healthy; 1 is disabled (frontend)."
    assert disabled.last_transition_time is not None
    assert again.last_transition_time is not None
    assert again.last_transition_time > disabled.last_transition_time, "although it was True before and after"
