"""Finalizers, owner references and namespaces: the obstacles and the effects of a deletion."""

from __future__ import annotations

import pytest

from konverge.client import Client
from konverge.errors import ForbiddenError, InvalidError, NotFoundError
from konverge.kube import GroupVersionKind, Object, ObjectKey
from konverge_cluster.testing import Cluster
from tests.cluster.conformance.objects import CONFIG_MAP, NAMESPACE, build_owner_metadata, config_map

pytestmark = pytest.mark.anyio


async def find(client: Client, gvk: GroupVersionKind, key: ObjectKey) -> Object | None:
    """Return the object; None if it does not exist."""
    try:
        return await client.get(gvk, key)
    except NotFoundError:
        return None


async def until_gone(cluster: Cluster, gvk: GroupVersionKind, obj: Object) -> None:
    async def is_gone() -> bool:
        return await find(cluster.client, gvk, ObjectKey.of(obj)) is None

    await cluster.eventually(is_gone, describe=f"{ObjectKey.of(obj)} is gone")


def build_held(namespace: str, name: str = "held", *finalizers: str) -> Object:
    wanted = config_map(namespace, name)
    wanted["metadata"]["finalizers"] = list(finalizers or ("konverge.test/hold",))
    return wanted


def dependent(namespace: str, owner: Object, name: str = "child", *, blocking: bool = False) -> Object:
    wanted = config_map(namespace, name)
    wanted["metadata"] |= build_owner_metadata(owner, blocking=blocking)
    return wanted


# Finalizers


async def test_a_finalizer_holds_a_deleted_object(cluster: Cluster) -> None:
    created = await cluster.client.create(build_held(cluster.namespace))

    answer = await cluster.client.delete(CONFIG_MAP, ObjectKey.of(created))

    live = await cluster.client.get(CONFIG_MAP, ObjectKey.of(created))
    assert answer is not None
    assert live["metadata"]["deletionTimestamp"]
    assert live["metadata"]["deletionGracePeriodSeconds"] == 0
    await cluster.client.update({**live, "metadata": {**live["metadata"], "finalizers": []}})


async def test_an_object_goes_with_its_last_finalizer(cluster: Cluster) -> None:
    created = await cluster.client.create(build_held(cluster.namespace, "held", "konverge.test/a", "konverge.test/b"))
    key = ObjectKey.of(created)
    await cluster.client.delete(CONFIG_MAP, key)

    one_left = await cluster.client.patch(
        CONFIG_MAP, key, {"metadata": {"finalizers": ["konverge.test/b"]}}, patch_type="merge"
    )
    await cluster.client.patch(CONFIG_MAP, key, {"metadata": {"finalizers": []}}, patch_type="merge")

    assert one_left["metadata"]["finalizers"] == ["konverge.test/b"]
    assert await find(cluster.client, CONFIG_MAP, key) is None


async def test_the_first_deletion_s_time_stays(cluster: Cluster) -> None:
    created = await cluster.client.create(build_held(cluster.namespace))
    key = ObjectKey.of(created)
    first = await cluster.client.delete(CONFIG_MAP, key)

    await cluster.clock.sleep(1.1)
    second = await cluster.client.delete(CONFIG_MAP, key)

    assert first is not None
    assert second is not None
    assert second["metadata"]["deletionTimestamp"] == first["metadata"]["deletionTimestamp"]
    await cluster.client.patch(CONFIG_MAP, key, {"metadata": {"finalizers": []}}, patch_type="merge")


async def test_no_finalizer_can_be_added_to_what_is_being_deleted(cluster: Cluster) -> None:
    created = await cluster.client.create(build_held(cluster.namespace))
    key = ObjectKey.of(created)
    await cluster.client.delete(CONFIG_MAP, key)

    with pytest.raises(InvalidError, match="no new finalizers can be added if the object is being deleted"):
        await cluster.client.patch(
            CONFIG_MAP,
            key,
            {"metadata": {"finalizers": ["konverge.test/hold", "konverge.test/late"]}},
            patch_type="merge",
        )

    await cluster.client.patch(CONFIG_MAP, key, {"metadata": {"finalizers": []}}, patch_type="merge")


async def test_what_is_being_deleted_can_still_be_changed(cluster: Cluster) -> None:
    created = await cluster.client.create(build_held(cluster.namespace))
    key = ObjectKey.of(created)
    await cluster.client.delete(CONFIG_MAP, key)

    patched = await cluster.client.patch(CONFIG_MAP, key, {"data": {"a": "1"}}, patch_type="merge")

    assert patched["data"] == {"a": "1"}
    assert patched["metadata"]["deletionTimestamp"]
    await cluster.client.patch(CONFIG_MAP, key, {"metadata": {"finalizers": []}}, patch_type="merge")


# Owner references


async def test_dependents_are_deleted_after_their_owner(cluster: Cluster) -> None:
    owner = await cluster.client.create(config_map(cluster.namespace, "owner"))
    child = await cluster.client.create(dependent(cluster.namespace, owner))

    await cluster.client.delete(CONFIG_MAP, ObjectKey.of(owner), propagation="Background")

    assert await find(cluster.client, CONFIG_MAP, ObjectKey.of(owner)) is None
    await until_gone(cluster, CONFIG_MAP, child)


async def test_dependents_of_dependents_are_deleted_too(cluster: Cluster) -> None:
    owner = await cluster.client.create(config_map(cluster.namespace, "owner"))
    child = await cluster.client.create(dependent(cluster.namespace, owner))
    grandchild = await cluster.client.create(dependent(cluster.namespace, child, "grandchild"))

    await cluster.client.delete(CONFIG_MAP, ObjectKey.of(owner))

    await until_gone(cluster, CONFIG_MAP, grandchild)


async def test_in_the_foreground_the_owner_waits_for_blocking_dependents(cluster: Cluster) -> None:
    owner = await cluster.client.create(config_map(cluster.namespace, "owner"))
    child = dependent(cluster.namespace, owner, blocking=True)
    child["metadata"]["finalizers"] = ["konverge.test/hold"]
    await cluster.client.create(child)

    answer = await cluster.client.delete(CONFIG_MAP, ObjectKey.of(owner), propagation="Foreground")
    assert answer is not None
    assert answer["metadata"]["finalizers"] == ["foregroundDeletion"]

    async def child_is_deleted() -> bool:
        found = await cluster.client.get(CONFIG_MAP, ObjectKey.of(child))
        return "deletionTimestamp" in found["metadata"]

    await cluster.eventually(child_is_deleted)
    assert await find(cluster.client, CONFIG_MAP, ObjectKey.of(owner)) is not None

    await cluster.client.patch(CONFIG_MAP, ObjectKey.of(child), {"metadata": {"finalizers": []}}, patch_type="merge")
    await until_gone(cluster, CONFIG_MAP, owner)


async def test_in_the_foreground_the_owner_does_not_wait_for_others(cluster: Cluster) -> None:
    owner = await cluster.client.create(config_map(cluster.namespace, "owner"))
    child = dependent(cluster.namespace, owner)
    child["metadata"]["finalizers"] = ["konverge.test/hold"]
    await cluster.client.create(child)

    await cluster.client.delete(CONFIG_MAP, ObjectKey.of(owner), propagation="Foreground")

    await until_gone(cluster, CONFIG_MAP, owner)
    await cluster.client.patch(CONFIG_MAP, ObjectKey.of(child), {"metadata": {"finalizers": []}}, patch_type="merge")


async def test_orphans_lose_the_reference_and_stay(cluster: Cluster) -> None:
    owner = await cluster.client.create(config_map(cluster.namespace, "owner"))
    child = await cluster.client.create(dependent(cluster.namespace, owner))

    await cluster.client.delete(CONFIG_MAP, ObjectKey.of(owner), propagation="Orphan")

    await until_gone(cluster, CONFIG_MAP, owner)
    left = await cluster.client.get(CONFIG_MAP, ObjectKey.of(child))
    assert not left["metadata"].get("ownerReferences")
    assert left["metadata"]["uid"] == child["metadata"]["uid"]


async def test_a_dependent_stays_while_one_of_its_owners_does(cluster: Cluster) -> None:
    first = await cluster.client.create(config_map(cluster.namespace, "first"))
    second = await cluster.client.create(config_map(cluster.namespace, "second"))
    child = config_map(cluster.namespace, "child")
    child["metadata"]["ownerReferences"] = (
        build_owner_metadata(first)["ownerReferences"] + build_owner_metadata(second)["ownerReferences"]
    )
    created = await cluster.client.create(child)

    await cluster.client.delete(CONFIG_MAP, ObjectKey.of(first))

    async def owners() -> bool:
        found = await cluster.client.get(CONFIG_MAP, ObjectKey.of(created))
        return [owner["name"] for owner in found["metadata"]["ownerReferences"]] == ["second"]

    await cluster.eventually(owners, describe="only the reference to the living owner is left")
    await cluster.client.delete(CONFIG_MAP, ObjectKey.of(second))
    await until_gone(cluster, CONFIG_MAP, created)


async def test_a_dependent_of_an_owner_that_never_was_is_deleted(cluster: Cluster) -> None:
    ghost = config_map(cluster.namespace, "ghost")
    ghost["metadata"]["uid"] = "00000000-0000-4000-8000-000000000000"
    created = await cluster.client.create(dependent(cluster.namespace, ghost))

    await until_gone(cluster, CONFIG_MAP, created)


async def test_a_dependent_of_a_namesake_s_predecessor_is_deleted(cluster: Cluster) -> None:
    predecessor = await cluster.client.create(config_map(cluster.namespace, "owner"))
    await cluster.client.delete(CONFIG_MAP, ObjectKey.of(predecessor))
    owner = await cluster.client.create(config_map(cluster.namespace, "owner"))
    created = await cluster.client.create(dependent(cluster.namespace, predecessor))

    await until_gone(cluster, CONFIG_MAP, created)

    assert await cluster.client.get(CONFIG_MAP, ObjectKey.of(owner)) == owner


# Namespaces


async def test_a_namespace_is_active_and_holds_itself_until_it_is_empty(cluster: Cluster) -> None:
    namespace = await cluster.client.get(NAMESPACE, ObjectKey("", cluster.namespace))

    assert namespace["status"] == {"phase": "Active"}
    assert namespace["spec"] == {"finalizers": ["kubernetes"]}
    assert namespace["metadata"]["labels"] == {"kubernetes.io/metadata.name": cluster.namespace}


async def test_a_namespace_takes_everything_in_it_along(cluster: Cluster) -> None:
    namespace = f"{cluster.namespace}-other"
    await cluster.client.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})
    inside = await cluster.client.create(config_map(namespace))

    await cluster.client.delete(NAMESPACE, ObjectKey("", namespace))

    await until_gone(cluster, NAMESPACE, {"metadata": {"name": namespace}})
    assert await find(cluster.client, CONFIG_MAP, ObjectKey.of(inside)) is None


async def test_nothing_new_is_let_into_a_namespace_that_is_being_deleted(cluster: Cluster) -> None:
    namespace = f"{cluster.namespace}-other"
    await cluster.client.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})
    inside = await cluster.client.create(build_held(namespace))
    await cluster.client.delete(NAMESPACE, ObjectKey("", namespace))

    with pytest.raises(ForbiddenError, match="because it is being terminated"):
        await cluster.client.create(config_map(namespace, "late"))

    terminating = await cluster.client.get(NAMESPACE, ObjectKey("", namespace))
    assert terminating["status"]["phase"] == "Terminating"
    await cluster.client.patch(CONFIG_MAP, ObjectKey.of(inside), {"metadata": {"finalizers": []}}, patch_type="merge")
    await until_gone(cluster, NAMESPACE, {"metadata": {"name": namespace}})
