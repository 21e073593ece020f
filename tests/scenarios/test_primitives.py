"""Every kind over the whole life of its owner, with a running operator: all of them in parallel."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from konverge.component import Component, ComponentBuilder
from konverge.feature import BooleanGate
from konverge.kube import GroupVersionKind, Object, ObjectKey, find_controller
from konverge.operator import Operator, OwnerContext
from konverge.primitives import Primitive
from tests.scenarios.kinds import CROSS_SCOPE, SCENARIOS
from tests.scenarios.scenario import Scenario
from tests.scenarios.scenario_harness import (
    AGENT,
    CLUSTER_SAMPLE,
    SAMPLE,
    ClusterSample,
    Sample,
    ScenarioHarness,
    get_at,
)

pytestmark = pytest.mark.anyio


def primitive_of(sample: Sample | ClusterSample) -> Primitive[Any]:
    spec = sample.spec
    return SCENARIOS[spec.scenario].primitive(sample.metadata.name, spec.namespace, spec.version)


def component_of(sample: Sample | ClusterSample, *, enabled: bool | None = None) -> Component:
    gate = BooleanGate(sample.spec.enabled if enabled is None else enabled)
    return (
        ComponentBuilder("sample", condition_type="SampleReady")
        .with_feature_gate(gate)
        .with_resource(primitive_of(sample))
        .suspend(sample.spec.suspended)
        .build()
    )


def new_operator() -> Operator:
    operator = Operator(AGENT)
    operator.manages(Sample, component_of)
    operator.manages(ClusterSample, component_of)

    @operator.finalizes(Sample)
    async def take_along(sample: Sample, ctx: OwnerContext) -> None:
        """Delete the cluster-scoped object, which cannot have a namespaced owner for the garbage collector."""
        if primitive_of(sample).is_cluster_scoped:
            await component_of(sample, enabled=False).reconcile(ctx)

    return operator


class Life:
    """One scenario, step by step.

    Args:
        harness: The harness with the running operator.
        cls: The owner's class.
        name: The name of the scenario.
    """

    def __init__(self, harness: ScenarioHarness, cls: type[Sample] | type[ClusterSample], name: str) -> None:
        self.harness = harness
        self.cls = cls
        self.scenario: Scenario = SCENARIOS[name]
        self._name = name
        self._sample: Object = {}

    async def run(self) -> None:
        """Run all steps; each leaves the object ready for the next."""
        is_wide = self.cls is ClusterSample
        owner = f"{self._name.lower()}-{self.harness.namespace}" if is_wide else self._name.lower()
        self._sample = await self.harness.create(self.cls, owner, self._name)
        self._primitive = self.scenario.primitive(owner, self.harness.namespace, "1.0.0")
        await self.it_is_made()
        await self.it_changes_with_its_owner()
        await self.it_is_put_back()
        await self.it_sleeps_and_wakes()
        await self.it_is_switched_off_and_on()
        await self.it_goes_with_its_owner()

    async def it_is_made(self) -> None:
        """Check the creation: the controller reference, if possible, and the condition's progress."""
        await self._until_ready()
        live = await self._live()
        may_be_owned = self.cls is ClusterSample or not self._primitive.is_cluster_scoped
        controller = find_controller(live)
        first, *_ = self.harness.history[self._sample["metadata"]["name"], "SampleReady"]
        assert self.scenario.first in (None, first)
        assert (controller or {}).get("uid") == (self._sample["metadata"]["uid"] if may_be_owned else None)
        assert get_at(live, self.scenario.changed[0]) != self.scenario.changed[1]

    async def it_changes_with_its_owner(self) -> None:
        """Check an in-place change by a mutation that is on from version 2 on."""
        before = await self._live()
        await self.harness.change(self._sample, version="2.0.0")
        await self._until_ready()
        live = await self._live()
        path, value = self.scenario.changed
        assert get_at(live, path) == value
        assert live["metadata"]["uid"] == before["metadata"]["uid"]

    async def it_is_put_back(self) -> None:
        """Check that drift in applied fields is corrected."""
        gvk, key = self._primitive.gvk, self._primitive.key
        before = await self._live()
        fields = list(leaves(self.scenario.drift))
        drifted = await self.harness.client.patch(gvk, key, self.scenario.drift, patch_type="merge")
        assert [get_at(drifted, path) for path in fields] != [get_at(before, path) for path in fields]

        async def is_put_back() -> bool:
            live = await self._live()
            return [get_at(live, path) for path in fields] == [get_at(before, path) for path in fields]

        await self.harness.wait_for(is_put_back, describe=f"{', '.join(fields)} of {self._name} is put back")

    async def it_sleeps_and_wakes(self) -> None:
        """Check suspension: the object is deleted, scaled or unchanged, according to its kind."""
        gvk, key, asleep = self._primitive.gvk, self._primitive.key, self.scenario.asleep
        before = await self._live()
        await self.harness.change(self._sample, suspended=True)
        await self.harness.wait_for_condition(self._sample, "True Suspended")
        if asleep is None:
            await self.harness.wait_until_gone(gvk, key)
        else:
            sleeping = await self._live()
            assert {path: get_at(sleeping, path) for path in asleep} == asleep
        await self.harness.change(self._sample, suspended=False)
        await self._until_ready()
        live = await self._live()
        assert (live["metadata"]["uid"] == before["metadata"]["uid"]) is (asleep is not None)
        assert [get_at(live, path) for path in asleep or ()] == [get_at(before, path) for path in asleep or ()]

    async def it_is_switched_off_and_on(self) -> None:
        """Check the gate: the object is deleted without its feature and created again with it."""
        before = await self._live()
        await self.harness.change(self._sample, enabled=False)
        disabled = await self.harness.wait_for_condition(self._sample, "True Disabled")
        await self.harness.wait_until_gone(self._primitive.gvk, self._primitive.key)
        await self.harness.change(self._sample, enabled=True)
        await self._until_ready()
        assert disabled.message == "Component is disabled."
        assert (await self._live())["metadata"]["uid"] != before["metadata"]["uid"]

    async def it_goes_with_its_owner(self) -> None:
        """Check the deletion by the garbage collector or by a finalizer."""
        await self.harness.delete(GroupVersionKind.of(self._sample), ObjectKey.of(self._sample))
        await self.harness.wait_until_gone(self._primitive.gvk, self._primitive.key)

    async def _until_ready(self) -> None:
        await self.harness.wait_for_condition(self._sample, f"True {self.scenario.ready}", meanwhile=self._outside)

    async def _outside(self) -> None:
        if self.scenario.outside is not None:
            await self.scenario.outside(self.harness.cluster, self._primitive)

    async def _live(self) -> Object:
        return await self.harness.client.get(self._primitive.gvk, self._primitive.key)


def leaves(patch: Object, above: str = "") -> Iterator[str]:
    """Yield the paths of a merge patch's values."""
    for name, value in patch.items():
        if isinstance(value, dict):
            yield from leaves(value, f"{above}{name}.")
        else:
            yield above + name


@pytest.mark.slow
async def test_every_kind_lives_as_its_owner_says(harness: ScenarioHarness, subtests: pytest.Subtests) -> None:
    lives = {name: Life(harness, Sample, name) for name in SCENARIOS}
    lives |= {f"{name} of a cluster-scoped owner": Life(harness, ClusterSample, name) for name in CROSS_SCOPE}
    async with harness.running_operator(new_operator(), SAMPLE, CLUSTER_SAMPLE):
        ends = await asyncio.gather(*(life.run() for life in lives.values()), return_exceptions=True)

    for name, end in zip(lives, ends, strict=True):
        with subtests.test(name):
            if isinstance(end, BaseException):
                raise end
