"""Collections whose server's storage is set back, as by a restore of etcd from a snapshot, on either cluster."""

from __future__ import annotations

import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from konverge._internal.cache import Informer, InformerFactory
from konverge.client import Client
from konverge.clock import SeededEntropy, SimulatedClock, SimulatedLoop
from konverge.kube import GroupVersionKind, Object, ObjectKey
from konverge_cluster._internal.embedded.storage import Storage, StorageChange, StoredObject
from konverge_cluster._internal.testing.cluster_servers import EmbeddedServer, RealServer
from konverge_cluster.controlplane import RealCluster
from konverge_cluster.embedded import LocalCluster
from konverge_cluster.testing import Cluster
from tests.cache.interruptible_transport import InterruptibleTransport

pytestmark = pytest.mark.anyio

CONFIG_MAP = GroupVersionKind("", "v1", "ConfigMap")
SECRET = GroupVersionKind("", "v1", "Secret")


@dataclass
class Restorable:
    """A cluster whose storage can be set back."""

    cluster: Cluster
    save: Callable[[], Awaitable[None]]
    set_back: Callable[[], Awaitable[None]]

    async def put(self, gvk: GroupVersionKind, name: str, value: str) -> None:
        field = {"data": {"value": value}} if gvk == CONFIG_MAP else {"stringData": {"value": value}}
        metadata = {"name": name, "namespace": self.cluster.namespace, "labels": {"value": value}}
        obj: Object = {"apiVersion": "v1", "kind": gvk.kind, "metadata": metadata, **field}
        await self.cluster.client.apply(obj, field_manager="tests")

    async def delete(self, gvk: GroupVersionKind, name: str) -> None:
        await self.cluster.client.delete(gvk, ObjectKey(self.cluster.namespace, name))

    async def until_as_on_the_server(self, informer: Informer, seconds: float = 10.0) -> None:
        """Wait until the cache equals the server, versions included."""

        async def is_same() -> bool:
            found = await self.cluster.client.list(informer.gvk, namespace=self.cluster.namespace)
            live = {obj["metadata"]["name"]: obj["metadata"]["resourceVersion"] for obj in found.items}
            return live == {meta.name: meta.resource_version for meta in informer.store.iter_metadata()}

        await self.cluster.eventually(is_same, seconds, f"{informer.gvk} is held as the server has it")


def set_back_of(storage: Storage) -> tuple[Callable[[], Awaitable[None]], Callable[[], Awaitable[None]]]:
    """Return functions that save the state of an embedded storage, and that set it back."""
    saved: list[tuple[dict[str, dict[ObjectKey, StoredObject]], list[StorageChange], int, int]] = []

    async def save() -> None:
        objects = {resource: dict(held) for resource, held in storage._objects.items()}
        saved[:] = [(objects, list(storage._log), storage._compacted, storage._revision)]

    async def set_back() -> None:
        objects, log, storage._compacted, storage._revision = saved[0]
        storage._objects = {resource: dict(held) for resource, held in objects.items()}
        storage._log = list(log)

    return save, set_back


@pytest.fixture(scope="module")
def control_plane() -> Iterator[RealCluster]:
    """The control plane of these tests only: other tests must not be set back."""
    with RealCluster() as running:
        yield running


@pytest.fixture
def own_control_plane(cluster_kind: str, request: pytest.FixtureRequest) -> RealCluster | None:
    """The control plane, for the cases on it; started outside of the test's event loop."""
    if cluster_kind == "embedded":
        return None
    running: RealCluster = request.getfixturevalue("control_plane")
    return running


@pytest.fixture
def anyio_backend(cluster_kind: str) -> object:
    return "asyncio", {"loop_factory": SimulatedLoop} if cluster_kind == "embedded" else {}


@pytest.fixture
async def restorable(
    own_control_plane: RealCluster | None, request: pytest.FixtureRequest, tmp_path: Path
) -> AsyncIterator[Restorable]:
    if own_control_plane is None:
        clock = SimulatedClock()
        async with LocalCluster(clock=clock, entropy=SeededEntropy()) as running:
            with EmbeddedServer(running, clock) as server:
                async with Cluster(server, "test") as cluster:
                    yield Restorable(cluster, *set_back_of(running.api.storage))
        return
    plane = own_control_plane
    folder = Path(tempfile.mkdtemp(dir=tmp_path)) / "storage"
    async with Cluster(RealServer(plane), f"set-back-{request.node.originalname.replace('_', '-')[-40:]}") as cluster:
        yield Restorable(cluster, lambda: plane.save_storage(folder), lambda: plane.restore_storage(folder))


@asynccontextmanager
async def following(restorable: Restorable) -> AsyncIterator[tuple[InterruptibleTransport, Informer, Informer]]:
    """Start informers of two kinds over a connection that can be cut."""
    cluster = restorable.cluster
    transport = InterruptibleTransport(cluster.new_transport())
    client = Client(transport, clock=cluster.clock, entropy=SeededEntropy())
    async with InformerFactory(client, namespaces=[cluster.namespace], clock=cluster.clock) as informers:
        yield transport, await informers.get_informer(CONFIG_MAP), await informers.get_informer(SECRET)


async def lose_some_history(restorable: Restorable, informers: tuple[Informer, ...]) -> None:
    """Save the state, make every kind of change, and wait until the cache shows them."""
    for name in ("changed", "deleted", "same"):
        await restorable.put(CONFIG_MAP, name, "1")
    await restorable.put(SECRET, "secret", "1")
    await restorable.save()
    for value in map(str, range(2, 12)):
        await restorable.put(CONFIG_MAP, "changed", value)
    await restorable.put(SECRET, "lost", "1")
    await restorable.delete(CONFIG_MAP, "deleted")
    await restorable.put(CONFIG_MAP, "created", "1")
    for informer in informers:
        await restorable.until_as_on_the_server(informer, 30.0)


async def test_watches_that_are_resumed_in_another_history_are_noticed_within_seconds(restorable: Restorable) -> None:
    async with following(restorable) as (transport, config_maps, secrets):
        await lose_some_history(restorable, (config_maps, secrets))
        await restorable.set_back()
        transport.cut()
        await restorable.put(CONFIG_MAP, "after", "1")

        await restorable.until_as_on_the_server(config_maps)
        await restorable.until_as_on_the_server(secrets)
        held = {meta.name for meta in config_maps.store.iter_metadata()} - {"kube-root-ca.crt"}
        await restorable.put(SECRET, "later", "1")
        await restorable.until_as_on_the_server(secrets)

    assert held == {"changed", "deleted", "same", "after"}


async def test_the_proof_of_one_kind_makes_void_what_another_kind_cannot_know(restorable: Restorable) -> None:
    cluster = restorable.cluster
    async with following(restorable) as (transport, config_maps, secrets):
        await restorable.put(SECRET, "deleted", "1")
        await restorable.put(SECRET, "newest", "1")
        await restorable.save()
        await restorable.delete(SECRET, "deleted")
        await restorable.until_as_on_the_server(secrets, 30.0)
        known_of_secrets = int((await cluster.client.list(SECRET)).resource_version)
        for value in range(100):
            await restorable.put(CONFIG_MAP, "changed", str(value))
        await restorable.until_as_on_the_server(config_maps, 30.0)
        transport.reachable = False
        transport.cut()
        await restorable.set_back()
        # The revisions pass those that are known of Secrets, whose newest object is as it was.
        for value in range(1000):
            await restorable.put(CONFIG_MAP, "other", str(value))
            if int((await cluster.client.list(SECRET)).resource_version) > known_of_secrets + 5:
                break
        lists = secrets.statistics.lists
        transport.reachable = True

        await restorable.until_as_on_the_server(config_maps, 60.0)
        await restorable.until_as_on_the_server(secrets)

    assert secrets.statistics.lists > lists


@pytest.mark.parametrize("cluster_kind", ["embedded"])  # the real one hides such events from a watch
async def test_an_event_that_is_older_than_what_is_known_leads_to_a_list(restorable: Restorable) -> None:
    async with following(restorable) as (_, config_maps, secrets):
        await lose_some_history(restorable, (config_maps, secrets))
        await restorable.set_back()
        await restorable.put(CONFIG_MAP, "after", "1")

        await restorable.until_as_on_the_server(config_maps)
        await restorable.until_as_on_the_server(secrets)
