"""An operator says why a workload is late: in the owner's condition, with no read before it is late."""

from __future__ import annotations

from datetime import timedelta

import pytest

from konverge import Component, ComponentBuilder, Operator
from konverge.crd import crd_manifest
from konverge.kube import find_condition
from konverge.operator import RunOptions
from konverge.primitives import Deployment
from konverge_cluster.testing import Cluster
from tests.operator.sample_operator import SHOP, OperatorHarness, Shop

pytestmark = pytest.mark.anyio


def stuck(shop: Shop) -> Component:
    labels = {"app": shop.metadata.name}
    container = {"name": "main", "image": "konverge.test/never-ready:1"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [container]}}
    obj = {
        "metadata": {"name": shop.metadata.name, "namespace": shop.metadata.namespace},
        "spec": {"selector": {"matchLabels": labels}, "template": template},
    }
    builder = ComponentBuilder("web", condition_type="WebReady").with_resource(Deployment(obj))
    return builder.with_grace_period(timedelta(hours=1)).build()


def build_operator() -> Operator:
    operator = Operator("late")
    operator.manages(Shop, stuck)
    return operator


class LateHarness(OperatorHarness):
    """A cluster with one shop, whose workload cannot start."""

    async def find_message(self) -> str:
        condition = find_condition(await self.client.get(SHOP, self.key("corner")), "WebReady")
        return "" if condition is None else condition.message

    async def wait_for_message(self, text: str) -> str:
        async def find() -> str | None:
            message = await self.find_message()
            return message if text in message else None

        return await self.cluster.eventually(find, describe=f"the message has {text}", timeout_seconds=120)

    def list_reads(self) -> list[str]:
        """The reads of pods and events by the operator."""
        requests = self.cluster.list_requests("late")
        return [
            request.path
            for request in requests
            if request.verb == "list" and request.path.endswith(("/pods", "/events"))
        ]


@pytest.fixture
async def late(cluster: Cluster) -> LateHarness:
    harness = LateHarness(cluster)
    await cluster.install(crd_manifest(Shop))
    await harness.create_shop("corner")
    return harness


async def test_the_condition_of_a_late_workload_has_the_cause(late: LateHarness) -> None:
    async with late.cluster.run_operator(build_operator()):
        await late.wait_for_message("Waiting for replicas: 0/1 ready")
        assert late.list_reads() == []

        message = await late.wait_for_message("(")

    assert 'container main: ImagePullBackOff, image "konverge.test/never-ready:1"' in message
    assert len([path for path in late.list_reads() if path.endswith("/pods")]) == 1


async def test_an_operator_without_diagnosis_reads_no_pods(late: LateHarness) -> None:
    options = RunOptions(namespaces=(late.cluster.namespace,), diagnoses=False)
    async with late.cluster.run_operator(build_operator(), options):
        await late.wait_for_message("Waiting for replicas: 0/1 ready")
        await late.cluster.clock.sleep(20)

    assert await late.find_message() == "Waiting for replicas: 0/1 ready"
    assert late.list_reads() == []
