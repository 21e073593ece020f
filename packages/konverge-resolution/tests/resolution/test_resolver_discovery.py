"""Which resolvers a process finds: konverge's own by its table, in every checkout, and those of other packages."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path

import pytest

from konverge.errors import ConfigurationError
from konverge_resolution._internal import resolvers
from konverge_resolution._internal.resolver_registry import ENTRY_POINTS
from konverge_resolution._internal.resolvers import STANDARD, load_resolvers

PROJECT = Path(__file__).parents[2] / "pyproject.toml"


def install(monkeypatch: pytest.MonkeyPatch, **values: str) -> None:
    """Have packages declare these beside what there is."""
    there = entry_points(group=ENTRY_POINTS)
    more = [EntryPoint(name, value, ENTRY_POINTS) for name, value in values.items()]
    monkeypatch.setattr(resolvers, "entry_points", lambda group: [*there, *more])


def test_the_package_declares_the_resolvers_of_the_table() -> None:
    declared = tomllib.loads(PROJECT.read_text())["project"]["entry-points"][ENTRY_POINTS]

    assert declared == {name: f"{module}:{attribute}" for name, (module, attribute) in STANDARD.items()}


def test_all_five_are_found_once_though_they_are_declared_too(monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, git="konverge_resolution._internal.resolvers.git:GitResolver")

    names = [resolver.name for resolver in load_resolvers()]

    assert sorted(names) == ["bundles", "cluster", "git", "http", "hub"]


def test_one_of_another_package_is_found_and_may_not_take_a_name(monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, shelf="tests.resolution.fake_resolver:FakeResolver")
    assert "shelf" in [resolver.name for resolver in load_resolvers()]
    assert [resolver.name for resolver in load_resolvers(["shelf"])] == ["shelf"]

    install(monkeypatch, other="tests.resolution.test_resolver_discovery:Impostor")
    with pytest.raises(ConfigurationError, match="'git': konverge has a resolver of that name"):
        load_resolvers()


class Impostor:
    name = "git"

    async def resolve(self) -> None:
        """Never called."""


@pytest.mark.slow
def test_what_is_not_asked_for_is_not_imported() -> None:
    program = (
        "import sys; from konverge_resolution._internal.resolvers import load_resolvers; load_resolvers(['http']);"
        "sys.exit(sum(name.startswith('konverge_resolution._internal.resolvers.git') for name in sys.modules))"
    )

    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
