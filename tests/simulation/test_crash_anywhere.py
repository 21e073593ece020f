"""A crash between any two requests leaves a state from which the next run converges to the same end (invariant 5).

The life of the WebApp example has chapters. Each runs once to count its requests. Then it runs again for each request:
the operator dies at that request (before it is sent, or after the server acted), and a new one starts. The chapter must
end in the same state, including field ownership, so that later chapters cannot differ. Time is simulated.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from konverge._internal.cli.operator_file import OperatorReference, load_operator
from konverge.client import Client
from konverge.clock import SeededEntropy, SimulatedClock, SimulatedLoop
from konverge.crd import crd_manifest
from konverge.kube import GroupVersionKind, Object, ObjectKey, find_condition
from konverge_cluster.embedded import LocalCluster
from tests.simulation.crashing_transport import CrashingTransport
from tests.simulation.operator_restarts import run_with_successor, wait_until_served

EXAMPLE = Path(__file__).parents[2] / "examples" / "webapp"
WEB_APP = GroupVersionKind("demo.konverge.dev", "v1alpha1", "WebApp")
SHOP = ObjectKey("default", "shop")
FRONTEND = GroupVersionKind("apps", "v1", "Deployment")
CHILDREN = (
    GroupVersionKind("", "v1", "ConfigMap"),
    GroupVersionKind("", "v1", "Secret"),
    GroupVersionKind("", "v1", "Service"),
    FRONTEND,
    GroupVersionKind("apps", "v1", "StatefulSet"),
)


@dataclass(frozen=True)
class Chapter:
    """One change of the WebApp, and the earlier changes, which complete first."""

    change: Mapping[str, object]
    before: tuple[Mapping[str, object], ...] = ()


CREATED: Mapping[str, object] = {}
SUSPENDED: Mapping[str, object] = {"suspended": True}
CHAPTERS = {
    "it comes up": Chapter(CREATED),
    "it changes": Chapter({"replicas": 3, "tracing": False}, (CREATED,)),
    "it is suspended": Chapter(SUSPENDED, (CREATED,)),
    "it wakes": Chapter({"suspended": False}, (CREATED, SUSPENDED)),
}


@dataclass
class Outcome:
    """The final state of a chapter, and the requests of the first operator before it and until its end."""

    before: int
    requests: int
    state: dict[str, Any]
    creations: Counter[str]


def run(run_chapter: Any) -> Outcome:
    """Run one coroutine to its end in simulated time."""
    with asyncio.Runner(loop_factory=SimulatedLoop) as runner:
        outcome: Outcome = runner.run(run_chapter)
    return outcome


async def run_chapter(chapter: Chapter, *, fatal: int = 0, answered: bool = False) -> Outcome:
    """Run a chapter and all earlier ones, with one death of the operator on the way."""
    operator = load_operator(OperatorReference(EXAMPLE / "operator.py"))
    clock = SimulatedClock()
    async with LocalCluster(clock=clock, entropy=SeededEntropy()) as cluster:
        creations: Counter[str] = Counter()
        cluster.api.subscribe(lambda change: creations.update(_list_created(change.old, change.new)))
        admin = Client(cluster.transport(), user_agent="admin", clock=clock)
        await admin.create(crd_manifest(operator.custom_resources[0]))
        await wait_until_served(admin, WEB_APP, clock)
        first = CrashingTransport(cluster.transport(), fatal=fatal, answered=answered)
        async with run_with_successor(operator, cluster, first, clock):
            for change in chapter.before:
                await _change(admin, clock, change)
            before = first.sent
            await _change(admin, clock, chapter.change)
            first.died.set()
            await clock.sleep(60)
        state: dict[str, Any] = {
            f"{gvk.kind}/{obj['metadata']['name']}": _essence(obj)
            for gvk in CHILDREN
            for obj in (await admin.list(gvk, namespace=SHOP.namespace)).items
            if obj["metadata"].get("ownerReferences")
        }
        state["conditions"] = _conditions(await admin.get(WEB_APP, SHOP))
        return Outcome(before, first.sent, state, creations)


async def _change(admin: Client, clock: SimulatedClock, change: Mapping[str, object]) -> None:
    """Create or change the WebApp, and wait until that is reconciled."""
    if change is CREATED:
        await admin.create(yaml.safe_load((EXAMPLE / "webapp.yaml").read_text()))
    else:
        await admin.patch(WEB_APP, SHOP, {"spec": change}, patch_type="merge")
    while not await _is_done(admin):
        await clock.sleep(0.5)


async def _is_done(admin: Client) -> bool:
    owner = await admin.get(WEB_APP, SHOP)
    if owner["spec"].get("suspended"):
        return _reason(owner, "FrontendReady") == "Suspended"
    if _reason(owner, "Ready") != "Healthy":
        return False
    live = await admin.get(FRONTEND, ObjectKey(SHOP.namespace, "shop-frontend"))
    return bool(live["status"].get("readyReplicas") == owner["spec"]["replicas"])


def _reason(owner: Object, condition_type: str) -> str:
    condition = find_condition(owner, condition_type)
    current = condition is not None and condition.observed_generation == owner["metadata"]["generation"]
    return condition.reason if condition is not None and current else ""


def _list_created(old: Object | None, new: Object | None) -> list[str]:
    if old is not None or new is None or not _belongs_to_owner(new):
        return []
    return [f"{new['kind']}/{new['metadata']['name']}"]


def _belongs_to_owner(obj: Object) -> bool:
    references = obj["metadata"].get("ownerReferences") or []
    return any(reference["kind"] == WEB_APP.kind for reference in references)


def _essence(obj: Object) -> Object:
    """Return an object without the values that the server generates for each run."""
    spec = {name: value for name, value in obj.get("spec", {}).items() if name not in {"clusterIP", "clusterIPs"}}
    return {name: value for name, value in obj.items() if name in {"data", "type"}} | {
        "spec": spec,
        "labels": obj["metadata"].get("labels"),
        "owned": {
            (entry["manager"], entry["operation"], entry.get("subresource", "")): entry["fieldsV1"]
            for entry in obj["metadata"]["managedFields"]
        },
    }


def _conditions(owner: Object) -> list[tuple[str, str, str]]:
    return sorted((each["type"], each["status"], each["reason"]) for each in owner["status"]["conditions"])


@pytest.fixture(scope="module", params=CHAPTERS)
def chapter(request: pytest.FixtureRequest) -> Chapter:
    """Return the chapter during which the operator dies."""
    return CHAPTERS[request.param]


@pytest.fixture(scope="module")
def undisturbed(chapter: Chapter) -> Outcome:
    """Return the outcome of the chapter without a death."""
    return run(run_chapter(chapter))


def test_the_story_ends_well_without_a_crash(undisturbed: Outcome) -> None:
    assert undisturbed.requests > undisturbed.before
    assert ("Ready", "True") in [(condition, status) for condition, status, _ in undisturbed.state["conditions"]]
    assert max(undisturbed.creations.values()) == 1


@pytest.mark.slow
@pytest.mark.parametrize("answered", [False, True], ids=["before the request", "after the server acted"])
def test_a_crash_at_any_request_ends_in_the_same_state(chapter: Chapter, undisturbed: Outcome, answered: bool) -> None:
    for fatal in range(undisturbed.before + 1, undisturbed.requests + 1):
        outcome = run(run_chapter(chapter, fatal=fatal, answered=answered))
        assert outcome.state == undisturbed.state, f"the operator died at request {fatal}"
        assert outcome.creations == undisturbed.creations, f"an object was made twice after a death at request {fatal}"
