"""The pytest plug-in: the fixture ``cluster``, which runs tests on the embedded and the real cluster, and golden files.

Load it with ``pytest_plugins = ["konverge_cluster.pytest_plugin"]``. It is no entry point: it overrides anyio's
fixture ``anyio_backend``, which the installation of konverge alone must not do.

Select with markers: ``-m embedded``, ``-m real``, ``-m "not real"``. If the programs of the real control plane are
absent, its cases are left out and the summary reports them. With ``KONVERGE_REQUIRE_REAL=1`` or ``CI=true`` in the
environment that is an error instead.

``--update-golden`` writes the golden files of `konverge_cluster.testing.assert_golden`; ``--stale-golden`` finds those
that no test uses.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack
from typing import Any, TypeAlias

import pytest

from konverge.clock import Clock, SeededEntropy, SimulatedClock, SimulatedLoop, SystemClock, SystemEntropy
from konverge_cluster._internal.controlplane import BinariesNotFoundError, RealCluster, find_binaries
from konverge_cluster._internal.embedded import LocalCluster
from konverge_cluster._internal.testing.cluster import Cluster, ClusterServer
from konverge_cluster._internal.testing.cluster_servers import EmbeddedServer, RealServer
from konverge_cluster._internal.testing.golden.golden_plugin import GoldenPlugin, add_options

__all__ = ["anyio_backend", "cluster", "cluster_kind", "real_control_plane"]

Backend: TypeAlias = tuple[str, dict[str, Any]]

_EMBEDDED, _REAL = "embedded", "real"
_SKIPPED = "konverge_real_cases_left_out"
_skipped = pytest.StashKey[int]()


@pytest.fixture(
    params=[pytest.param(_EMBEDDED, marks=pytest.mark.embedded), pytest.param(_REAL, marks=pytest.mark.real)]
)
def cluster_kind(request: pytest.FixtureRequest) -> str:
    """Return the kind of the cluster for this case."""
    kind: str = request.param
    return kind


@pytest.fixture
def anyio_backend(request: pytest.FixtureRequest) -> Backend:
    """Return the event loop; its time is simulated if the test uses only the embedded cluster."""
    simulated = _simulates_time(request)
    return "asyncio", {"loop_factory": SimulatedLoop} if simulated else {}


@pytest.fixture(scope="session")
def real_control_plane() -> Iterator[RealCluster]:
    """Run the control plane that all tests of this run share."""
    with RealCluster() as running:
        yield running


@pytest.fixture
def _control_plane(cluster_kind: str, request: pytest.FixtureRequest) -> RealCluster | None:
    """Return the control plane if this case needs it; it starts outside of the test's event loop, which it outlives."""
    if cluster_kind != _REAL:
        return None
    running: RealCluster = request.getfixturevalue("real_control_plane")
    return running


@pytest.fixture
async def cluster(_control_plane: RealCluster | None, request: pytest.FixtureRequest) -> AsyncIterator[Cluster]:
    """Provide a cluster with a namespace for the test."""
    async with AsyncExitStack() as stack:
        server: ClusterServer
        if _control_plane is not None:
            server = RealServer(_control_plane)
            namespace = f"test-{SystemEntropy().name_suffix(8)}"
        else:
            clock: Clock = SimulatedClock() if _simulates_time(request) else SystemClock()
            running = await stack.enter_async_context(LocalCluster(clock=clock, entropy=SeededEntropy()))
            server = stack.enter_context(EmbeddedServer(running, clock))
            namespace = "test"
        yield await stack.enter_async_context(Cluster(server, namespace))


def _simulates_time(request: pytest.FixtureRequest) -> bool:
    return (
        "cluster" in request.fixturenames
        and request.getfixturevalue("cluster_kind") == _EMBEDDED
        and request.node.get_closest_marker("real_time") is None
    )


def pytest_addoption(parser: pytest.Parser) -> None:
    """Declare the options for golden files."""
    add_options(parser)


def pytest_configure(config: pytest.Config) -> None:
    """Declare the markers and register the plug-in for golden files."""
    config.pluginmanager.register(GoldenPlugin(config))
    config.addinivalue_line("markers", "embedded: runs against the embedded cluster")
    config.addinivalue_line("markers", "real: runs against a real kube-apiserver")
    config.addinivalue_line("markers", "real_time: the embedded cluster uses real time too, for tests that use HTTP")


@pytest.hookimpl(trylast=True)  # after -m and -k: it reports only cases that the user selected
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out the real cases if they cannot run."""
    real = [item for item in items if item.get_closest_marker(_REAL)]
    if not real:
        return
    try:
        find_binaries()
    except BinariesNotFoundError as error:
        if os.environ.get("KONVERGE_REQUIRE_REAL") == "1" or os.environ.get("CI") == "true":
            raise pytest.UsageError(f"the real cluster is required, and {error}") from error
        config.hook.pytest_deselected(items=real)
        config.stash[_skipped] = len(real)
        items[:] = [item for item in items if item not in set(real)]


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """Succeed if all cases were left out; an xdist worker sends the count of left out cases to its controller."""
    if exitstatus == pytest.ExitCode.NO_TESTS_COLLECTED and session.config.stash.get(_skipped, 0):
        session.exitstatus = pytest.ExitCode.OK
    output: dict[str, object] | None = getattr(session.config, "workeroutput", None)
    if output is not None:
        output[_SKIPPED] = session.config.stash.get(_skipped, 0)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Store a worker's count; all workers collect the same cases."""
    node.config.stash[_skipped] = getattr(node, "workeroutput", {}).get(_SKIPPED, 0)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Report the number of cases on each cluster and the cases that were left out."""
    ran: Counter[str] = Counter()
    for outcome in ("passed", "failed", "xfailed"):
        for report in terminalreporter.getreports(outcome):
            if report.when == "call":
                ran.update(kind for kind in (_EMBEDDED, _REAL) if kind in report.keywords)
    if ran:
        counts = ", ".join(f"{ran[kind]} on the {kind} cluster" for kind in (_EMBEDDED, _REAL))
        terminalreporter.write_line(f"konverge: {counts}")
    if left_out := config.stash.get(_skipped, 0):
        try:
            find_binaries()
        except BinariesNotFoundError as error:
            terminalreporter.write_line(f"konverge: left out {left_out} on the real cluster: {error}")
