"""One owner with objects of every kind in unusual forms: once steady, a restart causes no write."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from konverge.component import Component, ComponentBuilder
from konverge.kube import Object
from konverge.operator import Operator
from konverge.options import delete_when
from konverge.primitives import Generated, GeneratedCertificate, GeneratedSecret, Primitive
from konverge_cluster._internal.testing.audit_requests import AuditedRequest
from tests.component.rich_primitives import build_contents, build_rich_primitive
from tests.primitives.objects import list_classes
from tests.scenarios.kinds import SCENARIOS
from tests.scenarios.scenario_harness import AGENT, SAMPLE, Sample, ScenarioHarness

pytestmark = pytest.mark.anyio

# Kinds without rich objects; the objects of the scenarios are enough.
_OF_SCENARIOS = ("Static", "Workload", "Task", "Integration", "Custom", "Gateway", "HTTPRoute", "Namespace")


def rich_objects(namespace: str, cluster: str) -> Iterator[Primitive[Any]]:
    """Yield a primitive for each rich object of the component tests, and for those of the scenarios."""
    for kind, variants in build_contents(namespace, cluster, 78).items():
        for number, content in enumerate(variants.values()):
            yield build_rich_primitive(kind, content, f"{kind.lower()}-{number}", namespace)
    for kind in (*_OF_SCENARIOS, "CustomResourceDefinition"):
        yield SCENARIOS[kind].primitive(f"settled-{kind.lower()}", namespace, "2.0.0")
    yield GeneratedSecret(_metadata("settled-password", namespace), values={"password": Generated.password()})
    yield GeneratedCertificate(_metadata("settled-certificate", namespace), dns_names=["settled.example.com"])


def _metadata(name: str, namespace: str) -> Object:
    return {"metadata": {"name": name, "namespace": namespace}}


class Everything:
    """A component of every kind in an operator, and the number of its builds."""

    def __init__(self, harness: ScenarioHarness) -> None:
        self._harness = harness
        self.asked = 0

    def component(self, sample: Sample) -> Component:
        self.asked += 1
        builder = ComponentBuilder("everything", condition_type="SampleReady")
        for primitive in rich_objects(self._harness.namespace, self._harness.cluster.name):
            builder.with_resource(primitive, delete_when(not sample.spec.enabled))
        return builder.build()

    def operator(self) -> Operator:
        operator = Operator(AGENT)
        operator.manages(Sample, self.component)
        return operator

    def writes(self) -> list[AuditedRequest]:
        """Return the operator's writes without events."""
        requests = self._harness.cluster.list_requests(AGENT)
        return [each for each in requests if each.verb not in {"get", "list", "watch"} and "/events" not in each.path]

    async def comes_to_rest(self) -> None:
        """Wait until the operator has built the component and everything is steady."""
        builds_before = self.asked
        await self._harness.wait_for(
            lambda: self.asked > builds_before, describe="the operator is asked for the component"
        )
        await self._harness.cluster.wait_until_steady(AGENT, seconds=2.0)


def test_every_primitive_is_among_them() -> None:
    assert {type(each).__name__ for each in rich_objects("default", "embedded")} == set(list_classes())


@pytest.mark.slow
async def test_a_restart_over_settled_objects_of_every_kind_writes_nothing(harness: ScenarioHarness) -> None:
    everything = Everything(harness)
    async with harness.running_operator(everything.operator(), SAMPLE):
        sample = await harness.create(Sample, "all")
        await everything.comes_to_rest()
    first = [entry for entry in everything.writes() if entry.verb == "patch"]

    async with harness.running_operator(everything.operator(), SAMPLE):
        before = len(everything.writes())
        await everything.comes_to_rest()
        again = [f"{entry.verb} {entry.path}" for entry in everything.writes()[before:]]
        await harness.change(sample, enabled=False)
        await harness.wait_for_condition(sample, "True Healthy")

    assert len({entry.path for entry in first}) == len(list(rich_objects("default", "embedded")))
    assert again == []
