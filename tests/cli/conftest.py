"""The ``konverge`` command as its users call it: a process of its own, with an empty home."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from konverge.crd import crd_manifest
from konverge.errors import NotFoundError
from konverge.testing import Cluster
from tests.cli.stuck import Stuck, ward
from tests.cli.wards import Ward

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
    return {"HOME": str(home), "PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8"}


@pytest.fixture
def konverge(environment: dict[str, str], tmp_path: Path) -> Konverge:
    """Run a command and wait for its end."""

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
async def stuck(cluster: Cluster, konverge: Konverge, tmp_path: Path) -> Stuck:
    """A ward that nobody has looked after yet."""
    await cluster.client.apply(crd_manifest(Ward), field_manager="test")

    async def created() -> bool:
        try:
            await cluster.client.create(ward(cluster.namespace))
        except NotFoundError:  # the CustomResourceDefinition is not served yet
            return False
        return True

    await cluster.eventually(created, describe="the ward can be created")
    return Stuck(cluster, konverge, await cluster.kubeconfig(), tmp_path)
