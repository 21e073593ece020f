"""The cells of the page about the inner loop work one after the other, as in a notebook."""

from __future__ import annotations

import ast
import asyncio
import subprocess
import sys
from inspect import CO_COROUTINE
from pathlib import Path
from types import FunctionType
from typing import Any

import pytest

from konverge._internal.cli.main import konverge
from konverge.clock import SystemClock
from konverge.crd import crd_manifest
from konverge.kube import GroupVersionKind, ObjectKey
from konverge_cluster.testing import Cluster, eventually
from tests.docs.pages import find_code_blocks, find_commands, load_page_operator, save_page_code

PAGE = "docs/inner-loop.md"


@pytest.fixture
def anyio_backend() -> tuple[str, dict[str, object]]:
    """Real time: the cells use a connection."""
    return "asyncio", {}


async def run_cell(text: str, variables: dict[str, Any]) -> object:
    """Run a cell in a task of its own and return the value of its last expression."""
    tree = ast.parse(text)
    last = tree.body[-1]
    if isinstance(last, ast.Expr):
        tree.body[-1] = ast.copy_location(ast.Assign([ast.Name("_", ast.Store())], last.value), last)
    code = compile(ast.fix_missing_locations(tree), PAGE, "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    result = FunctionType(code, variables)()
    if code.co_flags & CO_COROUTINE:
        await asyncio.create_task(result)
    return variables.get("_") if isinstance(last, ast.Expr) else None


@pytest.mark.slow
@pytest.mark.anyio
@pytest.mark.real_time
async def test_the_cells_of_the_page_work_in_order(
    cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    save_page_code("README.md", tmp_path, "sites.py")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("KUBECONFIG", str(await cluster.write_kubeconfig()))
    monkeypatch.delitem(sys.modules, "sites", raising=False)
    (resource,) = load_page_operator("README.md", tmp_path).custom_resources
    await cluster.install(crd_manifest(resource))
    preview, reconcile, read, run, change, reload, end = (
        block.replace('"default"', f'"{cluster.namespace}"') for block in find_code_blocks(PAGE, "python")
    )
    deployment, home = GroupVersionKind("apps", "v1", "Deployment"), ObjectKey(cluster.namespace, "home")
    variables: dict[str, Any] = {}

    async def wait_for_replicas(count: int) -> None:
        async def has_replicas() -> bool:
            return bool((await cluster.client.get(deployment, home))["spec"]["replicas"] == count)

        await eventually(has_replicas, clock=SystemClock(), timeout_seconds=30)

    assert [obj["kind"] for obj in await run_cell(preview, variables)] == ["Deployment"]  # type: ignore[attr-defined]
    assert getattr(await run_cell(reconcile, variables), "type", "") == "WebReady"
    assert await run_cell(read, variables) == 2
    await run_cell(run, variables)
    await run_cell(change, variables)
    await wait_for_replicas(3)
    (tmp_path / "sites.py").write_text(
        (tmp_path / "sites.py").read_text().replace("site.spec.replicas,", "site.spec.replicas + 100,")
    )
    old = variables["running"]
    await run_cell(reload, variables)
    await wait_for_replicas(103)
    await run_cell(end, variables)
    await asyncio.wait([old, variables["running"]])
    assert old.cancelled()
    assert variables["running"].cancelled()


@pytest.mark.slow
@pytest.mark.embedded
def test_the_page_shows_what_konverge_test_prints(tmp_path: Path) -> None:
    save_page_code("README.md", tmp_path, "sites.py")
    command = [sys.executable, "-m", "konverge", "test", "sites.py"]

    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=100)

    assert find_code_blocks(PAGE, "text")[1] in done.stdout


def test_the_commands_of_the_page_exist() -> None:
    names = {command[1] for command in find_commands(PAGE) if command[0] == "konverge"}

    assert names == {"crd", "local", "run", "test"}
    assert names <= set(konverge.list_commands(None))  # type: ignore[arg-type]
