"""`konverge box lint`: every error of box files, for people and programs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.box.file.sample_boxes import HEADER, build_box_text
from tests.cli.conftest import Konverge

EXAMPLES = Path(__file__).parents[5] / "examples" / "boxes"


@pytest.mark.slow
def test_the_examples_have_no_mistake(started_konverge: Konverge) -> None:
    files = sorted(EXAMPLES.glob("*/box.yaml"))

    done = started_konverge("box", "lint", *files)

    assert (done.returncode, done.stdout, done.stderr) == (0, "", f"{len(files)} files, 0 errors\n")


@pytest.mark.slow
def test_each_mistake_is_a_line_that_an_editor_can_follow(konverge: Konverge, tmp_path: Path) -> None:
    (tmp_path / "good.yaml").write_text(HEADER)
    (tmp_path / "bad.yaml").write_text(build_box_text("onReconcil: {}\nfinalizers: 1"))

    done = konverge("box", "lint", "good.yaml", "bad.yaml")

    assert done.returncode == 1
    assert done.stdout == (
        "bad.yaml:8:7: spec.crds.web.onReconcil: unknown field; did you mean onReconcile?\n"
        "bad.yaml:9:7: spec.crds.web.finalizers: expected a list, found a number\n"
    )
    assert done.stderr == "2 files, 2 errors\n"


@pytest.mark.slow
def test_json_has_the_parts_of_each_mistake(konverge: Konverge, tmp_path: Path) -> None:
    (tmp_path / "bad.yaml").write_text(build_box_text("onReconcil: {}"))

    done = konverge("box", "lint", "bad.yaml", "-o", "json")

    assert done.returncode == 1
    assert json.loads(done.stdout) == {
        "files": 1,
        "errors": [
            {
                "file": "bad.yaml",
                "line": 8,
                "column": 7,
                "path": "spec.crds.web.onReconcil",
                "message": "unknown field; did you mean onReconcile?",
            }
        ],
    }


def test_a_file_that_is_not_there_is_one_line(konverge: Konverge) -> None:
    done = konverge("box", "lint", "absent.yaml")

    assert (done.returncode, done.stderr) == (3, "konverge: absent.yaml: No such file or directory\n")


def test_no_file_at_all_is_a_wrong_command(konverge: Konverge) -> None:
    assert konverge("box", "lint").returncode == 2


def test_a_file_that_never_ends_is_refused(konverge: Konverge) -> None:
    done = konverge("box", "lint", "/dev/zero")

    assert (done.returncode, done.stdout) == (1, "/dev/zero:1:1: expected at most 1 MiB, found 1.0 MiB\n")
