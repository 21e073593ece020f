"""`konverge run --reload`: a new version of the files replaces the running operator, unless it is broken."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from konverge.clock import SystemClock
from konverge.errors import NotFoundError
from konverge.kube import GroupVersionKind, Object, ObjectKey
from konverge_cluster.testing import Cluster, eventually
from tests.cli.conftest import Konverge
from tests.cluster.controlplane.processes import is_running

LAMP = GroupVersionKind("reload.konverge.test", "v1", "Lamp")
CONFIG_MAP = GroupVersionKind("", "v1", "ConfigMap")

OPERATOR = """
from dataclasses import dataclass, field

from konverge import Component, ComponentBuilder, Metadata, Operator, custom_resource
from konverge.primitives import ConfigMap
from reload_test_colors import COLOR


@dataclass
class LampSpec:
    name: str = ""


@custom_resource(group="reload.konverge.test", version="v1")
@dataclass
class Lamp:
    metadata: Metadata
    spec: LampSpec = field(default_factory=LampSpec)


def light(lamp: Lamp) -> Component:
    metadata = {"name": lamp.metadata.name, "namespace": lamp.metadata.namespace}
    light = ConfigMap({"metadata": metadata, "data": {"color": COLOR}})
    return ComponentBuilder("light", condition_type="LightReady").with_resource(light).build()


operator = Operator("lamps")
operator.manages(Lamp, light)
"""


class Running:
    """A running command and its lines so far."""

    def __init__(self, process: asyncio.subprocess.Process, folder: Path) -> None:
        self.process = process
        self.folder = folder
        self.lines: list[str] = []

    def write(self, text: str, name: str = "reload_test_colors.py") -> None:
        """Replace a file as editors do: truncate, then write."""
        (self.folder / name).write_text(text)

    async def read_line(self, words: str) -> str:
        """Read lines until one has these words."""
        assert self.process.stderr is not None
        async with asyncio.timeout(60):
            while line := (await self.process.stderr.readline()).decode():
                self.lines.append(line)
                if words in line:
                    return line
        raise AssertionError(f"no line has {words!r}: {''.join(self.lines)}")

    async def read_lines(self, *words: str) -> None:
        """Read lines until each of the words was in one, in any order: two processes write them."""
        first = len(self.lines)
        while missing := [one for one in words if not any(one in line for line in self.lines[first:])]:
            await self.read_line(missing[0] if len(missing) == 1 else "\n")

    def list_children(self) -> list[int]:
        """Return the process ids of the versions and of the spare process."""
        tasks = Path(f"/proc/{self.process.pid}/task")
        return [int(pid) for task in tasks.iterdir() for pid in (task / "children").read_text().split()]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with the operator."""
    folder = tmp_path / "lamps"
    folder.mkdir()
    (folder / "lamps.py").write_text(OPERATOR)
    (folder / "reload_test_colors.py").write_text("COLOR = 'red1'\n")
    return folder


@asynccontextmanager
async def running(folder: Path, environment: dict[str, str], *options: str | Path) -> AsyncIterator[Running]:
    """Run the operator with ``--reload``; killed at the end if it still runs."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "konverge", "run", "lamps.py", "--reload", *map(str, options)),
        cwd=folder,
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )
    try:
        yield Running(process, folder)
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


async def create_lamp(cluster: Cluster, name: str) -> None:
    lamp: Object = {"apiVersion": LAMP.api_version, "kind": LAMP.kind, "metadata": {"name": name}, "spec": {}}
    lamp["metadata"]["namespace"] = cluster.namespace
    await cluster.client.create(lamp)


async def wait_for_color(cluster: Cluster, name: str, color: str) -> None:
    async def has_color() -> bool:
        try:
            found = await cluster.client.get(CONFIG_MAP, ObjectKey(cluster.namespace, name))
        except NotFoundError:
            return False
        return bool(found["data"]["color"] == color)

    await eventually(has_color, clock=SystemClock(), timeout_seconds=30, describe=f"{name} is {color}")


@pytest.mark.slow
@pytest.mark.anyio
async def test_a_changed_import_takes_effect_and_a_broken_one_does_not(
    cluster: Cluster, environment: dict[str, str], folder: Path
) -> None:
    kubeconfig = await cluster.write_kubeconfig()
    async with running(folder, environment, "--kubeconfig", kubeconfig, "--install-crds") as run:
        await run.read_line("is running")
        await create_lamp(cluster, "one")
        await wait_for_color(cluster, "one", "red1")

        # Files of one size, written in the same second: their bytecode would have the same name.
        for color in ("red2", "red3"):
            run.write(f"COLOR = '{color}'\n")
            await wait_for_color(cluster, "one", color)

        run.write("COLOR = 'red4\n")
        line = await run.read_line("the last version keeps running")
        assert "lamps.py, line 6: SyntaxError" in line
        await create_lamp(cluster, "two")
        await wait_for_color(cluster, "two", "red3")

        run.write("COLOR = 'red5'\n")
        await wait_for_color(cluster, "two", "red5")
        await wait_for_color(cluster, "one", "red5")


@pytest.mark.slow
@pytest.mark.anyio
async def test_a_definition_that_the_server_refuses_keeps_the_running_version(
    cluster: Cluster, environment: dict[str, str], folder: Path
) -> None:
    kubeconfig = await cluster.write_kubeconfig()
    options = ("--kubeconfig", kubeconfig, "--install-crds", "--start-timeout", "0")
    async with running(folder, environment, *options) as run:
        await run.read_line("is running")

        run.write(OPERATOR.replace('version="v1"', 'version="v1", scope="Cluster"'), "lamps.py")

        assert "lamps.reload.konverge.test" in await run.read_line("the last version keeps running")
        await create_lamp(cluster, "one")
        await wait_for_color(cluster, "one", "red1")


BROKEN = {
    "a new module that is absent": (
        "import reload_test_more\n",
        "ModuleNotFoundError",
        "reload_test_more.py",
        "X = 1\n",
    ),
    "a new module with an error": ("import reload_test_bad\n", "NameError", "reload_test_bad.py", "X = 1\n"),
    "an exit of the process": ("import os; os._exit(0)\n", "the import ended the process", "", ""),
    "two operators": ("from konverge import Operator\na = Operator('b')\n", "found several", "", ""),
}


@pytest.mark.slow
@pytest.mark.anyio
@pytest.mark.embedded
async def test_after_each_error_the_repaired_file_is_loaded(environment: dict[str, str], folder: Path) -> None:
    (folder / "reload_test_bad.py").write_text("X = Y\n")
    async with running(folder, environment, "--local") as run:
        await run.read_line("is running")
        for statement, problem, file, text in BROKEN.values():
            run.write(statement + OPERATOR, "lamps.py")
            assert problem in await run.read_line("the last version keeps running")

            # Repaired in the file that is wrong, where there is one.
            run.write(text or OPERATOR, file or "lamps.py")
            await run.read_line("the new version runs")


@pytest.mark.slow
@pytest.mark.anyio
@pytest.mark.embedded
async def test_a_first_version_that_is_broken_waits_for_its_repair(environment: dict[str, str], folder: Path) -> None:
    (folder / "reload_test_colors.py").write_text("COLOUR = 1\n")
    async with running(folder, environment, "--local") as run:
        assert "ImportError" in await run.read_line("waiting for a change")

        run.write("COLOR = 'red'\n")

        await run.read_line("operator lamps is running")


@pytest.mark.slow
@pytest.mark.anyio
@pytest.mark.embedded
async def test_an_import_that_never_ends_is_given_up_for_the_next_change(
    environment: dict[str, str], folder: Path
) -> None:
    async with running(folder, environment, "--local") as run:
        await run.read_line("is running")
        run.write("while True:\n    pass\n")
        await run.read_line("changed: reload_test_colors.py")

        run.write("COLOR = 'blue'\n")

        await run.read_line("the new version runs")


SLOW = """
import asyncio
import os
from pathlib import Path


@operator.reconciles(Lamp)
async def reconcile(lamp, ctx):
    notes = Path("notes")
    with notes.open("a") as opened:
        opened.write(f"begin {os.getpid()}\\n")
    try:
        await asyncio.sleep(0.4 if COLOR == "fast" else 3600)
    finally:
        with notes.open("a") as opened:
            opened.write(f"end {os.getpid()}\\n")
"""


@pytest.mark.slow
@pytest.mark.anyio
@pytest.mark.embedded
@pytest.mark.parametrize("color", ["fast", "slow"])
async def test_two_versions_never_reconcile_at_the_same_time(
    cluster: Cluster, environment: dict[str, str], folder: Path, color: str
) -> None:
    notes = folder / "notes"
    (folder / "lamps.py").write_text(OPERATOR.replace("operator.manages(Lamp, light)\n", SLOW))
    (folder / "reload_test_colors.py").write_text(f"COLOR = '{color}'\n")
    kubeconfig = await cluster.write_kubeconfig()

    async def begun(count: int) -> None:
        await eventually(
            lambda: notes.exists() and notes.read_text().count("begin") >= count,
            clock=SystemClock(),
            timeout_seconds=30,
        )

    async with running(folder, environment, "--kubeconfig", kubeconfig, "--install-crds") as run:
        await run.read_line("is running")
        await create_lamp(cluster, "one")
        await begun(1)

        run.write(f"COLOR = '{color}'  # again\n")
        await run.read_line("the new version runs")
        await begun(2)

    lines = [line.split() for line in notes.read_text().splitlines()]
    assert [word for word, _ in lines[:3]] == ["begin", "end", "begin"]
    assert lines[0][1] == lines[1][1] != lines[2][1]


@pytest.mark.slow
@pytest.mark.anyio
@pytest.mark.embedded
async def test_a_reload_takes_less_than_a_second_and_a_half(
    cluster: Cluster, environment: dict[str, str], folder: Path
) -> None:
    kubeconfig, clock, seconds = await cluster.write_kubeconfig(), SystemClock(), []
    async with running(folder, environment, "--kubeconfig", kubeconfig, "--install-crds") as run:
        await run.read_line("is running")
        await create_lamp(cluster, "one")
        for number in range(3):
            await eventually(lambda: len(run.list_children()) == 2, clock=clock, timeout_seconds=30)
            await clock.sleep(2)  # the spare process has imported konverge
            began = clock.monotonic()
            run.write(f"COLOR = 'blue{number}'\n")
            await wait_for_color(cluster, "one", f"blue{number}")
            seconds.append(clock.monotonic() - began)

    assert min(seconds) < 1.5, seconds


@pytest.mark.slow
@pytest.mark.anyio
@pytest.mark.embedded
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
async def test_however_the_command_ends_no_process_is_left(
    environment: dict[str, str], folder: Path, number: signal.Signals
) -> None:
    async with running(folder, environment, "--local") as run:
        await run.read_line("is running")
        await eventually(lambda: len(run.list_children()) == 2, clock=SystemClock(), timeout_seconds=30)
        children = run.list_children()

        os.kill(run.process.pid, number)

        code = await run.process.wait()
        await eventually(lambda: not any(map(is_running, children)), clock=SystemClock(), timeout_seconds=30)
    assert code == (-9 if number == signal.SIGKILL else 0)


@pytest.mark.slow
@pytest.mark.anyio
@pytest.mark.embedded
async def test_a_version_that_is_killed_is_reported_and_a_change_starts_the_next(
    environment: dict[str, str], folder: Path
) -> None:
    async with running(folder, environment, "--local") as run:
        await run.read_line("is running")
        await eventually(lambda: len(run.list_children()) == 2, clock=SystemClock(), timeout_seconds=30)

        os.kill(run.list_children()[0], signal.SIGKILL)

        await run.read_line("the operator has ended: exit code -9; waiting for a change")
        run.write("COLOR = 'red2'\n")
        await run.read_lines("the new version runs", "operator lamps is running")
        await eventually(lambda: len(run.list_children()) == 2, clock=SystemClock(), timeout_seconds=30)
        for pid in run.list_children():
            os.kill(pid, signal.SIGKILL)
        await run.read_line("the operator has ended")

        run.process.terminate()

        assert await run.process.wait() == 1


def test_a_box_reloads_itself(konverge: Konverge) -> None:
    done = konverge("run", "box.yaml", "--reload")

    assert done.returncode == 2
    assert "--reload: a running box always reloads its file; omit the option" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "code", "problem"),
    [
        (("absent.py",), 3, "absent.py: no such file"),
        (("lamps.py", "--freshness", "5"), 2, "--freshness: requires --probes"),
        (("lamps.py", "--local", "--context", "c"), 2, "--local: starts its own cluster"),
    ],
)
def test_what_no_change_of_the_file_repairs_ends_the_command_at_once(
    konverge: Konverge, folder: Path, arguments: tuple[str, ...], code: int, problem: str
) -> None:
    done = konverge("run", folder / arguments[0], "--reload", *arguments[1:])

    assert done.returncode == code
    assert problem in done.stderr


@pytest.mark.slow
def test_a_cluster_that_cannot_be_reached_ends_the_command(started_konverge: Konverge, folder: Path) -> None:
    kubeconfig = folder / "kubeconfig"
    kubeconfig.write_text(
        "{current-context: a, contexts: [{name: a, context: {cluster: a}}], "
        "clusters: [{name: a, cluster: {server: 'http://127.0.0.1:1'}}]}"
    )

    done = started_konverge("run", folder / "lamps.py", "--reload", "--kubeconfig", kubeconfig, "--start-timeout", "0")

    assert done.returncode == 4
    assert "127.0.0.1:1" in done.stderr
