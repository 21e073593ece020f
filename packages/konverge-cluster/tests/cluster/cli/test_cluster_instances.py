"""The records of running clusters of `konverge local`."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from konverge.errors import ConfigurationError
from konverge_cluster._internal.cli.cluster_instances import ClusterInstance, InstanceRecord, get_state_folder

RECORD = InstanceRecord(pid=1, kind="embedded", url="http://127.0.0.1:1", kubeconfig="/nowhere")

HOLD = """
import sys
from pathlib import Path
from konverge_cluster._internal.cli.cluster_instances import ClusterInstance, InstanceRecord
instance = ClusterInstance("test", Path(sys.argv[1]))
with instance.server_lock():
    instance.write_record(InstanceRecord(pid=1, kind="embedded", url="http://127.0.0.1:1", kubeconfig="/nowhere"))
    print("held", flush=True)
    sys.stdin.read()
"""


@contextmanager
def server(folder: Path) -> Iterator[subprocess.Popen[str]]:
    """Run a process that is the server of the cluster "test", until it is killed or the block ends."""
    command = [sys.executable, "-c", HOLD, str(folder)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        yield process


def test_a_server_is_found_while_it_lives(tmp_path: Path) -> None:
    with server(tmp_path):
        assert ClusterInstance("test", tmp_path).read_record() == RECORD

    assert ClusterInstance("test", tmp_path).read_record() is None


def test_a_killed_server_is_not_believed(tmp_path: Path) -> None:
    with server(tmp_path) as process:
        process.kill()
        process.wait()

        assert not ClusterInstance("test", tmp_path).is_locked
        assert ClusterInstance("test", tmp_path).read_record() is None


def test_a_damaged_record_is_named(tmp_path: Path) -> None:
    with server(tmp_path):
        (tmp_path / "test" / "server.json").write_text("junk")

        with pytest.raises(ConfigurationError, match=r"server\.json: failed to read the record"):
            ClusterInstance("test", tmp_path).read_record()


def test_one_name_has_one_server(tmp_path: Path) -> None:
    with (
        server(tmp_path),
        pytest.raises(ConfigurationError, match="running already"),
        ClusterInstance("test", tmp_path).server_lock(),
    ):
        pass


def test_a_name_that_was_never_used_has_no_server(tmp_path: Path) -> None:
    assert ClusterInstance("test", tmp_path).read_record() is None


def test_what_a_killed_server_said_is_forgotten_by_the_next_one(tmp_path: Path) -> None:
    with server(tmp_path) as process:
        process.kill()
        process.wait()
    assert (tmp_path / "test" / "server.json").exists()

    with ClusterInstance("test", tmp_path).server_lock():
        assert not (tmp_path / "test" / "server.json").exists()


def test_files_are_where_xdg_says() -> None:
    assert get_state_folder({"XDG_STATE_HOME": "/state"}) == Path("/state/konverge/clusters")
    assert get_state_folder({}) == Path.home() / ".local/state/konverge/clusters"
