"""Configuration of all tests: the ``cluster`` fixture, simulated time without the real cluster, and Hypothesis."""

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
from konverge_cluster._internal.testing.cluster_servers import RealServer
from konverge_cluster.controlplane import RealCluster
from konverge_cluster.testing import Cluster

# Programs that tests start must also find `tests`, which is a namespace package over several folders.
os.environ["PYTHONPATH"] = os.pathsep.join(str(Path(folder).parent) for folder in tests.__path__)

pytest_plugins = ["konverge_cluster.pytest_plugin", "pytester"]

# A shared machine can be slow without an error in the code. In CI the examples are always the same; on a developer's
# machine they are new in each run.
hypothesis.settings.register_profile(
    "konverge",
    deadline=None,
    suppress_health_check=[hypothesis.HealthCheck.too_slow],
    derandomize=os.environ.get("CI") == "true",
)
hypothesis.settings.load_profile("konverge")


def pytest_xdist_auto_num_workers() -> int:
    """Return 1.5 workers per processor, since tests wait for other processes for a third of their time."""
    processors = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return processors + processors // 2


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Exclude the objects before the first test from garbage collection.

    All modules and thousands of collected tests stay until the end. A full collection of them takes a quarter of a
    second.
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
    """Return the commands without the files. mypy reads konverge and the standard library once for all tests."""
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
    """Install the kinds of the scenarios' owners at the start.

    The garbage collector checks for new kinds only twice a minute, and the tests would have to wait.
    """
    from tests.scenarios.scenario_harness import ClusterSample, Sample

    async def install() -> None:
        async with Cluster(RealServer(real_control_plane), "kinds-of-owners") as cluster:
            await cluster.install(crd_manifest(Sample), crd_manifest(ClusterSample))

    asyncio.run(install())
    return real_control_plane
