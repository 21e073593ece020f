"""The import of konverge is fast: heavy modules load with the part that needs them."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

HEAVY = ["aiohttp", "asyncio", "click", "msgspec", "nodesemver", "rich", "yaml"]


def list_loaded_modules(statement: str) -> set[str]:
    """Return the heavy modules that a fresh interpreter has loaded after a statement."""
    script = f"{statement}\nimport json, sys\nprint(json.dumps([name for name in {HEAVY} if name in sys.modules]))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return set(json.loads(done.stdout))


def test_importing_konverge_loads_nothing_heavy() -> None:
    assert list_loaded_modules("import konverge") == set()


@pytest.mark.parametrize("package", ["kube", "apply", "feature", "mutation", "primitives", "component"])
def test_the_engine_brings_no_http_no_command_line_and_no_version_ranges(package: str) -> None:
    assert list_loaded_modules(f"import konverge._internal.{package}").isdisjoint(
        {"aiohttp", "click", "nodesemver", "rich"}
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    "package",
    ["konverge.client", "konverge.cache", "konverge.runtime", "konverge.operator", "konverge_cluster.embedded"],
)
def test_what_runs_in_a_cluster_brings_no_command_line(package: str) -> None:
    assert list_loaded_modules(f"import {package}").isdisjoint({"click", "rich"})


@pytest.mark.slow
@pytest.mark.parametrize("package", ["client", "cache", "runtime", "operator"])
def test_declaring_an_operator_needs_no_http_library(package: str) -> None:
    assert "aiohttp" not in list_loaded_modules(f"import konverge._internal.{package}")


@pytest.mark.slow
def test_what_runs_in_production_loads_nothing_that_plays_a_server() -> None:
    script = (
        "import pkgutil, sys; from importlib import import_module; import konverge\n"
        "names = [found.name for found in pkgutil.walk_packages(konverge.__path__, 'konverge.')]\n"
        "[import_module(name) for name in names if not name.endswith('__main__')]\n"
        "print(sorted({name.partition('.')[0] for name in sys.modules if name.startswith('konverge')}))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)

    assert done.stdout == "['konverge']\n"
