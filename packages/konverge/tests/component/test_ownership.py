"""Ownership: unowned objects, objects of another controller, and two owners of one object; on both clusters."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from konverge.component import Component, ComponentBuilder
from konverge.errors import ReconcileError
from konverge.feature import BooleanGate
from konverge.kube import GroupVersionKind, Object, build_owner_reference, find_controller
from konverge.options import Option, block_on_foreign_controller, delete, gated_by, unowned
from konverge.primitives import ConfigMap, Deployment, Static
from tests.component.app import CONFIG_MAP, DEPLOYMENT, ComponentHarness

pytestmark = pytest.mark.anyio

NewApp = Callable[[str], Awaitable[ComponentHarness]]
NAMESPACE = GroupVersionKind("", "v1", "Namespace")


def component(resource: Any, *options: Option, name: str = "frontend") -> Component:
    return ComponentBuilder(name, condition_type="FrontendReady").with_resource(resource, *options).build()


async def references(app: ComponentHarness, name: str = "settings") -> list[Object]:
    found = await app.find(CONFIG_MAP, name)
    assert found is not None
    listed: list[Object] = found["metadata"].get("ownerReferences", [])
    return listed


async def foreign_reference(app: ComponentHarness, *, controller: bool) -> Object:
    """Of another object of the namespace, which lives on."""
    other = await app.cluster.client.create({"apiVersion": "v1", "kind": "ConfigMap", **app.build_config_map("other")})
    return build_owner_reference(other, controller=controller)


# Unowned


async def test_an_unowned_object_has_no_reference_and_settles(app: ComponentHarness) -> None:
    wanted = component(ConfigMap(app.build_config_map()), unowned())

    condition = await app.reconcile(wanted)
    before = len(app.writes())
    await app.reconcile(wanted)

    assert condition.reason == "Healthy"
    assert await references(app) == []
    assert app.writes()[before:] == []


@pytest.mark.parametrize("earlier_name", ["frontend", "pages"])
async def test_an_object_that_is_to_be_unowned_loses_our_reference_and_keeps_others(
    app: ComponentHarness, earlier_name: str
) -> None:
    await app.reconcile(component(ConfigMap(app.build_config_map()), name=earlier_name))
    foreign = await foreign_reference(app, controller=False)
    child = await app.find(CONFIG_MAP, "settings")
    assert child is not None
    child["metadata"]["ownerReferences"].append(foreign)
    await app.cluster.client.update(child)
    wanted = component(ConfigMap(app.build_config_map()), unowned())

    await app.reconcile(wanted)
    kept = [reference["name"] for reference in await references(app)]
    before = len(app.writes())
    await app.reconcile(wanted)

    assert kept == ["other"]
    assert app.writes()[before:] == []


@pytest.mark.parametrize("removed", [delete(), gated_by(BooleanGate(False))])
async def test_an_unowned_object_is_still_deleted_on_request(app: ComponentHarness, removed: Option) -> None:
    await app.reconcile(component(ConfigMap(app.build_config_map()), unowned()))
    await app.reconcile(component(ConfigMap(app.build_config_map()), unowned(), removed))
    await app.wait_until_gone(CONFIG_MAP, "settings")


async def test_an_unowned_object_may_live_in_another_namespace(app: ComponentHarness) -> None:
    elsewhere = f"{app.key.namespace}-b"
    await app.cluster.client.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": elsewhere}})
    desired = {"metadata": {"name": "settings", "namespace": elsewhere}, "data": {"colour": "blue"}}

    condition = await app.reconcile(component(ConfigMap(desired), unowned()))

    assert condition.reason == "Healthy"


async def test_an_object_in_another_namespace_is_an_error(app: ComponentHarness) -> None:
    desired = {"metadata": {"name": "settings", "namespace": "elsewhere"}}
    with pytest.raises(ReconcileError, match=r"garbage collector would delete it\. Declare unowned\(\)"):
        await app.reconcile(component(ConfigMap(desired)))


# Two owners


async def test_two_owners_that_claim_one_object_are_both_named_and_nothing_flips(new_app: NewApp) -> None:
    one, two = await new_app("one"), await new_app("two")
    await one.reconcile(component(ConfigMap(one.build_config_map(colour="blue"))))

    with pytest.raises(ReconcileError) as raised:
        await two.reconcile(component(ConfigMap(two.build_config_map(colour="red"))))

    message = (await two.condition("FrontendReady")).message
    child = await one.find(CONFIG_MAP, "settings")
    assert message == str(raised.value)
    assert "it is controlled by TestApp one, and an object has one controller: TestApp two cannot be" in message
    assert "declare unowned() or block_on_foreign_controller()" in message
    assert child is not None
    assert child["data"] == {"colour": "blue"}


async def test_an_object_of_another_owner_blocks_on_request_until_it_is_free(new_app: NewApp) -> None:
    one, two = await new_app("one"), await new_app("two")
    await one.reconcile(component(ConfigMap(one.build_config_map())))
    guarded = (
        ComponentBuilder("frontend", condition_type="FrontendReady")
        .with_resource(ConfigMap(two.build_config_map()), block_on_foreign_controller())
        .with_resource(ConfigMap(two.build_config_map("later")))
        .build()
    )

    before = len(two.writes())
    blocked = await two.reconcile(guarded)
    written = [entry.path.rpartition("/")[2] for entry in two.writes()[before:]]
    later = await two.find(CONFIG_MAP, "later")
    await one.reconcile(component(ConfigMap(one.build_config_map()), delete()))
    await one.wait_until_gone(CONFIG_MAP, "settings")
    taken = await two.reconcile(guarded)

    assert (blocked.reason, blocked.message) == ("Blocked", "controlled by TestApp one")
    assert written == ["status"]
    assert later is None
    assert taken.reason == "Healthy"
    assert [reference["name"] for reference in await references(two)] == ["two"]


async def test_a_reference_that_controls_nothing_does_not_block(app: ComponentHarness) -> None:
    foreign = await foreign_reference(app, controller=False)
    child = {"apiVersion": "v1", "kind": "ConfigMap", **app.build_config_map()}
    child["metadata"]["ownerReferences"] = [foreign]
    await app.cluster.client.create(child)

    condition = await app.reconcile(component(ConfigMap(app.build_config_map()), block_on_foreign_controller()))

    assert condition.reason == "Healthy"
    assert len(await references(app)) == 2


async def test_an_object_of_another_owner_is_left_alone_when_suspended(new_app: NewApp) -> None:
    one, two = await new_app("one"), await new_app("two")
    await one.reconcile(component(Deployment(one.build_deployment(replicas=2))))
    guarded = (
        ComponentBuilder("frontend", condition_type="FrontendReady")
        .with_resource(Deployment(two.build_deployment()), block_on_foreign_controller())
        .suspend(True)
        .build()
    )

    condition = await two.reconcile(guarded)

    found = await one.find(DEPLOYMENT, "web")
    assert condition.reason == "Suspended"
    assert found is not None
    assert found["spec"]["replicas"] == 2


@pytest.mark.parametrize("removed", [delete(), gated_by(BooleanGate(False))])
async def test_an_object_of_another_owner_is_not_deleted(new_app: NewApp, removed: Option) -> None:
    one, two = await new_app("one"), await new_app("two")
    await one.reconcile(component(ConfigMap(one.build_config_map())))

    await two.reconcile(component(ConfigMap(two.build_config_map()), removed, block_on_foreign_controller()))

    child = await one.find(CONFIG_MAP, "settings")
    assert child is not None
    assert not child["metadata"].get("deletionTimestamp")
    assert (find_controller(child) or {})["name"] == "one"


async def test_a_cluster_scoped_object_can_be_unowned_too(app: ComponentHarness) -> None:
    name = f"{app.key.namespace}-c"
    namespace = Static({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}, cluster_scoped=True)

    condition = await app.reconcile(component(namespace, unowned()))

    assert condition.reason == "Healthy"
