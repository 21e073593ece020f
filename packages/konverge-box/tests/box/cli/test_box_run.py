"""A box file where an operator file is expected: run, diff, explain, crd, rbac."""

from __future__ import annotations

import json
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from konverge._internal.client.connect import connect
from konverge.clock import SystemClock
from konverge.kube import GroupVersionKind, Object, ObjectKey, find_condition
from konverge_cluster.testing import eventually
from tests.cli.conftest import Konverge

pytestmark = pytest.mark.embedded

BOX = Path(__file__).parents[5] / "examples" / "boxes" / "hello-website" / "box.yaml"
WEBSITE = GroupVersionKind("demo.konverge.dev", "v1alpha1", "Website")
CONFIG_MAP = GroupVersionKind("", "v1", "ConfigMap")
HELLO = ObjectKey("default", "hello")


@contextmanager
def running(environment: dict[str, str], file: Path) -> Iterator[subprocess.Popen[str]]:
    """Run the box with its own cluster, and kill it at the end if it still runs."""
    command = [sys.executable, "-m", "konverge", "box", "run", str(file), "--local"]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, env=environment, stdout=pipe, stderr=pipe, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def cluster_of(process: subprocess.Popen[str]) -> str:
    """Return the kubeconfig that the process prints once it runs."""
    assert process.stderr is not None
    assert process.stdout is not None
    next(line for line in process.stderr if "is running" in line)
    return shlex.split(process.stdout.readline())[1].removeprefix("KUBECONFIG=")


@pytest.mark.slow
@pytest.mark.anyio
async def test_a_box_runs_is_compared_and_changes_with_its_file(
    environment: dict[str, str], konverge: Konverge, tmp_path: Path
) -> None:
    file, other = tmp_path / "box.yaml", tmp_path / "other.yaml"
    file.write_text(BOX.read_text())
    other.write_text(BOX.read_text().replace("<h1>", "<h2>"))
    with running(environment, file) as process:
        kubeconfig = cluster_of(process)
        async with connect(kubeconfig, env={}) as client:
            metadata = {"name": HELLO.name, "namespace": HELLO.namespace}
            site: Object = {"apiVersion": WEBSITE.api_version, "kind": WEBSITE.kind, "metadata": metadata}
            await client.create({**site, "spec": {"text": "Hello"}})

            async def is_ready() -> bool:
                found = find_condition(await client.get(WEBSITE, HELLO), "Ready")
                return found is not None and found.status == "True"

            await eventually(is_ready, clock=SystemClock())
            same = konverge("diff", file, "website/hello", "--kubeconfig", kubeconfig)
            assert (same.returncode, same.stderr) == (0, "")
            explained = konverge("explain", file, "site/hello", "--kubeconfig", kubeconfig)
            assert (explained.returncode, explained.stderr) == (0, "")
            assert "ResourcesReady" in explained.stdout
            changed = konverge("diff", other, "website/hello", "-o", "json", "--kubeconfig", kubeconfig)
            assert (changed.returncode, changed.stderr) == (1, "")
            [owner] = json.loads(changed.stdout)["owners"]
            assert [change["identity"] for change in owner["changes"]] == ["v1/ConfigMap/default/hello-pages"]

            checked = konverge("upgrade-check", other, "-o", "json", "--kubeconfig", kubeconfig)
            report = json.loads(checked.stdout)
            assert (checked.returncode, checked.stderr, report["breaks"]) == (0, "", False)
            [definition] = report["definitions"]
            assert (definition["findings"], definition["checkedObjects"]) == ([], 1)
            assert report["owners"]["writes"] == {"update": 1}

            other.replace(file)

            async def has_changed() -> bool:
                page = await client.get(CONFIG_MAP, ObjectKey("default", "hello-pages"))
                return "<h2>" in page["data"]["index.html"]

            await eventually(has_changed, clock=SystemClock())
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=20) == 0


@pytest.mark.slow
def test_the_definition_and_the_roles_are_printed(konverge: Konverge) -> None:
    defined, granted = konverge("crd", BOX), konverge("rbac", BOX)

    assert (defined.returncode, defined.stderr) == (0, "")
    assert "name: websites.demo.konverge.dev" in defined.stdout
    assert (granted.returncode, granted.stderr) == (0, "")
    assert "- websites/status" in granted.stdout


def test_a_box_has_no_variables_to_choose_from(konverge: Konverge) -> None:
    done = konverge("run", f"{BOX}:operator")

    assert done.returncode == 3
    assert "expected no variable for a box file, found :operator; omit it" in done.stderr


def test_mistakes_of_a_box_are_told_with_their_places(konverge: Konverge, tmp_path: Path) -> None:
    file = tmp_path / "box.yaml"
    file.write_text(BOX.read_text().replace("onReconcile:", "onReconcil:"))

    done = konverge("crd", file)

    assert done.returncode == 3
    assert "did you mean onReconcile?" in done.stderr
