"""What is promised to whoever installs konverge, and to whoever reads it."""

from __future__ import annotations

import ast
import re
from importlib import metadata
from pathlib import Path

import pytest

import konverge
from konverge.testing.controlplane import KUBERNETES_VERSION

SOURCE = Path(konverge.__file__).parent
REPOSITORY = SOURCE.parents[1]
PUBLIC_MODULES = sorted(
    path
    for path in SOURCE.rglob("*.py")
    if not any(part.startswith("_") for part in path.relative_to(SOURCE).with_suffix("").parts if part != "__init__")
)


def parse_module(path: Path) -> ast.Module:
    return ast.parse(path.read_text(), str(path))


def test_core_dependencies_are_exactly_five() -> None:
    required = metadata.requires("konverge") or []
    core = {re.split(r"[^\w-]", line, maxsplit=1)[0].lower() for line in required if "extra ==" not in line}

    assert core == {"aiohttp", "msgspec", "node-semver", "pyyaml", "click"}


def test_the_package_is_typed() -> None:
    assert (SOURCE / "py.typed").exists()


@pytest.mark.slow
def test_public_modules_say_what_they_are_for() -> None:
    silent = [str(path.relative_to(SOURCE)) for path in PUBLIC_MODULES if not ast.get_docstring(parse_module(path))]

    assert silent == []


def test_the_pinned_kubernetes_is_the_one_that_is_looked_for() -> None:
    pinned = (REPOSITORY / "tools" / "controlplane" / "kubernetes" / "go.mod").read_text()

    assert f"k8s.io/kubernetes {KUBERNETES_VERSION} " in pinned
