"""Importing konverge costs next to nothing: what is heavy comes with the part that needs it."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

HEAVY = ["aiohttp", "asyncio", "click", "msgspec", "rich", "yaml"]


def loaded_by(statement: str) -> set[str]:
    """The heavy modules that a fresh interpreter has loaded after a statement."""
    script = f"{statement}\nimport json, sys\nprint(json.dumps([name for name in {HEAVY} if name in sys.modules]))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return set(json.loads(done.stdout))


def test_importing_konverge_loads_nothing_heavy() -> None:
    assert loaded_by("import konverge") == set()


@pytest.mark.parametrize("package", ["kube", "feature"])
def test_pure_packages_bring_no_network_library(package: str) -> None:
    assert "aiohttp" not in loaded_by(f"import konverge.{package}")


def test_engine_and_client_need_neither_the_command_line_nor_yaml() -> None:
    assert loaded_by("import konverge.component, konverge.client").isdisjoint({"click", "rich", "yaml"})
