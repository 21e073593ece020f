"""The steps of the demo on a real kube-apiserver; tests/cluster/cli/test_demo.py runs them on the embedded cluster."""

from __future__ import annotations

import asyncio
from importlib.metadata import version
from pathlib import Path

import pytest
import yaml

from konverge.kube import Object
from konverge_cluster._internal.cli.demo import find_example_folder
from konverge_cluster._internal.cli.demo_output import PlainOutput
from konverge_cluster._internal.cli.demo_runner import DemoRunner
from konverge_cluster._internal.cli.demo_script import WATCHED_KINDS, WEBAPP, build_webapp_steps
from konverge_cluster._internal.cli.operator_process import operator_process
from konverge_cluster.testing import Cluster

pytestmark = [pytest.mark.anyio, pytest.mark.real_time]

OPERATOR = f"konverge/{version('konverge')} (webapp)"


@pytest.mark.timeout(150)
@pytest.mark.parametrize("cluster_kind", [pytest.param("real", marks=pytest.mark.real)], indirect=True)
async def test_every_step_of_the_story_happens(cluster: Cluster, tmp_path: Path) -> None:
    webapp: Object = yaml.safe_load((find_example_folder() / "webapp.yaml").read_text())
    webapp["metadata"]["namespace"] = cluster.namespace
    demo_runner = DemoRunner(
        cluster.client, PlainOutput(), cluster.clock, webapp, lambda: cluster.list_requests(OPERATOR)
    )

    file, kubeconfig = find_example_folder() / "operator.py", await cluster.write_kubeconfig()
    async with operator_process(file, kubeconfig, cluster.namespace, tmp_path / "log"), asyncio.TaskGroup() as tasks:
        await demo_runner.wait_until_served(WEBAPP)
        followers = [tasks.create_task(demo_runner.watch_kind(gvk)) for gvk in (WEBAPP, *WATCHED_KINDS)]

        for number, step in enumerate(build_webapp_steps(webapp), start=1):
            await demo_runner.run_step(number, step)

        for follower in followers:
            follower.cancel()
