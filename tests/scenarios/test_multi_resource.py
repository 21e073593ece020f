"""Several resources in one component: their order, what one tells the next, and what holds them up."""

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
    """Settings, a license that somebody else brings, pages that need it, their address, and two companions."""
    name, namespace = sample.metadata.name, sample.metadata.namespace
    license_key: Data[str] = Data("license")

    def named(part: str) -> Object:
        return {"name": f"{name}-{part}", "namespace": namespace}

    def licensed(pods: WorkloadMutator) -> None:
        pods.ensure_container_env_var({"name": "LICENSE", "value": license_key.require()})

    def opened() -> GuardResult:
        return blocked("the shop has not opened yet") if sample.spec.version == "0.1.0" else UNBLOCKED

    return (
        ComponentBuilder("shop", condition_type="SampleReady")
        .with_resource(ConfigMap({"metadata": named("settings"), "data": {"colour": "blue"}}))
        .with_resource(
            Secret(
                {"metadata": named("license")},
                extract=license_key.fill_with(lambda live: get_at(live, "data.key")),
            ),
            read_only(),
            block_on_absence(),
        )
        .with_resource(
            Deployment(
                {"metadata": named("pages"), "spec": pods(f"{name}-pages", "konverge.test/app:1")},
                mutations=Mutation("license", licensed),
                requires=license_key,
            )
        )
        .with_resource(
            Service(
                {"metadata": named("pages"), "spec": {"selector": {"app": name}, "ports": [{"port": 80}]}},
                guard=lambda _: opened(),
            )
        )
        .with_resource(
            Deployment({"metadata": named("extra"), "spec": pods(f"{name}-extra", "konverge.test/never-ready:1")}),
            auxiliary(),
        )
        .with_resource(
            ConfigMap({"metadata": named("legacy")}), gated_by(VersionGate.for_range(sample.spec.version, "<2"))
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
    """The objects of a shop."""

    def __init__(self, stage: ScenarioHarness) -> None:
        self.stage = stage

    def key(self, part: str) -> ObjectKey:
        return ObjectKey(self.stage.namespace, f"shop-{part}")

    async def license(self, **data: str) -> None:
        """What somebody else brings, or changes."""
        metadata = {"name": "shop-license", "namespace": self.stage.namespace}
        manifest = {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": data}
        await self.stage.client.apply(manifest, field_manager="somebody")

    async def parts(self) -> list[str]:
        """The objects that are there, of those that the component makes, in the order in which it makes them."""
        made = [
            (ConfigMap.gvk, "settings"),
            (Deployment.gvk, "pages"),
            (Service.gvk, "pages"),
            (Deployment.gvk, "extra"),
            (ConfigMap.gvk, "legacy"),
        ]
        return [f"{gvk.kind} {part}" for gvk, part in made if await self.stage.find(gvk, self.key(part))]

    def list_applied_names(self) -> list[str]:
        """The names in the paths of the operator's applies, in their order."""
        requests = self.stage.cluster.list_requests(AGENT)
        found = [entry.path.split("?")[0].rsplit("/", 2)[-2:] for entry in requests if entry.verb == "patch"]
        return [f"{plural} {name}" for plural, name in found if name.startswith("shop-")]


ALL = ["ConfigMap settings", "Deployment pages", "Service pages", "Deployment extra", "ConfigMap legacy"]


async def test_resources_are_made_in_order_and_one_condition_speaks_for_all(stage: ScenarioHarness) -> None:
    shop = Shop(stage)
    await shop.license(key="a2V5")
    async with stage.running_operator(new_operator(), SAMPLE):
        sample = await stage.create(Sample, "shop")
        ready = await stage.wait_for_condition(sample, "True Healthy")
        parts = await shop.parts()
        made = list(dict.fromkeys(shop.list_applied_names()))
        await stage.change(sample, version="2.0.0")
        await stage.wait_for_condition(sample, "True Healthy")
        await stage.wait_until_gone(ConfigMap.gvk, shop.key("legacy"))
        left = await shop.parts()
        await stage.change(sample, suspended=True)
        await stage.wait_for_condition(sample, "True Suspended")
        asleep = await stage.client.get(Deployment.gvk, shop.key("pages"))
        await stage.change(sample, suspended=False, enabled=False)
        await stage.wait_for_condition(sample, "True Disabled")

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
    assert await stage.find(Secret.gvk, shop.key("license")), "what is only read stays"


async def test_a_resource_that_is_blocked_holds_up_those_after_it_until_it_may_go_on(stage: ScenarioHarness) -> None:
    shop = Shop(stage)
    async with stage.running_operator(new_operator(), SAMPLE):
        sample = await stage.create(Sample, "shop", version="0.1.0")
        absent = await stage.wait_for_condition(sample, "False Blocked")
        before_license = await shop.parts()

        await shop.license(other="eA==")
        empty = await until_told(stage, sample, 'waiting for data "license"')
        before_key = await shop.parts()

        await shop.license(key="a2V5")
        guarded = await until_told(stage, sample, "the shop has not opened yet")
        before_opening = await shop.parts()

        await stage.change(sample, version="1.0.0")
        await stage.wait_for_condition(sample, "True Healthy")
        after = await shop.parts()

    assert absent.message == f"waiting for v1/Secret/{stage.namespace}/shop-license"
    assert (empty, guarded) == ("False Blocked", "False Blocked")
    assert (before_license, before_key) == (ALL[:1], ALL[:1])
    assert before_opening == ALL[:2]
    assert after == ALL


async def test_what_a_resource_tells_reaches_those_after_it_whenever_it_changes(stage: ScenarioHarness) -> None:
    shop = Shop(stage)
    await shop.license(key="Zmlyc3Q=")

    async def license_of_pages() -> str:
        live = await stage.client.get(Deployment.gvk, shop.key("pages"))
        return str(get_at(live, "spec.template.spec.containers.0.env.0.value"))

    async def is_renewed() -> bool:
        return await license_of_pages() == "bmV4dA=="

    async with stage.running_operator(new_operator(), SAMPLE):
        sample = await stage.create(Sample, "shop")
        await stage.wait_for_condition(sample, "True Healthy")
        first = await license_of_pages()
        await shop.license(key="bmV4dA==")
        await stage.wait_for(is_renewed, describe="the pages have the new license")
        await stage.wait_for_condition(sample, "True Healthy")
        await stage.delete(Secret.gvk, shop.key("license"))
        await stage.wait_for_condition(sample, "False Blocked")

        assert await shop.parts() == ALL, "what was made stays"

    assert first == "Zmlyc3Q="


async def until_told(stage: ScenarioHarness, sample: Object, message: str) -> str:
    """Wait for that message; answers status and reason."""

    async def told() -> str | None:
        found = await stage.condition(sample, "SampleReady")
        return f"{found.status} {found.reason}" if found is not None and found.message == message else None

    words: str = await stage.wait_for(told, describe=f"the sample says: {message}")
    return words
