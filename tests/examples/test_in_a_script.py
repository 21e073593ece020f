"""A component in a plain script, run as a user would, on both clusters."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path

import pytest

from konverge.crd import crd_manifest
from konverge.kube import GroupVersionKind, Object, ObjectKey, find_condition
from konverge_cluster.testing import Cluster
from tests.docs.pages import REPOSITORY, load_page_operator

SCRIPT = REPOSITORY / "examples" / "in_a_script" / "reconcile_once.py"
USER_AGENT = "reconcile-once"
SITE = GroupVersionKind("example.com", "v1alpha1", "Site")
DEPLOYMENT = GroupVersionKind("apps", "v1", "Deployment")


async def run_once(cluster: Cluster) -> str:
    """Return the output of the script."""
    running = await asyncio.create_subprocess_exec(
        sys.executable, "-W", "error", str(SCRIPT), str(await cluster.write_kubeconfig()), f"{cluster.namespace}/home",
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
    )  # fmt: skip
    printed, _ = await running.communicate()
    return printed.decode().strip()


@pytest.mark.slow
def test_without_arguments_it_says_how_it_is_used() -> None:
    done = subprocess.run([sys.executable, str(SCRIPT)], capture_output=True, text=True, check=False)

    assert done.returncode == 1
    assert done.stderr == "usage: python reconcile_once.py KUBECONFIG NAMESPACE/NAME\n"


@pytest.mark.slow
@pytest.mark.anyio
@pytest.mark.real_time
async def test_a_script_makes_an_owner_ready_and_then_has_nothing_to_write(cluster: Cluster, tmp_path: Path) -> None:
    (site,) = load_page_operator("README.md", tmp_path).custom_resources
    await cluster.client.apply(crd_manifest(site), field_manager="examples")
    await cluster.eventually(lambda: cluster.client.mapping(SITE), describe="the definition is served")
    metadata = {"name": "home", "namespace": cluster.namespace}
    home: Object = {"apiVersion": SITE.api_version, "kind": SITE.kind, "metadata": metadata}
    await cluster.client.create(home | {"spec": {"image": "nginx:1.29"}})

    async def is_ready() -> str | None:
        printed = await run_once(cluster)
        return printed if "True" in printed else None

    first = await run_once(cluster)
    last = await cluster.eventually(is_ready, describe="the site is ready")
    sent_before = len(cluster.list_requests(USER_AGENT))
    again = await run_once(cluster)

    assert first.startswith("WebReady is False (Creating): ")
    assert {first, last} <= {*(SCRIPT.parent / "README.md").read_text().splitlines()}
    assert last == again == "WebReady is True (Healthy): Component is healthy."
    assert {request.verb for request in cluster.list_requests(USER_AGENT)[sent_before:]} == {"get"}
    deployment = await cluster.client.get(DEPLOYMENT, ObjectKey(cluster.namespace, "home"))
    assert deployment["spec"]["replicas"] == 2
    assert find_condition(await cluster.client.get(SITE, ObjectKey(cluster.namespace, "home")), "WebReady")
