"""The seven steps of a reconcile, on both clusters (component specification, "Reconciliation Lifecycle")."""

from __future__ import annotations

import copy
import hashlib
from collections.abc import Awaitable, Callable
from datetime import timedelta

import pytest

from konverge._internal.primitives.resource_protocol import Convergence, ConvergingStatus, GuardResult, Operation
from konverge.component import (
    ApplyResult,
    Component,
    ComponentBuilder,
    PrerequisiteResult,
    ReconcileContext,
    Unplannable,
)
from konverge.errors import NotFoundError, ReconcileError, TerminalError
from konverge.feature import BooleanGate
from konverge.guards import UNBLOCKED, blocked
from konverge.kube import GroupVersionKind, Object, ObjectKey
from konverge.mutation import Mutation
from konverge.options import (
    auxiliary,
    block_on_absence,
    delete,
    delete_when,
    gated_by,
    ignore_if_absent,
    orphan_when,
    read_only,
)
from konverge.prerequisites import depends_on, not_met
from konverge.primitives import ConfigMap, Deployment, Secret, Service, Static
from tests.component.app import APP, CONFIG_MAP, DEPLOYMENT, SECRET, SERVICE, ComponentHarness

pytestmark = pytest.mark.anyio

NewApp = Callable[[str], Awaitable[ComponentHarness]]


def frontend() -> ComponentBuilder:
    return ComponentBuilder("frontend", condition_type="FrontendReady")


def raise_error(_: object) -> None:
    raise RuntimeError("the author's mistake")


class BrokenGate:
    def enabled(self) -> bool:
        raise RuntimeError("the licence server is away")


# Applying


async def test_resources_are_applied_in_order_and_become_healthy(app: ComponentHarness) -> None:
    component = (
        frontend()
        .with_resource(ConfigMap(app.build_config_map()))
        .with_resource(Deployment(app.build_deployment()))
        .with_resource(Service(app.build_service()))
        .build()
    )

    first = await app.reconcile(component)
    last = await app.reconcile_until("Healthy", component)

    assert (first.status, first.reason) == ("False", "Creating")
    assert (last.status, last.message) == ("True", "Component is healthy.")
    assert [reason for reason, _, _ in app.events.noted[:3]] == [
        "CreatedConfigMap",
        "CreatedDeployment",
        "CreatedService",
    ]
    assert app.events.noted[0][1:] == ("Created ConfigMap 'settings'", "Create")


async def test_a_managed_object_carries_our_controller_reference_and_field_manager(app: ComponentHarness) -> None:
    await app.reconcile(frontend().with_resource(ConfigMap(app.build_config_map())).build())

    owner, child = await app.owner(), await app.find(CONFIG_MAP, "settings")

    assert child is not None
    (reference,) = child["metadata"]["ownerReferences"]
    assert reference == {
        "apiVersion": APP.api_version,
        "kind": APP.kind,
        "name": "shop",
        "uid": owner["metadata"]["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }
    managers = [entry["manager"] for entry in child["metadata"]["managedFields"]]
    assert managers == [f"TestApp/frontend/{owner['metadata']['uid']}"]


async def test_a_field_manager_that_is_too_long_is_hashed(app: ComponentHarness) -> None:
    name = "f" * 128
    component = (
        ComponentBuilder(name, condition_type="FrontendReady").with_resource(ConfigMap(app.build_config_map())).build()
    )

    await app.reconcile(component)
    before = len(app.writes())
    await app.reconcile(component)

    owner, child = await app.owner(), await app.find(CONFIG_MAP, "settings")
    assert child is not None
    manager = hashlib.sha256(f"TestApp/{name}/{owner['metadata']['uid']}".encode()).hexdigest()
    assert [entry["manager"] for entry in child["metadata"]["managedFields"]] == [manager]
    assert app.writes()[before:] == []


async def test_what_only_the_server_sets_is_not_applied(app: ComponentHarness) -> None:
    """A live object may be given as the desired one."""
    copied = {
        "uid": "4f0c7a52-0000-4000-8000-000000000000",
        "resourceVersion": "1",
        "generation": 7,
        "creationTimestamp": "2026-01-01T00:00:00Z",
        "deletionTimestamp": "2026-01-01T00:00:00Z",
        "deletionGracePeriodSeconds": 30,
        "selfLink": "/api/v1/namespaces/default/configmaps/settings",
        "managedFields": [{"manager": "somebody", "operation": "Apply"}],
    }
    desired = app.build_config_map()
    desired["metadata"] |= copied
    component = frontend().with_resource(ConfigMap({**desired, "status": {"phase": "Old"}})).build()

    condition = await app.reconcile(component)
    before = len(app.writes())
    await app.reconcile(component)

    child = await app.find(CONFIG_MAP, "settings")
    assert child is not None
    assert condition.reason == "Healthy"
    assert [name for name, value in copied.items() if child["metadata"].get(name) == value] == []
    assert app.writes()[before:] == []


async def test_a_settled_component_writes_nothing(app: ComponentHarness) -> None:
    component = (
        frontend()
        .with_resource(ConfigMap(app.build_config_map()))
        .with_resource(Deployment(app.build_deployment()))
        .with_resource(Service(app.build_service()))
        .with_resource(ConfigMap(app.build_config_map("old")), delete())
        .build()
    )
    await app.reconcile_until("Healthy", component)

    assert await app.list_steady_writes(component) == []


async def test_a_settled_component_writes_nothing_after_a_restart(app: ComponentHarness) -> None:
    component = (
        frontend().with_resource(Deployment(app.build_deployment())).with_resource(Service(app.build_service())).build()
    )
    await app.reconcile_until("Healthy", component)

    assert await app.list_steady_writes(component, is_restarted=True) == []


class Mirrored:
    """The app's client, and in its way a webhook that has every image come from a mirror."""

    def __init__(self, app: ComponentHarness) -> None:
        self._client = app.client
        self.mapping, self.get, self.update, self.delete = (
            self._client.mapping,
            self._client.get,
            self._client.update,
            self._client.delete,
        )

    async def apply(self, obj: Object, *, field_manager: str) -> ApplyResult:
        mirrored = copy.deepcopy(obj)
        for container in mirrored["spec"]["template"]["spec"]["containers"]:
            container["image"] = f"mirror.{container['image']}"
        return await self._client.apply(mirrored, field_manager=field_manager)


@pytest.mark.parametrize("cpu", ["1", "1000m"])
async def test_what_an_apply_cannot_change_is_not_applied_again(app: ComponentHarness, cpu: str) -> None:
    deployment = app.build_deployment(replicas=0)
    deployment["spec"]["template"]["spec"]["containers"][0]["resources"] = {"requests": {"cpu": cpu}}
    component = frontend().with_resource(Deployment(deployment)).build()
    client = Mirrored(app)

    for _ in range(3):
        ctx = ReconcileContext(
            client=client, owner=await app.owner(), clock=app.cluster.clock, applied_cache=app.memory
        )
        await component.reconcile(ctx)

    assert [request.verb for request in app.writes()] == ["patch"]


async def test_a_field_changed_by_hand_is_put_back(app: ComponentHarness) -> None:
    component = frontend().with_resource(ConfigMap(app.build_config_map(colour="blue"))).build()
    await app.reconcile(component)
    child = await app.find(CONFIG_MAP, "settings")
    assert child is not None
    await app.cluster.client.update({**child, "data": {"colour": "red"}})

    await app.reconcile(component)

    child = await app.find(CONFIG_MAP, "settings")
    assert child is not None
    assert child["data"] == {"colour": "blue"}
    assert app.events.noted[-1] == ("UpdatedConfigMap", "Updated ConfigMap 'settings'", "Update")


async def test_a_field_no_longer_desired_is_removed_and_a_foreign_one_stays(app: ComponentHarness) -> None:
    await app.reconcile(frontend().with_resource(ConfigMap(app.build_config_map(colour="blue", size="xl"))).build())
    child = await app.find(CONFIG_MAP, "settings")
    assert child is not None
    await app.cluster.client.update({**child, "data": {**child["data"], "foreign": "kept"}})

    await app.reconcile(frontend().with_resource(ConfigMap(app.build_config_map(colour="blue"))).build())

    child = await app.find(CONFIG_MAP, "settings")
    assert child is not None
    assert child["data"] == {"colour": "blue", "foreign": "kept"}


async def test_a_secrets_key_that_is_no_longer_desired_is_removed(app: ComponentHarness) -> None:
    def component(**values: str) -> Component:
        return (
            frontend()
            .with_resource(Secret({**app.build_config_map("access"), "data": {}, "stringData": values}))
            .build()
        )

    await app.reconcile(component(user="admin", password="hunter2"))
    await app.reconcile(component(user="admin"))
    before = len(app.writes())
    await app.reconcile(component(user="admin"))

    child = await app.find(SECRET, "access")
    assert child is not None
    assert child["data"] == {"user": "YWRtaW4="}
    assert app.writes()[before:] == []


async def test_an_object_deleted_by_hand_comes_back(app: ComponentHarness) -> None:
    component = frontend().with_resource(Service(app.build_service())).build()
    await app.reconcile(component)
    await app.cluster.client.delete(SERVICE, ObjectKey(app.key.namespace, "web"))

    await app.reconcile(component)

    assert await app.find(SERVICE, "web") is not None


async def test_a_cluster_scoped_object_gets_no_reference_to_a_namespaced_owner(app: ComponentHarness) -> None:
    name = f"viewer-{app.key.namespace}"
    gvk = GroupVersionKind("rbac.authorization.k8s.io", "v1", "ClusterRole")
    role = {"apiVersion": gvk.api_version, "kind": gvk.kind, "metadata": {"name": name}, "rules": []}

    condition = await app.reconcile(frontend().with_resource(Static(role, cluster_scoped=True)).build())

    child = await app.client.get(gvk, ObjectKey("", name))
    assert condition.reason == "Healthy"
    assert "ownerReferences" not in child["metadata"]
    await app.cluster.client.delete(gvk, ObjectKey("", name))


async def test_a_component_of_static_resources_only_is_healthy(app: ComponentHarness) -> None:
    condition = await app.reconcile(frontend().with_resource(ConfigMap(app.build_config_map())).build())
    assert (condition.status, condition.reason) == ("True", "Healthy")


async def test_a_component_of_a_service_only_is_operational(app: ComponentHarness) -> None:
    condition = await app.reconcile(frontend().with_resource(Service(app.build_service())).build())
    assert (condition.status, condition.reason) == ("True", "Operational")


# Reading


async def test_a_read_only_object_is_read_and_never_touched(app: ComponentHarness) -> None:
    await app.cluster.client.create(
        {"apiVersion": "v1", "kind": "ConfigMap", **app.build_config_map("users"), "data": {"endpoint": "db:5432"}}
    )
    seen: list[str] = []
    component = (
        frontend()
        .with_resource(
            ConfigMap(app.build_config_map("users"), extract=lambda live: seen.append(live["data"]["endpoint"])),
            read_only(),
        )
        .build()
    )

    condition = await app.reconcile(component)

    child = await app.find(CONFIG_MAP, "users")
    assert child is not None
    assert (condition.reason, seen) == ("Healthy", ["db:5432"])
    assert "ownerReferences" not in child["metadata"]


async def test_a_read_only_object_is_judged_as_one_that_nobody_has_touched(app: ComponentHarness) -> None:
    await app.cluster.client.create({"apiVersion": "apps/v1", "kind": "Deployment", **app.build_deployment(replicas=0)})
    operations: list[Operation] = []

    def judge(_: Object, operation: Operation) -> Convergence:
        operations.append(operation)
        return Convergence(ConvergingStatus.FAILING, "as its owner says")

    condition = await app.reconcile(
        frontend().with_resource(Deployment(app.build_deployment(), converging_status=judge), read_only()).build()
    )

    assert operations == [Operation.NONE]
    assert (condition.status, condition.reason, condition.message) == ("False", "Failing", "as its owner says")


async def test_a_read_only_object_is_not_read_while_its_guard_blocks(app: ComponentHarness) -> None:
    users = ConfigMap(app.build_config_map("users"), guard=lambda _: blocked("not yet"))

    condition = await app.reconcile(frontend().with_resource(users, read_only()).build())

    assert (condition.reason, condition.message) == ("Blocked", "not yet")


async def test_extracted_data_reaches_later_guards_and_mutations_in_the_same_pass(app: ComponentHarness) -> None:
    await app.cluster.client.create(
        {"apiVersion": "v1", "kind": "ConfigMap", **app.build_config_map("users"), "data": {"endpoint": "db:5432"}}
    )
    cell: dict[str, str] = {}

    def guard(_: Object) -> GuardResult:
        return UNBLOCKED if cell else blocked("waiting for the endpoint")

    consumer = ConfigMap(
        app.build_config_map("consumer"),
        guard=guard,
        mutations=[Mutation("endpoint", lambda m: m.set_entry("endpoint", cell["endpoint"]))],
    )
    component = (
        frontend()
        .with_resource(
            ConfigMap(app.build_config_map("users"), extract=lambda live: cell.update(live["data"])), read_only()
        )
        .with_resource(consumer)
        .build()
    )

    condition = await app.reconcile(component)

    child = await app.find(CONFIG_MAP, "consumer")
    assert child is not None
    assert (condition.reason, child["data"]["endpoint"]) == ("Healthy", "db:5432")


async def test_an_absent_read_only_object_is_an_error(app: ComponentHarness) -> None:
    with pytest.raises(ReconcileError, match="failed to retrieve object for resource v1/ConfigMap/.*/users"):
        await app.reconcile(frontend().with_resource(ConfigMap(app.build_config_map("users")), read_only()).build())
    assert (await app.condition("FrontendReady")).reason == "Error"


async def test_absence_blocks_on_request_and_stops_later_resources(app: ComponentHarness) -> None:
    component = (
        frontend()
        .with_resource(ConfigMap(app.build_config_map("users")), read_only(), auxiliary(), block_on_absence())
        .with_resource(ConfigMap(app.build_config_map()))
        .build()
    )

    condition = await app.reconcile(component)

    assert (condition.status, condition.reason) == ("False", "Blocked")
    assert condition.message == f"waiting for v1/ConfigMap/{app.key.namespace}/users"
    assert await app.find(CONFIG_MAP, "settings") is None


async def test_absence_is_ignored_on_request(app: ComponentHarness) -> None:
    component = (
        frontend()
        .with_resource(ConfigMap(app.build_config_map("users"), extract=raise_error), read_only(), ignore_if_absent())
        .with_resource(ConfigMap(app.build_config_map()))
        .build()
    )

    condition = await app.reconcile(component)

    assert condition.reason == "Healthy"
    assert await app.find(CONFIG_MAP, "settings") is not None


# Guards


async def test_a_blocked_guard_stops_later_resources_and_deletions_still_run(app: ComponentHarness) -> None:
    await app.reconcile(frontend().with_resource(ConfigMap(app.build_config_map("old"))).build())
    component = (
        frontend()
        .with_resource(ConfigMap(app.build_config_map("first")))
        .with_resource(ConfigMap(app.build_config_map("second"), guard=lambda _: blocked("not yet")), auxiliary())
        .with_resource(ConfigMap(app.build_config_map("third")))
        .with_resource(ConfigMap(app.build_config_map("old")), delete())
        .build()
    )

    condition = await app.reconcile(component)

    assert (condition.status, condition.reason, condition.message) == ("False", "Blocked", "not yet")
    found = [name for name in ("first", "second", "third", "old") if await app.find(CONFIG_MAP, name)]
    assert found == ["first"]


async def test_a_resource_that_cannot_be_planned_blocks_with_its_reason_and_its_object_stays(
    app: ComponentHarness,
) -> None:
    settings = ConfigMap(app.build_config_map("second"))
    await app.reconcile(frontend().with_resource(settings).build())
    component = (
        frontend()
        .with_resource(ConfigMap(app.build_config_map("first")))
        .with_unplannable(settings, Unplannable("waiting for the answer of a call"))
        .with_resource(ConfigMap(app.build_config_map("third")))
        .build()
    )

    condition = await app.reconcile(component)

    assert (condition.status, condition.reason) == ("False", "Blocked")
    assert condition.message == "waiting for the answer of a call"
    assert [name for name in ("first", "second", "third") if await app.find(CONFIG_MAP, name)] == ["first", "second"]


async def test_a_resource_whose_plan_failed_is_an_error_with_its_reason(app: ComponentHarness) -> None:
    settings = ConfigMap(app.build_config_map())
    component = frontend().with_unplannable(settings, Unplannable("spec.key: not a text", is_failure=True)).build()

    with pytest.raises(ReconcileError, match="^failed to render resource v1/ConfigMap/.*: spec.key: not a text"):
        await app.reconcile(component)

    assert (await app.condition("FrontendReady")).reason == "Error"


async def test_suspension_scales_the_object_of_a_resource_that_cannot_be_planned_and_keeps_its_other_fields(
    app: ComponentHarness,
) -> None:
    await app.reconcile(frontend().with_resource(Deployment(app.build_deployment(image="konverge.test/app:7"))).build())
    only_named = Deployment({"metadata": {"name": "web", "namespace": app.key.namespace}})
    component = frontend().with_unplannable(only_named, Unplannable("waiting for a call")).suspend(True).build()

    condition = await app.reconcile_until("Suspended", component)

    assert condition.message == "All resources are suspended."
    spec = (await app.client.get(DEPLOYMENT, ObjectKey(app.key.namespace, "web")))["spec"]
    assert (spec["replicas"], spec["template"]["spec"]["containers"][0]["image"]) == (0, "konverge.test/app:7")


async def test_suspension_leaves_an_object_alone_that_was_never_applied_and_cannot_be_planned(
    app: ComponentHarness,
) -> None:
    only_named = Deployment({"metadata": {"name": "web", "namespace": app.key.namespace}})
    component = frontend().with_unplannable(only_named, Unplannable("waiting for a call")).suspend(True).build()

    condition = await app.reconcile(component)

    assert condition.reason == "Suspended"
    assert await app.find(DEPLOYMENT, "web") is None


async def test_a_component_switched_off_deletes_the_object_of_a_resource_that_cannot_be_planned(
    app: ComponentHarness,
) -> None:
    settings = ConfigMap(app.build_config_map("second"))
    await app.reconcile(frontend().with_resource(settings).build())

    builder = frontend().with_unplannable(settings, Unplannable("waiting")).with_feature_gate(BooleanGate(False))
    await app.reconcile(builder.build())

    assert await app.find(CONFIG_MAP, "second") is None


async def test_a_cleared_guard_shows_at_once(app: ComponentHarness) -> None:
    verdicts = [blocked("not yet"), UNBLOCKED]
    component = frontend().with_resource(ConfigMap(app.build_config_map(), guard=lambda _: verdicts.pop(0))).build()

    before, after = await app.reconcile(component), await app.reconcile(component)

    assert (before.reason, after.reason) == ("Blocked", "Healthy")


async def test_a_guard_that_raises_is_an_error_that_names_the_resource(app: ComponentHarness) -> None:
    def guard(_: Object) -> GuardResult:
        raise RuntimeError("no idea")

    with pytest.raises(
        ReconcileError, match="failed to evaluate guard for resource v1/ConfigMap/.*/settings: .*no idea"
    ):
        await app.reconcile(frontend().with_resource(ConfigMap(app.build_config_map(), guard=guard)).build())

    condition = await app.condition("FrontendReady")
    assert (condition.status, condition.reason) == ("False", "Error")
    assert "no idea" in condition.message


async def test_a_guard_that_answers_nonsense_is_an_error(app: ComponentHarness) -> None:
    component = frontend().with_resource(ConfigMap(app.build_config_map(), guard=lambda _: True)).build()  # type: ignore[arg-type,return-value]
    with pytest.raises(ReconcileError, match="expected a GuardResult .* found True"):
        await app.reconcile(component)


async def test_a_secrets_guard_that_answers_a_value_does_not_show_it(app: ComponentHarness) -> None:
    token = {**app.build_config_map("token"), "data": {"token": b"hunter2"}}
    component = frontend().with_resource(Secret(token, guard=lambda obj: obj["data"]["token"])).build()

    with pytest.raises(ReconcileError, match="expected a GuardResult .* found a str"):
        await app.reconcile(component)


# Deleting and orphaning


async def test_a_resource_marked_for_deletion_goes(app: ComponentHarness) -> None:
    await app.reconcile(frontend().with_resource(ConfigMap(app.build_config_map())).build())

    condition = await app.reconcile(frontend().with_resource(ConfigMap(app.build_config_map()), delete()).build())

    await app.wait_until_gone(CONFIG_MAP, "settings")
    assert condition.reason == "Healthy"
    identity = f"v1/ConfigMap/{app.key.namespace}/settings"
    assert app.events.noted[-1] == (
        "ResourceDeleted",
        f"Resource {identity} deleted due to resource deletion flag",
        "Delete",
    )


async def test_delete_when_and_gated_by_follow_their_condition(app: ComponentHarness) -> None:
    def component(enabled: bool) -> Component:
        return (
            frontend()
            .with_resource(ConfigMap(app.build_config_map("conditional")), delete_when(not enabled))
            .with_resource(ConfigMap(app.build_config_map("gated")), gated_by(BooleanGate(enabled)))
            .build()
        )

    await app.reconcile(component(True))
    present = [await app.find(CONFIG_MAP, name) is not None for name in ("conditional", "gated")]
    await app.reconcile(component(False))

    assert present == [True, True]
    await app.wait_until_gone(CONFIG_MAP, "conditional")
    await app.wait_until_gone(CONFIG_MAP, "gated")


async def test_deleting_what_is_absent_sends_no_write(app: ComponentHarness) -> None:
    component = frontend().with_resource(ConfigMap(app.build_config_map()), delete()).build()
    await app.reconcile(component)
    before = len(app.writes())

    await app.reconcile(component)

    assert app.writes()[before:] == []
    assert app.events.noted == []


async def test_an_orphaned_object_stays_without_our_reference(app: ComponentHarness) -> None:
    await app.reconcile(frontend().with_resource(ConfigMap(app.build_config_map())).build())

    component = frontend().with_resource(ConfigMap(app.build_config_map()), orphan_when(True)).build()
    condition = await app.reconcile(component)
    before = len(app.writes())
    await app.reconcile(component)

    child = await app.find(CONFIG_MAP, "settings")
    assert child is not None
    assert not child["metadata"].get("ownerReferences")
    assert child["data"] == {"colour": "blue"}
    assert condition.reason == "Healthy"
    assert app.writes()[before:] == []


async def test_an_object_that_is_held_is_deleted_once(app: ComponentHarness) -> None:
    held = app.build_config_map()
    held["metadata"]["finalizers"] = ["konverge.test/hold"]
    await app.reconcile(frontend().with_resource(ConfigMap(held)).build())
    component = frontend().with_resource(ConfigMap(app.build_config_map()), delete()).build()

    for _ in range(3):
        await app.reconcile(component)

    child = await app.find(CONFIG_MAP, "settings")
    assert child is not None
    assert [entry.verb for entry in app.writes() if entry.verb == "delete"] == ["delete"]
    assert [reason for reason, _, _ in app.events.noted] == ["CreatedConfigMap", "ResourceDeleted"]
    await app.cluster.client.patch(
        CONFIG_MAP, ObjectKey.of(child), {"metadata": {"finalizers": None}}, patch_type="merge"
    )


class Outdated:
    """The app's client, which still shows an object that is another one by now."""

    def __init__(self, app: ComponentHarness, stale: Object) -> None:
        client = app.client
        self.mapping, self.apply, self.update, self.delete = client.mapping, client.apply, client.update, client.delete
        self._get, self._shown = client.get, stale

    async def get(self, gvk: GroupVersionKind, key: ObjectKey, *, live: bool = False) -> Object:
        if key == ObjectKey.of(self._shown) and gvk == CONFIG_MAP:
            return copy.deepcopy(self._shown)
        return await self._get(gvk, key, live=live)


async def test_another_object_that_has_taken_the_name_is_not_deleted(app: ComponentHarness) -> None:
    await app.reconcile(frontend().with_resource(ConfigMap(app.build_config_map())).build())
    stale = await app.find(CONFIG_MAP, "settings")
    assert stale is not None
    await app.cluster.client.delete(CONFIG_MAP, ObjectKey.of(stale))
    await app.cluster.client.create({"apiVersion": "v1", "kind": "ConfigMap", **app.build_config_map(of="another")})
    ctx = ReconcileContext(client=Outdated(app, stale), owner=await app.owner(), clock=app.cluster.clock)

    with pytest.raises(ReconcileError, match="failed to delete resource v1/ConfigMap/.*/settings"):
        await frontend().with_resource(ConfigMap(app.build_config_map()), delete()).build().reconcile(ctx)

    child = await app.find(CONFIG_MAP, "settings")
    assert child is not None
    assert child["data"] == {"of": "another"}
    assert not child["metadata"].get("deletionTimestamp")


class Overtaken:
    """The app's client, in whose way somebody else changes an object between its read and its update."""

    def __init__(self, app: ComponentHarness, times: int) -> None:
        self._app, self._times = app, times
        client = app.client
        self.mapping, self.get, self.apply, self.delete = client.mapping, client.get, client.apply, client.delete

    async def update(self, obj: Object, *, subresource: str = "") -> Object:
        if obj["kind"] == "ConfigMap" and self._times:
            self._times -= 1
            live = await self._app.cluster.client.get(CONFIG_MAP, ObjectKey.of(obj))
            await self._app.cluster.client.update({**live, "data": {"tries": str(self._times)}})
        return await self._app.client.update(obj, subresource=subresource)


async def test_a_release_is_tried_again_when_somebody_was_faster(app: ComponentHarness) -> None:
    await app.reconcile(frontend().with_resource(ConfigMap(app.build_config_map())).build())
    component = frontend().with_resource(ConfigMap(app.build_config_map()), orphan_when(True)).build()
    ctx = ReconcileContext(client=Overtaken(app, 2), owner=await app.owner(), clock=app.cluster.clock)

    await component.reconcile(ctx)

    child = await app.find(CONFIG_MAP, "settings")
    assert child is not None
    assert not child["metadata"].get("ownerReferences")
    assert child["data"] == {"tries": "0"}


async def test_what_is_left_out_stays_as_it_is(app: ComponentHarness) -> None:
    def component(included: bool) -> Component:
        return frontend().include_when(included, lambda: ConfigMap(app.build_config_map())).build()

    await app.reconcile(component(True))
    before = await app.find(CONFIG_MAP, "settings")
    condition = await app.reconcile(component(False))

    assert before is not None
    assert len(before["metadata"]["ownerReferences"]) == 1
    assert await app.find(CONFIG_MAP, "settings") == before
    assert condition.reason == "Healthy"


async def test_releasing_what_is_absent_sends_no_write(app: ComponentHarness) -> None:
    component = frontend().with_resource(ConfigMap(app.build_config_map()), orphan_when(True)).build()
    await app.reconcile(component)
    before = len(app.writes())

    await app.reconcile(component)

    assert app.writes()[before:] == []
    assert app.events.noted == []


async def test_deletions_do_not_run_after_an_error_in_the_resource_step(app: ComponentHarness) -> None:
    await app.reconcile(frontend().with_resource(ConfigMap(app.build_config_map("old"))).build())
    component = (
        frontend()
        .with_resource(ConfigMap(app.build_config_map(), extract=raise_error))
        .with_resource(ConfigMap(app.build_config_map("old")), delete())
        .build()
    )

    with pytest.raises(ReconcileError, match="failed to extract data from resource"):
        await app.reconcile(component)

    assert await app.find(CONFIG_MAP, "old") is not None


# The feature gate


async def test_a_component_switched_off_removes_its_objects_and_says_disabled(app: ComponentHarness) -> None:
    await app.cluster.client.create({"apiVersion": "v1", "kind": "ConfigMap", **app.build_config_map("users")})

    def component(enabled: bool) -> Component:
        return (
            frontend()
            .with_feature_gate(BooleanGate(enabled))
            .with_prerequisite(depends_on("NeverThere") if not enabled else None)
            .with_resource(ConfigMap(app.build_config_map("users")), read_only())
            .with_resource(ConfigMap(app.build_config_map()))
            .with_resource(ConfigMap(app.build_config_map("released")), orphan_when(not enabled))
            .suspend(not enabled)
            .build()
        )

    await app.reconcile(component(True))
    condition = await app.reconcile(component(False))

    await app.wait_until_gone(CONFIG_MAP, "settings")
    released = await app.find(CONFIG_MAP, "released")
    assert (condition.status, condition.reason, condition.message) == ("True", "Disabled", "Component is disabled.")
    assert await app.find(CONFIG_MAP, "users") is not None
    assert released is not None
    assert not released["metadata"].get("ownerReferences")
    assert any(message.endswith("deleted due to disabled feature gate") for _, message, _ in app.events.noted)


async def test_a_gate_that_raises_has_a_reason_of_its_own(app: ComponentHarness) -> None:
    component = frontend().with_feature_gate(BrokenGate()).with_resource(ConfigMap(app.build_config_map())).build()
    with pytest.raises(ReconcileError, match="the licence server is away"):
        await app.reconcile(component)
    condition = await app.condition("FrontendReady")
    assert (condition.status, condition.reason) == ("False", "FeatureGateError")
    assert condition.message == "RuntimeError: the licence server is away"


# Prerequisites


async def test_a_component_waits_for_another_and_then_goes_its_own_way(app: ComponentHarness) -> None:
    backend_is_open = [False]
    backend = (
        ComponentBuilder("backend", condition_type="BackendReady")
        .with_resource(
            ConfigMap(
                app.build_config_map("backend"), guard=lambda _: UNBLOCKED if backend_is_open[0] else blocked("closed")
            )
        )
        .build()
    )
    component = (
        frontend()
        .with_prerequisite(depends_on("BackendReady"))
        .with_resource(ConfigMap(app.build_config_map()))
        .build()
    )

    waiting = await app.reconcile(backend, component)
    absent = await app.find(CONFIG_MAP, "settings")
    backend_is_open[0] = True
    ready = await app.reconcile(backend, component)
    backend_is_open[0] = False
    still_ready = await app.reconcile(backend, component)

    assert (waiting.status, waiting.reason) == ("False", "PrerequisiteNotMet")
    assert waiting.message == (
        'Prerequisite not met: waiting for condition "BackendReady" to become True (currently False: closed)'
    )
    assert absent is None
    assert (ready.reason, still_ready.reason) == ("Healthy", "Healthy")


async def test_a_condition_that_is_not_there_is_named_with_the_owner(app: ComponentHarness) -> None:
    condition = await app.reconcile(frontend().with_prerequisite(depends_on("CacheReady")).build())
    assert condition.message == 'Condition "CacheReady" not found on TestApp/shop'


async def test_the_first_unmet_prerequisite_ends_the_check(app: ComponentHarness) -> None:
    class Never:
        def check(self, ctx: ReconcileContext) -> PrerequisiteResult:
            raise AssertionError("asked too late")

    class Asks:
        async def check(self, ctx: ReconcileContext) -> PrerequisiteResult:
            await ctx.client.get(APP, app.key)
            return not_met("not in the mood")

    condition = await app.reconcile(frontend().with_prerequisite(Asks()).with_prerequisite(Never()).build())
    assert condition.message == "not in the mood"


async def test_a_prerequisite_that_raises_is_not_met_and_is_raised(app: ComponentHarness) -> None:
    class Broken:
        def check(self, ctx: ReconcileContext) -> PrerequisiteResult:
            raise RuntimeError("dns")

    with pytest.raises(ReconcileError, match="dns"):
        await app.reconcile(frontend().with_prerequisite(Broken()).build())
    condition = await app.condition("FrontendReady")
    assert (condition.status, condition.reason, condition.message) == (
        "False",
        "PrerequisiteNotMet",
        "RuntimeError: dns",
    )


async def test_suspension_does_nothing_while_a_prerequisite_is_unmet(app: ComponentHarness) -> None:
    component = (
        frontend()
        .with_prerequisite(depends_on("X"))
        .with_resource(Deployment(app.build_deployment()))
        .suspend(True)
        .build()
    )
    condition = await app.reconcile(component)
    assert condition.reason == "PrerequisiteNotMet"
    assert await app.find(DEPLOYMENT, "web") is None


# Suspension


async def test_a_suspended_component_is_scaled_to_zero_and_resumes(app: ComponentHarness) -> None:
    def component(suspended: bool) -> Component:
        return (
            frontend()
            .with_resource(ConfigMap(app.build_config_map()))
            .with_resource(Deployment(app.build_deployment(replicas=2)))
            .suspend(suspended)
            .build()
        )

    await app.reconcile_until("Healthy", component(False))
    suspended = await app.reconcile_until("Suspended", component(True))
    asleep = await app.find(DEPLOYMENT, "web")
    quiet = await app.list_steady_writes(component(True))
    await app.reconcile_until("Healthy", component(False))
    awake = await app.find(DEPLOYMENT, "web")

    assert (suspended.status, suspended.message) == ("True", "All resources are suspended.")
    assert asleep is not None
    assert asleep["spec"]["replicas"] == 0
    assert quiet == []
    assert awake is not None
    assert awake["spec"]["replicas"] == 2


async def test_absent_resources_are_created_suspended_and_guards_are_not_asked(app: ComponentHarness) -> None:
    def guard(_: Object) -> GuardResult:
        raise AssertionError("a guard was asked")

    component = (
        frontend()
        .with_resource(ConfigMap(app.build_config_map()))
        .with_resource(Deployment(app.build_deployment(), guard=guard))
        .suspend(True)
        .build()
    )

    await app.reconcile_until("Suspended", component)

    created = await app.find(DEPLOYMENT, "web")
    assert created is not None
    assert created["spec"]["replicas"] == 0
    assert await app.find(CONFIG_MAP, "settings") is None


async def test_a_resource_deleted_on_suspend_goes_and_is_not_made_again(app: ComponentHarness) -> None:
    def component(suspended: bool) -> Component:
        return (
            frontend()
            .with_resource(Deployment(app.build_deployment(), delete_on_suspend=True))
            .suspend(suspended)
            .build()
        )

    await app.reconcile_until("Healthy", component(False))
    await app.reconcile_until("Suspended", component(True))
    await app.wait_until_gone(DEPLOYMENT, "web")
    written = await app.list_steady_writes(component(True))

    assert (await app.condition("FrontendReady")).reason == "Suspended"
    assert written == []
    assert app.events.noted[-1][1].endswith("deleted on suspension")


async def test_a_suspended_component_still_removes_what_is_marked(app: ComponentHarness) -> None:
    await app.reconcile(frontend().with_resource(ConfigMap(app.build_config_map("old"))).build())

    condition = await app.reconcile(
        frontend().with_resource(ConfigMap(app.build_config_map("old")), delete()).suspend(True).build()
    )

    await app.wait_until_gone(CONFIG_MAP, "old")
    assert condition.reason == "Suspended"


async def test_one_failing_suspension_does_not_hold_the_others(app: ComponentHarness) -> None:
    component = (
        frontend()
        .with_resource(Deployment(app.build_deployment("first"), extract=raise_error))
        .with_resource(Deployment(app.build_deployment("second")))
        .suspend(True)
        .build()
    )

    with pytest.raises(ReconcileError, match="failed to extract data from resource apps/v1/Deployment/.*/first"):
        await app.reconcile(component)

    assert await app.find(DEPLOYMENT, "second") is not None
    assert (await app.condition("FrontendReady")).reason == "Error"


# Grace


async def test_what_never_becomes_ready_is_down_after_its_grace_and_recovers(app: ComponentHarness) -> None:
    def component(image: str) -> Component:
        return (
            frontend()
            .with_resource(Deployment(app.build_deployment(image=image)))
            .with_grace_period(timedelta(seconds=2))
            .build()
        )

    early = await app.reconcile(component("konverge.test/never-ready:1"))
    wake_after = app.wake_after
    late = await app.reconcile_until("Down", component("konverge.test/never-ready:1"))
    fixed = await app.reconcile_until("Healthy", component("konverge.test/app:1"))

    assert early.reason == "Creating"
    assert isinstance(wake_after, timedelta)
    assert timedelta(seconds=0) < wake_after <= timedelta(seconds=3)
    assert (late.status, late.message) == ("False", "Component is down: No replicas are ready")
    assert fixed.status == "True"


async def test_a_rollout_that_gets_stuck_is_degraded_after_its_grace(app: ComponentHarness) -> None:
    def component(image: str) -> Component:
        return (
            frontend()
            .with_resource(Deployment(app.build_deployment(image=image, replicas=2)))
            .with_grace_period(timedelta(seconds=2))
            .build()
        )

    await app.reconcile_until("Healthy", component("konverge.test/app:1"))
    condition = await app.reconcile_until("Degraded", component("konverge.test/never-ready:1"))

    assert condition.message == "Component is degraded: Waiting for rollout: 1/2 replicas updated"


async def test_a_component_blocked_longer_than_its_grace_is_down_with_the_guards_reason(app: ComponentHarness) -> None:
    component = (
        frontend()
        .with_resource(ConfigMap(app.build_config_map(), guard=lambda _: blocked("waiting for Godot")))
        .with_grace_period(timedelta(seconds=1))
        .build()
    )

    condition = await app.reconcile_until("Down", component)

    assert condition.message == "Component is down: waiting for Godot"


async def test_an_auxiliary_resource_does_not_hold_the_component_back(app: ComponentHarness) -> None:
    component = (
        frontend()
        .with_resource(ConfigMap(app.build_config_map()))
        .with_resource(Deployment(app.build_deployment(image="konverge.test/never-ready:1")), auxiliary())
        .build()
    )
    condition = await app.reconcile(component)
    assert condition.reason == "Healthy"


# Errors of the author's functions


async def test_a_mutation_that_raises_is_an_error_that_names_resource_and_mutation(app: ComponentHarness) -> None:
    component = (
        frontend()
        .with_resource(ConfigMap(app.build_config_map(), mutations=[Mutation("colours", raise_error)]))
        .build()
    )
    with pytest.raises(ReconcileError, match="failed to mutate resource v1/ConfigMap/.*/settings: .*colours"):
        await app.reconcile(component)
    assert await app.find(CONFIG_MAP, "settings") is None


async def test_a_health_function_that_answers_nonsense_is_never_ready(app: ComponentHarness) -> None:
    desired = Deployment(app.build_deployment(), converging_status=lambda live, operation: "Healthy")  # type: ignore[arg-type,return-value]
    with pytest.raises(ReconcileError, match="failed to determine converging status of resource apps/v1/Deployment"):
        await app.reconcile(frontend().with_resource(desired).build())
    assert (await app.condition("FrontendReady")).reason == "Error"


async def test_a_component_recovers_from_an_error(app: ComponentHarness) -> None:
    with pytest.raises(ReconcileError):
        await app.reconcile(frontend().with_resource(ConfigMap(app.build_config_map(), extract=raise_error)).build())
    condition = await app.reconcile(frontend().with_resource(ConfigMap(app.build_config_map())).build())
    assert condition.reason == "Healthy"


# The end of an owner


async def test_an_owner_that_is_gone_at_the_flush_is_no_error(app: ComponentHarness) -> None:
    ctx = ReconcileContext(client=app.client, owner=await app.owner(), clock=app.cluster.clock)
    async with ctx.flushing_status():
        await frontend().build().reconcile(ctx)
        await app.cluster.client.delete(APP, app.key)
        await app.wait_until_gone(APP, app.key.name)

    with pytest.raises(NotFoundError):
        await app.owner()


async def test_an_error_that_another_try_cannot_help_stays_one(app: ComponentHarness) -> None:
    def impossible(_: Object) -> None:
        raise TerminalError("the licence has expired")

    component = frontend().with_resource(ConfigMap(app.build_config_map(), extract=impossible)).build()
    with pytest.raises(TerminalError, match="failed to extract data from resource .* the licence has expired"):
        await app.reconcile(component)
    assert (await app.condition("FrontendReady")).reason == "Error"
