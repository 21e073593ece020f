"""The lock files of the development environment are complete, and pip can verify every entry."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parent.parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
PACKAGES = [tomllib.loads(file.read_text()) for file in ROOT.glob("packages/*/pyproject.toml")]
# Optional dependencies, and those of one package's tests, are in the development group too.
OF_PACKAGES = {
    text
    for package in PACKAGES
    for texts in (
        package["project"]["dependencies"],
        *package["project"]["optional-dependencies"].values(),
        *package["dependency-groups"].values(),
        package["build-system"]["requires"],
    )
    for text in texts
    if not text.startswith("konverge")
}
LOCKS = ("tools/constraints.txt", "tools/bench-constraints.txt")
OF_LOCKS = {
    "tools/constraints.txt": [
        *OF_PACKAGES,
        *PROJECT["dependency-groups"]["dev"],
        "editables",
        "pip",
    ],
    "tools/bench-constraints.txt": PROJECT["dependency-groups"]["bench"],
}


def entries(lock: str) -> Iterator[str]:
    """Yield each requirement with its hashes, with continued lines joined as pip does."""
    text = (ROOT / lock).read_text().replace("\\\n", " ")
    return (line for line in text.splitlines() if line and not line.startswith("#"))


@pytest.mark.parametrize("lock", LOCKS)
def test_everything_has_one_version_and_hashes_and_names_no_host(lock: str) -> None:
    wrong = [
        line for line in entries(lock) if not re.fullmatch(r"[\w.-]+==[\w.+-]+( +--hash=sha256:[0-9a-f]{64})+ *", line)
    ]

    assert wrong == []
    assert "://" not in (ROOT / lock).read_text()


@pytest.mark.parametrize("lock", LOCKS)
def test_what_the_project_asks_for_is_locked_at_a_version_that_fits(lock: str) -> None:
    versions = dict(line.split(maxsplit=1)[0].split("==") for line in entries(lock))
    locked = {canonicalize_name(name): version for name, version in versions.items()}

    for text in OF_LOCKS[lock]:
        wanted = Requirement(text)
        assert wanted.specifier.contains(locked[canonicalize_name(wanted.name)]), f"make constraints: {text}"


def test_make_lets_pip_take_nothing_without_a_hash() -> None:
    installs = [line for line in (ROOT / "Makefile").read_text().splitlines() if "pip install" in line]

    assert len(installs) == 3
    for line in installs:
        assert "--require-hashes" in line or "--no-deps --no-build-isolation $(PACKAGES:%=--editable %)" in line
