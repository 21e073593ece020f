"""Owners of built-in kinds and of custom resources of others, on either cluster."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import pytest

from konverge._internal.operator.dry_run import dry_run_owner
from konverge._internal.operator.permission_derivation import derive_permissions
from konverge.cache import CacheOptions
from konverge.component import Component, ComponentBuilder
from konverge.crd import Metadata, crd_manifest, custom_resource, find_definition
from konverge.errors import BuildError, ConfigurationError, InvalidError
from konverge.kube import Condition, GroupVersionKind, Object, ObjectKey
from konverge.operator import Operator, OwnerContext, Result, RunOptions
from konverge.options import deletion_wave
from konverge.primitives import ConfigMap
from konverge.types import apps_v1, core_v1
from konverge.webhooks import AdmissionRequest, WebhookOptions
from tests.operator.sample_operator import CONFIG_MAP, DEPLOYMENT, OperatorHarness

pytestmark = pytest.mark.anyio

ANNOTATION = "conditions.konverge.dev/sidecars"
MARK = "example.com/sidecar"
NAMESPACE = GroupVersionKind("", "v1", "Namespace")
SELECTOR = CacheOptions(label_selector=MARK)


def notes(deployment: apps_v1.Deployment) -> Component:
    """One ConfigMap for each Deployment."""
    metadata = deployment["metadata"]
    obj = {
        "metadata": {"name": f"{metadata['name']}-notes", "namespace": metadata["namespace"]},
        "data": {"replicas": str(deployment["spec"].get("replicas", 1))},
    }
    return ComponentBuilder("notes", condition_type="NotesReady").with_resource(ConfigMap(obj)).build()


def build_operator() -> Operator:
    operator = Operator("sidecars")
    operator.manages("apps/v1/Deployment", notes)
    operator.caches("apps/v1/Deployment", SELECTOR)
    return operator


async def create_deployment(town: OperatorHarness, name: str, *, labels: dict[str, str] | None = None) -> Object:
    selected = {"app": name}
    template = {
        "metadata": {"labels": selected},
        "spec": {"containers": [{"name": "main", "image": "konverge.test/app:1"}]},
    }
    return await town.client.create(
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {
                "name": name,
                "namespace": town.namespace,
                "labels": {MARK: "true"} if labels is None else labels,
            },
            "spec": {"replicas": 2, "selector": {"matchLabels": selected}, "template": template},
        }
    )


async def read_conditions(
    town: OperatorHarness, name: str, gvk: GroupVersionKind = DEPLOYMENT, annotation: str = ANNOTATION
) -> dict[str, Object]:
    obj = await town.client.get(gvk, town.key(name))
    listed = json.loads((obj["metadata"].get("annotations") or {}).get(annotation, "[]"))
    return {condition["type"]: condition for condition in listed}


async def wait_for_reason(
    town: OperatorHarness,
    name: str,
    reason: str,
    condition_type: str = "Ready",
    gvk: GroupVersionKind = DEPLOYMENT,
    annotation: str = ANNOTATION,
) -> Object:
    async def has_reason() -> Object | None:
        condition = (await read_conditions(town, name, gvk, annotation)).get(condition_type)
        return condition if condition is not None and condition["reason"] == reason else None

    return await town.cluster.eventually(has_reason, describe=f"{name} has {condition_type} {reason}")


async def test_a_built_in_kind_is_an_owner(town: OperatorHarness) -> None:
    async with town.running_operator(build_operator()):
        created = await create_deployment(town, "web")
        ready = await wait_for_reason(town, "web", "Healthy")
        await town.client.patch(DEPLOYMENT, town.key("web"), {"spec": {"replicas": 3}}, patch_type="merge")
        await town.wait_for_data("web-notes", replicas="3")
        await town.client.delete(CONFIG_MAP, town.key("web-notes"))
        await town.wait_for_data("web-notes", replicas="3")
        await town.wait_until_quiet()
        conditions = await read_conditions(town, "web")
    child = await town.client.get(CONFIG_MAP, town.key("web-notes"))

    assert ready["status"] == "True"
    assert "observedGeneration" not in conditions["NotesReady"], "a Deployment has a new generation after each write"
    (reference,) = child["metadata"]["ownerReferences"]
    assert (reference["kind"], reference["uid"]) == ("Deployment", created["metadata"]["uid"])


async def test_only_the_annotation_of_the_owner_is_written(town: OperatorHarness) -> None:
    async with town.running_operator(build_operator()):
        await create_deployment(town, "web")
        await wait_for_reason(town, "web", "Healthy")
        await town.wait_until_quiet()
    writes = [
        (request.verb, request.path.partition("?")[0].partition("/deployments/")[2])
        for request in town.writes()
        if "/deployments/" in request.path
    ]
    live = await town.client.get(DEPLOYMENT, town.key("web"))
    own = [
        entry["fieldsV1"] for entry in live["metadata"]["managedFields"] if ANNOTATION in json.dumps(entry["fieldsV1"])
    ]

    assert set(writes) == {("patch", "web")}, "nothing is written to the status"
    assert own == [{"f:metadata": {"f:annotations": {".": {}, f"f:{ANNOTATION}": {}}}}] or own == [
        {"f:metadata": {"f:annotations": {f"f:{ANNOTATION}": {}}}}
    ]
    assert not {condition["type"] for condition in live["status"]["conditions"]} & {"Ready", "NotesReady"}


async def test_a_steady_owner_costs_no_requests(town: OperatorHarness) -> None:
    async with town.running_operator(build_operator()):
        await create_deployment(town, "web")
        await wait_for_reason(town, "web", "Healthy")
        await town.wait_until_quiet()
        before = len(town.requests())
        await town.client.patch(
            DEPLOYMENT, town.key("web"), {"metadata": {"labels": {"other": "label"}}}, patch_type="merge"
        )
        await town.wait_until_quiet()
        assert town.requests()[before:] == []
    started = len(town.writes())
    async with town.running_operator(build_operator()):
        await town.wait_until_quiet()

    assert town.writes()[started:] == []


async def test_objects_that_the_selector_leaves_out_are_left_alone(town: OperatorHarness) -> None:
    async with town.running_operator(build_operator()):
        await create_deployment(town, "other", labels={})
        await create_deployment(town, "web")
        await wait_for_reason(town, "web", "Healthy")
        await town.wait_until_quiet()

    assert await read_conditions(town, "other") == {}
    assert not await town.exists(CONFIG_MAP, "other-notes")


async def test_a_spoiled_annotation_is_written_anew(town: OperatorHarness) -> None:
    async with town.running_operator(build_operator()):
        await create_deployment(town, "web")
        await wait_for_reason(town, "web", "Healthy")
        for text in ("not json", "[1, 2]", '{"a": "b"}', ""):
            body = {"metadata": {"annotations": {ANNOTATION: text}}}
            await town.client.patch(DEPLOYMENT, town.key("web"), body, patch_type="merge")

            async def is_repaired() -> bool:
                try:
                    return bool((await read_conditions(town, "web"))["Ready"]["status"] == "True")
                except (KeyError, TypeError, ValueError):
                    return False

            await town.cluster.eventually(is_repaired, describe=f"{text!r} is replaced")


async def test_a_function_reconciles_an_owner_without_a_status(town: OperatorHarness) -> None:
    operator = Operator("sidecars")
    seen: list[Object] = []

    @operator.reconciles("v1/ConfigMap")
    async def reconcile(config: core_v1.ConfigMap, ctx: OwnerContext) -> None:
        seen.append(dict(config))
        if config["data"]["greeting"] == "rude":
            raise ValueError("no one greets like that")
        ctx.stage(Condition("Greeted", "True", "Said", config["data"]["greeting"]))

    operator.caches("v1/ConfigMap", SELECTOR)
    metadata = {"name": "letter", "namespace": town.namespace, "labels": {MARK: "true"}}
    letter = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}
    async with town.running_operator(operator):
        await town.client.create({**letter, "data": {"greeting": "Ahoy"}})
        said = await wait_for_reason(town, "letter", "Said", "Greeted", CONFIG_MAP)
        await town.client.patch(CONFIG_MAP, town.key("letter"), {"data": {"greeting": "rude"}}, patch_type="merge")
        failed = await wait_for_reason(town, "letter", "Error", "Ready", CONFIG_MAP)
        await town.client.patch(CONFIG_MAP, town.key("letter"), {"data": {"greeting": "Hello"}}, patch_type="merge")

        async def is_over() -> bool:
            conditions = await read_conditions(town, "letter", CONFIG_MAP)
            return "Ready" not in conditions and conditions["Greeted"]["message"] == "Hello"

        await town.cluster.eventually(is_over, describe="the error is gone")

    assert said["message"] == "Ahoy"
    assert failed["message"] == "The reconcile failed: ValueError: no one greets like that"
    assert seen[0]["data"] == {"greeting": "Ahoy"}
    assert seen[0]["metadata"]["labels"] == {MARK: "true"}


async def test_finalizers_waves_timers_and_watches_take_the_name_of_a_kind(town: OperatorHarness) -> None:
    operator, calls = Operator("sidecars"), list[str]()

    def parts(deployment: apps_v1.Deployment) -> Component:
        metadata = {"name": f"{deployment['metadata']['name']}-notes", "namespace": town.namespace}
        builder = ComponentBuilder("parts", condition_type="PartsReady")
        return builder.with_resource(ConfigMap({"metadata": metadata}), deletion_wave(1)).build()

    operator.manages("apps/v1/Deployment", parts)
    operator.caches("apps/v1/Deployment", SELECTOR)

    @operator.finalizes("apps/v1/Deployment")
    async def close(deployment: apps_v1.Deployment, ctx: OwnerContext) -> Result | None:
        calls.append("close")
        return None

    @operator.runs_timer("apps/v1/Deployment", interval=timedelta(hours=1), initial_delay=timedelta(0))
    async def count(deployment: apps_v1.Deployment, ctx: OwnerContext) -> None:
        ctx.stage(Condition("Counted", "True", "Counted", str(deployment["spec"].get("replicas"))))

    async with town.running_operator(operator):
        await create_deployment(town, "web")
        counted = await wait_for_reason(town, "web", "Counted", "Counted")
        await wait_for_reason(town, "web", "Healthy")
        live = await town.client.get(DEPLOYMENT, town.key("web"))
        assert live["metadata"]["finalizers"] == ["konverge.dev/sidecars", "waves.konverge.dev/sidecars"]
        assert {"Counted", "Ready", "PartsReady"} <= (await read_conditions(town, "web")).keys()
        await town.client.delete(DEPLOYMENT, town.key("web"))

        async def is_gone() -> bool:
            return not await town.exists(DEPLOYMENT, "web")

        await town.cluster.eventually(is_gone, describe="the Deployment is gone")
        assert not await town.exists(CONFIG_MAP, "web-notes")

    assert counted["message"] == "2"
    assert set(calls) == {"close"}  # again if the Deployment's controller writes at the same moment


async def test_a_cluster_scoped_kind_is_an_owner(town: OperatorHarness) -> None:
    operator = Operator("sidecars")

    def quota(namespace: core_v1.Namespace) -> Component:
        obj = {"metadata": {"name": "welcome", "namespace": namespace["metadata"]["name"]}}
        return ComponentBuilder("welcome", condition_type="WelcomeReady").with_resource(ConfigMap(obj)).build()

    operator.manages("v1/Namespace", quota)
    mark = f"{MARK}-{town.namespace}"
    operator.caches("v1/Namespace", CacheOptions(label_selector=mark))
    body = {"metadata": {"labels": {mark: "true"}}}
    await town.client.patch(NAMESPACE, ObjectKey("", town.namespace), body, patch_type="merge")
    async with town.running_operator(operator, RunOptions()):

        async def exists() -> bool:
            return await town.exists(CONFIG_MAP, "welcome")

        await town.cluster.eventually(exists, describe="the namespace has its object")


@dataclass
class CertificateSpec:
    host: str = ""


@dataclass
class CertificateStatus:
    phase: str = "Pending"


@custom_resource(group="certificates.konverge.test", version="v1")
@dataclass
class Certificate:
    """The definition of another operator."""

    metadata: Metadata
    spec: CertificateSpec
    status: CertificateStatus = field(default_factory=CertificateStatus)


@custom_resource(group="certificates.konverge.test", version="v1", kind="Certificate", external=True)
@dataclass
class ForeignCertificate:
    """What this operator reads of it."""

    metadata: Metadata
    spec: CertificateSpec
    status: CertificateStatus = field(default_factory=CertificateStatus)


CERTIFICATE = find_definition(Certificate).gvk


async def test_a_custom_resource_of_another_operator_is_typed_and_keeps_its_status(town: OperatorHarness) -> None:
    await town.cluster.install(crd_manifest(Certificate))
    operator = Operator("sidecars")

    @operator.reconciles(ForeignCertificate)
    async def reconcile(certificate: ForeignCertificate, ctx: OwnerContext) -> None:
        ctx.stage(Condition("Seen", "True", certificate.status.phase, certificate.spec.host))
        try:
            ctx.stage_status(CertificateStatus("Issued"))
        except ConfigurationError as error:
            ctx.stage(Condition("Staged", "False", "Refused", str(error)))

    metadata = {"name": "site", "namespace": town.namespace}
    base = {"apiVersion": CERTIFICATE.api_version, "kind": CERTIFICATE.kind, "metadata": metadata}
    created = await town.client.create({**base, "spec": {"host": "example.com"}})
    await town.client.update({**created, "status": {"phase": "Issued"}}, subresource="status")
    async with town.running_operator(operator):
        seen = await wait_for_reason(town, "site", "Issued", "Seen", CERTIFICATE)
        refused = await wait_for_reason(town, "site", "Refused", "Staged", CERTIFICATE)
    live = await town.client.get(CERTIFICATE, town.key("site"))

    assert seen["message"] == "example.com"
    assert "the status belongs to another controller" in refused["message"]
    assert live["status"] == {"phase": "Issued"}
    assert operator.defined_resources == ()


async def test_a_status_function_for_a_foreign_status_is_refused() -> None:
    operator = Operator("sidecars")

    def report(certificate: ForeignCertificate, ctx: OwnerContext) -> CertificateStatus:
        raise AssertionError("never called")

    def parts(certificate: ForeignCertificate) -> Component:
        raise AssertionError("never called")

    with pytest.raises(BuildError, match="the status of a Certificate belongs to another controller"):
        operator.manages(ForeignCertificate, parts, status=report)


async def test_a_kind_has_one_reconcile_by_name_or_class() -> None:
    operator = build_operator()

    with pytest.raises(BuildError, match="Deployment is registered already"):
        operator.manages(GroupVersionKind("apps", "v1", "Deployment"), notes)
    with pytest.raises(ValueError, match="is not a kind"):
        operator.manages("Deployment", notes)


async def test_a_dry_run_knows_the_conditions_of_the_annotation(town: OperatorHarness) -> None:
    operator = build_operator()
    (registration,) = operator.registered.classes
    before = await create_deployment(town, "web")
    report = await dry_run_owner(registration, before, town.client, clock=town.clock, operator_name="sidecars")
    async with town.running_operator(operator):
        await wait_for_reason(town, "web", "Healthy")
    live = await town.client.get(DEPLOYMENT, town.key("web"))
    after = await dry_run_owner(registration, live, town.client, clock=town.clock, operator_name="sidecars")

    assert report.before is None
    assert [change.action for change in report.changes] == ["create"]
    assert after.before is not None
    assert (after.before.reason, after.changes, after.errors) == ("Healthy", (), ())


def test_permissions_of_a_foreign_kind_are_its_annotation_and_not_its_status() -> None:
    rules = derive_permissions(build_operator().registered.declaration).rules

    own = [rule for rule in rules if "apps" in rule.api_groups]
    assert [(rule.resources, rule.verbs) for rule in own] == [
        (("deployments",), ("get", "list", "patch", "watch")),
        (("deployments/finalizers",), ("update",)),
    ]


@pytest.mark.slow
@pytest.mark.real_time
async def test_webhooks_take_the_name_of_a_kind_and_a_selector(town: OperatorHarness) -> None:
    operator = Operator(f"hooks-{town.namespace}"[:63])
    labels = f"example.com/checked={town.namespace}"
    operator.manages("v1/Secret", lambda secret: ComponentBuilder("none", condition_type="NoneReady").build())
    operator.caches("v1/Secret", CacheOptions(label_selector="example.com/no-secret"))

    @operator.defaults("v1/ConfigMap", labels=labels)
    def complete(config: core_v1.ConfigMap, request: AdmissionRequest[Any]) -> None:
        config.setdefault("data", {})["greeting"] = "Hello"

    @operator.validates("v1/ConfigMap", labels=labels)
    def check(config: core_v1.ConfigMap, request: AdmissionRequest[Any]) -> list[str]:
        return ["no one greets like that"] if config["data"].get("tone") == "rude" else []

    options = RunOptions((town.namespace,), webhooks=WebhookOptions("127.0.0.1", 0), registers_webhooks=True)
    base = {"apiVersion": "v1", "kind": "ConfigMap"}
    marked = {"namespace": town.namespace, "labels": {"example.com/checked": town.namespace}}
    async with town.running_operator(operator, options):

        async def is_completed() -> bool:
            created = await town.client.create({**base, "metadata": {**marked, "generateName": "letter-"}})
            return created.get("data") == {"greeting": "Hello"}

        await town.cluster.eventually(is_completed, describe="the webhook is called")
        with pytest.raises(InvalidError, match="no one greets like that"):
            await town.client.create({**base, "metadata": {**marked, "name": "rude"}, "data": {"tone": "rude"}})
        other = {"name": "other", "namespace": town.namespace}
        untouched = await town.client.create({**base, "metadata": other, "data": {"tone": "rude"}})

    assert untouched["data"] == {"tone": "rude"}


def test_a_selector_that_no_webhook_can_have_is_refused() -> None:
    operator = Operator("hooks")

    for labels in ("a in (", "a>5"):
        with pytest.raises(BuildError, match="labels: "):

            @operator.validates("v1/Pod", labels=labels)
            def check(pod: core_v1.Pod, request: AdmissionRequest[Any]) -> None:
                raise AssertionError("never called")
