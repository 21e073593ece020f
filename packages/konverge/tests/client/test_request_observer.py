"""The calls of an observer, and the parts that clients share."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import Any

import pytest

from konverge.client import Client
from konverge.clock import SeededEntropy, SimulatedClock
from konverge.errors import ForbiddenError, NotConnectedError, UnauthorizedError
from konverge.kube import GroupVersionKind, Object, ObjectKey
from tests.client.scripted_transport import (
    DISCOVERY,
    Script,
    ScriptedResponse,
    ScriptedStream,
    ScriptedTransport,
    build_failure,
)

pytestmark = pytest.mark.anyio

CONFIG_MAP = GroupVersionKind("", "v1", "ConfigMap")
KEY = ObjectKey("default", "web")
COLLECTION = "/api/v1/namespaces/default/configmaps"
WEB: Object = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "web", "namespace": "default"}}
REFUSED = NotConnectedError("connection refused")
REPEATED = ["GET <error>", "again <error>", "GET 200"]


@dataclass
class RecordingObserver:
    """An observer that records all calls except those for discovery."""

    calls: list[str] = field(default_factory=list)
    details: list[dict[str, Any]] = field(default_factory=list)

    def on_request(self, method: str, path: str, *, code: str, **details: Any) -> None:
        if path not in DISCOVERY:
            self.calls.append(f"{method} {code}")
            self.details.append({"path": path, **details})

    def on_retry(self, method: str, *, code: str) -> None:
        self.calls.append(f"again {code}")


def client_of(*script: Script, **options: Any) -> tuple[Client, RecordingObserver]:
    heard = RecordingObserver()
    transport = ScriptedTransport(*script)
    return Client(transport, clock=SimulatedClock(), entropy=SeededEntropy(), observer=heard, **options), heard


async def test_each_attempt_is_heard_with_its_size_and_time() -> None:
    client, heard = client_of(build_failure(429, retry_after=7), ScriptedResponse(json=WEB))
    await client.update(WEB)
    body = ScriptedResponse(json=WEB).body

    assert heard.calls == ["PUT 429", "again 429", "PUT 200"]
    assert heard.details[-1] == {
        "path": f"{COLLECTION}/web",
        "seconds": 0.0,
        "sent_bytes": len(body),
        "received_bytes": len(body),
    }


async def test_an_attempt_without_an_answer_is_heard() -> None:
    client, heard = client_of(REFUSED, ScriptedResponse(json=WEB))
    await client.get(CONFIG_MAP, KEY)

    assert heard.calls == REPEATED


async def test_an_attempt_that_is_cancelled_is_heard() -> None:
    class Hanging(ScriptedTransport):
        async def request(self, method: str, path: str, **options: Any) -> ScriptedResponse:
            if path not in DISCOVERY:
                await asyncio.Event().wait()
            return await super().request(method, path, **options)

    heard = RecordingObserver()
    client = Client(Hanging(), clock=SimulatedClock(), observer=heard)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(3):
            await client.get(CONFIG_MAP, KEY)

    assert heard.calls == ["GET <error>"]
    assert heard.details[0]["seconds"] == 3.0


async def test_what_the_transport_makes_of_a_refusal_is_heard_as_the_refusal() -> None:
    client, heard = client_of(UnauthorizedError("expired"))
    with pytest.raises(UnauthorizedError):
        await client.get(CONFIG_MAP, KEY)

    assert heard.calls == ["GET 401"]


async def test_a_stream_is_heard_when_it_opens() -> None:
    client, heard = client_of(ScriptedStream(), ScriptedStream(403, {"message": "no"}), REFUSED)
    async with client.watch(CONFIG_MAP):
        assert heard.calls == ["GET 200"]
    async with AsyncExitStack() as opened:
        for error in (ForbiddenError, NotConnectedError):
            with pytest.raises(error):
                await opened.enter_async_context(client.watch(CONFIG_MAP))

    assert heard.calls == ["GET 200", "GET 403", "GET <error>"]
    assert heard.details[0]["path"] == "/api/v1/configmaps"


async def test_clients_that_differ_in_their_observer_share_connections_and_discovery() -> None:
    class Counting(ScriptedTransport):
        discoveries = 0

        async def request(self, method: str, path: str, **options: Any) -> ScriptedResponse:
            self.discoveries += path == "/api"
            return await super().request(method, path, **options)

    transport, heard = Counting(ScriptedResponse(json=WEB), ScriptedResponse(json=WEB)), RecordingObserver()
    silent = Client(transport, clock=SimulatedClock())
    await silent.get(CONFIG_MAP, KEY)
    await silent.with_observer(heard).get(CONFIG_MAP, KEY)

    assert heard.calls == ["GET 200"]
    assert transport.discoveries == 1


async def test_a_client_with_its_own_connections_has_no_observer_and_is_closed_by_itself() -> None:
    transport, heard = ScriptedTransport(ScriptedResponse(json=WEB), ScriptedResponse(json=WEB)), RecordingObserver()
    client = Client(transport, clock=SimulatedClock(), observer=heard)
    async with client.with_own_connections() as other:
        await other.get(CONFIG_MAP, KEY)

    assert heard.calls == []
    assert not transport.closed
