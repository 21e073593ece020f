"""The deletion of a custom resource: Jobs, groups in order, crashes and time, on both clusters."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import pytest

from konverge.crd import Metadata, crd_manifest, custom_resource, find_definition
from konverge.errors import NotFoundError
from konverge.kube import Condition, GroupVersionKind, Object, ObjectKey, build_owner_reference, is_deleting
from konverge.operator import Operator, OwnerContext, Result
from konverge_box._internal.steps import StepError, build_scope
from konverge_box._internal.steps.deletion import Deletion, DeletionProgress, remove_leftovers
from konverge_box._internal.steps.labels import OWNER_UID, RAN
from konverge_box.expressions import EvaluationEnvironment
from konverge_cluster.testing import Cluster
from tests.box.file.sample_boxes import load_custom_resource

pytestmark = pytest.mark.anyio

CONFIG_MAP = GroupVersionKind("", "v1", "ConfigMap")
DEPLOYMENT = GroupVersionKind("apps", "v1", "Deployment")
JOB = GroupVersionKind("batch", "v1", "Job")
NAMESPACE = GroupVersionKind("", "v1", "Namespace")
POD = GroupVersionKind("", "v1", "Pod")
FINALIZER = "deletion.konverge.test/done"


@dataclass
class TentSpec:
    size: int = 1


@custom_resource(group="deletion.konverge.test", version="v1")
@dataclass
class Tent:
    metadata: Metadata
    spec: TentSpec


TENT = find_definition(Tent).gvk


def deletion(on_delete: str) -> Deletion:
    lines = "\n".join(f"  {line}" for line in on_delete.strip("\n").splitlines())
    return Deletion(load_custom_resource(f"onDelete:\n{lines}\n").on_delete, "onDelete", "tents")


@dataclass
class DeletionHarness:
    """An owner on a cluster, its objects, and its deletion, which keeps no state between two steps."""

    cluster: Cluster
    on_delete: str = ""
    owner: Object = field(default_factory=dict)

    @property
    def key(self) -> ObjectKey:
        return ObjectKey(self.cluster.namespace, "tent")

    async def create_owner(self, on_delete: str) -> None:
        self.on_delete = on_delete
        client = self.cluster.client
        await client.apply(crd_manifest(Tent), field_manager="test")
        tent = {
            "apiVersion": TENT.api_version,
            "kind": TENT.kind,
            "metadata": {"name": "tent", "namespace": self.cluster.namespace, "finalizers": [FINALIZER]},
            "spec": {"size": 1},
        }

        async def created() -> Object:
            return await client.create(tent)

        self.owner = await self.cluster.eventually(created, describe="the owner is there")

    async def have(self, kind: str, name: str, *, is_ours: bool = True, namespace: str = "", **more: Any) -> None:
        """Create an object like one of the box for the owner."""
        namespace = namespace or self.cluster.namespace
        metadata: Object = {"name": name, "namespace": namespace}
        if is_ours:
            metadata["labels"] = {OWNER_UID: self.owner["metadata"]["uid"]}
            if namespace == self.cluster.namespace:
                metadata["ownerReferences"] = [build_owner_reference(self.owner)]
        api_version = "apps/v1" if kind == "Deployment" else "v1"
        obj = {"apiVersion": api_version, "kind": kind, "metadata": metadata, **more}
        if is_ours:
            await self.apply(obj)
        else:
            await self.cluster.client.create(obj)

    async def apply(self, obj: Object) -> None:
        """Apply an object as a box does for the owner."""
        manager = f"Tent/resources/{self.owner['metadata']['uid']}"
        await self.cluster.client.apply(obj, field_manager=manager)

    async def find(self, gvk: GroupVersionKind, name: str, namespace: str = "") -> Object | None:
        try:
            return await self.cluster.client.get(gvk, ObjectKey(namespace or self.cluster.namespace, name))
        except NotFoundError:
            return None

    async def leave(self) -> None:
        await self.cluster.client.delete(TENT, self.key)

    async def step(self) -> DeletionProgress:
        """Run one step without knowledge of earlier steps."""
        client = self.cluster.client
        owner = await client.get(TENT, self.key)
        return await deletion(self.on_delete).run_step(
            build_scope(owner, EvaluationEnvironment()), owner, client, self.cluster.clock.now()
        )

    async def wait_until_done(self) -> DeletionProgress:
        async def done() -> DeletionProgress | None:
            found = await self.step()
            return found if found.done else None

        return await self.cluster.eventually(done, describe="the deletion is done")

    async def wait_until_refused(self) -> str:
        async def refused() -> str:
            try:
                await self.step()
            except StepError as error:
                return str(error)
            return ""

        return await self.cluster.eventually(refused, describe="the deletion reports a problem")


@pytest.fixture
async def camp(cluster: Cluster) -> DeletionHarness:
    return DeletionHarness(cluster)


def pods(name: str) -> Object:
    labels = {"app": name}
    template = {
        "metadata": {"labels": labels},
        "spec": {"containers": [{"name": "main", "image": "konverge.test/app:1"}]},
    }
    return {"replicas": 1, "selector": {"matchLabels": labels}, "template": template}


async def test_the_second_group_is_untouched_until_the_first_has_gone_with_all_it_owns(camp: DeletionHarness) -> None:
    await camp.create_owner("""
groups:
  - {name: front, delete: {deployments: [{name: front}], configMaps: [{name: sign}]}}
  - {name: back, delete: {configMaps: [{name: store}]}}
""")
    await camp.have("Deployment", "front", spec=pods("front"))
    await camp.have("ConfigMap", "sign")
    await camp.have("ConfigMap", "store")

    async def has_pod() -> bool:
        return bool((await camp.cluster.client.list(POD, namespace=camp.cluster.namespace)).items)

    await camp.cluster.eventually(has_pod, describe="the front has a pod")
    await camp.leave()

    first = await camp.step()
    store = await camp.find(CONFIG_MAP, "store")
    assert not first.done
    assert first.waiting_for.startswith("front: Deployment ")
    assert "foregroundDeletion" in first.waiting_for
    assert store is not None
    assert not is_deleting(store)

    seen = []

    async def done() -> bool:
        found = await camp.step()
        front, store = await camp.find(DEPLOYMENT, "front"), await camp.find(CONFIG_MAP, "store")
        seen.append((front is not None, store is None or is_deleting(store), await has_pod()))
        return found.done

    await camp.cluster.eventually(done, describe="the deletion is done")
    assert (True, True, True) not in seen
    assert all(not (front and store_goes) for front, store_goes, _ in seen)
    assert seen[-1] == (False, True, False)


async def test_jobs_run_to_their_end_before_anything_of_their_group_goes(camp: DeletionHarness) -> None:
    await camp.create_owner("""
groups:
  - run: [{name: backup, image: "konverge.test/app:1", ttlSecondsAfterFinished: 0}]
    delete: {configMaps: [{name: store}]}
""")
    await camp.have("ConfigMap", "store")
    await camp.leave()

    first = await camp.step()
    backup = await camp.find(JOB, "backup")
    assert first.waiting_for == f"groups[0]: Job {camp.cluster.namespace}/backup runs"
    assert first.requeue_after is not None
    assert backup is not None
    assert "ownerReferences" not in backup["metadata"]
    assert await camp.find(CONFIG_MAP, "store") is not None

    await camp.wait_until_done()
    assert await camp.find(CONFIG_MAP, "store") is None

    async def backup_is_gone() -> bool:
        return await camp.find(JOB, "backup") is None

    await camp.cluster.eventually(backup_is_gone, describe="the Job is cleaned up")
    assert (await camp.step()).done
    assert await camp.find(JOB, "backup") is None


async def test_a_job_that_goes_with_its_namespace_does_not_run_again(camp: DeletionHarness) -> None:
    yard = f"{camp.cluster.namespace}-yard"
    await camp.create_owner(f"""
groups:
  - run: [{{name: backup, namespace: {yard}, image: "konverge.test/app:1"}}]
    delete: {{namespaces: [{{name: {yard}}}]}}
""")
    labels = {OWNER_UID: camp.owner["metadata"]["uid"]}
    await camp.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": yard, "labels": labels}})
    await camp.leave()

    await camp.wait_until_done()

    with pytest.raises(NotFoundError):
        await camp.cluster.client.get(NAMESPACE, ObjectKey("", yard))
    owner = await camp.cluster.client.get(TENT, camp.key)
    assert RAN in owner["metadata"]["annotations"]


async def have_terminating_namespace(camp: DeletionHarness) -> str:
    """Create a namespace that is being deleted and that an object in it keeps; return its name."""
    client, yard = camp.cluster.client, f"{camp.cluster.namespace}-yard"
    await client.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": yard}})
    held = {"name": "held", "namespace": yard, "finalizers": ["konverge.test/hold"]}
    await client.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": held})
    await client.delete(NAMESPACE, ObjectKey("", yard))

    async def is_terminating() -> bool:
        return bool((await client.get(NAMESPACE, ObjectKey("", yard)))["status"]["phase"] == "Terminating")

    await camp.cluster.eventually(is_terminating, describe="the namespace is being deleted")
    return yard


@pytest.mark.parametrize("rule", ["wait", "skip"])
async def test_a_job_whose_namespace_is_being_deleted_waits_without_an_error_or_is_skipped(
    camp: DeletionHarness, rule: str
) -> None:
    yard = await have_terminating_namespace(camp)
    await camp.create_owner(f"""
deletedNamespace: {rule}
groups:
  - run: [{{name: backup, namespace: {yard}, image: "konverge.test/app:1"}}]
    delete: {{configMaps: [{{name: store}}]}}
""")
    await camp.have("ConfigMap", "store")
    await camp.leave()

    async def is_refused() -> DeletionProgress | None:
        found = await camp.step()
        return found if "its namespace is being deleted" in f"{found.waiting_for}{found.skipped}" else None

    found = await camp.cluster.eventually(is_refused, describe="the server refuses the Job")

    if rule == "wait":
        assert found.waiting_for == (
            f"groups[0]: Job {yard}/backup cannot run, because its namespace is being deleted; remove the finalizer of "
            "the object to delete it without the Job, or set deletedNamespace: skip in the box"
        )
        assert await camp.find(CONFIG_MAP, "store") is not None
    else:
        assert found.skipped == (
            f"Job {yard}/backup cannot run, because its namespace is being deleted; it is skipped",
        )
        await camp.wait_until_done()
        assert await camp.find(CONFIG_MAP, "store") is None
    key = ObjectKey(yard, "held")
    await camp.cluster.client.patch(CONFIG_MAP, key, {"metadata": {"finalizers": None}}, patch_type="merge")


async def test_a_failed_job_keeps_the_object_until_somebody_has_it_run_again(camp: DeletionHarness) -> None:
    failing = "{name: backup, backoffLimit: 0, image: 'konverge.test/failing:1'}"
    rest = "{name: other, image: 'konverge.test/app:1'}"
    await camp.create_owner(f"""
groups:
  - run: [{failing}, {rest}]
    delete: {{configMaps: [{{name: store}}]}}
""")
    await camp.have("ConfigMap", "store")
    await camp.leave()

    problem = await camp.wait_until_refused()

    assert problem.startswith(f"onDelete.groups[0]: Job {camp.cluster.namespace}/backup failed: ")
    assert "Delete the Job to run it again" in problem
    assert await camp.find(CONFIG_MAP, "store") is not None
    assert await camp.find(JOB, "other") is not None

    camp.on_delete = camp.on_delete.replace("failing", "app")
    backup = await camp.find(JOB, "backup")
    assert backup is not None
    await camp.cluster.client.delete(JOB, ObjectKey.of(backup), uid=backup["metadata"]["uid"])
    await camp.wait_until_done()


async def test_what_is_not_of_the_owner_is_spared(camp: DeletionHarness) -> None:
    await camp.create_owner("groups: [{delete: {configMaps: [{name: theirs}, {name: ours}], secrets: [{name: none}]}}]")
    await camp.have("ConfigMap", "theirs", is_ours=False)
    await camp.have("ConfigMap", "ours")
    await camp.leave()

    done = await camp.wait_until_done()

    assert done.kept == (f"ConfigMap {camp.cluster.namespace}/theirs does not belong to this object and is kept",)
    theirs = await camp.find(CONFIG_MAP, "theirs")
    assert theirs is not None
    assert not is_deleting(theirs)
    assert await camp.find(CONFIG_MAP, "ours") is None


async def test_an_operator_is_woken_by_what_goes_and_lets_the_owner_go(camp: DeletionHarness) -> None:
    """Test with the caches of a running operator, which reconciles nothing by itself for hours."""
    await camp.create_owner("""
groups:
  - run: [{name: backup, image: "konverge.test/app:1"}]
    delete: {deployments: [{name: front}]}
  - delete: {configMaps: [{name: store}]}
""")
    await camp.have("Deployment", "front", spec=pods("front"))
    await camp.have("ConfigMap", "store")
    operator = Operator("tents")
    compiled = deletion(camp.on_delete)

    @operator.reconciles(Tent)
    async def reconcile(tent: Tent, ctx: OwnerContext) -> None:
        return

    @operator.finalizes(Tent, name=FINALIZER)
    async def close(tent: Tent, ctx: OwnerContext) -> Result | None:
        async with ctx.flushing_status():
            scope = build_scope(ctx.owner, EvaluationEnvironment())
            found = await compiled.run_step(scope, ctx.owner, ctx.cluster, ctx.clock.now())
            ctx.stage(Condition("Ready", "False", "Deleting", found.waiting_for or "done"))
        return None if found.done else Result(requeue_after=timedelta(hours=5))

    async with camp.cluster.run_operator(operator):
        await camp.leave()

        async def is_gone() -> bool:
            return await camp.find(TENT, "tent") is None

        await camp.cluster.eventually(is_gone, describe="the owner is gone")

    assert await camp.find(CONFIG_MAP, "store") is None
    deletes = [each for each in camp.cluster.list_requests("tents") if each.verb == "delete"]
    assert len(deletes) == 3


class TestOnTheEmbeddedClusterAlone:
    """The behavior that does not depend on a real server."""

    @pytest.fixture(params=[pytest.param("embedded", marks=pytest.mark.embedded)])
    def cluster_kind(self, request: pytest.FixtureRequest) -> str:
        kind: str = request.param
        return kind

    async def test_a_deletion_that_takes_too_long_says_so_and_goes_on(self, camp: DeletionHarness) -> None:
        await camp.create_owner("timeout: 2m\ngroups: [{name: store, delete: {configMaps: [{name: store}]}}]")
        await camp.have("ConfigMap", "store")
        body = {"metadata": {"finalizers": ["example.com/hold"]}}
        key = ObjectKey(camp.cluster.namespace, "store")
        await camp.cluster.client.patch(CONFIG_MAP, key, body, patch_type="merge")
        await camp.leave()
        await camp.step()

        await camp.cluster.clock.sleep(110)
        early = await camp.step()
        await camp.cluster.clock.sleep(11)
        late = await camp.step()

        assert (early.done, early.is_overdue) == (False, False)
        assert early.requeue_after is not None
        assert early.requeue_after <= timedelta(seconds=10)
        assert (late.done, late.is_overdue) == (False, True)
        assert late.waiting_for == (
            f"store: ConfigMap {key} is being deleted (held by example.com/hold). "
            "Not complete after 2m. The deletion continues; "
            "to delete the object without it, remove the finalizer of the object"
        )

        await camp.cluster.client.patch(CONFIG_MAP, key, {"metadata": {"finalizers": None}}, patch_type="merge")
        assert (await camp.wait_until_done()).is_overdue is False

    async def test_a_block_whose_conditions_do_not_hold_is_skipped(self, camp: DeletionHarness) -> None:
        await camp.create_owner(
            "when: [{field: spec.size, greaterThan: 3}]\ngroups: [{delete: {configMaps: [{name: store}]}}]"
        )
        await camp.have("ConfigMap", "store")
        await camp.leave()

        assert await camp.step() == DeletionProgress(done=True)
        assert await camp.find(CONFIG_MAP, "store") is not None

    async def test_conditions_are_asked_as_of_the_beginning(self, camp: DeletionHarness) -> None:
        await camp.create_owner("groups: [{delete: {configMaps: [{name: store}]}}]")
        await camp.leave()
        began = camp.cluster.clock.now()
        window = f"{{after: '{began:%H:%M}', before: '{began + timedelta(minutes=10):%H:%M}'}}"
        camp.on_delete = f"groups: [{{when: [{{time: {window}}}], delete: {{configMaps: [{{name: store}}]}}}}]"
        await camp.have("ConfigMap", "store")

        await camp.cluster.clock.sleep(3600)

        assert not (await camp.step()).done

    async def test_a_refusal_for_one_object_does_not_keep_the_others(self, camp: DeletionHarness) -> None:
        await camp.create_owner("groups: [{delete: {configMaps: [{name: UPPER/case}, {name: store}]}}]")
        await camp.have("ConfigMap", "store")
        await camp.leave()

        problem = await camp.wait_until_refused()

        assert "ConfigMap UPPER/case: " in problem
        store = await camp.find(CONFIG_MAP, "store")
        assert store is None or is_deleting(store)

    async def test_objects_of_kinds_that_are_not_served_are_gone(self, camp: DeletionHarness) -> None:
        await camp.create_owner(
            "groups: [{delete: {custom: [{apiVersion: gone.example.com/v1, kind: Gone, name: x}]}}]"
        )
        await camp.leave()

        assert (await camp.step()).done

    async def test_leftovers_in_other_namespaces_and_in_none_are_deleted_if_they_are_ours(
        self, camp: DeletionHarness
    ) -> None:
        await camp.create_owner("groups: []")
        client, other = camp.cluster.client, f"{camp.cluster.namespace}-other"
        mine = {OWNER_UID: camp.owner["metadata"]["uid"]}
        await camp.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": other, "labels": mine}})
        await camp.have("ConfigMap", "ours", namespace=other)
        await camp.have("ConfigMap", "theirs", namespace=other, is_ours=False)
        found = [await camp.find(CONFIG_MAP, name, other) for name in ("theirs", "ours")]
        gone = {**(found[1] or {}), "metadata": {**(found[1] or {})["metadata"], "name": "gone"}}

        await remove_leftovers([each for each in [*found, gone] if each], camp.owner, client, "spec.crds.tent")

        assert await camp.find(CONFIG_MAP, "ours", other) is None
        assert await camp.find(CONFIG_MAP, "theirs", other) is not None
        await remove_leftovers([await client.get(NAMESPACE, ObjectKey("", other))], camp.owner, client, "x")

        async def is_gone() -> bool:
            return await camp.find(CONFIG_MAP, "theirs", other) is None

        await camp.cluster.eventually(is_gone, describe="the namespace takes along what is in it")
