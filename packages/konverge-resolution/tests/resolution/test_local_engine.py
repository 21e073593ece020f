"""An engine without a cluster, for several namespaces at once."""

from __future__ import annotations

import asyncio

import pytest

from konverge.errors import ConfigurationError
from konverge_resolution import Reason, Reference, ResolutionError
from konverge_resolution._internal.engine import Requester
from konverge_resolution._internal.policy import Policy
from konverge_resolution._internal.resolvers import load_resolvers
from konverge_resolution.local_engine import LocalSetup, local_engine
from tests.resolution.network.http_servers import HangingDns

pytestmark = pytest.mark.anyio


async def test_names_without_an_answer_hold_up_only_the_namespace_that_asks(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = HangingDns("127.0.0.1")
    monkeypatch.setattr("konverge_resolution._internal.network.dialer._query_addresses", machine)
    async with local_engine(load_resolvers(["http"])) as engine:

        def asked(host: str, namespace: str) -> asyncio.Task[object]:
            reference = Reference("http", {"url": f"http://{host}.example/a.yaml"})
            return asyncio.create_task(engine.resolve(reference, Requester(namespace), seconds=5))

        greedy = [asked(f"hangs-{number}", "greedy") for number in range(60)]
        try:
            await machine.wait_for_lookups(8)
            with pytest.raises(ResolutionError) as caught:
                await asked("answers", "modest")
            assert caught.value.reason is Reason.DENIED
        finally:
            machine.release()
            for task in greedy:
                task.cancel()
            await asyncio.wait(greedy)


async def test_a_policy_for_a_resolver_that_does_not_exist_is_an_error_before_anything_is_fetched() -> None:
    setup = LocalSetup(policies=(Policy("ours", resolvers=("hub",)), Policy("theirs", resolvers=("http", "gti"))))
    with pytest.raises(ConfigurationError, match="policy theirs: resolvers: .* found 'gti'; .* did you mean 'git'"):
        async with local_engine(load_resolvers(["http"]), setup):
            raise AssertionError("the policy limits nothing")
