"""Every resolver that konverge brings does what any resolver has to do."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from konverge.client import Client, Response, Transport
from konverge.clock import SeededEntropy, SystemClock
from konverge.errors import ConnectionFailedError
from konverge_cluster.embedded import LocalCluster
from konverge_resolution import Services
from konverge_resolution._internal.address_resolver import GuardedAddressResolver
from konverge_resolution._internal.cluster_services import ClusterObjectReader
from konverge_resolution._internal.resolvers import DISK, STANDARD
from konverge_resolution._internal.resolvers.bundles import BundlesResolver
from konverge_resolution._internal.resolvers.cluster import ClusterResolver
from konverge_resolution._internal.resolvers.disk import DiskResolver
from konverge_resolution._internal.resolvers.git import GitResolver
from konverge_resolution._internal.resolvers.http import HttpResolver
from konverge_resolution._internal.resolvers.hub import HubResolver
from konverge_resolution._internal.workspaces import TemporaryFolders
from konverge_resolution.network import AllowedNetworks, GuardedHttp
from konverge_resolution.resolver_conformance import Impossible, ResolverConformance, Specimen
from tests.resolution.bundles.sample_images import build_image, object_layer
from tests.resolution.git.sample_repositories import list_files, list_processes, make_samples
from tests.resolution.http_resolution import TASK, Secrets
from tests.resolution.hub.fake_hubs import FakeHub, serve_hubs
from tests.resolution.network.http_servers import build_guarded_http, never_respond, serve_connections, serve_site
from tests.resolution.servers.fake_registry import fake_registry
from tests.resolution.servers.git import GitServer, git_server

pytestmark = pytest.mark.anyio

TOKEN = "hunter2-hunter2"
CLOSED = "127.0.0.1:1"
NOTHING: Any = None


def services(http: GuardedHttp | None = None, folder: Path | None = None, **more: Any) -> Services:
    return Services(
        http=http or build_guarded_http(),
        secrets=Secrets({"mine": {"token": TOKEN}}),
        workspaces=NOTHING if folder is None else TemporaryFolders(SystemClock(), folder),
        clock=SystemClock(),
        addresses=GuardedAddressResolver(NOTHING, AllowedNetworks(["127.0.0.0/8"])),
        **more,
    )


@pytest.fixture
async def hanging() -> AsyncIterator[str]:
    async with serve_connections(never_respond) as port:
        yield f"127.0.0.1:{port}"


@pytest.fixture(scope="session")
def git_site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GitServer]:
    samples = make_samples(tmp_path_factory.mktemp("git"))
    with git_server(samples.root) as running:
        yield running


class TestGit(ResolverConformance):
    @pytest.fixture
    def specimen(self, git_site: GitServer, hanging: str, tmp_path: Path) -> Specimen:
        good = {"url": git_site.url("boxes.git", host="127.0.0.1"), "revision": "main", "pathInRepo": "box.yaml"}
        return Specimen(
            GitResolver(),
            services(folder=tmp_path),
            good={**good, "gitToken": "mine"},
            missing={**good, "pathInRepo": "missing.yaml"},
            settings={"allow-plain-http-credentials": "true"},
            unreachable={**good, "url": f"http://{CLOSED}/boxes.git"},
            hanging={**good, "url": f"http://{hanging}/boxes.git"},
            credential=TOKEN,
            leftovers=lambda: [*list_processes(tmp_path), *(file for file in list_files(tmp_path) if file != "lock")],
        )


@asynccontextmanager
async def http_specimen(resolver: HttpResolver, hanging: str) -> AsyncIterator[Specimen]:
    async def serve(request: web.Request) -> web.StreamResponse:
        return web.Response(body=TASK, status=200 if request.path == "/a/task.yaml" else 404)

    async with serve_site(serve) as url:
        good = {"url": f"{url}/a/task.yaml", "http-token-secret": "mine"}
        yield Specimen(
            resolver,
            services(),
            good=good,
            missing={**good, "url": f"{url}/a/missing.yaml"},
            unreachable={"url": f"http://{CLOSED}/a"},
            hanging={"url": f"http://{hanging}/a"},
            settings={"allow-plain-http-credentials": "true"},
            credential=TOKEN,
        )


class TestHttp(ResolverConformance):
    @pytest.fixture
    async def specimen(self, hanging: str) -> AsyncIterator[Specimen]:
        async with http_specimen(HttpResolver(), hanging) as specimen:
            yield specimen


class HttpWithoutPaths(HttpResolver):
    resolve_relative = None  # type: ignore[assignment]  # for a protocol, None is a method that is not there


class TestResolverWithoutPaths(ResolverConformance):
    @pytest.fixture
    async def specimen(self, hanging: str) -> AsyncIterator[Specimen]:
        async with http_specimen(HttpWithoutPaths(), hanging) as specimen:
            yield specimen


class TestBundles(ResolverConformance):
    @pytest.fixture
    def specimen(self, hanging: str) -> Iterator[Specimen]:
        with fake_registry() as registry:
            manifest, blobs = build_image([object_layer("build"), object_layer("other")])
            name = registry.name("127.0.0.1")
            registry.push("team/boxes", "main", manifest, blobs)
            good = {"bundle": f"{name}/team/boxes:main", "name": "build", "kind": "task"}
            yield Specimen(
                BundlesResolver(),
                services(),
                good=good,
                missing={**good, "name": "missing"},
                settings={"plain-http-registries": f"{name}, {CLOSED}, {hanging}"},
                unreachable={**good, "bundle": f"{CLOSED}/team/boxes:main"},
                hanging={**good, "bundle": f"{hanging}/team/boxes:main"},
            )


class TestHub(ResolverConformance):
    @pytest.fixture
    async def specimen(self, hanging: str) -> AsyncIterator[Specimen]:
        async with serve_hubs(FakeHub()) as (url,):
            good = {"name": "git-clone", "version": "0.7.0", "url": url}
            yield Specimen(
                HubResolver(),
                services(),
                good=good,
                missing={**good, "version": "99.0.0"},
                unreachable={**good, "url": f"http://{CLOSED}"},
                hanging={**good, "url": f"http://{hanging}"},
            )


class FaultyTransport:
    """A transport to an API server that never responds for objects named ``hanging``, and is not there for others."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    async def request(self, method: str, path: str, **more: Any) -> Response:
        if path.endswith("/hanging"):
            await asyncio.Event().wait()
        if path.endswith("/unreachable"):
            raise ConnectionFailedError("the API server refuses connections")
        return await self._transport.request(method, path, **more)


class TestCluster(ResolverConformance):
    @pytest.fixture
    async def specimen(self) -> AsyncIterator[Specimen]:
        made = LocalCluster(clock=SystemClock(), entropy=SeededEntropy())
        async with (
            made as running,
            Client(FaultyTransport(running.transport()), user_agent="tests", clock=SystemClock()) as client,
        ):
            config_map = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "web"}}
            await client.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "web"}})
            await client.create(config_map)
            good = {"kind": "configmap", "name": "a", "namespace": "web"}
            yield Specimen(
                ClusterResolver(),
                services(cluster=ClusterObjectReader(client)),
                good=good,
                missing={**good, "name": "missing"},
                unreachable={**good, "name": "unreachable"},
                hanging={**good, "name": "hanging"},
            )


class TestDisk(ResolverConformance):
    @pytest.fixture
    def specimen(self, tmp_path: Path) -> Specimen:
        (tmp_path / "box.yaml").write_bytes(TASK)
        return Specimen(
            DiskResolver(tmp_path),
            services(),
            good={"path": "box.yaml"},
            missing={"path": "missing.yaml"},
            unreachable=Impossible("its source is a directory of this machine"),
            hanging=Impossible("only regular files are read, and these never wait"),
        )


def test_no_resolver_is_left_out() -> None:
    tested = {TestBundles, TestCluster, TestDisk, TestGit, TestHttp, TestHub}
    assert {each.__name__.removeprefix("Test").lower() for each in tested} == {*STANDARD, DISK}
