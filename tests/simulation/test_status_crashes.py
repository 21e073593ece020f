"""A crash at any request leaves a status of the author from which the next run reaches the same end (invariant 5).

The operator of docs/own-status.md creates a database and changes its version. It dies at one request, before it is sent
or after the server acted, and a new one starts.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from konverge.client import Client
from konverge.clock import SeededEntropy, SimulatedClock, SimulatedLoop
from konverge.crd import crd_manifest, find_definition
from konverge.kube import Object, ObjectKey
from konverge.operator import Operator
from konverge_cluster.embedded import LocalCluster
from tests.docs.pages import load_page_operator
from tests.simulation.crashing_transport import CrashingTransport
from tests.simulation.operator_restarts import run_with_successor, wait_until_served

MAIN = ObjectKey("default", "main")


@pytest.mark.slow
@pytest.mark.parametrize("is_answered", [False, True], ids=["before the request", "after the server acted"])
def test_the_status_is_the_same_after_a_crash_at_each_request(tmp_path: Path, is_answered: bool) -> None:
    operator = load_page_operator("docs/own-status.md", tmp_path)
    expected, requests = _run(operator, fatal=0, is_answered=False)
    assert expected["phase"] == "Running"
    assert expected["version"] == "18"
    assert expected["observedGeneration"] == 2
    assert requests > 8

    for fatal in range(1, requests + 1):
        status, _ = _run(operator, fatal=fatal, is_answered=is_answered)
        assert status == expected, f"a crash at request {fatal}"


def _run(operator: Operator, *, fatal: int, is_answered: bool) -> tuple[Object, int]:
    with asyncio.Runner(loop_factory=SimulatedLoop) as runner:
        return runner.run(_reconcile(operator, fatal=fatal, is_answered=is_answered))


async def _reconcile(operator: Operator, *, fatal: int, is_answered: bool) -> tuple[Object, int]:
    """Return the final status without times, and the number of requests of the first operator."""
    gvk, clock = find_definition(operator.custom_resources[0]).gvk, SimulatedClock()
    async with LocalCluster(clock=clock, entropy=SeededEntropy()) as cluster:
        admin = Client(cluster.transport(), user_agent="admin", clock=clock)
        await admin.create(crd_manifest(operator.custom_resources[0]))
        await wait_until_served(admin, gvk, clock)
        first = CrashingTransport(cluster.transport(), fatal=fatal, answered=is_answered)
        async with run_with_successor(operator, cluster, first, clock):
            metadata = {"namespace": MAIN.namespace, "name": MAIN.name}
            await admin.create({"apiVersion": gvk.api_version, "kind": gvk.kind, "metadata": metadata, "spec": {}})
            await clock.sleep(60)
            await admin.patch(gvk, MAIN, {"spec": {"version": "18"}}, patch_type="merge")
            await clock.sleep(120)
        status = (await admin.get(gvk, MAIN))["status"]
    conditions = [
        {name: value for name, value in entry.items() if "Time" not in name} for entry in status["conditions"]
    ]
    return {**status, "conditions": sorted(conditions, key=lambda entry: str(entry["type"]))}, first.sent
