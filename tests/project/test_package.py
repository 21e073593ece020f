"""Guarantees for users who install konverge's packages and for readers of their code."""

from __future__ import annotations

import ast
import tomllib
from collections.abc import Iterator
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement

from konverge_cluster.controlplane import KUBERNETES_VERSION

REPOSITORY = Path(__file__).parents[2]
PACKAGES = {
    file.parent.name: tomllib.loads(file.read_text())["project"]
    for file in sorted(REPOSITORY.glob("packages/*/pyproject.toml"))
}
SOURCES = [REPOSITORY / "packages" / name / "src" / name.replace("-", "_") for name in PACKAGES]
PUBLIC_MODULES = sorted(
    path
    for source in SOURCES
    for path in source.rglob("*.py")
    if not any(part.startswith("_") for part in path.relative_to(source).with_suffix("").parts if part != "__init__")
)


def parse_module(path: Path) -> ast.Module:
    return ast.parse(path.read_text(), str(path))


def requirements(project: dict[str, Any]) -> Iterator[Requirement]:
    """Yield all requirements of a package, including those of its extras."""
    for texts in (project["dependencies"], *project["optional-dependencies"].values()):
        yield from map(Requirement, texts)


def test_there_are_four_packages_of_one_version() -> None:
    assert set(PACKAGES) == {"konverge", "konverge-box", "konverge-cluster", "konverge-resolution"}
    assert {project["name"] for project in PACKAGES.values()} == set(PACKAGES)
    assert len({project["version"] for project in PACKAGES.values()}) == 1


@pytest.mark.parametrize("name", PACKAGES)
def test_the_packages_ask_for_each_other_in_their_own_version(name: str) -> None:
    project = PACKAGES[name]
    others = [each for each in requirements(project) if each.name in PACKAGES and each.name != name]

    assert others
    assert {str(each.specifier) for each in others} == {f"=={project['version']}"}


@pytest.mark.parametrize("name", PACKAGES)
def test_scripts_and_entry_points_lead_to_what_can_be_loaded(name: str) -> None:
    project = PACKAGES[name]
    groups = {"console_scripts": project.get("scripts", {}), **project.get("entry-points", {})}
    points = [EntryPoint(key, value, group) for group, found in groups.items() for key, value in found.items()]

    loaded = {point: point.load() for point in points}
    assert loaded
    assert [
        point for point, target in loaded.items() if point.group == "console_scripts" and not callable(target)
    ] == []


def test_core_dependencies_are_exactly_five() -> None:
    core = {Requirement(text).name.lower() for text in PACKAGES["konverge"]["dependencies"]}

    assert core == {"aiohttp", "msgspec", "node-semver", "pyyaml", "click"}


def test_every_extra_of_a_package_is_one_of_konverge_too() -> None:
    extras = PACKAGES["konverge"]["optional-dependencies"]
    own = {
        extra
        for name in ("konverge-box", "konverge-cluster", "konverge-resolution")
        for extra, texts in PACKAGES[name]["optional-dependencies"].items()
        if not any(text.startswith("konverge") for text in texts) and extra != "testing"
    }

    assert own <= set(extras)
    (everything,) = map(Requirement, extras["all"])
    assert everything.extras == set(extras) - {"all"}


@pytest.mark.parametrize("source", SOURCES, ids=lambda source: source.name)
def test_each_package_is_typed_and_has_its_pages(source: Path) -> None:
    package = source.parents[1]

    assert (source / "py.typed").exists()
    assert (package / "LICENSE").read_bytes() == (REPOSITORY / "LICENSE").read_bytes()
    assert (package / "README.md").read_text().startswith(f"# {package.name}\n")
    assert len([line for line in (package / "ARCHITECTURE.md").read_text().splitlines() if line[:2] == "| "]) <= 41


@pytest.mark.slow
def test_public_modules_say_what_they_are_for() -> None:
    silent = [str(path.relative_to(REPOSITORY)) for path in PUBLIC_MODULES if not ast.get_docstring(parse_module(path))]

    assert silent == []


def test_the_pinned_kubernetes_is_the_one_that_is_looked_for() -> None:
    pinned = (REPOSITORY / "tools" / "controlplane" / "kubernetes" / "go.mod").read_text()

    assert f"k8s.io/kubernetes {KUBERNETES_VERSION} " in pinned
