"""A version matrix in a YAML file, and the errors of an invalid file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from konverge import BooleanGate, Mutation
from konverge.errors import BuildError
from konverge.primitives import ConfigMap
from konverge_cluster._internal.testing.golden.golden_run import GoldenRun, RunningTest
from konverge_cluster.testing import load_matrix

RIGHT = """\
folder: golden/web
versions: ["8.4.0", 8.5.0]
exclude: [user]
fixtures:
  - name: small
    spec: {since: 2026-01-01}
    requires: [tracing, {mutation: legacy, for: 8.4.0}]
  - name: large
    specFile: specs/large.yaml
    forbids: [{mutation: legacy, for: 8.5.0}]
"""


def build(version: str, spec: dict[str, str]) -> ConfigMap:
    def mutation(name: str, is_on: bool = True) -> Mutation[Any]:
        return Mutation(name, lambda config: config.set_entry(name, "on"), BooleanGate(is_on))

    mutations = [mutation("tracing"), mutation("user"), mutation("legacy", version == "8.4.0")]
    return ConfigMap({"metadata": {"name": "web", "namespace": "default"}, "data": spec}, mutations=mutations)


@pytest.fixture
def matrix_file(tmp_path: Path) -> Path:
    (tmp_path / "specs").mkdir()
    (tmp_path / "specs" / "large.yaml").write_text("size: '9'\n")
    (tmp_path / "matrix.yaml").write_text(RIGHT)
    return tmp_path / "matrix.yaml"


def test_a_file_is_a_matrix_whose_paths_start_beside_it(matrix_file: Path) -> None:
    matrix = load_matrix(matrix_file, build)
    golden = matrix_file.parent / "golden" / "web"

    matrix.assert_complete()
    with GoldenRun(updates=True).run_test(RunningTest(Path("/elsewhere/test_web.py"), "test_web")):
        for case in matrix.cases():
            case.check()

    assert sorted(str(path.relative_to(golden)) for path in golden.rglob("*.yaml")) == [
        "large/8.4.0.yaml",
        "large/8.5.0.yaml",
        "manifest.yaml",
        "small/8.4.0.yaml",
        "small/8.5.0.yaml",
    ]
    assert "size: '9'" in (golden / "large/8.4.0.yaml").read_text()
    assert "since: '2026-01-01'" in (golden / "small/8.4.0.yaml").read_text()


FIXTURES = RIGHT.partition("fixtures:\n")[2]


@pytest.mark.parametrize(
    ("old", "new", "mistakes"),
    [
        (RIGHT, "", ["expected a mapping with folder, versions, exclude, revealSecrets, fixtures, found None"]),
        (RIGHT, "- a", ["expected a mapping with folder, versions, exclude, revealSecrets, fixtures, found a list"]),
        (
            RIGHT,
            "{}",
            [
                "folder: expected a value, found none",
                "versions: expected a value, found none",
                "fixtures: expected a value, found none",
            ],
        ),
        (
            "exclude:",
            "exclud:",
            [
                "exclud: expected one of folder, versions, exclude, revealSecrets, fixtures; did you mean 'exclude'?",
            ],
        ),
        ('"8.4.0", 8.5.0', "8.4", ["versions[0]: expected text (add quotes), found 8.4"]),
        ('["8.4.0", 8.5.0]', "8.4.0", ["versions: expected a list, found '8.4.0'"]),
        ("golden/web", "3", ["folder: expected text (add quotes), found 3"]),
        ("exclude: [user]", "exclude: [[user]]", ["exclude[0]: expected text, found a list"]),
        (
            "exclude:",
            "revealSecrets: sometimes\nexclude:",
            ["revealSecrets: expected true or false, found 'sometimes'"],
        ),
        (FIXTURES, "  small: {spec: 1}\n", ["fixtures: expected a list, found a dict"]),
        (
            FIXTURES,
            "  - small\n",
            ["fixtures[0]: expected a mapping with name, spec, specFile, requires, forbids, found 'small'"],
        ),
        (
            "    spec: {since: 2026-01-01}\n",
            "",
            ["fixtures[0]: expected either spec or specFile, found neither"],
        ),
        (
            "    specFile:",
            "    spec: {}\n    specFile:",
            ["fixtures[1]: expected either spec or specFile, found spec and specFile"],
        ),
        (
            "specs/large.yaml",
            "specs/big.yaml",
            ["fixtures[1].specFile: file {folder}/specs/big.yaml does not exist"],
        ),
        ("specs/large.yaml", "[a]", ["fixtures[1].specFile: expected text, found a list"]),
        (
            "name: large",
            "nam: large",
            [
                "fixtures[1].nam: expected one of name, spec, specFile, requires, forbids; did you mean 'name'?",
                "fixtures[1].name: expected a value, found none",
            ],
        ),
        (
            "[tracing, {mutation: legacy, for: 8.4.0}]",
            "tracing",
            ["fixtures[0].requires: expected a list, found 'tracing'"],
        ),
        ("[tracing,", "[3,", ["fixtures[0].requires[0]: expected text (add quotes), found 3"]),
        (
            "{mutation: legacy, for: 8.4.0}",
            "{mutation: legacy, version: 8.4.0}",
            ["fixtures[0].requires[1].version: expected one of mutation, for"],
        ),
        (
            "{mutation: legacy, for: 8.4.0}",
            "{for: 8.4.0}",
            ["fixtures[0].requires[1].mutation: expected a value, found none"],
        ),
        (
            "for: 8.4.0",
            "for: 8.4",
            ["fixtures[0].requires[1].for: expected text (add quotes), found 8.4"],
        ),
        (
            "for: 8.5.0",
            'for: "8.6.0"',
            ["fixtures[1].forbids[0]: 'legacy' is meant for '8.6.0', expected one of versions; did you mean '8.5.0'?"],
        ),
        ("name: large", "name: small", ["fixtures[1].name: 'small' occurs twice"]),
        (
            "exclude: [user]",
            "exclude: [user]\nexclude: [tracing]",
            ["{folder}/matrix.yaml cannot be read: duplicate field, line 4"],
        ),
    ],
)
def test_a_wrong_file_is_reported_with_each_place(old: str, new: str, mistakes: list[str], matrix_file: Path) -> None:
    assert old in RIGHT
    matrix_file.write_text(RIGHT.replace(old, new))

    with pytest.raises(BuildError) as raised:
        load_matrix(matrix_file, build)

    assert raised.value.subject == f"version matrix {matrix_file}"
    assert [mistake.replace(str(matrix_file.parent), "{folder}") for mistake in raised.value.errors] == mistakes


@pytest.mark.parametrize("content", [b"\xff", b"[" * 100_000, b"versions: [", b"a: {b: 1, b: 2}"])
def test_what_is_no_yaml_is_said(content: bytes, matrix_file: Path) -> None:
    matrix_file.write_bytes(content)

    with pytest.raises(BuildError, match=r"1 mistake\n  - /.*matrix.yaml cannot be read: "):
        load_matrix(matrix_file, build)


def test_a_file_that_is_not_there_is_said(tmp_path: Path) -> None:
    with pytest.raises(BuildError, match="file /.*/matrix.yaml does not exist$"):
        load_matrix(tmp_path / "matrix.yaml", build)
