"""For all tests: the ``cluster`` fixture, simulated time unless a test talks to the real cluster, and Hypothesis."""

from __future__ import annotations

import asyncio
import gc
import os
import sys
from collections.abc import Generator
from pathlib import Path
from typing import Any

import hypothesis
import nodesemver  # noqa: F401  # konverge imports it late, and pytester would take away what a test of its own imported
import pytest

import tests
from konverge.clock import SimulatedLoop
from konverge.crd import crd_manifest
from konverge_cluster.controlplane import RealCluster
from konverge_cluster.testing import Cluster
from konverge_cluster.testing.cluster_servers import RealServer

# So that programs that tests start find `tests` too, which is a namespace over several folders.
os.environ["PYTHONPATH"] = os.pathsep.join(str(Path(folder).parent) for folder in tests.__path__)

pytest_plugins = ["konverge_cluster.testing.pytest_plugin", "pytester"]

# A shared machine is slow at times, which says nothing about the code. Where everybody's work is checked, the examples
# are the same each time; on a developer's machine they are new ones.
hypothesis.settings.register_profile(
    "konverge",
    deadline=None,
    suppress_health_check=[hypothesis.HealthCheck.too_slow],
    derandomize=os.environ.get("CI") == "true",
)
hypothesis.settings.load_profile("konverge")


def pytest_xdist_auto_num_workers() -> int:
    """Half as many again as there are processors, since a third of the time of tests is waiting for other processes."""
    processors = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return processors + processors // 2


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Have the garbage collector leave alone what is there before the first test.

    All modules and thousands of collected tests stay until the end. To go through them takes a quarter of a second,
    each time that it looks at everything.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        gc.collect()
        gc.freeze()


@pytest.fixture(scope="session")
def type_checkers(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    """Their commands, without the files. mypy reads konverge and the standard library once for all tests."""
    cache = tmp_path_factory.mktemp("mypy")
    return {
        "mypy": [sys.executable, "-m", "mypy", "--strict", "--python-version=3.11", f"--cache-dir={cache}"],
        "pyright": [sys.executable, "-m", "pyright", "--pythonversion=3.11", f"--pythonpath={sys.executable}"],
    }


@pytest.fixture
def anyio_backend(request: pytest.FixtureRequest, anyio_backend: tuple[str, dict[str, Any]]) -> Any:
    if "cluster" in request.fixturenames:
        return anyio_backend
    return "asyncio", {"loop_factory": SimulatedLoop}


@pytest.fixture(scope="session")
def real_control_plane(real_control_plane: RealCluster) -> RealCluster:
    """With the kinds of owners of the scenarios, from the start.

    The garbage collector looks for new kinds twice a minute, so that they would have to wait for it.
    """
    from tests.scenarios.scenario_harness import ClusterSample, Sample

    async def install() -> None:
        async with Cluster(RealServer(real_control_plane), "kinds-of-owners") as cluster:
            await cluster.install(crd_manifest(Sample), crd_manifest(ClusterSample))

    asyncio.run(install())
    return real_control_plane
