"""`konverge local`: a cluster in the background, found and ended by name."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from konverge.cli.instances import Instance
from konverge.client.connect import connect
from konverge.kube import GroupVersionKind, ObjectKey
from tests.cli.conftest import Konverge

pytestmark = pytest.mark.embedded

NAMESPACE = GroupVersionKind("", "v1", "Namespace")


@pytest.fixture
def instance(home: Path) -> Instance:
    return Instance("default", home / ".local/state/konverge/clusters")


@pytest.fixture
def up(konverge: Konverge) -> Iterator[subprocess.CompletedProcess[str]]:
    """A running cluster, down again at the end."""
    yield konverge("local", "up")
    konverge("local", "down")


def kubeconfig_in(line: str) -> Path:
    """The file in a line that a shell evaluates."""
    export, assignment = shlex.split(line)
    assert export == "export"
    return Path(assignment.removeprefix("KUBECONFIG="))


@pytest.mark.anyio
async def test_what_up_and_env_print_leads_to_the_cluster(
    konverge: Konverge, up: subprocess.CompletedProcess[str]
) -> None:
    assert (up.returncode, konverge("local", "env").stdout) == (0, up.stdout), up.stderr

    async with connect(kubeconfig_in(up.stdout), env={}) as client:
        found = await client.get(NAMESPACE, ObjectKey("", "default"))

    assert found["metadata"]["name"] == "default"


def test_it_listens_on_loopback_alone(up: subprocess.CompletedProcess[str]) -> None:
    assert "http://127.0.0.1:" in up.stderr


def test_up_again_finds_the_running_one(konverge: Konverge, up: subprocess.CompletedProcess[str]) -> None:
    again = konverge("local", "up")

    assert (again.returncode, again.stdout, again.stderr) == (0, up.stdout, up.stderr)


def test_the_other_kind_under_the_same_name_is_refused(
    konverge: Konverge, up: subprocess.CompletedProcess[str]
) -> None:
    other = konverge("local", "up", "--real")

    assert other.returncode == 3
    assert "running already, and it is embedded" in other.stderr


def test_down_ends_the_server_and_forgets_it(
    konverge: Konverge, up: subprocess.CompletedProcess[str], instance: Instance
) -> None:
    was_held = instance.is_held

    down = konverge("local", "down")

    assert (down.returncode, was_held, instance.is_held) == (0, True, False)
    assert konverge("local", "env").returncode == 3


def test_down_without_a_cluster_is_done_already(started_konverge: Konverge) -> None:
    down = started_konverge("local", "down")

    assert (down.returncode, down.stderr) == (0, 'cluster "default" was not running\n')


def test_after_a_kill_it_starts_anew(
    konverge: Konverge, up: subprocess.CompletedProcess[str], instance: Instance
) -> None:
    record = instance.running()
    assert record is not None
    os.kill(record.pid, signal.SIGKILL)

    again = konverge("local", "up")

    assert again.returncode == 0, again.stderr


def test_two_names_are_two_clusters(konverge: Konverge, up: subprocess.CompletedProcess[str]) -> None:
    second = konverge("local", "up", "--name", "second")

    assert konverge("local", "down", "--name", "second").returncode == 0
    assert kubeconfig_in(second.stdout) != kubeconfig_in(up.stdout)
    assert konverge("local", "env").returncode == 0
