"""Writes of a process that stood still between the moment when it was allowed to write and the moment of sending."""

import threading
from dataclasses import replace

import pytest

from konverge.client import Client, HttpTransport, load_kubeconfig
from konverge.client.credentials import Credentials, Identity
from konverge.errors import ConnectionFailedError
from konverge.kube import GroupVersionKind, ObjectKey
from konverge.testing import Cluster

pytestmark = [pytest.mark.anyio, pytest.mark.real_time]

CONFIG_MAP = GroupVersionKind("", "v1", "ConfigMap")
USER_AGENT = "late"


class Freezing:
    """Credentials that freeze the whole process for a moment, when they are told to, after the permit was asked."""

    description = "freezing credentials"

    def __init__(self, credentials: Credentials) -> None:
        self._credentials = credentials
        self.seconds = 0.0

    async def identity(self) -> Identity:
        threading.Event().wait(self.seconds)  # the event loop stands still, and its timers with it
        return await self._credentials.identity()

    def refused(self, identity: Identity) -> bool:
        return self._credentials.refused(identity)

    def separate(self) -> Credentials:
        return self


class Permit:
    def seconds_left(self) -> float:
        return 0.3


async def test_a_write_is_not_sent_after_its_permit_has_ended_while_the_process_was_frozen(cluster: Cluster) -> None:
    config = load_kubeconfig(await cluster.kubeconfig(), env={})
    freezing = Freezing(config.credentials)
    transport = HttpTransport(replace(config, credentials=freezing))
    async with Client(transport, user_agent=USER_AGENT, permit=Permit()) as client:
        # Its connection is open: nothing else is to be waited for.
        await client.create(
            {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "web", "namespace": cluster.namespace}}
        )

        freezing.seconds = 0.5
        with pytest.raises(ConnectionFailedError):
            await client.delete(CONFIG_MAP, ObjectKey(cluster.namespace, "web"))
        freezing.seconds = 0.0

        await cluster.clock.sleep(0.2)  # for what is on its way
        assert await cluster.client.get(CONFIG_MAP, ObjectKey(cluster.namespace, "web"))
    assert [request.verb for request in cluster.requests(USER_AGENT) if "/configmaps" in request.path] == ["create"]
