"""The informer factory against both clusters."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

import msgspec
import pytest

from konverge._internal.cache import CacheOptions, Informer, InformerFactory
from konverge._internal.client.watch import INITIAL_EVENTS_END
from konverge._internal.kube.metadata import ObjectMeta, parse_revision
from konverge.client import Client
from konverge.errors import KindNotServedError, NotFoundError
from konverge.kube import GroupVersionKind, Object, ObjectKey
from konverge_cluster.testing import Cluster
from tests.cache.interruptible_transport import InterruptibleTransport

pytestmark = pytest.mark.anyio

CONFIG_MAP = GroupVersionKind("", "v1", "ConfigMap")
CRD = GroupVersionKind("apiextensions.k8s.io", "v1", "CustomResourceDefinition")


def config_map(cluster: Cluster, name: str, value: str = "1") -> Object:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": cluster.namespace},
        "data": {"value": value},
    }


def informers_of(
    cluster: Cluster, client: Client, options: CacheOptions | None = None, *, namespaces: Sequence[str] = ()
) -> InformerFactory:
    return InformerFactory(
        client,
        namespaces=namespaces or [cluster.namespace],
        options={} if options is None else {CONFIG_MAP: options},
        clock=cluster.clock,
    )


async def apply(cluster: Cluster, name: str, value: str = "1") -> Object:
    return (await cluster.client.apply(config_map(cluster, name, value), field_manager="tests")).object


async def delete(cluster: Cluster, name: str) -> None:
    await cluster.client.delete(CONFIG_MAP, ObjectKey(cluster.namespace, name))


def values(informer: Informer) -> dict[str, str]:
    """Return the values in the test's ConfigMaps, by name."""
    found = (informer.store.get(meta.key) for meta in informer.store.iter_metadata())
    return {obj["metadata"]["name"]: obj["data"]["value"] for obj in found if obj and "value" in obj.get("data", {})}


async def test_the_cache_follows_the_cluster(cluster: Cluster) -> None:
    await apply(cluster, "a")
    await apply(cluster, "b")
    async with informers_of(cluster, cluster.client) as informers:
        informer = await informers.get_informer(CONFIG_MAP)
        at_first = values(informer)
        await apply(cluster, "a", "2")
        await delete(cluster, "b")
        await apply(cluster, "c")
        await cluster.eventually(lambda: values(informer) == {"a": "2", "c": "1"}, describe="the cache has followed")

    assert at_first == {"a": "1", "b": "1"}


async def test_a_read_is_what_the_server_holds_but_for_managed_fields_of_updates(cluster: Cluster) -> None:
    await apply(cluster, "a")
    live = await cluster.client.get(CONFIG_MAP, ObjectKey(cluster.namespace, "a"))
    live["metadata"]["labels"] = {"updated": "yes"}
    live = await cluster.client.update(live, field_manager="another")
    async with informers_of(cluster, cluster.client) as informers:
        read = await (await informers.get_informer(CONFIG_MAP)).read(ObjectKey(cluster.namespace, "a"))

    managers = {entry["manager"]: entry["operation"] for entry in live["metadata"]["managedFields"]}
    live["metadata"]["managedFields"] = [
        entry for entry in live["metadata"]["managedFields"] if entry["operation"] == "Apply"
    ]
    assert managers == {"tests": "Apply", "another": "Update"}
    assert read == live


async def test_own_writes_and_deletes_are_read_at_once_and_told_once(cluster: Cluster) -> None:
    changes: list[tuple[bool, bool]] = []
    key = ObjectKey(cluster.namespace, "a")

    def hear(gvk: GroupVersionKind, old: ObjectMeta | None, new: ObjectMeta | None) -> None:
        if "a" in (old.name if old else "", new.name if new else ""):
            changes.append((old is not None, new is not None))

    async with informers_of(cluster, cluster.client) as informers:
        informer = await informers.get_informer(CONFIG_MAP)
        informers.subscribe(hear)
        written = await apply(cluster, "a")
        informer.record_write(written)
        read = await informer.read(key)
        await cluster.client.delete(CONFIG_MAP, key)
        informer.record_delete(key, written["metadata"]["uid"])
        with pytest.raises(NotFoundError):
            await informer.read(key)
        await apply(cluster, "last")
        await cluster.eventually(lambda: "last" in values(informer), describe="the watch is past the deletion")

    assert read["metadata"]["resourceVersion"] == written["metadata"]["resourceVersion"]
    assert changes == [(False, True), (True, False)]


async def read_streamed_version(cluster: Cluster) -> int:
    """Read the version of the bookmark that ends a streaming list."""
    async with cluster.client.watch(CONFIG_MAP, namespace=cluster.namespace, initial_events=True) as events:
        async for event in events:
            metadata = event.object["metadata"]
            if INITIAL_EVENTS_END in metadata.get("annotations", {}):
                return parse_revision(metadata["resourceVersion"])
    raise AssertionError("the streaming list has no end")


async def test_no_list_is_older_than_a_write_that_was_answered_before_it(cluster: Cluster) -> None:
    behind = []
    for value in range(10):
        written = parse_revision((await apply(cluster, "a", str(value)))["metadata"]["resourceVersion"])
        whole = await cluster.client.list_page(CONFIG_MAP, namespace=cluster.namespace, limit=0)
        page = await cluster.client.list_page(CONFIG_MAP, namespace=cluster.namespace, limit=1)
        streamed = await read_streamed_version(cluster)
        seen = (parse_revision(whole.resource_version), parse_revision(page.resource_version), streamed)
        behind += [(written, *seen)] if min(seen) < written else []

    assert behind == []


async def apply_labelled(cluster: Cluster, name: str, colour: str) -> Object:
    wanted = config_map(cluster, name)
    wanted["metadata"]["labels"] = {"colour": colour}
    return (await cluster.client.apply(wanted, field_manager="tests")).object


def names(informer: Informer) -> list[str]:
    """Return the names of the test's own ConfigMaps; the cluster creates others in each namespace."""
    return [name for meta in informer.store.iter_metadata() if len(name := meta.name) == 1]


async def test_only_what_is_selected_is_held_and_what_leaves_the_selection_has_gone(cluster: Cluster) -> None:
    await apply_labelled(cluster, "a", "red")
    await apply_labelled(cluster, "b", "blue")
    changes: list[tuple[bool, bool]] = []
    async with informers_of(cluster, cluster.client, CacheOptions(label_selector="colour=red")) as informers:
        informer = await informers.get_informer(CONFIG_MAP)
        at_first = names(informer)
        informers.subscribe(lambda gvk, old, new: changes.append((old is not None, new is not None)))
        await apply_labelled(cluster, "a", "blue")
        await cluster.eventually(lambda: names(informer) == [], describe="it has left")
        await apply_labelled(cluster, "b", "red")
        await cluster.eventually(lambda: names(informer) == ["b"], describe="the other has come")
        informer.record_write(await apply_labelled(cluster, "c", "blue"))
        informer.record_write(await apply_labelled(cluster, "b", "blue"))
        own_writes = names(informer)
        with pytest.raises(NotFoundError):
            await informer.read(ObjectKey(cluster.namespace, "b"))

    assert at_first == ["a"]
    assert own_writes == []
    assert changes == [(True, False), (False, True), (True, False)]


async def test_a_kind_is_held_by_a_field_selector(cluster: Cluster) -> None:
    for name in "abc":
        await apply(cluster, name)
    async with informers_of(cluster, cluster.client, CacheOptions(field_selector="metadata.name=b")) as informers:
        informer = await informers.get_informer(CONFIG_MAP)
        held = names(informer)

    assert held == ["b"]


async def test_metadata_alone_is_held_and_followed(cluster: Cluster) -> None:
    written = await apply(cluster, "a")
    key = ObjectKey(cluster.namespace, "a")
    async with informers_of(cluster, cluster.client, CacheOptions(metadata_only=True)) as informers:
        informer = await informers.get_informer(CONFIG_MAP)
        read = await informer.read(key)
        later = await apply_labelled(cluster, "a", "red")
        await cluster.eventually(
            lambda: [meta.labels for meta in informer.store.iter_metadata() if meta.name == "a"] == [{"colour": "red"}],
            describe="the label has come",
        )
        followed = await informer.read(key)

    assert read == {name: written[name] for name in ("apiVersion", "kind", "metadata")}
    assert followed == {name: later[name] for name in ("apiVersion", "kind", "metadata")}


async def test_readers_get_what_a_transform_leaves_of_lists_events_and_own_writes(cluster: Cluster) -> None:
    def without_data(obj: Object) -> Object:
        return {name: obj[name] for name in ("apiVersion", "kind", "metadata")} | {"size": len(obj["data"])}

    async def read() -> Object:
        return await informer.read(ObjectKey(cluster.namespace, "a"))

    await apply(cluster, "a")
    async with informers_of(cluster, cluster.client, CacheOptions(transform=without_data)) as informers:
        informer = await informers.get_informer(CONFIG_MAP)
        listed = await read()
        written = await apply(cluster, "a", "2")
        informer.record_write(written)
        own = await read()

    assert listed["size"] == own["size"] == 1
    assert "data" not in listed
    assert own["metadata"]["resourceVersion"] == written["metadata"]["resourceVersion"]


async def test_several_namespaces_are_held_as_one_kind(cluster: Cluster) -> None:
    other = f"{cluster.namespace}-other"
    namespace: Object = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": other}}
    await cluster.client.create(namespace)
    await apply(cluster, "a")
    elsewhere = config_map(cluster, "b")
    elsewhere["metadata"]["namespace"] = other
    async with informers_of(cluster, cluster.client, namespaces=[cluster.namespace, other]) as informers:
        informers.add_index(CONFIG_MAP, "value", lambda obj: [obj.get("data", {}).get("value", "")])
        informer = await informers.get_informer(CONFIG_MAP)
        await cluster.client.create(elsewhere)
        await cluster.eventually(lambda: sorted(names(informer)) == ["a", "b"], describe="both are held")
        indexed = informer.list_keys_by_index("value", "1")
        listed = [obj["metadata"]["name"] for obj in informer.list(namespace=other) if "value" in obj.get("data", {})]
    await cluster.client.delete(GroupVersionKind("", "v1", "Namespace"), ObjectKey("", other))

    assert indexed == [ObjectKey(cluster.namespace, "a"), ObjectKey(other, "b")]
    assert listed == ["b"]


async def test_after_a_write_whose_answer_was_lost_the_next_read_is_right(cluster: Cluster) -> None:
    await apply(cluster, "a")
    key = ObjectKey(cluster.namespace, "a")
    async with informers_of(cluster, cluster.client) as informers:
        informer = await informers.get_informer(CONFIG_MAP)
        await apply(cluster, "a", "2")
        informer.mark_uncertain(key)
        changed = await informer.read(key)
        await delete(cluster, "a")
        informer.mark_uncertain(key)
        with pytest.raises(NotFoundError):
            await informer.read(key)

    assert changed["data"] == {"value": "2"}


async def test_a_watch_that_breaks_misses_nothing(cluster: Cluster) -> None:
    transport = InterruptibleTransport(cluster.new_transport())
    client = Client(transport, clock=cluster.clock)
    await apply(cluster, "a")
    await apply(cluster, "b")
    async with informers_of(cluster, client) as informers:
        informer = await informers.get_informer(CONFIG_MAP)
        transport.cut()
        await apply(cluster, "a", "2")
        await delete(cluster, "b")
        await apply(cluster, "c")
        await cluster.eventually(lambda: values(informer) == {"a": "2", "c": "1"}, describe="the cache has caught up")


async def test_what_vanished_while_the_history_was_lost_is_told(cluster: Cluster) -> None:
    transport = InterruptibleTransport(cluster.new_transport())
    client = Client(transport, clock=cluster.clock)
    gone: list[str] = []
    await apply(cluster, "a")
    await apply(cluster, "b")
    async with informers_of(cluster, client) as informers:
        informer = await informers.get_informer(CONFIG_MAP)
        informers.subscribe(lambda gvk, old, new: gone.append(old.name) if old and not new else None)
        expired = {"kind": "Status", "code": 410, "reason": "Expired", "message": "too old resource version"}
        transport.cut(msgspec.json.encode({"type": "ERROR", "object": expired}))
        await delete(cluster, "b")
        await apply(cluster, "a", "2")
        await cluster.eventually(lambda: values(informer) == {"a": "2"}, describe="the cache has caught up")

    assert gone == ["b"]


async def test_a_kind_may_come_later_go_and_come_back(cluster: Cluster) -> None:
    gvk = GroupVersionKind("cache.konverge.test", "v1", "Gadget")
    definition: Object = {
        "apiVersion": CRD.api_version,
        "kind": CRD.kind,
        "metadata": {"name": "gadgets.cache.konverge.test"},
        "spec": {
            "group": gvk.group,
            "names": {"kind": "Gadget", "plural": "gadgets"},
            "scope": "Namespaced",
            "versions": [
                {
                    "name": "v1",
                    "served": True,
                    "storage": True,
                    "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
                }
            ],
        },
    }
    gadget: Object = {
        "apiVersion": gvk.api_version,
        "kind": "Gadget",
        "metadata": {"name": "g", "namespace": cluster.namespace},
    }

    async with informers_of(cluster, cluster.client) as informers:

        async def is_read() -> bool:
            with suppress(KindNotServedError, NotFoundError):
                return bool(await (await informers.get_informer(gvk)).read(ObjectKey(cluster.namespace, "g")))
            return False

        async def is_created() -> bool:
            with suppress(KindNotServedError, NotFoundError):
                return bool(await cluster.client.create(gadget))
            return False

        async def is_not_served() -> bool:
            try:
                await informers.get_informer(gvk)
            except KindNotServedError:
                return True
            return False

        assert await is_not_served()
        for _ in range(2):
            await cluster.client.create(definition)
            await cluster.eventually(is_created, describe="a Gadget is created")
            await cluster.eventually(is_read, describe="the Gadget is read")
            await cluster.client.delete(CRD, ObjectKey("", definition["metadata"]["name"]))
            await cluster.eventually(is_not_served, describe="the kind is not served")
