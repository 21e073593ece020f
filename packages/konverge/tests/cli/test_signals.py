"""What SIGINT and SIGTERM end, once and again; and that nothing is left of it."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import click
import pytest
import yaml

from konverge._internal.cli.signals import cancel_on_signal, stop_event_on_signal
from konverge.clock import SystemClock
from konverge_cluster._internal.cli.cluster_instances import ClusterInstance
from konverge_cluster.controlplane import PROGRAMS
from konverge_cluster.testing import eventually
from tests.cli.stuck_owner import FILE
from tests.cluster.controlplane.processes import is_running

BOTH = pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["SIGINT", "SIGTERM"])

Told = Callable[[], AbstractContextManager[Any]]


@contextmanager
def running_command(environment: dict[str, str], *arguments: str | Path) -> Iterator[subprocess.Popen[str]]:
    """A command; killed at the end if it still runs."""
    command = [sys.executable, "-m", "konverge", *map(str, arguments)]
    pipe = subprocess.PIPE
    # A test run in the background of a shell ignores SIGINT, and so would what it starts, unless it is handled here.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    with subprocess.Popen(command, env=environment, stdout=pipe, stderr=pipe, text=True) as process:
        signal.signal(signal.SIGINT, before)
        try:
            yield process
        finally:
            process.kill()


def program(file: Path, notes: Path) -> Path:
    """A program that never ends by itself, and notes its number where it is asked for."""
    file.write_text(f'#!/bin/sh\necho $$ > "{notes}/$$.new"\nmv "{notes}/$$.new" "{notes}/$$"\nexec sleep 600\n')
    file.chmod(0o755)
    return file


def read_process_ids(notes: Path, count: int) -> list[int]:
    """The numbers of that many programs, as soon as they have begun."""

    def found() -> list[int] | None:
        numbers = [int(each.name) for each in notes.iterdir() if each.name.isdigit()]
        return numbers if len(numbers) == count else None

    return asyncio.run(eventually(found, clock=SystemClock(), describe=f"{count} programs have begun"))


@pytest.mark.parametrize("until_signalled", [stop_event_on_signal, cancel_on_signal])
@BOTH
def test_a_second_signal_lets_the_block_clean_up_all_the_same(until_signalled: Told, number: signal.Signals) -> None:
    cleaned: list[str] = []

    async def work() -> None:
        with until_signalled():
            try:
                os.kill(os.getpid(), number)
                os.kill(os.getpid(), number)
                await asyncio.Event().wait()
            finally:
                cleaned.append("up")

    before = signal.getsignal(number)
    with pytest.raises(click.Abort):
        asyncio.run(work())
    assert (cleaned, signal.getsignal(number)) == (["up"], before)


def test_a_third_signal_ends_what_never_ends() -> None:
    async def work() -> None:
        with stop_event_on_signal():
            for _ in range(3):
                os.kill(os.getpid(), signal.SIGTERM)
            await asyncio.Event().wait()

    with pytest.raises(KeyboardInterrupt):
        asyncio.run(work())


@pytest.mark.slow
@BOTH
def test_an_interrupted_look_at_a_cluster_leaves_no_program_that_asks_for_credentials(
    environment: dict[str, str], tmp_path: Path, number: signal.Signals
) -> None:
    notes = tmp_path / "notes"
    notes.mkdir()
    asking = {
        "apiVersion": "client.authentication.k8s.io/v1",
        "command": str(program(tmp_path / "ask", notes)),
        "interactiveMode": "Never",
    }
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text(
        yaml.safe_dump(
            {
                "current-context": "one",
                "contexts": [{"name": "one", "context": {"cluster": "one", "user": "one"}}],
                "clusters": [{"name": "one", "cluster": {"server": "http://127.0.0.1:1"}}],
                "users": [{"name": "one", "user": {"exec": asking}}],
            }
        )
    )
    with running_command(
        environment, "diff", FILE, "ward/east", "-n", "default", "--kubeconfig", kubeconfig
    ) as process:
        numbers = read_process_ids(notes, 1)

        process.send_signal(number)

        _, errors = process.communicate(timeout=20)
    assert (process.returncode, errors) == (130, "")
    assert [*filter(is_running, numbers)] == []


@pytest.mark.slow
@pytest.mark.parametrize("where", [[], ["--foreground"]], ids=["background", "foreground"])
def test_a_cluster_that_is_interrupted_while_it_starts_is_gone(
    environment: dict[str, str], home: Path, tmp_path: Path, where: list[str]
) -> None:
    binaries, notes, temporary = tmp_path / "binaries", tmp_path / "notes", tmp_path / "temporary"
    for folder in (binaries, notes, temporary):
        folder.mkdir()
    for name in PROGRAMS:
        program(binaries / name, notes)
    more = {"KUBEBUILDER_ASSETS": str(binaries), "TMPDIR": str(temporary)}
    with running_command(environment | more, "local", "up", "--real", *where) as process:
        numbers = read_process_ids(notes, 2)

        process.send_signal(signal.SIGTERM)

        assert process.wait(timeout=20) == 130
    assert not ClusterInstance("default", home / ".local" / "state" / "konverge" / "clusters").is_locked
    assert [*filter(is_running, numbers)] == []
    assert [*temporary.iterdir()] == []
