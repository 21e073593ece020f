"""Authentication at the embedded server: over HTTP with a token, in process without one."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator

import aiohttp
import pytest

from konverge.clock import SeededEntropy, SystemClock
from konverge_cluster.embedded import LocalCluster, User
from tests.cluster.embedded.conftest import ManualClock

pytestmark = pytest.mark.anyio

CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"


@pytest.fixture
async def guarded() -> AsyncIterator[LocalCluster]:
    tokens = {"open-sesame": User("ali", ("system:masters",)), "knock": User("visitor")}
    async with LocalCluster(
        clock=SystemClock(), entropy=SeededEntropy(), controllers=False, authorization="rbac", tokens=tokens
    ) as running:
        yield running


async def status_of(cluster: LocalCluster, token: str = "", path: str = CONFIG_MAPS) -> tuple[int, str]:
    headers = {"authorization": f"Bearer {token}"} if token else {}
    url = await cluster.serve()
    async with aiohttp.ClientSession() as session, session.get(f"{url}{path}", headers=headers) as answer:
        return answer.status, str((await answer.json(content_type=None)).get("message", ""))


async def test_a_known_token_says_who_asks(guarded: LocalCluster) -> None:
    assert (await status_of(guarded, "open-sesame"))[0] == 200
    assert (await status_of(guarded, "knock"))[1].startswith('configmaps is forbidden: User "visitor" cannot list')


async def test_an_unknown_token_is_turned_away(guarded: LocalCluster) -> None:
    assert await status_of(guarded, "guess") == (401, "Unauthorized")


async def test_without_a_token_one_is_anonymous(guarded: LocalCluster) -> None:
    status, message = await status_of(guarded)

    assert (status, message.startswith('configmaps is forbidden: User "system:anonymous" cannot list')) == (403, True)


async def test_within_the_process_one_is_an_administrator(guarded: LocalCluster) -> None:
    answer = await guarded.transport().request("GET", CONFIG_MAPS, timeout_seconds=1)

    assert answer.status == 200


async def token_of(cluster: LocalCluster, account: str) -> str:
    accounts = "/api/v1/namespaces/default/serviceaccounts"
    transport = cluster.transport()
    body = json.dumps({"metadata": {"name": account}}).encode()
    await transport.request("POST", accounts, body=body, timeout_seconds=1)
    issued = await transport.request("POST", f"{accounts}/{account}/token", body=b"{}", timeout_seconds=1)
    return str(json.loads(issued.body)["status"]["token"])


async def test_a_service_account_signs_in_with_the_token_that_it_was_given(guarded: LocalCluster) -> None:
    token = await token_of(guarded, "bot")

    assert 'User "system:serviceaccount:default:bot" cannot list' in (await status_of(guarded, token))[1]


async def test_a_token_ends_with_its_service_account(guarded: LocalCluster) -> None:
    token = await token_of(guarded, "bot")
    await guarded.transport().request("DELETE", "/api/v1/namespaces/default/serviceaccounts/bot", timeout_seconds=1)

    assert (await status_of(guarded, token))[0] == 401


async def test_a_token_ends_with_its_time() -> None:
    clock = ManualClock()
    async with LocalCluster(clock=clock, entropy=SeededEntropy(), controllers=False, authorization="rbac") as running:
        token = await token_of(running, "bot")
        headers = {"authorization": f"Bearer {token}"}
        early = await running.transport().request("GET", CONFIG_MAPS, headers=headers, timeout_seconds=1)
        clock.advance(3601)
        late = await running.transport().request("GET", CONFIG_MAPS, headers=headers, timeout_seconds=1)

    assert (early.status, late.status) == (403, 401)


async def test_a_changed_token_is_nobody_s(guarded: LocalCluster) -> None:
    token = await token_of(guarded, "bot")

    assert (await status_of(guarded, token[:-4] + "AAAA"))[0] == 401
