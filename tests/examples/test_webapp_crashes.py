"""The WebApp operator is killed at any moment and started again: the final state is the same."""

from __future__ import annotations

import asyncio
import copy
import sys
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
import yaml

from konverge.kube import GroupVersionKind, Object, ObjectKey, find_condition
from konverge_cluster.testing import Cluster

pytestmark = [pytest.mark.anyio, pytest.mark.real_time]

EXAMPLE = Path(__file__).parents[2] / "examples" / "webapp"
USER = "examples"
CONDITIONS = 4
OPERATOR = f"konverge/{version('konverge')} (webapp)"
WEBAPP = GroupVersionKind("demo.konverge.dev", "v1alpha1", "WebApp")
NAMESPACE = GroupVersionKind("", "v1", "Namespace")
CONFIG_MAP = GroupVersionKind("", "v1", "ConfigMap")
SECRET = GroupVersionKind("", "v1", "Secret")
SERVICE = GroupVersionKind("", "v1", "Service")
STATEFUL_SET = GroupVersionKind("apps", "v1", "StatefulSet")
DEPLOYMENT = GroupVersionKind("apps", "v1", "Deployment")
MANAGED = (CONFIG_MAP, SECRET, SERVICE, STATEFUL_SET, DEPLOYMENT)


@dataclass(frozen=True)
class Moment:
    """The moment of the kill: the first time that an object of this kind meets a condition.

    Args:
        gvk: The kind to watch.
        is_reached: Returns True for an object that meets the condition.
        spec: The change of the spec of a WebApp that was Ready.
        reason: The reason of ``Ready`` at the end.
    """

    gvk: GroupVersionKind
    is_reached: Callable[[Object], bool]
    spec: dict[str, Any] = field(default_factory=dict)
    reason: str = "Healthy"


def is_named(name: str) -> Callable[[Object], bool]:
    return lambda obj: bool(obj["metadata"]["name"] == name)


def has_condition(condition_type: str, reason: str) -> Callable[[Object], bool]:
    def check(obj: Object) -> bool:
        found = find_condition(obj, condition_type)
        return found is not None and found.reason == reason

    return check


MOMENTS = {
    "its first object is there": Moment(CONFIG_MAP, is_named("shop-config")),
    "the first component is half made": Moment(SECRET, is_named("shop-backend")),
    "the second component may begin": Moment(WEBAPP, has_condition("BackendReady", "Healthy")),
    "the application is being suspended": Moment(
        STATEFUL_SET, lambda obj: obj["spec"]["replicas"] == 0, {"suspended": True}, "Suspended"
    ),
    "a release is being rolled out": Moment(
        DEPLOYMENT, lambda obj: "app:2" in str(obj["spec"]), {"image": "konverge.test/app:2"}
    ),
    "a feature has gone": Moment(DEPLOYMENT, lambda obj: "OTEL" not in str(obj["spec"]), {"tracing": False}),
}


@pytest.mark.slow
@pytest.mark.parametrize("moment", MOMENTS.values(), ids=MOMENTS)
async def test_killed_when(moment: Moment, cluster: Cluster, tmp_path: Path) -> None:
    async with operator(cluster, cluster.namespace, tmp_path) as running:
        await change(cluster, cluster.namespace, moment)
        running.kill()
        await running.wait()
    async with operator(cluster, cluster.namespace, tmp_path):
        after_a_crash = await read_final_state(cluster, cluster.namespace, moment)
    made = creations(cluster)

    async with other_namespace(cluster) as twin, operator(cluster, twin, tmp_path):
        await change(cluster, twin, moment)
        without_a_crash = await read_final_state(cluster, twin, moment)

    assert after_a_crash == without_a_crash
    assert len(made) >= len(after_a_crash) - CONDITIONS
    assert {path: times for path, times in made.items() if times > 1} == {}


async def change(cluster: Cluster, namespace: str, moment: Moment) -> None:
    """Do what the user does, and return when the moment has come."""
    webapp: Object = yaml.safe_load((EXAMPLE / "webapp.yaml").read_text())
    webapp["metadata"]["namespace"] = namespace
    webapp["spec"]["image"] = "konverge.test/app:1"
    if moment.spec:
        await cluster.client.apply(webapp, field_manager=USER)
        await ready(cluster, namespace, "Healthy")
    async with watching(cluster, namespace, moment):
        await cluster.client.apply(webapp | {"spec": webapp["spec"] | moment.spec}, field_manager=USER)


async def read_final_state(cluster: Cluster, namespace: str, moment: Moment) -> dict[str, Any]:
    """Wait for the final state; return all objects of the operator without the parts that differ between runs."""
    webapp = await ready(cluster, namespace, moment.reason)
    conditions = webapp["status"]["conditions"]
    found: dict[str, Any] = {name["type"]: (name["status"], name["reason"], name["message"]) for name in conditions}
    for gvk in MANAGED:
        for obj in (await cluster.client.list(gvk, namespace=namespace)).items:
            if any(owner["kind"] == WEBAPP.kind for owner in obj["metadata"].get("ownerReferences", ())):
                found[f"{gvk.kind}/{obj['metadata']['name']}"] = essence(obj)
    return found


@asynccontextmanager
async def other_namespace(cluster: Cluster) -> AsyncIterator[str]:
    """Create a second namespace, which is deleted afterwards."""
    name = f"{cluster.namespace}-twin"
    await cluster.client.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    yield name
    await cluster.client.delete(NAMESPACE, ObjectKey("", name))


@asynccontextmanager
async def operator(cluster: Cluster, namespace: str, folder: Path) -> AsyncIterator[asyncio.subprocess.Process]:
    """Run ``konverge run`` in its own process, which is killed at the end."""
    command = ["run", str(EXAMPLE / "operator.py"), "--kubeconfig", str(await cluster.write_kubeconfig())]
    with (folder / "operator.log").open("ab") as log:
        running = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "konverge", *command, "--install-crds", "--namespace", namespace,
            stdin=asyncio.subprocess.DEVNULL, stdout=log, stderr=log,
        )  # fmt: skip
    try:
        await cluster.eventually(lambda: cluster.client.mapping(WEBAPP), describe="the definition is installed")
        yield running
    finally:
        if running.returncode is None:
            running.kill()
            await running.wait()


@asynccontextmanager
async def watching(cluster: Cluster, namespace: str, moment: Moment) -> AsyncIterator[None]:
    """Leave the block at the given moment."""
    started = asyncio.Event()

    async def wait_for_it() -> None:
        async with cluster.client.watch(moment.gvk, namespace=namespace) as events:
            started.set()
            async for event in events:
                if event.type in ("ADDED", "MODIFIED") and moment.is_reached(event.object):
                    return

    async with asyncio.timeout(30), asyncio.TaskGroup() as tasks:
        tasks.create_task(wait_for_it())
        await started.wait()
        yield


async def ready(cluster: Cluster, namespace: str, reason: str) -> Object:
    """Wait until the WebApp reports this for its current generation."""

    async def reports() -> Object | None:
        webapp = await cluster.client.get(WEBAPP, ObjectKey(namespace, "shop"))
        found = find_condition(webapp, "Ready")
        generation = webapp["metadata"]["generation"]
        is_so = found is not None and (found.reason, found.observed_generation) == (reason, generation)
        return webapp if is_so else None

    return await cluster.eventually(reports, describe=f"Ready has the reason {reason}")


def essence(obj: Object) -> Object:
    """Return the labels, the desired fields, and the owning components of an object."""
    kept = {name: copy.deepcopy(obj[name]) for name in ("spec", "data") if name in obj}
    for assigned in ("clusterIP", "clusterIPs"):
        kept.get("spec", {}).pop(assigned, None)
    managers = {entry["manager"].rpartition("/")[0] for entry in obj["metadata"]["managedFields"]}
    ours = sorted(name for name in managers if name.startswith("WebApp/"))
    return kept | {"labels": obj["metadata"]["labels"], "managers": ours}


def creations(cluster: Cluster) -> Counter[str]:
    """Count the creates of each object by the operator in the audit log, without events and reviews."""
    made = (request.path for request in cluster.list_requests(OPERATOR) if request.code == 201)
    return Counter(path for path in made if "/events.k8s.io/" not in path and "/authorization.k8s.io/" not in path)
