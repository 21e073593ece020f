"""An operator that may have lost its lease sends reads only."""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable

import pytest

from konverge.client import Client
from konverge.clock import SeededEntropy, SimulatedClock
from konverge.errors import NoPermitError, NotConnectedError
from konverge.kube import GroupVersionKind, Object, ObjectKey
from tests.client.scripted_transport import Script, ScriptedResponse, ScriptedTransport

pytestmark = pytest.mark.anyio

CONFIG_MAP = GroupVersionKind("", "v1", "ConfigMap")
KEY = ObjectKey("default", "web")
WEB: Object = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "web", "namespace": "default"}}
REFUSED = NotConnectedError("connection refused")

WRITES: dict[str, Callable[[Client], Awaitable[object]]] = {
    "create": lambda client: client.create(WEB),
    "update": lambda client: client.update(WEB),
    "patch": lambda client: client.patch(CONFIG_MAP, KEY, {}, patch_type="merge"),
    "apply": lambda client: client.apply(WEB, field_manager="me"),
    "dry run": lambda client: client.apply(WEB, field_manager="me", dry_run=True),
    "delete": lambda client: client.delete(CONFIG_MAP, KEY),
}


class Permit:
    """A permit with remaining times from the test."""

    def __init__(self, *seconds: float) -> None:
        self._seconds = list(seconds)

    def seconds_left(self) -> float:
        return self._seconds.pop(0) if len(self._seconds) > 1 else self._seconds[0]


def client_of(permit: Permit, *script: Script) -> tuple[Client, ScriptedTransport]:
    transport = ScriptedTransport(*script)
    return Client(transport, clock=SimulatedClock(), entropy=SeededEntropy(), permit=permit), transport


@pytest.mark.parametrize("verb", sorted(WRITES))
@pytest.mark.parametrize("seconds", [0.0, -1.0])
async def test_a_write_without_a_permit_is_not_sent(verb: str, seconds: float) -> None:
    client, transport = client_of(Permit(seconds))

    with pytest.raises(NoPermitError, match="was not sent: this process may have lost its lease"):
        await WRITES[verb](client)
    assert transport.asked == []


async def test_reading_needs_no_permit() -> None:
    client, _ = client_of(Permit(0.0), ScriptedResponse(json=WEB))

    assert await client.get(CONFIG_MAP, KEY) == WEB


async def test_a_write_is_given_no_more_time_than_the_permit_lasts() -> None:
    client, transport = client_of(Permit(3.0), ScriptedResponse(json=WEB))
    await client.update(WEB)

    assert transport.asked[0].timeout_seconds == 3.0


async def test_a_permit_that_lasts_for_ever_leaves_the_deadline_as_it_is() -> None:
    client, transport = client_of(Permit(math.inf), ScriptedResponse(json=WEB))
    await client.update(WEB)

    assert transport.asked[0].timeout_seconds == 30.0


async def test_the_permit_is_asked_again_before_a_write_is_repeated() -> None:
    client, transport = client_of(Permit(3.0, 0.0), REFUSED, ScriptedResponse(json=WEB))

    with pytest.raises(NoPermitError):
        await client.update(WEB)
    assert len(transport.asked) == 1


async def test_a_client_with_a_permit_leaves_the_one_that_it_is_from_alone() -> None:
    client, transport = client_of(Permit(9.0), ScriptedResponse(json=WEB))
    forbidden = client.with_permit(Permit(0.0))
    await client.update(WEB)

    with pytest.raises(NoPermitError):
        await forbidden.update(WEB)
    assert transport.paths == ["/api/v1/namespaces/default/configmaps/web"]


async def test_a_client_with_its_own_connections_has_no_permit() -> None:
    client, _ = client_of(Permit(0.0), ScriptedResponse(json=WEB))

    assert await client.with_own_connections().update(WEB) == WEB
