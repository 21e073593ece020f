"""The story of the demo on a real kube-apiserver; tests/cli/test_demo.py has it on the embedded cluster."""

from __future__ import annotations

import asyncio
from importlib.metadata import version
from pathlib import Path

import pytest
import yaml

from konverge.cli.demo import example_folder
from konverge.cli.operator_process import operator_process
from konverge.cli.screen import PlainScreen
from konverge.cli.stage import Stage
from konverge.cli.story import FOLLOWED, WEBAPP, webapp_story
from konverge.kube import Object
from konverge.testing import Cluster

pytestmark = [pytest.mark.anyio, pytest.mark.real_time]

OPERATOR = f"konverge/{version('konverge')} (webapp)"


@pytest.mark.timeout(150)
@pytest.mark.parametrize("cluster_kind", [pytest.param("real", marks=pytest.mark.real)], indirect=True)
async def test_every_step_of_the_story_happens(cluster: Cluster, tmp_path: Path) -> None:
    webapp: Object = yaml.safe_load((example_folder() / "webapp.yaml").read_text())
    webapp["metadata"]["namespace"] = cluster.namespace
    stage = Stage(cluster.client, PlainScreen(), cluster.clock, webapp, lambda: cluster.requests(OPERATOR))

    file, kubeconfig = example_folder() / "operator.py", await cluster.kubeconfig()
    async with operator_process(file, kubeconfig, cluster.namespace, tmp_path / "log"), asyncio.TaskGroup() as tasks:
        await stage.wait_until_served(WEBAPP)
        followers = [tasks.create_task(stage.follow(gvk)) for gvk in (WEBAPP, *FOLLOWED)]

        for number, step in enumerate(webapp_story(webapp), start=1):
            await stage.play(number, step)

        for follower in followers:
            follower.cancel()
