"""The hosted workflow runs the same commands as .ci/run, on every supported Python, with few permissions."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from tools import lock_dependencies

from konverge_cluster.controlplane import KUBERNETES_VERSION, get_cache_folder

ROOT = Path(__file__).parents[2]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
PROJECTS = sorted(ROOT.glob("packages/*/pyproject.toml"))
# Only these workflows need more than read access; each has its reason in the workflow.
WRITING: dict[str, dict[str, str]] = {}
MAKE = re.compile(r"(?:^|\s)make ([a-z][\w-]*)", re.MULTILINE)
TARGETS = set(re.findall(r"^([a-z][\w-]*):", (ROOT / "Makefile").read_text(), re.MULTILINE))
PYTHON = "Programming Language :: Python :: "


def load_workflow(path: Path) -> dict[str, Any]:
    workflow: dict[str, Any] = yaml.safe_load(path.read_text())
    return workflow


def list_steps(path: Path) -> Iterator[dict[str, Any]]:
    for job in load_workflow(path)["jobs"].values():
        yield from job["steps"]


def find_targets(path: Path) -> set[str]:
    """Return the make targets that a workflow runs."""
    return {target for step in list_steps(path) for target in MAKE.findall(step.get("run", ""))}


def read_versions() -> set[str]:
    """Return the versions of Python in the workflow's matrix."""
    jobs = load_workflow(ROOT / ".github" / "workflows" / "ci.yml")["jobs"]
    return set(jobs["test"]["strategy"]["matrix"]["python"])


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_a_workflow_runs_only_make_targets_that_exist(path: Path) -> None:
    assert find_targets(path) - TARGETS == set()


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_a_step_runs_a_make_target_and_nothing_else(path: Path) -> None:
    """A failure there can be repeated on any machine with one command."""
    commands = [step["run"] for step in list_steps(path) if "run" in step]

    assert [command for command in commands if not re.fullmatch(r"(sudo )?make [\w-]+", command.strip())] == []


def test_the_workflow_runs_what_ci_run_runs() -> None:
    expected = set(MAKE.findall((ROOT / ".ci" / "run").read_text()))

    assert expected
    assert expected - find_targets(ROOT / ".github" / "workflows" / "ci.yml") == set()


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_a_workflow_may_only_read(path: Path) -> None:
    workflow = load_workflow(path)

    assert workflow["permissions"] == {"contents": "read"}
    written = {name: job["permissions"] for name, job in workflow["jobs"].items() if "permissions" in job}
    assert written == {name: rights for name, rights in WRITING.items() if name in written}


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_actions_are_those_of_the_hosting_at_a_major_version(path: Path) -> None:
    used = {step["uses"] for step in list_steps(path) if "uses" in step}

    assert used
    assert [action for action in used if not re.fullmatch(r"actions/[\w/-]+@v\d+", action)] == []


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_each_job_ends_by_itself_and_keeps_no_credential(path: Path) -> None:
    for job in load_workflow(path)["jobs"].values():
        assert job["timeout-minutes"] <= 60
        checkouts = [step for step in job["steps"] if step.get("uses", "").startswith("actions/checkout@")]
        assert [step["with"]["persist-credentials"] for step in checkouts] == [False]


@pytest.mark.parametrize("path", PROJECTS, ids=lambda path: path.parent.name)
def test_the_matrix_has_the_pythons_of_the_classifiers(path: Path) -> None:
    classifiers = tomllib.loads(path.read_text())["project"]["classifiers"]
    versions = {text.removeprefix(PYTHON) for text in classifiers if text.startswith(PYTHON)} - {"3"}

    assert read_versions() == versions


def test_the_matrix_has_the_pythons_whose_dependencies_are_locked() -> None:
    assert read_versions() == set(lock_dependencies.VERSIONS)


def test_the_oldest_python_is_the_one_that_is_required() -> None:
    oldest = min(read_versions(), key=lambda version: tuple(map(int, version.split("."))))

    for path in PROJECTS:
        assert tomllib.loads(path.read_text())["project"]["requires-python"] == f">={oldest}"


def test_the_control_plane_is_cached_where_it_is_built() -> None:
    workflow = load_workflow(ROOT / ".github" / "workflows" / "ci.yml")

    cached = workflow["env"]["CONTROL_PLANE"].replace("~/.cache/", "/cache/")
    assert get_cache_folder({"XDG_CACHE_HOME": "/cache"}).is_relative_to(cached)


def test_the_versioning_page_has_the_versions_that_are_tested() -> None:
    page = (ROOT / "docs" / "versioning.md").read_text()
    (pythons,) = re.findall(r"^Python (.*) are supported", page, re.MULTILINE)

    assert set(re.findall(r"3\.\d+", pythons)) == read_versions()
    assert f"{KUBERNETES_VERSION}." in page
