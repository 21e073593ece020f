from __future__ import annotations

import pytest

from konverge.kube import Object, build_owner_reference
from tests.cluster.embedded.controllers.controller_harness import (
    CONFIG_MAP,
    DEPLOYMENT,
    POD,
    REPLICA_SET,
    ControllerHarness,
    build_config_map,
    build_deployment,
)

pytestmark = pytest.mark.anyio


def reference(owner: Object, **changed: object) -> Object:
    return build_owner_reference(owner, controller=False) | changed


async def test_background_deletion_takes_the_owner_first(stage: ControllerHarness) -> None:
    stage.create(build_deployment())
    await stage.advance()
    stage.changes.clear()

    stage.delete(DEPLOYMENT, "web", "Background")
    await stage.advance()

    kinds = [line.split()[1] for line in stage.list_changes() if line.startswith("DELETED")]
    assert kinds == ["deployments.apps", "replicasets.apps", "pods"]


async def test_foreground_deletion_takes_the_owner_last(stage: ControllerHarness) -> None:
    stage.create(build_deployment())
    await stage.advance()
    stage.changes.clear()

    stage.delete(DEPLOYMENT, "web", "Foreground")
    marked = stage.get(DEPLOYMENT, "web")
    await stage.advance()

    kinds = [line.split()[1] for line in stage.list_changes() if line.startswith("DELETED")]
    assert marked["metadata"]["finalizers"] == ["foregroundDeletion"]
    assert kinds == ["pods", "replicasets.apps", "deployments.apps"]


async def test_orphans_live_on_without_their_owner(stage: ControllerHarness) -> None:
    stage.create(build_deployment())
    await stage.advance()

    stage.delete(DEPLOYMENT, "web", "Orphan")
    await stage.advance()

    assert stage.find(DEPLOYMENT, "web") is None
    (replica_set,) = stage.list_objects(REPLICA_SET)
    assert "ownerReferences" not in replica_set["metadata"]
    assert len(stage.list_names(POD)) == 1


async def test_a_new_deployment_takes_the_orphans_over(stage: ControllerHarness) -> None:
    stage.create(build_deployment())
    await stage.advance()
    pods = stage.list_names(POD)
    stage.delete(DEPLOYMENT, "web", "Orphan")
    await stage.advance()

    created = stage.create(build_deployment())
    await stage.advance()

    (replica_set,) = stage.list_objects(REPLICA_SET)
    assert replica_set["metadata"]["ownerReferences"][0]["uid"] == created["metadata"]["uid"]
    assert stage.list_names(POD) == pods


async def test_what_names_an_absent_owner_is_deleted(stage: ControllerHarness) -> None:
    gone = {"apiVersion": "v1", "kind": "ConfigMap", "name": "gone", "uid": "00000000-0000-4000-8000-000000000000"}
    stage.create(build_config_map("child", gone))
    await stage.advance()

    assert stage.find(CONFIG_MAP, "child") is None


async def test_a_name_that_was_born_again_is_another_owner(stage: ControllerHarness) -> None:
    owner = stage.create(build_config_map("owner"))
    stage.delete(CONFIG_MAP, "owner")
    stage.create(build_config_map("owner"))
    stage.create(build_config_map("child", reference(owner)))
    await stage.advance()

    assert stage.find(CONFIG_MAP, "child") is None


@pytest.mark.parametrize("wrong", [{"name": "other"}, {"kind": "Secret"}])
async def test_a_uid_with_the_wrong_name_or_kind_is_no_owner(stage: ControllerHarness, wrong: dict[str, str]) -> None:
    owner = stage.create(build_config_map("owner"))
    stage.create(build_config_map("child", reference(owner, **wrong)))
    await stage.advance()

    assert stage.find(CONFIG_MAP, "child") is None


async def test_an_owner_in_another_namespace_is_none(stage: ControllerHarness) -> None:
    stage.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "elsewhere"}})
    owner = stage.create(build_config_map("owner"))
    stage.create(build_config_map("child", reference(owner), namespace="elsewhere"))
    await stage.advance()

    assert stage.find(CONFIG_MAP, "child", "elsewhere") is None


async def test_one_living_owner_is_enough(stage: ControllerHarness) -> None:
    first, second = stage.create(build_config_map("first")), stage.create(build_config_map("second"))
    stage.create(build_config_map("child", reference(first), reference(second)))
    await stage.advance()

    stage.delete(CONFIG_MAP, "first")
    await stage.advance()

    assert stage.get(CONFIG_MAP, "child")["metadata"]["ownerReferences"] == [reference(second)]


async def test_foreground_deletion_of_one_owner_only_drops_its_reference(stage: ControllerHarness) -> None:
    first, second = stage.create(build_config_map("first")), stage.create(build_config_map("second"))
    stage.create(build_config_map("child", reference(first, blockOwnerDeletion=True), reference(second)))
    await stage.advance()

    stage.delete(CONFIG_MAP, "first", "Foreground")
    await stage.advance()

    assert stage.find(CONFIG_MAP, "first") is None
    assert stage.get(CONFIG_MAP, "child")["metadata"]["ownerReferences"] == [reference(second)]


async def test_dependents_that_do_not_block_go_after_the_owner(stage: ControllerHarness) -> None:
    owner = stage.create(build_config_map("owner"))
    stage.create(build_config_map("child", reference(owner)))
    await stage.advance()
    stage.changes.clear()

    stage.delete(CONFIG_MAP, "owner", "Foreground")
    await stage.advance()

    assert [line for line in stage.list_changes() if line.startswith("DELETED")] == [
        "DELETED configmaps owner",
        "DELETED configmaps child",
    ]


async def test_a_dependent_with_a_finalizer_holds_its_owner(stage: ControllerHarness) -> None:
    owner = stage.create(build_config_map("owner"))
    held = build_config_map("child", reference(owner, blockOwnerDeletion=True), finalizers=["konverge.test/hold"])
    stage.create(held)
    await stage.advance()

    stage.delete(CONFIG_MAP, "owner", "Foreground")
    await stage.advance(60)
    waiting = stage.find(CONFIG_MAP, "owner")
    child = stage.get(CONFIG_MAP, "child")
    child["metadata"]["finalizers"] = []
    stage.api.update(CONFIG_MAP, child)
    await stage.advance()

    assert waiting is not None
    assert child["metadata"]["deletionTimestamp"]
    assert stage.list_names(CONFIG_MAP) == ["kube-root-ca.crt"]


async def test_two_that_own_each_other_can_be_deleted_in_the_foreground(stage: ControllerHarness) -> None:
    first = stage.create(build_config_map("first"))
    second = stage.create(build_config_map("second", reference(first, blockOwnerDeletion=True)))
    first["metadata"]["ownerReferences"] = [reference(second, blockOwnerDeletion=True)]
    stage.api.update(CONFIG_MAP, first)
    await stage.advance()

    stage.delete(CONFIG_MAP, "first", "Foreground")
    await stage.advance()

    assert stage.list_names(CONFIG_MAP) == ["kube-root-ca.crt"]


async def test_a_reference_that_is_added_later_counts(stage: ControllerHarness) -> None:
    owner = stage.create(build_config_map("owner"))
    child = stage.create(build_config_map("child"))
    child["metadata"]["ownerReferences"] = [reference(owner)]
    stage.api.update(CONFIG_MAP, child)
    await stage.advance()

    stage.delete(CONFIG_MAP, "owner")
    await stage.advance()

    assert stage.find(CONFIG_MAP, "child") is None


async def test_an_owner_of_a_kind_that_is_not_served_is_not_taken_for_absent(stage: ControllerHarness) -> None:
    unknown = {
        "apiVersion": "demo.test/v1",
        "kind": "Gadget",
        "name": "a",
        "uid": "00000000-0000-4000-8000-000000000000",
    }
    stage.create(build_config_map("child", unknown))
    await stage.advance()
    before = stage.find(CONFIG_MAP, "child")
    stage.create(gadgets())
    await stage.advance()

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
