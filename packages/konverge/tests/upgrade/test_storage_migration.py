"""`StorageMigration` on both clusters: other writers, failures, changes of the definition, a crash at every request."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import Any

import pytest

from konverge._internal.upgrade import MigrationReport, StorageMigration
from konverge.client import Client, Response, StreamingResponse, Transport
from konverge.errors import InvalidError, KonvergeError
from konverge.kube import GroupVersionKind, Object, ObjectKey
from konverge_cluster.testing import Cluster
from tests.client.scripted_transport import ScriptedResponse
from tests.simulation.crashing_transport import CrashingTransport

pytestmark = pytest.mark.anyio

DEFINITION = GroupVersionKind("apiextensions.k8s.io", "v1", "CustomResourceDefinition")


def build_definition(group: str, stored: str, versions: tuple[str, ...] = ("v1beta1", "v1"), rule: str = "") -> Object:
    spec = {"type": "object", "properties": {"name": {"type": "string"}}}
    schema: dict[str, Any] = {"type": "object", "properties": {"spec": spec}}
    if rule:
        schema["x-kubernetes-validations"] = [{"rule": rule}]
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"kites.{group}"},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {"kind": "Kite", "plural": "kites"},
            "versions": [
                {"name": name, "served": True, "storage": name == stored, "schema": {"openAPIV3Schema": schema}}
                for name in versions
            ],
        },
    }


@dataclass
class Interruption:
    """A transport that calls a function before the first request of this kind; the others wait for it.

    Args:
        inner: Sends the requests.
        method: The HTTP method.
        ending: The end of the path.
        act: The function; it is called once.
    """

    inner: Transport
    method: str
    ending: str
    act: Callable[[], Awaitable[object]] | None
    acting: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def request(self, method: str, path: str, **more: Any) -> Response:
        if method == self.method and path.endswith(self.ending):
            async with self.acting:
                if self.act is not None:
                    act, self.act = self.act, None
                    await act()
        answer: Response = await self.inner.request(method, path, **more)
        return answer

    def stream(self, method: str, path: str, **more: Any) -> AbstractAsyncContextManager[StreamingResponse]:
        return self.inner.stream(method, path, **more)

    async def close(self) -> None:
        await self.inner.close()


@dataclass
class Kites:
    """A custom resource whose objects are stored in v1beta1, with v1 as the storage version."""

    cluster: Cluster
    group: str

    @property
    def name(self) -> str:
        """The name of the definition."""
        return f"kites.{self.group}"

    @property
    def gvk(self) -> GroupVersionKind:
        """The kind in the storage version."""
        return GroupVersionKind(self.group, "v1", "Kite")

    async def install(self, stored: str, **options: Any) -> None:
        await self.cluster.install(build_definition(self.group, stored, **options))

    async def refuse(self, name: str) -> None:
        """Install a rule that an object violates, and wait until it is in force."""
        await self.install("v1", rule=f"self.spec.name != '{name}'")

        async def is_refused() -> bool:
            try:
                await self.cluster.client.patch(self.gvk, self.key(name), {}, patch_type="merge", dry_run=True)
            except InvalidError:
                return True
            return False

        await self.cluster.eventually(is_refused, describe="the rule is in force")

    async def list_resource_versions(self) -> dict[str, str]:
        listed = await self.cluster.client.list(self.gvk)
        return {obj["metadata"]["name"]: obj["metadata"]["resourceVersion"] for obj in listed.items}

    def key(self, name: str) -> ObjectKey:
        return ObjectKey(self.cluster.namespace, name)

    async def migrate(self, client: Client | None = None, **options: Any) -> MigrationReport:
        return await StorageMigration(
            client or self.cluster.client, self.name, self.cluster.clock, **({"rate": 1000} | options)
        ).run()

    async def migrate_with(self, method: str, ending: str, act: Callable[[], Awaitable[object]]) -> MigrationReport:
        transport = Interruption(self.cluster.new_transport(), method, ending, act)
        return await self.migrate(Client(transport, user_agent="migration", clock=self.cluster.clock))

    async def read_definition(self) -> Object:
        return await self.cluster.client.get(DEFINITION, ObjectKey("", self.name))

    async def list_stored(self) -> list[str]:
        return sorted((await self.read_definition())["status"]["storedVersions"])

    async def forget_migration(self) -> None:
        """Let the definition say again that objects may be stored in v1beta1."""
        definition = await self.read_definition()
        definition["status"]["storedVersions"] = ["v1", "v1beta1"]
        await self.cluster.client.update(definition, subresource="status")


@pytest.fixture
async def kites(cluster: Cluster) -> AsyncIterator[Kites]:
    # The definitions of a test remain, and the objects of the test before may not be deleted yet: so each has its own.
    kites = Kites(cluster, f"{cluster.namespace}.migration.konverge.test")
    await kites.install("v1beta1")
    for name in ("a", "b", "c"):
        metadata = {"name": name, "namespace": cluster.namespace}
        await cluster.client.create(
            {"apiVersion": f"{kites.group}/v1beta1", "kind": "Kite", "metadata": metadata, "spec": {"name": name}}
        )
    await kites.install("v1")
    yield kites
    await cluster.client.delete(DEFINITION, ObjectKey("", kites.name))


async def test_the_old_version_can_be_removed_only_afterwards(kites: Kites) -> None:
    with pytest.raises(InvalidError, match="storedVersions"):
        await kites.install("v1", versions=("v1",))
    before = await kites.cluster.client.get(kites.gvk, kites.key("a"))

    report = await kites.migrate()

    assert (report.stored_versions_before, report.stored_versions) == (("v1beta1", "v1"), ("v1",))
    assert (report.objects, report.rewritten, report.current, report.deleted) == (3, 3, 0, 0)
    assert await kites.list_stored() == ["v1"]
    after = await kites.cluster.client.get(kites.gvk, kites.key("a"))
    assert after["metadata"].pop("resourceVersion") != before["metadata"].pop("resourceVersion")
    assert after == before, "the object itself is unchanged, with its field managers"
    await kites.install("v1", versions=("v1",))
    assert (await kites.cluster.client.get(kites.gvk, kites.key("b")))["spec"] == {"name": "b"}


async def test_a_repetition_writes_nothing(kites: Kites) -> None:
    await kites.migrate()

    nothing = await kites.migrate()
    await kites.forget_migration()
    before = await kites.list_resource_versions()
    again = await kites.migrate()

    assert (nothing.objects, nothing.stored_versions_before) == (0, ("v1",))
    assert (again.objects, again.rewritten, again.current) == (3, 0, 3)
    assert await kites.list_resource_versions() == before


async def test_the_writes_of_others_stay_and_deleted_objects_are_left_out(kites: Kites) -> None:
    async def interfere() -> None:
        patch = {"spec": {"name": "renamed"}}
        await kites.cluster.client.patch(kites.gvk, kites.key("b"), patch, patch_type="merge")
        await kites.cluster.client.delete(kites.gvk, kites.key("c"))

    report = await kites.migrate_with("PATCH", "", interfere)  # several objects are rewritten at once

    assert (report.rewritten + report.current, report.deleted, report.failures) == (2, 1, ())
    assert (await kites.cluster.client.get(kites.gvk, kites.key("b")))["spec"] == {"name": "renamed"}
    assert report.stored_versions == ("v1",)


async def test_a_definition_that_changes_meanwhile_keeps_its_stored_versions(kites: Kites) -> None:
    async def change() -> None:
        await kites.install("v1beta1")
        await kites.install("v1")

    with pytest.raises(KonvergeError, match=r"stored versions stay: metadata.generation changed .* repeat the command"):
        await kites.migrate_with("PATCH", "/a", change)

    assert await kites.list_stored() == ["v1", "v1beta1"]
    assert (await kites.migrate()).stored_versions == ("v1",)


async def test_another_writer_of_the_status_is_no_change(kites: Kites) -> None:
    async def touch() -> None:
        patch = {"metadata": {"annotations": {"touched": "yes"}}}
        await kites.cluster.client.patch(DEFINITION, ObjectKey("", kites.name), patch, patch_type="merge")

    report = await kites.migrate_with("PUT", f"/{kites.name}/status", touch)

    assert report.stored_versions == ("v1",)
    assert await kites.list_stored() == ["v1"]


async def test_an_object_that_the_server_refuses_is_named_and_the_stored_versions_stay(kites: Kites) -> None:
    await kites.refuse("b")

    report = await kites.migrate()

    [failure] = report.failures
    assert failure.startswith(f"{kites.cluster.namespace}/b: ")
    assert "failed rule" in failure
    assert report.rewritten == 2
    assert await kites.list_stored() == ["v1", "v1beta1"]


async def test_a_dry_run_stores_nothing(kites: Kites) -> None:
    before = await kites.list_resource_versions()

    report = await kites.migrate(is_dry_run=True)

    assert (report.objects, report.failures, len(report.stored_versions)) == (3, (), 2)
    assert await kites.list_resource_versions() == before


async def test_a_definition_that_does_not_exist(cluster: Cluster) -> None:
    with pytest.raises(KonvergeError, match=r"^none\.example\.com: expected the name of a CustomResourceDefinition"):
        await StorageMigration(cluster.client, "none.example.com", cluster.clock).run()


@dataclass
class LaggingServer:
    """A transport to an API server that publishes the old storage version a few times; the real one is too fast."""

    inner: Transport
    lags: int

    async def request(self, method: str, path: str, **more: Any) -> Response:
        answer: Response = await self.inner.request(method, path, **more)
        if path.endswith(".migration.konverge.test/v1"):
            document = json.loads(answer.body)
            self.lags -= 1
            if self.lags >= 0:
                document["resources"][0]["storageVersionHash"] = "b2xkZXI="
            return ScriptedResponse(answer.status, document)
        return answer

    def stream(self, method: str, path: str, **more: Any) -> AbstractAsyncContextManager[StreamingResponse]:
        return self.inner.stream(method, path, **more)

    async def close(self) -> None:
        await self.inner.close()


async def test_it_waits_until_the_server_stores_in_the_new_version(kites: Kites) -> None:
    server = LaggingServer(kites.cluster.new_transport(), lags=3)

    report = await kites.migrate(Client(server, user_agent="migration", clock=kites.cluster.clock))

    assert server.lags == -1
    assert report.rewritten == 3


@pytest.mark.parametrize("cluster_kind", [pytest.param("embedded", marks=pytest.mark.embedded)])
async def test_a_server_that_never_does_is_an_error(kites: Kites) -> None:
    server = LaggingServer(kites.cluster.new_transport(), lags=1_000_000)

    with pytest.raises(KonvergeError, match="the API server still stores objects in another one after 30 s"):
        await kites.migrate(Client(server, user_agent="migration", clock=kites.cluster.clock))

    assert await kites.list_stored() == ["v1", "v1beta1"]


async def test_a_definition_that_serves_no_version(kites: Kites) -> None:
    unserved = build_definition(kites.group, "v1")
    for version in unserved["spec"]["versions"]:
        version["served"] = False
    await kites.cluster.client.apply(unserved, field_manager="konverge-testing", force=True)

    with pytest.raises(KonvergeError, match="expected a served version, found none"):
        await kites.migrate()


@pytest.mark.parametrize("cluster_kind", [pytest.param("embedded", marks=pytest.mark.embedded)])
async def test_the_rate_is_limited(kites: Kites) -> None:
    started = kites.cluster.clock.monotonic()

    await kites.migrate(rate=0.5)

    assert 4.0 <= kites.cluster.clock.monotonic() - started < 6.0


@pytest.mark.parametrize("answered", [False, True], ids=["before the request", "after the server acted"])
async def test_after_a_crash_at_any_request_it_is_repeated(kites: Kites, answered: bool) -> None:
    calm = CrashingTransport(kites.cluster.new_transport())
    await kites.migrate(Client(calm, user_agent="migration", clock=kites.cluster.clock))
    assert calm.sent > 6

    for fatal in range(1, calm.sent + 1):
        await kites.forget_migration()
        transport = CrashingTransport(kites.cluster.new_transport(), fatal=fatal, answered=answered)
        process = asyncio.ensure_future(
            kites.migrate(Client(transport, user_agent="migration", clock=kites.cluster.clock))
        )
        await transport.settled.wait() if answered else await transport.died.wait()
        process.cancel()
        await asyncio.gather(process, return_exceptions=True)
        stored = await kites.list_stored()
        is_last = fatal == calm.sent and answered
        assert stored == (["v1"] if is_last else ["v1", "v1beta1"]), f"after a death at request {fatal}"

        assert (await kites.migrate()).stored_versions == ("v1",)
        assert await kites.list_stored() == ["v1"]
