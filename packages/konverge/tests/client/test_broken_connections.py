"""Connections that break before and after the server acted, with a server that counts requests."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Literal

import pytest

from konverge.client import Client, HttpTransport, load_kubeconfig
from konverge.errors import ConnectionFailedError, NotConnectedError, NotFoundError
from konverge.kube import GroupVersionKind, Object, ObjectKey
from konverge_cluster.testing import Cluster

pytestmark = [pytest.mark.anyio, pytest.mark.real_time]

CONFIG_MAP = GroupVersionKind("", "v1", "ConfigMap")
USER_AGENT = "broken"


class BreakingProxy:
    """A proxy that forwards bytes, and cuts one connection on request."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._pumps: set[asyncio.Task[None]] = set()
        self.cut: Literal["never", "requests", "answers"] = "never"

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[int]:
        """Serve on the port that this context manager yields."""
        server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        try:
            yield server.sockets[0].getsockname()[1]
        finally:
            server.close()
            for pump in self._pumps:
                pump.cancel()
            await asyncio.gather(*self._pumps, return_exceptions=True)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        upstream_reader, upstream_writer = await asyncio.open_connection("127.0.0.1", self._port)
        both = (writer, upstream_writer)
        for source, sink, what in ((reader, upstream_writer, "requests"), (upstream_reader, writer, "answers")):
            pump = asyncio.create_task(self._pump(source, sink, what, both))
            self._pumps.add(pump)

    async def _pump(
        self,
        source: asyncio.StreamReader,
        sink: asyncio.StreamWriter,
        what: str,
        both: tuple[asyncio.StreamWriter, asyncio.StreamWriter],
    ) -> None:
        try:
            while piece := await source.read(65536):
                if self.cut == what:
                    self.cut = "never"
                    break
                sink.write(piece)
                await sink.drain()
        except OSError:
            pass
        finally:
            for writer in both:
                writer.transport.abort()


@pytest.fixture
async def proxy(cluster: Cluster) -> AsyncIterator[tuple[BreakingProxy, Client]]:
    """Open a proxy and a client with an open connection through it."""
    config = load_kubeconfig(await cluster.write_kubeconfig(), env={})
    found = BreakingProxy(int(config.server.rpartition(":")[2]))
    async with found.serving() as port:
        server = f"{config.server.rpartition(':')[0]}:{port}"
        async with Client(HttpTransport(replace(config, server=server)), user_agent=USER_AGENT) as client:
            await client.list(CONFIG_MAP, namespace=cluster.namespace)
            yield found, client


def config_map(cluster: Cluster, **metadata: str) -> Object:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"namespace": cluster.namespace, **metadata}}


async def names(cluster: Cluster) -> list[str]:
    found = await cluster.client.list(
        CONFIG_MAP, namespace=cluster.namespace, field_selector="metadata.name!=kube-root-ca.crt"
    )
    return [item["metadata"]["name"] for item in found.items]


def writes(cluster: Cluster) -> list[str]:
    return [
        request.verb for request in cluster.list_requests(USER_AGENT) if request.verb not in ("get", "list", "watch")
    ]


async def test_a_create_whose_answer_is_lost_has_made_one_object(
    cluster: Cluster, proxy: tuple[BreakingProxy, Client]
) -> None:
    breaking, client = proxy
    breaking.cut = "answers"

    with pytest.raises(ConnectionFailedError) as raised:
        await client.create(config_map(cluster, generateName="web-"))
    assert not isinstance(raised.value, NotConnectedError)
    assert len(await names(cluster)) == 1
    assert writes(cluster) == ["create"]


async def test_a_create_that_never_arrived_has_made_nothing(
    cluster: Cluster, proxy: tuple[BreakingProxy, Client]
) -> None:
    breaking, client = proxy
    breaking.cut = "requests"

    with pytest.raises(ConnectionFailedError):
        await client.create(config_map(cluster, generateName="web-"))
    assert await names(cluster) == []


async def test_a_delete_whose_answer_is_lost_leaves_the_next_object_of_the_name_alone(
    cluster: Cluster, proxy: tuple[BreakingProxy, Client]
) -> None:
    breaking, client = proxy
    await cluster.client.create(config_map(cluster, name="web"))
    breaking.cut = "answers"

    with pytest.raises(ConnectionFailedError):
        await client.delete(CONFIG_MAP, ObjectKey(cluster.namespace, "web"))
    await cluster.client.create(config_map(cluster, name="web"))
    assert await names(cluster) == ["web"]
    assert writes(cluster) == ["delete"]


@pytest.mark.parametrize("cut", ["requests", "answers"])
async def test_a_read_is_repeated_on_another_connection(
    cluster: Cluster, proxy: tuple[BreakingProxy, Client], cut: Literal["requests", "answers"]
) -> None:
    breaking, client = proxy
    breaking.cut = cut

    with pytest.raises(NotFoundError):
        await client.get(CONFIG_MAP, ObjectKey(cluster.namespace, "web"))


async def test_a_watch_that_breaks_is_told(cluster: Cluster, proxy: tuple[BreakingProxy, Client]) -> None:
    breaking, client = proxy
    async with client.watch(CONFIG_MAP, namespace=cluster.namespace, initial_events=True) as events:
        await anext(events)
        breaking.cut = "answers"
        await cluster.client.create(config_map(cluster, name="web"))
        with pytest.raises(ConnectionFailedError):
            async for _ in events:
                pass


async def test_a_user_of_an_exec_plugin_is_let_in(cluster: Cluster, tmp_path: Path) -> None:
    found = load_kubeconfig(await cluster.write_kubeconfig(), env={})
    identity = await found.credentials.get_identity()
    status = {"token": identity.headers.get("authorization", "Bearer none").removeprefix("Bearer ")}
    printed = json.dumps({"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": status})
    plugin = {
        "apiVersion": "client.authentication.k8s.io/v1",
        "command": sys.executable,
        "args": ["-c", f"print({printed!r})"],
        "interactiveMode": "Never",
    }
    (tmp_path / "ca.crt").write_bytes(found.tls.authority)
    authority = {"certificate-authority": "ca.crt"} if found.tls.authority else {}
    document = {
        "current-context": "here",
        "clusters": [{"name": "it", "cluster": {"server": found.server, **authority}}],
        "users": [{"name": "ann", "user": {"exec": plugin}}],
        "contexts": [{"name": "here", "context": {"cluster": "it", "user": "ann"}}],
    }
    (tmp_path / "config").write_text(json.dumps(document))
    config = load_kubeconfig(tmp_path / "config", env={"PATH": os.environ["PATH"]})
    async with Client(HttpTransport(config)) as client:
        await client.create(config_map(cluster, name="web"))

    assert await names(cluster) == ["web"]
