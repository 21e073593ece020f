"""An engine without a cluster, for several namespaces at once."""

from __future__ import annotations

import asyncio
import threading

import pytest

from konverge.clock import SystemClock
from konverge.resolution import Reason, Reference, ResolutionError
from konverge.resolution.engine import Requester
from konverge.resolution.local import local_engine
from konverge.resolution.resolvers import standard_resolvers

pytestmark = pytest.mark.anyio


async def test_names_without_an_answer_hold_up_only_the_namespace_that_asks(monkeypatch: pytest.MonkeyPatch) -> None:
    answered = threading.Event()
    hanging: list[str] = []

    def addresses(host: str, port: int) -> list[str]:
        if host.startswith("hangs"):
            hanging.append(host)
            answered.wait(10)
        return ["127.0.0.1"]

    monkeypatch.setattr("konverge.network.connecting._addresses", addresses)
    async with local_engine(standard_resolvers(["http"])) as engine:

        def asked(host: str, namespace: str) -> asyncio.Task[object]:
            reference = Reference("http", {"url": f"http://{host}.example/a.yaml"})
            return asyncio.create_task(engine.resolve(reference, Requester(namespace), seconds=5))

        greedy = [asked(f"hangs-{number}", "greedy") for number in range(60)]
        try:
            async with asyncio.timeout(5):
                while len(hanging) < 8:
                    await SystemClock().sleep(0.001)
            with pytest.raises(ResolutionError) as caught:
                await asked("answers", "modest")
            assert caught.value.reason is Reason.DENIED
        finally:
            answered.set()
            for task in greedy:
                task.cancel()
            await asyncio.wait(greedy)
