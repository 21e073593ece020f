"""A crash of a box's operator at any request: the final state is the same as without the crash."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any

import pytest

from konverge.client import Client
from konverge.clock import SeededEntropy, SimulatedClock, SimulatedLoop
from konverge.crd import crd_manifest
from konverge.errors import KindNotServedError
from konverge.kube import GroupVersionKind, Object, ObjectKey, find_condition
from konverge_box._internal.runtime import build_box_operator
from konverge_cluster.embedded import LocalCluster
from tests.box.running.box_harness import CONFIG_MAP, SECRET, SHELF, build_box, build_config_map, build_custom_resource
from tests.simulation.crashing_transport import CrashingTransport

TOP = ObjectKey("default", "top")
SPEC = {"word": "a", "members": ["ada", "bob"], "tiers": ["dev"]}
JOB = GroupVersionKind("batch", "v1", "Job")
BOX = build_box(
    shelf=build_custom_resource(
        "Shelf",
        finalizers=["boxes.konverge.test/shelf"],
        onCreate=[
            {
                "name": "first",
                "secrets": [{"name": "key", "once": True, "stringData": {"key": "{{ randomAlphanumeric(16) }}"}}],
                "configMaps": [build_config_map("seed", grown="{{ spec.word }}")],
            }
        ],
        onReconcile=[
            {"configMaps": [build_config_map("one", word="{{ spec.word }}"), build_config_map("two", word="two")]},
            {
                "name": "late",
                "configMaps": [
                    {
                        **build_config_map(word="{{ children.configMaps.one.data.word }}{{ environment }}"),
                        "forEach": [
                            {"field": "spec.members", "as": "member"},
                            {"field": "spec.tiers", "as": "environment"},
                        ],
                        "name": "{{ key }}",
                        "readyWhen": ["{{ self.data.word | hasPrefix(children.configMaps.one.data.word) }}"],
                    }
                ],
            },
        ],
        status={"fields": [{"path": "word", "value": "{{ children.configMaps.one.data.word }}"}]},
    )
)


@dataclass
class Outcome:
    requests: int
    state: dict[str, Any]
    secrets: set[str]


async def run_scenario(*, fatal: int = 0, answered: bool = False) -> Outcome:
    """Create a shelf, wait until it is ready, and change it, while the operator crashes at one request."""
    operator, clock = build_box_operator(BOX), SimulatedClock()
    async with LocalCluster(clock=clock, entropy=SeededEntropy()) as cluster:
        secrets: set[str] = set()
        cluster.api.subscribe(lambda change: secrets.update(values(change.new)))
        admin = Client(cluster.transport(), user_agent="admin", clock=clock)
        await admin.create(crd_manifest(operator.custom_resources[0]))
        await wait_until_served(admin, clock)
        first = CrashingTransport(cluster.transport(), fatal=fatal, answered=answered)
        async with asyncio.timeout(3600), asyncio.TaskGroup() as tasks:
            running = [tasks.create_task(operate(first, clock))]

            async def succeed() -> None:
                await first.died.wait()
                running[0].cancel()
                await clock.sleep(2)
                running.append(asyncio.create_task(operate(CrashingTransport(cluster.transport()), clock)))

            tasks.create_task(succeed())
            metadata = {"name": TOP.name, "namespace": TOP.namespace}
            shelf = {"apiVersion": SHELF.api_version, "kind": SHELF.kind, "metadata": metadata, "spec": SPEC}
            await admin.create(shelf)
            await until_ready(admin, clock)
            await admin.patch(SHELF, TOP, {"spec": {"word": "b"}}, patch_type="merge")
            await until_ready(admin, clock)
            sent = first.sent
            first.died.set()
            await clock.sleep(60)
            for task in running:
                task.cancel()
        owner = await admin.get(SHELF, TOP)
        state: dict[str, Any] = {
            "status": {name: value for name, value in owner["status"].items() if name != "conditions"},
            "marks": sorted(owner["metadata"]["annotations"]["konverge.dev/created"]),
            "reasons": {each["type"]: each["reason"] for each in owner["status"]["conditions"]},
        }
        for obj in (await admin.list(CONFIG_MAP, namespace=TOP.namespace)).items:
            if "ownerReferences" in obj["metadata"]:
                state[obj["metadata"]["name"]] = obj["data"]
        return Outcome(sent, state, secrets)


def values(obj: Object | None) -> list[str]:
    if obj is None or GroupVersionKind.of(obj) != SECRET or obj["metadata"]["name"] != "key":
        return []
    return [obj["data"]["key"]]


async def wait_until_served(admin: Client, clock: SimulatedClock) -> None:
    while True:
        try:
            await admin.mapping(SHELF)
        except KindNotServedError:
            await clock.sleep(1)
        else:
            return


async def operate(transport: CrashingTransport, clock: SimulatedClock) -> None:
    async with Client(transport, user_agent="box", clock=clock) as client:
        await build_box_operator(BOX).run(client, clock=clock, entropy=SeededEntropy())


async def until_ready(admin: Client, clock: SimulatedClock) -> None:
    while True:
        owner = await admin.get(SHELF, TOP)
        found = find_condition(owner, "Ready")
        current = found is not None and found.observed_generation == owner["metadata"]["generation"]
        if found is not None and current and found.status == "True":
            return
        await clock.sleep(0.5)


def run(scenario: Any) -> Outcome:
    with asyncio.Runner(loop_factory=SimulatedLoop) as runner:
        outcome: Outcome = runner.run(scenario)
    return outcome


@pytest.mark.slow
@pytest.mark.parametrize("answered", [False, True])
def test_a_crash_at_any_request_ends_in_the_same_state_with_the_same_secret(answered: bool) -> None:
    calm = run(run_scenario())
    assert len(calm.secrets) == 1
    assert calm.state["one"] == {"word": "b"}
    assert calm.state["seed"] == {"grown": "a"}

    for fatal in range(1, calm.requests + 1):
        stormy = run(run_scenario(fatal=fatal, answered=answered))
        assert stormy.state == calm.state, f"after a crash at request {fatal}"
        assert len(stormy.secrets) == 1, f"the secret was created again after a crash at request {fatal}"
