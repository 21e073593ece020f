"""All five kinds of sources on the loopback interface, private ones, with credentials that nobody else must see."""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from aiohttp import web

from konverge.kube import Object
from tests.resolution.bundles.sample_images import BUNDLE, build_docker_config, build_task
from tests.resolution.hub.fake_hubs import FakeHub, build_definition
from tests.resolution.network.http_servers import serve_site
from tests.resolution.requests.request_namespace import RequestNamespace
from tests.resolution.servers.fake_registry import FakeRegistry, fake_registry
from tests.resolution.servers.git import GitServer, git, git_server
from tests.resolution.test_cluster_resolver import TASK_DEFINITION

__all__ = ["FILE", "PLANTED", "SourceServers", "build_secret", "serve_all_sources"]

FILE = b"apiVersion: tekton.dev/v1\nkind: Task\nmetadata: {name: build}\nspec: {steps: []}\n"

_PLANTED = {"git": "git-hunter2", "http": "http-hunter2", "bundles": "oci-hunter2", "other": "kept-hunter2"}
PLANTED = tuple(_PLANTED.values())
"""The credentials."""


@dataclass
class SourceServers:
    """The servers.

    Args:
        git: Serves ``boxes.git`` with ``task.yaml``, to who has the password.
        registry: Has ``team/tasks:1``, a bundle with the task ``build``, for who has the password.
        hub: An Artifact Hub with ``build``.
        hub_url: Where it is.
        web_url: Serves the file to who has the password.
        asked: What the web server was asked: the paths.
        namespace: Has the task ``build``.
    """

    git: GitServer
    registry: FakeRegistry
    hub: FakeHub
    hub_url: str
    web_url: str
    namespace: str
    asked: list[str] = field(default_factory=list)

    @property
    def params(self) -> dict[str, dict[str, str]]:
        """By resolver, the parameters of the definition; Tekton's documentation calls them the same."""
        return {
            "git": {
                "url": self.git.url("boxes.git", host="127.0.0.1"),
                "revision": "main",
                "pathInRepo": "/task.yaml",
                "gitToken": "git-credentials",
                "gitTokenKey": "token",
            },
            "bundles": {
                "bundle": f"127.0.0.1:{self.registry.port}/team/tasks:1",
                "name": "build",
                "kind": "task",
                "secret": "oci-credentials",
            },
            "hub": {
                "kind": "task",
                "type": "artifact",
                "name": "build",
                "version": "0.7",
                "catalog": "tekton-catalog-tasks",
                "url": self.hub_url,
            },
            "http": {
                "url": f"{self.web_url}/task.yaml",
                "http-username": "me",
                "http-password-secret": "http-credentials",
                "http-password-secret-key": "password",
            },
            "cluster": {"kind": "task", "name": "build", "namespace": self.namespace},
        }

    @property
    def content(self) -> dict[str, bytes]:
        """By resolver, what it gets; of the cluster's object only that it is there."""
        return {"git": FILE, "bundles": build_task("build"), "hub": build_definition("0.7.0"), "http": FILE}

    def secrets(self) -> dict[str, dict[str, bytes]]:
        """By name, the Secrets that the parameters name, and one that none of them does."""
        return {
            "git-credentials": {"token": _PLANTED["git"].encode()},
            "oci-credentials": build_docker_config(f"127.0.0.1:{self.registry.port}", "me", _PLANTED["bundles"]),
            "http-credentials": {"password": _PLANTED["http"].encode()},
            "others": {"token": _PLANTED["other"].encode()},
        }


def build_secret(name: str, namespace: str, data: Mapping[str, bytes]) -> Object:
    """A Secret."""
    encoded = {key: base64.b64encode(value).decode() for key, value in data.items()}
    metadata = {"name": name, "namespace": namespace}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": encoded}


@asynccontextmanager
async def serve_all_sources(desk: RequestNamespace, folder: Path) -> AsyncIterator[SourceServers]:
    """Serve all of them, with the configuration that lets a desk's resolvers ask them, and the desk's Secrets."""
    _make_repository(folder)
    asked: list[str] = []

    async def serve(request: web.BaseRequest) -> web.StreamResponse:
        asked.append(request.path)
        wanted = base64.b64encode(f"me:{_PLANTED['http']}".encode()).decode()
        if request.headers.get("Authorization") != f"Basic {wanted}":
            return web.Response(status=401)
        return web.Response(body=FILE)

    async with AsyncExitStack() as stack:
        repositories = stack.enter_context(git_server(folder))
        repositories.credentials["boxes.git"] = ("git", _PLANTED["git"])
        registry = stack.enter_context(fake_registry())
        registry.logins["me"] = _PLANTED["bundles"]
        registry.push("team/tasks", "1", *BUNDLE)
        hub = FakeHub()
        hub_url = await stack.enter_async_context(serve_site(hub))
        web_url = await stack.enter_async_context(serve_site(serve))
        found = SourceServers(repositories, registry, hub, hub_url, web_url, desk.namespace, asked)
        await _set_up(desk, found)
        await stack.enter_async_context(desk.policy("loopback", privateNetworks=["127.0.0.0/8"]))
        yield found


def _make_repository(folder: Path) -> None:
    work = folder / "work"
    work.mkdir(parents=True)
    git("init", "--quiet", folder=work)
    (work / "task.yaml").write_bytes(FILE)
    git("add", ".", folder=work)
    git("commit", "--quiet", "-m", "one", folder=work)
    git("clone", "--quiet", "--bare", str(work), str(folder / "boxes.git"), folder=folder)
    git("config", "uploadpack.allowFilter", "true", folder=folder / "boxes.git")


async def _set_up(desk: RequestNamespace, sources: SourceServers) -> None:
    plain: dict[str, Any] = {"allow_plain_http_credentials": "true"}
    await desk.set_config_map("konverge-resolver-git", **plain)
    await desk.set_config_map("konverge-resolver-http", **plain)
    registries = {"plain_http_registries": f"127.0.0.1:{sources.registry.port}"}
    await desk.set_config_map("konverge-resolver-bundles", **registries)
    for name, data in sources.secrets().items():
        await desk.cluster.client.create(build_secret(name, desk.namespace, data))
    await desk.cluster.install(TASK_DEFINITION)
    await desk.cluster.client.create(
        {
            "apiVersion": "tekton.dev/v1",
            "kind": "Task",
            "metadata": {"name": "build", "namespace": desk.namespace},
            "spec": {"steps": [{"name": "a", "image": "b"}]},
        }
    )
