"""`konverge run`: from the command line to a watching operator, and out again."""

from __future__ import annotations

import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from konverge._internal.client.connect import connect
from konverge.clock import SystemClock
from konverge.kube import GroupVersionKind, Object, ObjectKey, find_condition
from konverge_cluster._internal.cli.demo import find_example_folder
from konverge_cluster.testing import eventually
from tests.cli.conftest import Konverge

pytestmark = pytest.mark.embedded

WEBAPP = GroupVersionKind("demo.konverge.dev", "v1alpha1", "WebApp")


@contextmanager
def running(environment: dict[str, str], *options: str) -> Iterator[subprocess.Popen[str]]:
    """The example's operator, with these options; killed at the end if it still runs."""
    command = [sys.executable, "-m", "konverge", "run", str(find_example_folder() / "operator.py"), *options]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, env=environment, stdout=pipe, stderr=pipe, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def line_with(words: str, process: subprocess.Popen[str]) -> str:
    """Read what the process logs until a line has these words."""
    assert process.stderr is not None
    return next(line for line in process.stderr if words in line)


@pytest.mark.slow
@pytest.mark.anyio
async def test_a_local_run_brings_its_cluster_and_its_definitions(environment: dict[str, str]) -> None:
    webapp: Object = {"metadata": {"name": "shop", "namespace": "default"}, "spec": {"image": "app:1"}}
    with running(environment, "--local") as process:
        line_with("is running", process)
        assert process.stdout is not None
        _, assignment = shlex.split(process.stdout.readline())
        async with connect(assignment.removeprefix("KUBECONFIG="), env={}) as client:
            await client.apply({"apiVersion": WEBAPP.api_version, "kind": WEBAPP.kind} | webapp, field_manager="test")

            async def is_ready() -> bool:
                found = find_condition(await client.get(WEBAPP, ObjectKey("default", "shop")), "Ready")
                return found is not None and found.status == "True"

            await eventually(is_ready, clock=SystemClock())


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_asked_to_stop_it_ends_well(number: signal.Signals, environment: dict[str, str]) -> None:
    with running(environment, "--local") as process:
        line_with("is running", process)

        process.send_signal(number)

        assert process.wait(timeout=20) == 0


@pytest.mark.slow
def test_without_its_definitions_it_says_how_to_get_them(konverge: Konverge, tmp_path: Path) -> None:
    kubeconfig = tmp_path / "kubeconfig"
    konverge("local", "up", "--kubeconfig", kubeconfig)

    done = konverge("run", find_example_folder() / "operator.py", "--kubeconfig", kubeconfig, "--start-timeout", "0")

    konverge("local", "down")
    assert done.returncode == 1
    assert "does not serve demo.konverge.dev/v1alpha1/WebApp" in done.stderr
    assert "--install-crds" in done.stderr


def test_local_and_a_kubeconfig_exclude_each_other(konverge: Konverge) -> None:
    done = konverge("run", find_example_folder() / "operator.py", "--local", "--kubeconfig", "x")

    assert done.returncode == 2
    assert "--local: starts its own cluster" in done.stderr
