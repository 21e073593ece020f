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


async def test_background_deletion_takes_the_owner_first(harness: ControllerHarness) -> None:
    harness.create(build_deployment())
    await harness.advance()
    harness.changes.clear()

    harness.delete(DEPLOYMENT, "web", "Background")
    await harness.advance()

    kinds = [line.split()[1] for line in harness.list_changes() if line.startswith("DELETED")]
    assert kinds == ["deployments.apps", "replicasets.apps", "pods"]


async def test_foreground_deletion_takes_the_owner_last(harness: ControllerHarness) -> None:
    harness.create(build_deployment())
    await harness.advance()
    harness.changes.clear()

    harness.delete(DEPLOYMENT, "web", "Foreground")
    marked = harness.get(DEPLOYMENT, "web")
    await harness.advance()

    kinds = [line.split()[1] for line in harness.list_changes() if line.startswith("DELETED")]
    assert marked["metadata"]["finalizers"] == ["foregroundDeletion"]
    assert kinds == ["pods", "replicasets.apps", "deployments.apps"]


async def test_orphans_live_on_without_their_owner(harness: ControllerHarness) -> None:
    harness.create(build_deployment())
    await harness.advance()

    harness.delete(DEPLOYMENT, "web", "Orphan")
    await harness.advance()

    assert harness.find(DEPLOYMENT, "web") is None
    (replica_set,) = harness.list_objects(REPLICA_SET)
    assert "ownerReferences" not in replica_set["metadata"]
    assert len(harness.list_names(POD)) == 1


async def test_a_new_deployment_takes_the_orphans_over(harness: ControllerHarness) -> None:
    harness.create(build_deployment())
    await harness.advance()
    pods = harness.list_names(POD)
    harness.delete(DEPLOYMENT, "web", "Orphan")
    await harness.advance()

    created = harness.create(build_deployment())
    await harness.advance()

    (replica_set,) = harness.list_objects(REPLICA_SET)
    assert replica_set["metadata"]["ownerReferences"][0]["uid"] == created["metadata"]["uid"]
    assert harness.list_names(POD) == pods


async def test_what_names_an_absent_owner_is_deleted(harness: ControllerHarness) -> None:
    gone = {"apiVersion": "v1", "kind": "ConfigMap", "name": "gone", "uid": "00000000-0000-4000-8000-000000000000"}
    harness.create(build_config_map("child", gone))
    await harness.advance()

    assert harness.find(CONFIG_MAP, "child") is None


async def test_a_name_that_was_born_again_is_another_owner(harness: ControllerHarness) -> None:
    owner = harness.create(build_config_map("owner"))
    harness.delete(CONFIG_MAP, "owner")
    harness.create(build_config_map("owner"))
    harness.create(build_config_map("child", reference(owner)))
    await harness.advance()

    assert harness.find(CONFIG_MAP, "child") is None


@pytest.mark.parametrize("wrong", [{"name": "other"}, {"kind": "Secret"}])
async def test_a_uid_with_the_wrong_name_or_kind_is_no_owner(harness: ControllerHarness, wrong: dict[str, str]) -> None:
    owner = harness.create(build_config_map("owner"))
    harness.create(build_config_map("child", reference(owner, **wrong)))
    await harness.advance()

    assert harness.find(CONFIG_MAP, "child") is None


async def test_an_owner_in_another_namespace_is_none(harness: ControllerHarness) -> None:
    harness.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "elsewhere"}})
    owner = harness.create(build_config_map("owner"))
    harness.create(build_config_map("child", reference(owner), namespace="elsewhere"))
    await harness.advance()

    assert harness.find(CONFIG_MAP, "child", "elsewhere") is None


async def test_one_living_owner_is_enough(harness: ControllerHarness) -> None:
    first, second = harness.create(build_config_map("first")), harness.create(build_config_map("second"))
    harness.create(build_config_map("child", reference(first), reference(second)))
    await harness.advance()

    harness.delete(CONFIG_MAP, "first")
    await harness.advance()

    assert harness.get(CONFIG_MAP, "child")["metadata"]["ownerReferences"] == [reference(second)]


async def test_foreground_deletion_of_one_owner_only_drops_its_reference(harness: ControllerHarness) -> None:
    first, second = harness.create(build_config_map("first")), harness.create(build_config_map("second"))
    harness.create(build_config_map("child", reference(first, blockOwnerDeletion=True), reference(second)))
    await harness.advance()

    harness.delete(CONFIG_MAP, "first", "Foreground")
    await harness.advance()

    assert harness.find(CONFIG_MAP, "first") is None
    assert harness.get(CONFIG_MAP, "child")["metadata"]["ownerReferences"] == [reference(second)]


async def test_dependents_that_do_not_block_go_after_the_owner(harness: ControllerHarness) -> None:
    owner = harness.create(build_config_map("owner"))
    harness.create(build_config_map("child", reference(owner)))
    await harness.advance()
    harness.changes.clear()

    harness.delete(CONFIG_MAP, "owner", "Foreground")
    await harness.advance()

    assert [line for line in harness.list_changes() if line.startswith("DELETED")] == [
        "DELETED configmaps owner",
        "DELETED configmaps child",
    ]


async def test_a_dependent_with_a_finalizer_holds_its_owner(harness: ControllerHarness) -> None:
    owner = harness.create(build_config_map("owner"))
    held = build_config_map("child", reference(owner, blockOwnerDeletion=True), finalizers=["konverge.test/hold"])
    harness.create(held)
    await harness.advance()

    harness.delete(CONFIG_MAP, "owner", "Foreground")
    await harness.advance(60)
    waiting = harness.find(CONFIG_MAP, "owner")
    child = harness.get(CONFIG_MAP, "child")
    child["metadata"]["finalizers"] = []
    harness.api.update(CONFIG_MAP, child)
    await harness.advance()

    assert waiting is not None
    assert child["metadata"]["deletionTimestamp"]
    assert harness.list_names(CONFIG_MAP) == ["kube-root-ca.crt"]


async def test_two_that_own_each_other_can_be_deleted_in_the_foreground(harness: ControllerHarness) -> None:
    first = harness.create(build_config_map("first"))
    second = harness.create(build_config_map("second", reference(first, blockOwnerDeletion=True)))
    first["metadata"]["ownerReferences"] = [reference(second, blockOwnerDeletion=True)]
    harness.api.update(CONFIG_MAP, first)
    await harness.advance()

    harness.delete(CONFIG_MAP, "first", "Foreground")
    await harness.advance()

    assert harness.list_names(CONFIG_MAP) == ["kube-root-ca.crt"]


async def test_a_reference_that_is_added_later_counts(harness: ControllerHarness) -> None:
    owner = harness.create(build_config_map("owner"))
    child = harness.create(build_config_map("child"))
    child["metadata"]["ownerReferences"] = [reference(owner)]
    harness.api.update(CONFIG_MAP, child)
    await harness.advance()

    harness.delete(CONFIG_MAP, "owner")
    await harness.advance()

    assert harness.find(CONFIG_MAP, "child") is None


async def test_an_owner_of_a_kind_that_is_not_served_is_not_taken_for_absent(harness: ControllerHarness) -> None:
    unknown = {
        "apiVersion": "demo.test/v1",
        "kind": "Gadget",
        "name": "a",
        "uid": "00000000-0000-4000-8000-000000000000",
    }
    harness.create(build_config_map("child", unknown))
    await harness.advance()
    before = harness.find(CONFIG_MAP, "child")
    harness.create(gadgets())
    await harness.advance()

    assert before is not None
    assert harness.find(CONFIG_MAP, "child") is None


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
