from __future__ import annotations

import pytest

from konverge.kube import Object, owner_reference
from tests.localcluster.players.stage import CONFIG_MAP, DEPLOYMENT, POD, REPLICA_SET, Stage, config_map, deployment

pytestmark = pytest.mark.anyio


def reference(owner: Object, **changed: object) -> Object:
    return owner_reference(owner, controller=False) | changed


async def test_background_deletion_takes_the_owner_first(stage: Stage) -> None:
    stage.create(deployment())
    await stage.settle()
    stage.changes.clear()

    stage.delete(DEPLOYMENT, "web", "Background")
    await stage.settle()

    kinds = [line.split()[1] for line in stage.log() if line.startswith("DELETED")]
    assert kinds == ["deployments.apps", "replicasets.apps", "pods"]


async def test_foreground_deletion_takes_the_owner_last(stage: Stage) -> None:
    stage.create(deployment())
    await stage.settle()
    stage.changes.clear()

    stage.delete(DEPLOYMENT, "web", "Foreground")
    marked = stage.get(DEPLOYMENT, "web")
    await stage.settle()

    kinds = [line.split()[1] for line in stage.log() if line.startswith("DELETED")]
    assert marked["metadata"]["finalizers"] == ["foregroundDeletion"]
    assert kinds == ["pods", "replicasets.apps", "deployments.apps"]


async def test_orphans_live_on_without_their_owner(stage: Stage) -> None:
    stage.create(deployment())
    await stage.settle()

    stage.delete(DEPLOYMENT, "web", "Orphan")
    await stage.settle()

    assert stage.find(DEPLOYMENT, "web") is None
    (replica_set,) = stage.all(REPLICA_SET)
    assert "ownerReferences" not in replica_set["metadata"]
    assert len(stage.names(POD)) == 1


async def test_a_new_deployment_takes_the_orphans_over(stage: Stage) -> None:
    stage.create(deployment())
    await stage.settle()
    pods = stage.names(POD)
    stage.delete(DEPLOYMENT, "web", "Orphan")
    await stage.settle()

    created = stage.create(deployment())
    await stage.settle()

    (replica_set,) = stage.all(REPLICA_SET)
    assert replica_set["metadata"]["ownerReferences"][0]["uid"] == created["metadata"]["uid"]
    assert stage.names(POD) == pods


async def test_what_names_an_absent_owner_is_deleted(stage: Stage) -> None:
    gone = {"apiVersion": "v1", "kind": "ConfigMap", "name": "gone", "uid": "00000000-0000-4000-8000-000000000000"}
    stage.create(config_map("child", gone))
    await stage.settle()

    assert stage.find(CONFIG_MAP, "child") is None


async def test_a_name_that_was_born_again_is_another_owner(stage: Stage) -> None:
    owner = stage.create(config_map("owner"))
    stage.delete(CONFIG_MAP, "owner")
    stage.create(config_map("owner"))
    stage.create(config_map("child", reference(owner)))
    await stage.settle()

    assert stage.find(CONFIG_MAP, "child") is None


@pytest.mark.parametrize("wrong", [{"name": "other"}, {"kind": "Secret"}])
async def test_a_uid_with_the_wrong_name_or_kind_is_no_owner(stage: Stage, wrong: dict[str, str]) -> None:
    owner = stage.create(config_map("owner"))
    stage.create(config_map("child", reference(owner, **wrong)))
    await stage.settle()

    assert stage.find(CONFIG_MAP, "child") is None


async def test_an_owner_in_another_namespace_is_none(stage: Stage) -> None:
    stage.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "elsewhere"}})
    owner = stage.create(config_map("owner"))
    stage.create(config_map("child", reference(owner), namespace="elsewhere"))
    await stage.settle()

    assert stage.find(CONFIG_MAP, "child", "elsewhere") is None


async def test_one_living_owner_is_enough(stage: Stage) -> None:
    first, second = stage.create(config_map("first")), stage.create(config_map("second"))
    stage.create(config_map("child", reference(first), reference(second)))
    await stage.settle()

    stage.delete(CONFIG_MAP, "first")
    await stage.settle()

    assert stage.get(CONFIG_MAP, "child")["metadata"]["ownerReferences"] == [reference(second)]


async def test_foreground_deletion_of_one_owner_only_drops_its_reference(stage: Stage) -> None:
    first, second = stage.create(config_map("first")), stage.create(config_map("second"))
    stage.create(config_map("child", reference(first, blockOwnerDeletion=True), reference(second)))
    await stage.settle()

    stage.delete(CONFIG_MAP, "first", "Foreground")
    await stage.settle()

    assert stage.find(CONFIG_MAP, "first") is None
    assert stage.get(CONFIG_MAP, "child")["metadata"]["ownerReferences"] == [reference(second)]


async def test_dependents_that_do_not_block_go_after_the_owner(stage: Stage) -> None:
    owner = stage.create(config_map("owner"))
    stage.create(config_map("child", reference(owner)))
    await stage.settle()
    stage.changes.clear()

    stage.delete(CONFIG_MAP, "owner", "Foreground")
    await stage.settle()

    assert [line for line in stage.log() if line.startswith("DELETED")] == [
        "DELETED configmaps owner",
        "DELETED configmaps child",
    ]


async def test_a_dependent_with_a_finalizer_holds_its_owner(stage: Stage) -> None:
    owner = stage.create(config_map("owner"))
    held = config_map("child", reference(owner, blockOwnerDeletion=True), finalizers=["konverge.test/hold"])
    stage.create(held)
    await stage.settle()

    stage.delete(CONFIG_MAP, "owner", "Foreground")
    await stage.settle(60)
    waiting = stage.find(CONFIG_MAP, "owner")
    child = stage.get(CONFIG_MAP, "child")
    child["metadata"]["finalizers"] = []
    stage.api.update(CONFIG_MAP, child)
    await stage.settle()

    assert waiting is not None
    assert child["metadata"]["deletionTimestamp"]
    assert stage.names(CONFIG_MAP) == ["kube-root-ca.crt"]


async def test_two_that_own_each_other_can_be_deleted_in_the_foreground(stage: Stage) -> None:
    first = stage.create(config_map("first"))
    second = stage.create(config_map("second", reference(first, blockOwnerDeletion=True)))
    first["metadata"]["ownerReferences"] = [reference(second, blockOwnerDeletion=True)]
    stage.api.update(CONFIG_MAP, first)
    await stage.settle()

    stage.delete(CONFIG_MAP, "first", "Foreground")
    await stage.settle()

    assert stage.names(CONFIG_MAP) == ["kube-root-ca.crt"]


async def test_a_reference_that_is_added_later_counts(stage: Stage) -> None:
    owner = stage.create(config_map("owner"))
    child = stage.create(config_map("child"))
    child["metadata"]["ownerReferences"] = [reference(owner)]
    stage.api.update(CONFIG_MAP, child)
    await stage.settle()

    stage.delete(CONFIG_MAP, "owner")
    await stage.settle()

    assert stage.find(CONFIG_MAP, "child") is None


async def test_an_owner_of_a_kind_that_is_not_served_is_not_taken_for_absent(stage: Stage) -> None:
    unknown = {
        "apiVersion": "demo.test/v1",
        "kind": "Gadget",
        "name": "a",
        "uid": "00000000-0000-4000-8000-000000000000",
    }
    stage.create(config_map("child", unknown))
    await stage.settle()
    before = stage.find(CONFIG_MAP, "child")
    stage.create(gadgets())
    await stage.settle()

    assert before is not None
    assert stage.find(CONFIG_MAP, "child") is None


def gadgets() -> Object:
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "gadgets.demo.test"},
        "spec": {
            "group": "demo.test",
            "scope": "Namespaced",
            "names": {"plural": "gadgets", "singular": "gadget", "kind": "Gadget", "listKind": "GadgetList"},
            "versions": [version],
        },
    }
