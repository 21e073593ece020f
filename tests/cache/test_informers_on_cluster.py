"""The shared collections against both clusters."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress

import msgspec
import pytest

from konverge.cache import Informer, Informers
from konverge.client import Client, Response, StreamingResponse, Transport
from konverge.errors import ConnectionFailedError, KindNotServedError, NotFoundError
from konverge.kube import GroupVersionKind, Object, ObjectKey
from konverge.kube.metadata import ObjectMeta
from konverge.testing import Cluster

pytestmark = pytest.mark.anyio

CONFIG_MAP = GroupVersionKind("", "v1", "ConfigMap")
CRD = GroupVersionKind("apiextensions.k8s.io", "v1", "CustomResourceDefinition")


class CuttableTransport:
    """Passes everything on until a test cuts its streams, with a line of the test's own as the last one."""

    def __init__(self, inner: Transport) -> None:
        self._inner = inner
        self._open: set[CuttableStream] = set()
        self.reachable = True

    def cut(self, last_line: bytes = b"") -> None:
        """End every stream at its next chunk."""
        for stream in self._open:
            stream.last_line = last_line
            stream.is_cut = True

    async def request(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] = {},
        headers: Mapping[str, str] = {},
        body: bytes | None = None,
        timeout_seconds: float,
    ) -> Response:
        return await self._inner.request(
            method, path, query=query, headers=headers, body=body, timeout_seconds=timeout_seconds
        )

    @asynccontextmanager
    async def stream(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] = {},
        headers: Mapping[str, str] = {},
        connect_timeout_seconds: float,
    ) -> AsyncIterator[StreamingResponse]:
        if not self.reachable:
            raise ConnectionFailedError("the test has cut the cable")
        opening = self._inner.stream(
            method, path, query=query, headers=headers, connect_timeout_seconds=connect_timeout_seconds
        )
        async with opening as response:
            stream = CuttableStream(response)
            self._open.add(stream)
            try:
                yield stream
            finally:
                self._open.discard(stream)

    async def close(self) -> None:
        await self._inner.close()


class CuttableStream:
    """A stream that loses what comes after it was cut."""

    def __init__(self, inner: StreamingResponse) -> None:
        self._inner = inner
        self.status, self.headers = inner.status, inner.headers
        self.is_cut = False
        self.last_line = b""

    async def chunks(self) -> AsyncIterator[bytes]:
        async for chunk in self._inner.chunks():
            if self.is_cut:
                if self.last_line:
                    yield self.last_line + b"\n"
                raise ConnectionFailedError("the test has cut the cable")
            yield chunk

    async def body(self) -> bytes:
        return await self._inner.body()


def config_map(cluster: Cluster, name: str, value: str = "1") -> Object:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": cluster.namespace},
        "data": {"value": value},
    }


def informers_of(cluster: Cluster, client: Client) -> Informers:
    return Informers(client, namespaces=[cluster.namespace], clock=cluster.clock)


async def apply(cluster: Cluster, name: str, value: str = "1") -> Object:
    return (await cluster.client.apply(config_map(cluster, name, value), field_manager="tests")).object


async def delete(cluster: Cluster, name: str) -> None:
    await cluster.client.delete(CONFIG_MAP, ObjectKey(cluster.namespace, name))


def values(informer: Informer) -> dict[str, str]:
    """What the test's ConfigMaps hold, by name."""
    found = (informer.store.get(meta.key) for meta in informer.store.all_metadata())
    return {obj["metadata"]["name"]: obj["data"]["value"] for obj in found if obj and "value" in obj.get("data", {})}


async def test_the_cache_follows_the_cluster(cluster: Cluster) -> None:
    await apply(cluster, "a")
    await apply(cluster, "b")
    async with informers_of(cluster, cluster.client) as informers:
        informer = await informers.started(CONFIG_MAP)
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
    live = await cluster.client.update(live, field_manager="somebody")
    async with informers_of(cluster, cluster.client) as informers:
        read = await (await informers.started(CONFIG_MAP)).read(ObjectKey(cluster.namespace, "a"))

    managers = {entry["manager"]: entry["operation"] for entry in live["metadata"]["managedFields"]}
    live["metadata"]["managedFields"] = [
        entry for entry in live["metadata"]["managedFields"] if entry["operation"] == "Apply"
    ]
    assert managers == {"tests": "Apply", "somebody": "Update"}
    assert read == live


async def test_own_writes_and_deletes_are_read_at_once_and_told_once(cluster: Cluster) -> None:
    told: list[tuple[bool, bool]] = []
    key = ObjectKey(cluster.namespace, "a")

    def hear(gvk: GroupVersionKind, old: ObjectMeta | None, new: ObjectMeta | None) -> None:
        if "a" in (old.name if old else "", new.name if new else ""):
            told.append((old is not None, new is not None))

    async with informers_of(cluster, cluster.client) as informers:
        informer = await informers.started(CONFIG_MAP)
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
    assert told == [(False, True), (True, False)]


async def test_a_watch_that_breaks_misses_nothing(cluster: Cluster) -> None:
    transport = CuttableTransport(cluster.new_transport())
    client = Client(transport, clock=cluster.clock)
    await apply(cluster, "a")
    await apply(cluster, "b")
    async with informers_of(cluster, client) as informers:
        informer = await informers.started(CONFIG_MAP)
        transport.cut()
        await apply(cluster, "a", "2")
        await delete(cluster, "b")
        await apply(cluster, "c")
        await cluster.eventually(lambda: values(informer) == {"a": "2", "c": "1"}, describe="the cache has caught up")


async def test_what_vanished_while_the_history_was_lost_is_told(cluster: Cluster) -> None:
    transport = CuttableTransport(cluster.new_transport())
    client = Client(transport, clock=cluster.clock)
    gone: list[str] = []
    await apply(cluster, "a")
    await apply(cluster, "b")
    async with informers_of(cluster, client) as informers:
        informer = await informers.started(CONFIG_MAP)
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
                return bool(await (await informers.started(gvk)).read(ObjectKey(cluster.namespace, "g")))
            return False

        async def is_created() -> bool:
            with suppress(KindNotServedError, NotFoundError):
                return bool(await cluster.client.create(gadget))
            return False

        async def is_not_served() -> bool:
            try:
                await informers.started(gvk)
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
