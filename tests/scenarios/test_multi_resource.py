"""Several resources in one component: their order, data between them, and guards."""

from __future__ import annotations

import pytest

from konverge.component import Component, ComponentBuilder
from konverge.feature import BooleanGate, VersionGate
from konverge.guards import UNBLOCKED, blocked
from konverge.kube import Object, ObjectKey
from konverge.mutation import Mutation, WorkloadMutator
from konverge.operator import Operator
from konverge.options import auxiliary, block_on_absence, gated_by, read_only
from konverge.primitives import ConfigMap, Data, Deployment, GuardResult, Secret, Service
from tests.scenarios.scenario_harness import AGENT, SAMPLE, Sample, ScenarioHarness, get_at

pytestmark = pytest.mark.anyio


def shop(sample: Sample) -> Component:
    """Return settings, an external license, pages that need it, their address, and two companions."""
    name, namespace = sample.metadata.name, sample.metadata.namespace
    license_key: Data[str] = Data("license")

    def build_metadata(part: str) -> Object:
        return {"name": f"{name}-{part}", "namespace": namespace}

    def set_license(pods: WorkloadMutator) -> None:
        pods.ensure_container_env_var({"name": "LICENSE", "value": license_key.require()})

    def check_license() -> GuardResult:
        return blocked("the shop has not opened yet") if sample.spec.version == "0.1.0" else UNBLOCKED

    return (
        ComponentBuilder("shop", condition_type="SampleReady")
        .with_resource(ConfigMap({"metadata": build_metadata("settings"), "data": {"colour": "blue"}}))
        .with_resource(
            Secret(
                {"metadata": build_metadata("license")},
                extract=license_key.fill_with(lambda live: get_at(live, "data.key")),
            ),
            read_only(),
            block_on_absence(),
        )
        .with_resource(
            Deployment(
                {"metadata": build_metadata("pages"), "spec": pods(f"{name}-pages", "konverge.test/app:1")},
                mutations=Mutation("license", set_license),
                requires=license_key,
            )
        )
        .with_resource(
            Service(
                {"metadata": build_metadata("pages"), "spec": {"selector": {"app": name}, "ports": [{"port": 80}]}},
                guard=lambda _: check_license(),
            )
        )
        .with_resource(
            Deployment(
                {"metadata": build_metadata("extra"), "spec": pods(f"{name}-extra", "konverge.test/never-ready:1")}
            ),
            auxiliary(),
        )
        .with_resource(
            ConfigMap({"metadata": build_metadata("legacy")}),
            gated_by(VersionGate.for_range(sample.spec.version, "<2")),
        )
        .with_feature_gate(BooleanGate(sample.spec.enabled))
        .suspend(sample.spec.suspended)
        .build()
    )


def pods(app: str, image: str) -> Object:
    labels = {"app": app}
    container = {"name": "main", "image": image}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [container]}}
    return {"replicas": 1, "selector": {"matchLabels": labels}, "template": template}


def new_operator() -> Operator:
    operator = Operator(AGENT)
    operator.manages(Sample, shop)
    return operator


class Shop:
    """Access to the objects of a shop."""

    def __init__(self, harness: ScenarioHarness) -> None:
        self.harness = harness

    def key(self, part: str) -> ObjectKey:
        return ObjectKey(self.harness.namespace, f"shop-{part}")

    async def license(self, **data: str) -> None:
        """Create or change the external license."""
        metadata = {"name": "shop-license", "namespace": self.harness.namespace}
        manifest = {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": data}
        await self.harness.client.apply(manifest, field_manager="another-client")

    async def parts(self) -> list[str]:
        """Return the existing objects of the component in the order of their creation."""
        made = [
            (ConfigMap.gvk, "settings"),
            (Deployment.gvk, "pages"),
            (Service.gvk, "pages"),
            (Deployment.gvk, "extra"),
            (ConfigMap.gvk, "legacy"),
        ]
        return [f"{gvk.kind} {part}" for gvk, part in made if await self.harness.find(gvk, self.key(part))]

    def list_applied_names(self) -> list[str]:
        """Return the names of the operator's applied objects in order."""
        requests = self.harness.cluster.list_requests(AGENT)
        found = [entry.path.split("?")[0].rsplit("/", 2)[-2:] for entry in requests if entry.verb == "patch"]
        return [f"{plural} {name}" for plural, name in found if name.startswith("shop-")]


ALL = ["ConfigMap settings", "Deployment pages", "Service pages", "Deployment extra", "ConfigMap legacy"]


async def test_resources_are_made_in_order_and_one_condition_speaks_for_all(harness: ScenarioHarness) -> None:
    shop = Shop(harness)
    await shop.license(key="a2V5")
    async with harness.running_operator(new_operator(), SAMPLE):
        sample = await harness.create(Sample, "shop")
        ready = await harness.wait_for_condition(sample, "True Healthy")
        parts = await shop.parts()
        made = list(dict.fromkeys(shop.list_applied_names()))
        await harness.change(sample, version="2.0.0")
        await harness.wait_for_condition(sample, "True Healthy")
        await harness.wait_until_gone(ConfigMap.gvk, shop.key("legacy"))
        left = await shop.parts()
        await harness.change(sample, suspended=True)
        await harness.wait_for_condition(sample, "True Suspended")
        asleep = await harness.client.get(Deployment.gvk, shop.key("pages"))
        await harness.change(sample, suspended=False, enabled=False)
        await harness.wait_for_condition(sample, "True Disabled")

    assert ready.message == "Component is healthy.", "although the auxiliary Deployment never is"
    assert parts == ALL
    assert made == [
        "configmaps shop-settings",
        "deployments shop-pages",
        "services shop-pages",
        "deployments shop-extra",
        "configmaps shop-legacy",
    ]
    assert left == ALL[:-1]
    assert asleep["spec"]["replicas"] == 0
    assert await shop.parts() == []
    assert await harness.find(Secret.gvk, shop.key("license")), "what is only read stays"


async def test_a_resource_that_is_blocked_holds_up_those_after_it_until_it_may_go_on(harness: ScenarioHarness) -> None:
    shop = Shop(harness)
    async with harness.running_operator(new_operator(), SAMPLE):
        sample = await harness.create(Sample, "shop", version="0.1.0")
        absent = await harness.wait_for_condition(sample, "False Blocked")
        before_license = await shop.parts()

        await shop.license(other="eA==")
        empty = await wait_for_message(harness, sample, 'waiting for data "license"')
        before_key = await shop.parts()

        await shop.license(key="a2V5")
        guarded = await wait_for_message(harness, sample, "the shop has not opened yet")
        before_opening = await shop.parts()

        await harness.change(sample, version="1.0.0")
        await harness.wait_for_condition(sample, "True Healthy")
        after = await shop.parts()

    assert absent.message == f"waiting for v1/Secret/{harness.namespace}/shop-license"
    assert (empty, guarded) == ("False Blocked", "False Blocked")
    assert (before_license, before_key) == (ALL[:1], ALL[:1])
    assert before_opening == ALL[:2]
    assert after == ALL


async def test_what_a_resource_tells_reaches_those_after_it_whenever_it_changes(harness: ScenarioHarness) -> None:
    shop = Shop(harness)
    await shop.license(key="Zmlyc3Q=")

    async def license_of_pages() -> str:
        live = await harness.client.get(Deployment.gvk, shop.key("pages"))
        return str(get_at(live, "spec.template.spec.containers.0.env.0.value"))

    async def is_renewed() -> bool:
        return await license_of_pages() == "bmV4dA=="

    async with harness.running_operator(new_operator(), SAMPLE):
        sample = await harness.create(Sample, "shop")
        await harness.wait_for_condition(sample, "True Healthy")
        first = await license_of_pages()
        await shop.license(key="bmV4dA==")
        await harness.wait_for(is_renewed, describe="the pages have the new license")
        await harness.wait_for_condition(sample, "True Healthy")
        await harness.delete(Secret.gvk, shop.key("license"))
        await harness.wait_for_condition(sample, "False Blocked")

        assert await shop.parts() == ALL, "what was made stays"

    assert first == "Zmlyc3Q="


async def wait_for_message(harness: ScenarioHarness, sample: Object, message: str) -> str:
    """Wait for that message; return status and reason."""

    async def find_message() -> str | None:
        found = await harness.condition(sample, "SampleReady")
        return f"{found.status} {found.reason}" if found is not None and found.message == message else None

    words: str = await harness.wait_for(find_message, describe=f"the sample says: {message}")
    return words
