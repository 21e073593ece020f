"""Immutable fields: the server refuses the change, the condition reports it, and `recreate` replaces the object."""

from __future__ import annotations

import base64
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any

import pytest

from konverge.component import Component, ComponentBuilder
from konverge.errors import ReconcileError, TerminalError
from konverge.kube import GroupVersionKind, Object
from konverge.options import unowned
from konverge.primitives import ConfigMap, Deployment, Primitive, Secret, Service, StatefulSet, Static
from tests.component.app import CONFIG_MAP, DEPLOYMENT, ComponentHarness

pytestmark = pytest.mark.anyio

NewApp = Callable[[str], Awaitable[ComponentHarness]]


def component(*resources: Primitive[Any]) -> Component:
    builder = ComponentBuilder("frontend", condition_type="FrontendReady")
    for resource in resources:
        builder.with_resource(resource)
    return builder.build()


def pod_template(image: str = "konverge.test/app:1") -> Object:
    return {
        "metadata": {"labels": {"app": "web"}},
        "spec": {"containers": [{"name": "main", "image": image}], "restartPolicy": "Never"},
    }


def web(app: ComponentHarness, gvk: GroupVersionKind | None = None, **fields: Any) -> Object:
    kind = {} if gvk is None else {"apiVersion": gvk.api_version, "kind": gvk.kind}
    return {**kind, "metadata": {"name": "web", "namespace": app.key.namespace}, **fields}


def selecting(app: ComponentHarness, **labels: str) -> Object:
    """A Deployment whose selector has these labels beside the name."""
    found = app.build_deployment(replicas=0)
    for place in (found["spec"]["selector"]["matchLabels"], found["spec"]["template"]["metadata"]["labels"]):
        place |= labels
    return found


def stateful(app: ComponentHarness, service: str) -> Object:
    found = app.build_deployment(replicas=0)
    found["spec"]["serviceName"] = service
    return found


JOB = GroupVersionKind("batch", "v1", "Job")
CLAIM = GroupVersionKind("", "v1", "PersistentVolumeClaim")
BINDING = GroupVersionKind("rbac.authorization.k8s.io", "v1", "RoleBinding")
GROUP = BINDING.group


def job(app: ComponentHarness, image: str) -> Object:
    return web(app, JOB, spec={"suspend": True, "template": pod_template(image)})


def claim(app: ComponentHarness, mode: str) -> Object:
    resources = {"requests": {"storage": "1Gi"}}
    return web(app, CLAIM, spec={"accessModes": [mode], "resources": resources, "storageClassName": "none"})


def binding(app: ComponentHarness, role: str) -> Object:
    return web(app, BINDING, roleRef={"apiGroup": GROUP, "kind": "Role", "name": role}, subjects=[])


CHANGES: list[Any] = [
    pytest.param(
        lambda app, **o: Deployment(selecting(app), **o),
        lambda app, **o: Deployment(selecting(app, tier="front"), **o),
        r"spec.selector is immutable \(was {.*}, now {.*}\)",
        id="Deployment selector",
    ),
    pytest.param(
        lambda app, **o: StatefulSet(stateful(app, "one"), **o),
        lambda app, **o: StatefulSet(stateful(app, "two"), **o),
        "spec is immutable",
        id="StatefulSet service name",
    ),
    pytest.param(
        lambda app, **o: Static(job(app, "konverge.test/app:1"), **o),
        lambda app, **o: Static(job(app, "konverge.test/app:2"), **o),
        r"spec\.template(\.spec)? is immutable",
        id="Job template",
    ),
    pytest.param(
        lambda app, **o: Service({**app.build_service(), "spec": {"ports": [{"port": 80}]}}, **o),
        lambda app, **o: Service({**app.build_service(), "spec": {"clusterIP": "None", "ports": [{"port": 80}]}}, **o),
        r"spec.clusterIPs\[0\] is immutable",
        id="Service cluster IP",
    ),
    pytest.param(
        lambda app, **o: Static(claim(app, "ReadWriteOnce"), **o),
        lambda app, **o: Static(claim(app, "ReadWriteMany"), **o),
        "spec is immutable",
        id="PersistentVolumeClaim access modes",
    ),
    pytest.param(
        lambda app, **o: Static(binding(app, "reader"), **o),
        lambda app, **o: Static(binding(app, "writer"), **o),
        "roleRef is immutable",
        id="RoleBinding role",
    ),
    pytest.param(
        lambda app, **o: ConfigMap(web(app, immutable=True, data={"colour": "blue"}), **o),
        lambda app, **o: ConfigMap(web(app, immutable=True, data={"colour": "red"}), **o),
        r"data is immutable \(was {\"colour\":\"blue\"}, now {\"colour\":\"red\"}\)",
        id="ConfigMap declared immutable",
    ),
    pytest.param(
        lambda app, **o: Secret(web(app, type="Opaque", stringData={"password": "hunter2"}), **o),
        lambda app, **o: Secret(web(app, type="konverge.test/other", stringData={"password": "hunter2"}), **o),
        r"type is immutable\. Declare",
        id="Secret type",
    ),
]


@pytest.mark.parametrize(("before", "after", "expected"), CHANGES)
async def test_a_change_that_the_server_refuses_names_the_field_and_the_way_out(
    app: ComponentHarness, before: Callable[..., Primitive[Any]], after: Callable[..., Primitive[Any]], expected: str
) -> None:
    await app.reconcile(component(before(app)))

    with pytest.raises(TerminalError, match=expected) as raised:
        await app.reconcile(component(after(app)))

    assert "Declare recreate=True on the primitive, or keep the old value" in str(raised.value)
    assert "hunter2" not in str(raised.value)
    assert (await app.condition("FrontendReady")).reason == "Error"


@pytest.mark.parametrize(("before", "after", "expected"), CHANGES)
async def test_where_it_is_declared_the_object_is_made_anew(
    app: ComponentHarness, before: Callable[..., Primitive[Any]], after: Callable[..., Primitive[Any]], expected: str
) -> None:
    first, second = before(app), after(app, recreate=True)
    await app.reconcile(component(first))
    old = await app.find(first.gvk, "web")
    assert old is not None

    async def is_new() -> bool:
        await app.reconcile(component(second))
        found = await app.find(second.gvk, "web")
        return found is not None and found["metadata"]["uid"] != old["metadata"]["uid"]

    await app.cluster.eventually(is_new, describe="another object has the name")


async def test_while_it_is_made_anew_the_component_says_so_and_what_comes_later_waits(app: ComponentHarness) -> None:
    await app.reconcile_until("Healthy", component(Deployment(selecting(app))))
    changed = component(Deployment(selecting(app, tier="front"), recreate=True), ConfigMap(app.build_config_map()))

    condition = await app.reconcile(changed)
    wake_after, later = app.wake_after, await app.find(CONFIG_MAP, "settings")
    ready = await app.reconcile_until("Healthy", changed)

    assert condition.reason == "Updating"
    assert "is created again: spec.selector is immutable" in condition.message
    assert isinstance(wake_after, timedelta)
    assert later is None
    assert ready.status == "True"
    expected = [message for reason, message, _ in app.events.noted if reason == "ResourceDeleted"]
    assert len(expected) == 1
    assert "deleted to be created again: spec.selector is immutable" in expected[0]


async def test_an_object_that_is_held_is_deleted_once_and_awaited(app: ComponentHarness) -> None:
    held = selecting(app)
    held["metadata"]["finalizers"] = ["konverge.test/hold"]
    await app.reconcile(component(Deployment(held)))
    changed = component(Deployment(selecting(app, tier="front"), recreate=True))

    await app.reconcile(changed)
    before = len(app.writes())
    waiting = await app.reconcile(changed)
    deletes = [entry.verb for entry in app.writes()[before:] if entry.verb in {"delete", "patch"}]

    assert waiting.message.endswith("is being deleted, to be created again")
    assert deletes == []
    found = await app.find(DEPLOYMENT, "web")
    assert found is not None
    await app.cluster.client.update({**found, "metadata": {**found["metadata"], "finalizers": []}})


async def test_what_another_owner_controls_is_never_made_anew(new_app: NewApp) -> None:
    one, two = await new_app("one"), await new_app("two")
    await one.reconcile(component(Deployment(selecting(one))))

    with pytest.raises(ReconcileError, match="controlled by TestApp one"):
        await two.reconcile(component(Deployment(selecting(two, tier="front"), recreate=True)))

    found = await one.find(DEPLOYMENT, "web")
    assert found is not None
    assert not found["metadata"].get("deletionTimestamp")


async def test_what_the_component_never_made_is_not_made_anew(app: ComponentHarness) -> None:
    await app.cluster.client.create({"apiVersion": "apps/v1", "kind": "Deployment", **selecting(app)})
    builder = ComponentBuilder("frontend", condition_type="FrontendReady")
    changed = builder.with_resource(Deployment(selecting(app, tier="front"), recreate=True), unowned()).build()

    with pytest.raises(ReconcileError, match="only an object of this component is created again"):
        await app.reconcile(changed)

    assert await app.find(DEPLOYMENT, "web") is not None


async def test_an_object_with_another_mistake_is_kept(app: ComponentHarness) -> None:
    await app.reconcile(component(Deployment(selecting(app))))
    broken = selecting(app, tier="front")
    broken["spec"]["template"]["spec"]["containers"][0]["name"] = "No Name"

    with pytest.raises(ReconcileError, match="containers"):
        await app.reconcile(component(Deployment(broken, recreate=True)))

    assert await app.find(DEPLOYMENT, "web") is not None


@pytest.mark.parametrize("kind", [ConfigMap, Secret])
async def test_a_secret_that_holds_words_of_kubernetes_does_not_keep_an_object_from_being_made_anew(
    app: ComponentHarness, kind: type[ConfigMap] | type[Secret]
) -> None:
    words = ("FieldValueForbidden", "Forbidden", "immutable", "field is immutable when `immutable` is set")
    stored = {"metadata": {"name": "words", "namespace": app.key.namespace}}
    data = {f"word-{number}": word for number, word in enumerate(words)}
    await app.client.create({"apiVersion": "v1", "kind": "Secret", **stored, "stringData": data})

    def wanted(colour: str) -> Component:
        value = {"colour": base64.b64encode(colour.encode()).decode() if kind is Secret else colour}
        return component(kind({**app.build_config_map(), "data": value, "immutable": True}, recreate=True))

    await app.reconcile(wanted("red"))
    await app.reconcile_until("Healthy", wanted("blue"))

    assert [reason for reason, _, _ in app.events.noted].count("ResourceDeleted") == 1


async def test_a_value_of_a_secret_that_an_author_copied_is_not_quoted(app: ComponentHarness) -> None:
    stored = {"metadata": {"name": "access", "namespace": app.key.namespace}}
    data = {"before": "planted-1", "after": "planted-2"}
    await app.client.create({"apiVersion": "v1", "kind": "Secret", **stored, "stringData": data})

    def wanted(value: str) -> Component:
        return component(ConfigMap({**app.build_config_map(token=value), "immutable": True}))

    await app.reconcile(wanted("planted-1"))
    with pytest.raises(TerminalError, match="data is immutable[.]") as caught:
        await app.reconcile(wanted("planted-2"))

    assert "planted" not in f"{caught.value} {await app.condition('FrontendReady')} {app.events.noted}"
