"""A component deletes only its own objects, by controller or by apply entry; on both clusters."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

import pytest

from konverge.component import AppliedCache, Component, ComponentBuilder, ReconcileContext
from konverge.dry_run import dry_run_component
from konverge.errors import ReconcileError
from konverge.feature import BooleanGate
from konverge.kube import GroupVersionKind, Object, ObjectKey, build_owner_reference
from konverge.options import Option, adopt, delete, delete_when, gated_by, orphan_when, unowned
from konverge.primitives import ConfigMap, Pod, Static
from tests.component.app import CONFIG_MAP, ComponentHarness

pytestmark = pytest.mark.anyio

NewApp = Callable[[str], Awaitable[ComponentHarness]]
POD = GroupVersionKind("", "v1", "Pod")
CLUSTER_ROLE = GroupVersionKind("rbac.authorization.k8s.io", "v1", "ClusterRole")
OFF = BooleanGate(False)


def component(
    resource: Any, *options: Option, name: str = "frontend", is_on: bool = True, is_suspended: bool = False
) -> Component:
    builder = ComponentBuilder(name, condition_type="FrontendReady").with_resource(resource, *options)
    return builder.with_feature_gate(BooleanGate(is_on)).suspend(is_suspended).build()


def config(app: ComponentHarness) -> ConfigMap:
    return ConfigMap(app.build_config_map())


def removing(app: ComponentHarness, way: str) -> Component:
    """A component that has the ConfigMap removed, one way or the other."""
    match way:
        case "delete":
            return component(config(app), delete())
        case "delete_when":
            return component(config(app), delete_when(True))
        case "gate of the resource":
            return component(config(app), gated_by(OFF))
        case "gate of the component":
            return component(config(app), is_on=False)
    raise AssertionError(way)


WAYS = ["delete", "delete_when", "gate of the resource", "gate of the component"]


async def uid(app: ComponentHarness, gvk: GroupVersionKind = CONFIG_MAP, name: str = "settings") -> str | None:
    """Of the object if it stands and is not on its way out."""
    found = await app.find(gvk, name)
    return None if found is None or found["metadata"].get("deletionTimestamp") else found["metadata"]["uid"]


async def create_by_hand(app: ComponentHarness, *references: Object, manager: str = "painter") -> str:
    """A ConfigMap that another manager has applied."""
    obj = {"apiVersion": "v1", "kind": "ConfigMap", **app.build_config_map(colour="red")}
    obj["metadata"]["ownerReferences"] = list(references)
    applied = await app.cluster.client.apply(obj, field_manager=manager)
    found: str = applied.object["metadata"]["uid"]
    return found


@pytest.mark.parametrize("way", WAYS)
async def test_an_object_that_another_owner_controls_stays(new_app: NewApp, way: str) -> None:
    one, two = await new_app("one"), await new_app("two")
    await one.reconcile(component(config(one)))
    before = await uid(one)

    condition = await two.reconcile(removing(two, way))

    assert await uid(one) == before is not None
    assert condition.status == "True"
    assert condition.message in ("Component is disabled.", "Component is healthy.")


@pytest.mark.parametrize("way", WAYS)
async def test_an_object_that_somebody_applied_by_hand_stays(app: ComponentHarness, way: str) -> None:
    before = await create_by_hand(app)

    condition = await app.reconcile(removing(app, way))

    assert await uid(app) == before
    assert condition.status == "True"


@pytest.mark.parametrize("way", WAYS)
async def test_an_object_that_the_component_made_is_deleted(app: ComponentHarness, way: str) -> None:
    await app.reconcile(component(config(app)))
    await app.reconcile(removing(app, way))
    await app.wait_until_gone(CONFIG_MAP, "settings")


async def test_a_reference_that_controls_nothing_does_not_make_an_object_ours(app: ComponentHarness) -> None:
    before = await create_by_hand(app, build_owner_reference(await app.owner(), controller=False))
    await app.reconcile(component(config(app), delete()))
    assert await uid(app) == before


async def test_another_life_of_the_owner_is_another_owner(app: ComponentHarness) -> None:
    former = {**await app.owner()}
    former["metadata"] = {**former["metadata"], "uid": "00000000-0000-0000-0000-000000000000"}
    before = await create_by_hand(app, manager=f"TestApp/frontend/{former['metadata']['uid']}")
    await app.reconcile(component(config(app), unowned(), delete()))
    assert await uid(app) == before


@pytest.mark.parametrize("earlier_name", ["frontend", "pages"])
async def test_without_a_controller_the_entry_of_this_or_an_earlier_name_tells(
    app: ComponentHarness, earlier_name: str
) -> None:
    await app.reconcile(component(config(app), unowned(), name=earlier_name))
    await app.reconcile(component(config(app), unowned(), delete()))
    await app.wait_until_gone(CONFIG_MAP, "settings")


@pytest.mark.parametrize(("present", "stays"), [("a", False), ("b", True)])
async def test_of_managers_that_are_hashed_the_present_one_is_known(
    app: ComponentHarness, present: str, stays: bool
) -> None:
    earlier = "a" * 100
    await app.reconcile(component(config(app), unowned(), name=earlier))
    await app.reconcile(component(config(app), unowned(), delete(), name=present * 100))
    if not stays:
        await app.wait_until_gone(CONFIG_MAP, "settings")
    assert bool(await uid(app)) is stays


async def test_an_object_that_a_controller_has_taken_over_since_stays(new_app: NewApp) -> None:
    one, two = await new_app("one"), await new_app("two")
    await one.reconcile(component(config(one), unowned()))
    await two.reconcile(component(config(two)))
    before = await uid(one)

    await one.reconcile(component(config(one), unowned(), delete()))

    assert await uid(one) == before is not None


class Outdated:
    """A cache that still shows the object as it once was."""

    def __init__(self, app: ComponentHarness, stale: Object) -> None:
        self._client = app.client
        self._shown = stale

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)

    async def get(self, gvk: GroupVersionKind, key: ObjectKey, *, live: bool = False) -> Object:
        if gvk == CONFIG_MAP and not live:
            return self._shown
        return await self._client.get(gvk, key, live=live)


async def test_an_older_copy_of_an_object_does_not_get_it_deleted(new_app: NewApp) -> None:
    one, two = await new_app("one"), await new_app("two")
    await one.reconcile(component(config(one)))
    stale = await one.find(CONFIG_MAP, "settings")
    assert stale is not None
    await one.reconcile(component(config(one), orphan_when(True)))
    await two.reconcile(component(config(two)))

    ctx = ReconcileContext(client=Outdated(one, stale), owner=await one.owner(), clock=one.cluster.clock)
    await component(config(one), delete()).reconcile(ctx)

    assert await uid(two) == stale["metadata"]["uid"]


async def test_suspension_does_not_adopt_an_object_only_to_delete_it(app: ComponentHarness) -> None:
    pod: Object = {"metadata": {"name": "web", "namespace": app.key.namespace}}
    pod["spec"] = {"containers": [{"name": "main", "image": "konverge.test/app:1"}]}
    await app.cluster.client.create({"apiVersion": "v1", "kind": "Pod", **pod})
    before = await uid(app, POD, "web")

    condition = await app.reconcile(component(Pod(pod), is_suspended=True))

    assert (condition.reason, await uid(app, POD, "web")) == ("Suspended", before)


@pytest.mark.parametrize("adds_reference", [False, True])
async def test_recreate_does_not_delete_what_others_made(app: ComponentHarness, adds_reference: bool) -> None:
    obj: Object = {"apiVersion": "v1", "kind": "ConfigMap", **app.build_config_map(colour="red"), "immutable": True}
    if adds_reference:
        obj["metadata"]["ownerReferences"] = [build_owner_reference(await app.owner(), controller=False)]
    made = await app.cluster.client.create(obj)

    with pytest.raises(ReconcileError, match="only an object of this component is created again"):
        await app.reconcile(component(ConfigMap(app.build_config_map(), recreate=True)))

    assert await uid(app) == made["metadata"]["uid"]


@pytest.mark.parametrize("fields", [{}, {"rules": []}, {"metadata": {"labels": {"a": "b"}}}], ids=str)
async def test_a_cluster_scoped_object_is_deleted_by_the_owner_that_applied_it(new_app: NewApp, fields: Object) -> None:
    one, two = await new_app("one"), await new_app("two")
    name = f"{one.key.namespace}-role"
    key = ObjectKey("", name)

    def role(*options: Option) -> Component:
        obj: Object = {"apiVersion": CLUSTER_ROLE.api_version, "kind": "ClusterRole", **fields}
        obj["metadata"] = {"name": name, **obj.get("metadata", {})}
        return component(Static(obj, cluster_scoped=True), *options)

    await one.reconcile(role())
    await one.reconcile(role(adopt(False)))
    one.memory = AppliedCache()
    again = await one.reconcile(role(adopt(False)))
    made = await one.client.get(CLUSTER_ROLE, key)
    await two.reconcile(role(delete()))
    assert (await one.client.get(CLUSTER_ROLE, key))["metadata"]["uid"] == made["metadata"]["uid"]

    before = len(one.writes())
    await one.reconcile(role(delete()))
    assert again.reason == "Healthy"
    assert [entry.verb for entry in one.writes()[before:] if "clusterroles" in entry.path] == ["delete"]


@pytest.mark.parametrize("says_more_in", ["delete", "delete_when", "gated_by"])
async def test_who_means_it_deletes_whatever_has_the_name(new_app: NewApp, says_more_in: str) -> None:
    option = {
        "delete": lambda: delete(even_if_not_ours=True),
        "delete_when": lambda: delete_when(True, even_if_not_ours=True),
        "gated_by": lambda: gated_by(OFF, even_if_not_ours=True),
    }[says_more_in]()
    one, two = await new_app("one"), await new_app("two")
    await one.reconcile(component(config(one)))
    await two.reconcile(component(config(two), option))
    await two.wait_until_gone(CONFIG_MAP, "settings")


async def test_what_is_left_alone_is_told_once_by_an_event_and_each_time_by_explain(new_app: NewApp) -> None:
    one, two = await new_app("one"), await new_app("two")
    await one.reconcile(component(config(one)))
    off = component(config(two), is_on=False)

    for _ in range(3):
        await two.reconcile(off)
    writes = len(two.writes())
    await two.reconcile(off)
    in_one_life = list(two.events.warned)
    two.memory = AppliedCache()  # as after a restart
    await two.reconcile(off)
    report = (await dry_run_component(off, two.client, await two.owner(), clock=two.cluster.clock)).resources[0]

    assert [reason for reason, _ in in_one_life] == ["ResourceLeftAlone"]
    assert "it is controlled by TestApp one, and not this object's" in in_one_life[0][1]
    assert two.writes()[writes:] == []
    assert len(two.events.warned) == 2
    assert (report.outcome, report.changes) == ("left alone", ())
    assert "controlled by TestApp one" in report.reason


async def test_an_object_without_a_controller_is_told_with_its_managers(app: ComponentHarness) -> None:
    await create_by_hand(app)
    await app.reconcile(component(config(app), delete()))
    assert "it is managed by painter, and not this object's" in app.events.warned[0][1]


async def test_an_object_that_changes_hands_is_told_again(new_app: NewApp) -> None:
    one, two = await new_app("one"), await new_app("two")
    await create_by_hand(one)
    off = component(config(two), is_on=False)
    await two.reconcile(off)
    await one.reconcile(component(config(one)))
    await two.reconcile(off)
    assert len(two.events.warned) == 2


def test_deleting_whatever_is_there_excludes_sparing_it() -> None:
    from konverge._internal.component.resource_options import resolve_options
    from konverge.options import block_on_foreign_controller

    _, mistakes = resolve_options([delete(even_if_not_ours=True), block_on_foreign_controller()])
    assert [mistake.partition(":")[0] for mistake in mistakes] == [
        "even_if_not_ours=True excludes block_on_foreign_controller()"
    ]
    _, mistakes = resolve_options([replace(delete(), even_if_not_ours="yes")])  # type: ignore[arg-type]
    assert mistakes == ["delete(): even_if_not_ours: expected a bool, found str"]
