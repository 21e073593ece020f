"""The real control plane: its start, its errors, and its cleanup."""

from __future__ import annotations

import asyncio
import json
import os
import sys
import tempfile
from asyncio.subprocess import PIPE
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import pytest

from konverge._internal.client.connect import connect
from konverge.clock import SystemClock
from konverge.kube import GroupVersionKind
from konverge_cluster.controlplane import PROGRAMS, ControlPlaneError, RealCluster
from konverge_cluster.testing import eventually
from tests.cancellation_leaks import run_loop_turns
from tests.cluster.controlplane.processes import is_running

pytestmark = pytest.mark.anyio

NODE = GroupVersionKind("", "v1", "Node")


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


def programs_that(folder: Path, script: str) -> Path:
    """Return a folder in which each program is that shell script."""
    folder.mkdir()
    for program in PROGRAMS:
        (folder / program).write_text(f"#!/bin/sh\n{script}\n")
        (folder / program).chmod(0o755)
    return folder


@pytest.mark.real
async def test_it_can_be_asked_with_its_kubeconfig_as_soon_as_it_runs(tmp_path: Path) -> None:
    async with RealCluster(folder=tmp_path) as cluster, connect(cluster.kubeconfig, env={}) as client:
        nodes = await client.list(NODE)

    assert [node["metadata"]["name"] for node in nodes.items] == ["node-0"]


@pytest.mark.real
def test_given_folder_keeps_logs_and_audit_log_after_the_end(tmp_path: Path) -> None:
    with RealCluster(folder=tmp_path):
        pass

    assert {log.name for log in tmp_path.glob("*.log")} >= {"audit.log", "etcd.log", "kube-apiserver.log", "kwok.log"}


@pytest.mark.real
async def test_what_is_cancelled_while_it_ends_something_ends_it_all_the_same(tmp_path: Path) -> None:
    async def cancel(work: Coroutine[Any, Any, None]) -> None:
        ending = asyncio.create_task(work)
        await run_loop_turns()  # the work begins
        ending.cancel()
        with pytest.raises(asyncio.CancelledError):
            await ending

    cluster = await RealCluster(folder=tmp_path).__aenter__()
    await cancel(cluster.kill_api_server())
    await cluster.start_api_server()
    assert cluster._supervisor is not None
    supervisor = cluster._supervisor.pid
    await cancel(cluster.__aexit__(None, None, None))

    assert not is_running(supervisor)


@pytest.mark.real
async def test_nothing_is_left_when_its_user_is_killed() -> None:
    script = """if True:
        import json, subprocess, sys
        from konverge_cluster.controlplane import RealCluster
        with RealCluster() as cluster:
            supervisor = cluster._supervisor.pid
            children = open(f"/proc/{supervisor}/task/{supervisor}/children").read().split()
            print(json.dumps({"pids": [supervisor, *map(int, children)], "folder": str(cluster.kubeconfig.parent)}))
            sys.stdout.flush()
            sys.stdin.read()
    """
    user = await asyncio.create_subprocess_exec(sys.executable, "-c", script, stdin=PIPE, stdout=PIPE)
    assert user.stdout is not None
    report = json.loads(await user.stdout.readline())
    user.kill()
    await user.wait()

    def remaining() -> list[object]:
        return [*filter(is_running, report["pids"]), *filter(os.path.exists, [report["folder"]])]

    assert len(report["pids"]) == 6
    await eventually(lambda: not remaining(), clock=SystemClock(), describe="processes and files are gone")


async def test_a_program_that_ends_is_named_with_what_it_printed_last(tmp_path: Path) -> None:
    binaries = programs_that(tmp_path / "binaries", "echo the disk is on fire; exit 3")

    with pytest.raises(ControlPlaneError, match=r"ended with exit code 3; its last output:\n  the disk is on fire"):
        await RealCluster(binaries=binaries, folder=tmp_path / "kept").__aenter__()


async def test_of_a_temporary_folder_the_logs_of_a_failed_start_stay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    binaries = programs_that(tmp_path / "binaries", "echo no; exit 1")

    with pytest.raises(ControlPlaneError, match="All logs: .*konverge-logs-"):
        await RealCluster(binaries=binaries).__aenter__()

    (kept,) = await asyncio.to_thread(lambda: list(tmp_path.glob("konverge-*")))
    assert sorted(os.listdir(kept)) == ["etcd.log", "kube-apiserver.log"]


async def test_logs_of_a_failed_start_stay_and_the_message_says_where(tmp_path: Path) -> None:
    binaries = programs_that(tmp_path / "binaries", "echo no; exit 1")
    folder = tmp_path / "kept"

    with pytest.raises(ControlPlaneError, match=f"All logs: {folder}"):
        await RealCluster(binaries=binaries, folder=folder).__aenter__()

    assert (folder / "etcd.log").read_text() == "no\n"


@pytest.mark.slow
async def test_a_program_that_never_gets_ready_is_given_up_at_the_deadline(tmp_path: Path) -> None:
    binaries = programs_that(tmp_path / "binaries", "echo still thinking; exec sleep 600")

    with pytest.raises(ControlPlaneError, match="kube-apiserver was not ready after 0.5 s; its last output:\n  still"):
        await RealCluster(binaries=binaries, folder=tmp_path / "kept", start_timeout_seconds=0.5).__aenter__()


@pytest.mark.slow
async def test_a_taken_port_is_tried_again_with_another(tmp_path: Path) -> None:
    report = tmp_path / "attempts"
    server = f"echo again >> {report}; echo bind: address already in use; exit 1"
    binaries = programs_that(tmp_path / "binaries", f"case $0 in *apiserver) {server};; *) exec sleep 600;; esac")

    with pytest.raises(ControlPlaneError):
        await RealCluster(binaries=binaries, folder=tmp_path / "kept").__aenter__()

    assert report.read_text() == "again\n" * 3


async def test_asking_for_the_address_before_the_start_is_a_clear_mistake() -> None:
    with pytest.raises(ControlPlaneError, match="not running: enter its context first"):
        _ = RealCluster().url
