"""Writes of a process that was frozen between the check of its permit and the sending."""

import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest

from konverge._internal.client.credentials import Credentials, Identity
from konverge._internal.client.write_permit import current_permit
from konverge.client import Client, HttpTransport, load_kubeconfig
from konverge.errors import ConnectionFailedError, NoPermitError
from konverge.kube import GroupVersionKind, Object, ObjectKey
from konverge_cluster.testing import Cluster

pytestmark = [pytest.mark.anyio, pytest.mark.real_time]

CONFIG_MAP = GroupVersionKind("", "v1", "ConfigMap")
USER_AGENT = "late"


class FreezingCredentials:
    """Credentials that freeze the whole process for a moment, on request, after the check of the permit."""

    description = "freezing credentials"

    def __init__(self, credentials: Credentials) -> None:
        self._credentials = credentials
        self.seconds = 0.0

    async def get_identity(self) -> Identity:
        threading.Event().wait(self.seconds)  # the event loop stands still, and its timers with it
        return await self._credentials.get_identity()

    def invalidate(self, identity: Identity) -> bool:
        return self._credentials.invalidate(identity)

    def clone(self) -> Credentials:
        return self


class Permit:
    def seconds_left(self) -> float:
        return 0.3


class EndingPermit:
    """A permit that ends after a number of checks, as if the process was frozen after the last one."""

    def __init__(self, answers: float = float("inf")) -> None:
        self.answers = answers

    def seconds_left(self) -> float:
        self.answers -= 1
        return 5.0 if self.answers >= 0 else 0.0


WRITES: dict[str, Callable[[Client, Object], Awaitable[object]]] = {
    "update": lambda client, web: client.update({**web, "data": {"seed": "fern"}}),
    "large": lambda client, web: client.update({**web, "data": {"seed": "fern" * 100_000}}),
    "apply": lambda client, web: client.apply({**web, "data": {"seed": "fern"}}, field_manager="late"),
    "delete": lambda client, web: client.delete(CONFIG_MAP, ObjectKey(web["metadata"]["namespace"], "web")),
}


def new_web(cluster: Cluster) -> Object:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "web", "namespace": cluster.namespace}}


@asynccontextmanager
async def open_transport(cluster: Cluster) -> AsyncIterator[HttpTransport]:
    """Open a transport with a connection, so that a write is sent without a wait."""
    transport = HttpTransport(load_kubeconfig(await cluster.write_kubeconfig(), env={}))
    try:
        await transport.request("GET", "/version", timeout_seconds=5.0)
        yield transport
    finally:
        await transport.close()


# The permit is checked when a request is built, before its connection gets it, and before the kernel gets it.
@pytest.mark.parametrize("answers", [1, 2])
@pytest.mark.parametrize("verb", sorted(WRITES))
async def test_a_write_is_not_sent_when_its_permit_ends_after_it_was_asked(
    cluster: Cluster, verb: str, answers: int
) -> None:
    permit = EndingPermit()
    async with open_transport(cluster) as transport:
        client = Client(transport, user_agent=USER_AGENT, permit=permit)
        await client.create(new_web(cluster))

        permit.answers = answers
        with pytest.raises(NoPermitError, match="configmaps/web was not sent: this process may have lost its lease"):
            await WRITES[verb](client, new_web(cluster))
        # Another connection, because one with a half-written request cannot be reused.
        assert "data" not in await client.get(CONFIG_MAP, ObjectKey(cluster.namespace, "web"))

        permit.answers = float("inf")
        await client.delete(CONFIG_MAP, ObjectKey(cluster.namespace, "web"))
    verbs = [request.verb for request in cluster.list_requests(USER_AGENT) if "/configmaps" in request.path]
    assert verbs == ["create", "get", "delete"]


@pytest.mark.parametrize("answers", [0, 1])
async def test_a_write_without_a_body_is_not_sent_when_its_permit_has_ended(cluster: Cluster, answers: int) -> None:
    await cluster.client.create(new_web(cluster))
    path = f"/api/v1/namespaces/{cluster.namespace}/configmaps/web"
    async with open_transport(cluster) as transport:
        current_permit.set(EndingPermit(answers))
        with pytest.raises(NoPermitError):
            await transport.request("DELETE", path, timeout_seconds=5.0)
        assert (await transport.request("GET", path, timeout_seconds=5.0)).status == 200

        current_permit.set(EndingPermit())
        assert (await transport.request("DELETE", path, timeout_seconds=5.0)).status == 200


@pytest.mark.slow
async def test_a_write_is_not_sent_after_its_permit_has_ended_while_the_process_was_frozen(cluster: Cluster) -> None:
    config = load_kubeconfig(await cluster.write_kubeconfig(), env={})
    freezing = FreezingCredentials(config.credentials)
    transport = HttpTransport(replace(config, credentials=freezing))
    async with Client(transport, user_agent=USER_AGENT, permit=Permit()) as client:
        # Its connection is open, so there is nothing else to wait for.
        await client.create(
            {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "web", "namespace": cluster.namespace}}
        )

        freezing.seconds = 0.5
        with pytest.raises(ConnectionFailedError):
            await client.delete(CONFIG_MAP, ObjectKey(cluster.namespace, "web"))
        freezing.seconds = 0.0

        await cluster.clock.sleep(0.2)  # until pending requests arrive
        assert await cluster.client.get(CONFIG_MAP, ObjectKey(cluster.namespace, "web"))
    assert [request.verb for request in cluster.list_requests(USER_AGENT) if "/configmaps" in request.path] == [
        "create"
    ]
