"""The ``konverge`` command in a process of its own, with an empty home.

Most tests get a process that is forked (`konverge`). At least one of each command has it started as its users do
(`started_konverge`), so that nothing rests on what another command has imported.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from konverge.crd import crd_manifest
from konverge_cluster.testing import Cluster
from tests.cli.command_fork_server import CommandForkServer
from tests.cli.stuck_operator import Ward
from tests.cli.stuck_owner import StuckOwner, ward

__all__ = ["Konverge"]

Konverge = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def anyio_backend() -> tuple[str, dict[str, object]]:
    """Real time: other processes live in it."""
    return "asyncio", {}


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """An empty home folder."""
    folder = tmp_path / "home"
    folder.mkdir()
    return folder


@pytest.fixture
def environment(home: Path) -> dict[str, str]:
    """What a fresh user's shell has, in UTF-8."""
    return _environment(home)


@pytest.fixture(scope="session")
def forks(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CommandForkServer]:
    """What forks the commands of all tests."""
    with CommandForkServer(_environment(tmp_path_factory.mktemp("forks"))) as running:
        yield running


@pytest.fixture
def konverge(forks: CommandForkServer, environment: dict[str, str], tmp_path: Path) -> Konverge:
    """Run a command and wait for its end."""

    def run(*arguments: str | Path, **more_environment: str) -> subprocess.CompletedProcess[str]:
        return forks.run_command([*map(str, arguments)], environment | more_environment, tmp_path)

    return run


@pytest.fixture
def started_konverge(environment: dict[str, str], tmp_path: Path) -> Konverge:
    """Run a command as a user does, by starting Python, and wait for its end."""

    def run(*arguments: str | Path, **more_environment: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "konverge", *map(str, arguments)],
            env=environment | more_environment,
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )

    return run


@pytest.fixture
async def stuck(cluster: Cluster, konverge: Konverge, started_konverge: Konverge, tmp_path: Path) -> StuckOwner:
    """A ward that nobody has looked after yet."""
    await cluster.install(crd_manifest(Ward))
    await cluster.client.create(ward(cluster.namespace))
    return StuckOwner(cluster, konverge, started_konverge, await cluster.write_kubeconfig(), tmp_path)


def _environment(home: Path) -> dict[str, str]:
    return {"HOME": str(home), "PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8"}
