"""Components in kopf: kopf runs as a user starts it, in its own process, on both clusters."""

from __future__ import annotations

import asyncio
import os
import sys
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.metadata import version
from pathlib import Path

import kopf
import pytest

from examples.with_kopf.webapp import USER_AGENT, WEBAPP, as_kopf_error
from konverge.errors import DecodeError, KonvergeError, NotFoundError, TerminalError
from konverge.kube import GroupVersionKind, Object, ObjectKey
from konverge_cluster._internal.testing.audit_requests import AuditedRequest
from konverge_cluster.testing import Cluster
from tests.docs.pages import REPOSITORY

EXAMPLE = REPOSITORY / "examples" / "with_kopf" / "webapp.py"
DEPLOYMENT = GroupVersionKind("apps", "v1", "Deployment")
STATEFUL_SET = GroupVersionKind("apps", "v1", "StatefulSet")
KOPF = f"kopf/{version('kopf')}"
READING = {"get", "list", "watch"}


@asynccontextmanager
async def kopf_running(cluster: Cluster, folder: Path, interval_seconds: int) -> AsyncIterator[None]:
    """Run ``kopf run`` in its own process, after the definition is installed."""
    own = {"KUBECONFIG": str(await cluster.write_kubeconfig()), "WEBAPP_INTERVAL_SECONDS": str(interval_seconds)}
    with (folder / "kopf.log").open("wb") as log:
        running = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "kopf", "run", str(EXAMPLE), "--standalone", "--namespace", cluster.namespace,
            stdin=asyncio.subprocess.DEVNULL, stdout=log, stderr=log, env=os.environ | own,
        )  # fmt: skip
    try:
        await cluster.eventually(lambda: cluster.client.mapping(WEBAPP), describe="the definition is installed")
        yield
    except AssertionError as error:
        error.add_note((folder / "kopf.log").read_text())
        raise
    finally:
        running.terminate()
        await running.wait()


def webapp(cluster: Cluster, **spec: object) -> Object:
    metadata = {"name": "shop", "namespace": cluster.namespace}
    spec = {"image": "nginx:1.29", **spec}
    return {"apiVersion": WEBAPP.api_version, "kind": WEBAPP.kind, "metadata": metadata, "spec": spec}


@pytest.mark.slow
@pytest.mark.anyio
@pytest.mark.real_time
async def test_kopf_reconciles_repairs_and_suspends_components_and_is_quiet_when_they_are_settled(
    cluster: Cluster, tmp_path: Path
) -> None:
    client, shop = cluster.client, ObjectKey(cluster.namespace, "shop")
    front = ObjectKey(cluster.namespace, "shop-frontend")

    async def is_gone() -> bool:
        try:
            await client.get(WEBAPP, shop)
        except NotFoundError:
            return True
        return False

    def passes() -> int:
        return sum(request.path.endswith("/webapps/shop") for request in cluster.list_requests(USER_AGENT))

    def writes() -> list[AuditedRequest]:
        requests = cluster.list_requests(USER_AGENT) + cluster.list_requests(KOPF)
        return [request for request in requests if request.verb not in READING]

    async def three_idle_passes() -> bool:
        before, written = passes(), Counter(writes())
        await cluster.eventually(lambda: passes() >= before + 3)
        return Counter(writes()) == written

    async with kopf_running(cluster, tmp_path, interval_seconds=1):
        await client.create(webapp(cluster))
        await cluster.wait_for_condition(WEBAPP, "shop", reason="Healthy")

        first = await client.get(DEPLOYMENT, front)
        await client.delete(DEPLOYMENT, front)
        await cluster.eventually(lambda: client.get(DEPLOYMENT, front), describe="the Deployment comes back")
        await cluster.wait_for_condition(WEBAPP, "shop", reason="Healthy")

        await cluster.eventually(three_idle_passes, timeout_seconds=60, describe="three passes with nothing to do")
        settled = await client.get(WEBAPP, shop)

        await client.apply(webapp(cluster, suspended=True), field_manager="examples")
        await cluster.wait_for_condition(WEBAPP, "shop", reason="Suspended")
        suspended = await client.get(STATEFUL_SET, ObjectKey(cluster.namespace, "shop-backend"))

        await client.delete(WEBAPP, shop)
        await cluster.eventually(is_gone, describe="kopf has taken its finalizer away")

    assert first["metadata"]["ownerReferences"][0]["uid"] == settled["metadata"]["uid"]
    assert settled["metadata"]["finalizers"] == ["kopf.zalando.org/KopfFinalizerMarker"]
    assert list(settled["metadata"]["annotations"]) == ["kopf.zalando.org/last-handled-configuration"]
    assert suspended["spec"]["replicas"] == 0


@pytest.mark.slow
@pytest.mark.anyio
@pytest.mark.real_time
async def test_kopf_wakes_a_component_when_its_grace_is_over(cluster: Cluster, tmp_path: Path) -> None:
    async with kopf_running(cluster, tmp_path, interval_seconds=600):
        await cluster.client.create(webapp(cluster, store="konverge.test/never-ready:1", grace="2s"))

        await cluster.wait_for_condition(WEBAPP, "shop", status="False", type="BackendReady", reason="Down")


@pytest.mark.parametrize(
    ("error", "expected", "delay"),
    [
        (TerminalError("no"), kopf.PermanentError, None),
        (DecodeError("WebApp a/b", "spec.image", "missing"), kopf.PermanentError, None),
        (KonvergeError("not now"), kopf.TemporaryError, 8),
        (ValueError("a mistake"), kopf.TemporaryError, 8),
    ],
)
def test_an_error_becomes_the_one_by_which_kopf_tries_again_or_does_not(
    error: Exception, expected: type[Exception], delay: float | None
) -> None:
    found = as_kopf_error(error, retry=3)

    assert (type(found), str(found), getattr(found, "delay", None)) == (expected, str(error), delay)


def test_the_delay_grows_to_a_minute() -> None:
    found = [as_kopf_error(KonvergeError("not now"), retry) for retry in (0, 1, 5, 6, 5000)]

    assert [getattr(error, "delay", None) for error in found] == [1, 2, 32, 60, 60]
