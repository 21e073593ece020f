"""`konverge init`: a project that passes its own checks and tests at once, and is written whole or not at all."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml

from konverge._internal.cli.init import write_project
from konverge._internal.cli.project_files import parse_names, render_project
from konverge.errors import ConfigurationError
from tests.cli.conftest import Konverge

BIN = Path(sys.executable).parent


def run_make(project: Path, *targets: str, **environment: str) -> str:
    """Run targets of the project's Makefile with the programs of this environment, and return the output."""
    (project / ".venv").mkdir()
    (project / ".venv" / ".installed").touch()
    done = subprocess.run(
        ["make", *targets, f"BIN={BIN}"],
        cwd=project,
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1", **environment},
        capture_output=True,
        text=True,
        check=False,
        timeout=110,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.slow
@pytest.mark.embedded
@pytest.mark.parametrize("arguments", [("shop",), ("web-shop-operator", "--kind", "X", "--group", "shops.example.org")])
def test_a_new_project_passes_its_own_checks_and_tests(
    started_konverge: Konverge, tmp_path: Path, arguments: tuple[str, ...]
) -> None:
    done = started_konverge("init", *arguments)

    assert (done.returncode, done.stderr) == (0, f"\nNext: cd {arguments[0]} && make test\n")
    project = tmp_path / arguments[0]
    assert sorted(done.stdout.split()) == sorted(
        str(path.relative_to(tmp_path)) for path in project.rglob("*") if path.is_file()
    )
    output = run_make(project, "check", "test", "manifests")
    assert "4 passed, 2 deselected" in output
    manifests = [obj["kind"] for obj in yaml.safe_load_all(output[output.index("---\napiVersion") :])]
    assert manifests[:2] == ["CustomResourceDefinition", "ServiceAccount"]


@pytest.mark.slow
@pytest.mark.real
def test_the_tests_of_a_new_project_pass_on_a_real_cluster(konverge: Konverge, tmp_path: Path) -> None:
    konverge("init", "shop")

    assert "2 passed" in run_make(tmp_path / "shop", "test-real", KONVERGE_REQUIRE_REAL="1")


@pytest.mark.slow
@pytest.mark.embedded
def test_a_new_box_passes_its_own_checks_and_simulation(konverge: Konverge, tmp_path: Path) -> None:
    pytest.importorskip("konverge_box", reason="konverge-box is another package")
    done = konverge("init", "shop", "--box")

    assert done.returncode == 0, done.stderr
    output = run_make(tmp_path / "shop", "test", "render")
    assert "Shop/example: Ready True Healthy" in output
    assert "result: ok" in output


@pytest.mark.slow
@pytest.mark.embedded
def test_the_golden_file_of_a_new_project_is_the_one_that_it_would_write(konverge: Konverge, tmp_path: Path) -> None:
    konverge("init", "shop")
    golden = tmp_path / "shop" / "tests" / "golden" / "test_components" / "test_defaults.yaml"
    before = golden.read_text()

    run_make(tmp_path / "shop", "golden")

    assert golden.read_text() == before


@pytest.mark.parametrize("name", ["true", "null", "1", "no", "1e3", "a" * 63])
@pytest.mark.parametrize("project", ["python", "box"])
def test_a_name_stays_a_text_in_every_file(name: str, project: str) -> None:
    files = render_project(parse_names(name, "Shop", "example.com"), project)  # type: ignore[arg-type]

    documents = {path: [*yaml.safe_load_all(text)] for path, text in files.items() if path.endswith((".yaml", ".yml"))}
    assert [path for path, text in files.items() if re.search("@[A-Z]+@", text)] == []
    tomllib.loads(files["pyproject.toml"])
    if project == "box":
        assert [documents[path][0]["metadata"]["name"] for path in ("box.yaml", "simulate.yaml")] == [name, name]
    else:
        assert documents["deployment.yaml"][0]["spec"]["template"]["spec"]["serviceAccountName"] == name
        compile(files["main.py"], "main.py", "exec")


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (("../shop",), "NAME '../shop': "),
        (("/tmp/shop",), "NAME '/tmp/shop': "),
        (("",), "NAME '': "),
        (("Shop",), "NAME 'Shop': "),
        (("a b",), "NAME 'a b': "),
        (("shop\n",), "NAME 'shop\\n': "),
        (("shop'); import os #",), "NAME "),
        (("$(id)",), "NAME '$(id)': "),
        (("a" * 64,), "must be no more than 63"),
        (("1shop",), "kind '1shop': expected a name in CamelCase of at most 40 letters and digits; use --kind"),
        (("a" * 41,), "kind "),
        (("deployment",), "kind 'Deployment': expected a name that the generated files do not use otherwise"),
        (("operator",), "kind 'Operator': "),
        (("none",), "kind 'None': "),
        (("yes",), "kind 'Yes': "),
        (("shop", "--kind", "Ünïcode"), "kind 'Ünïcode': "),
        (("shop", "--kind", "A B"), "kind 'A B': "),
        (("shop", "--group", "flat"), "--group 'flat': expected a DNS name with a dot"),
        (("shop", "--group", "a.b\ninjected: true"), "--group "),
        (("shop", "--group", "A.b"), "--group 'A.b': "),
    ],
)
def test_an_unusable_name_is_named_and_nothing_is_written(
    konverge: Konverge, tmp_path: Path, arguments: tuple[str, ...], problem: str
) -> None:
    before = sorted(tmp_path.iterdir())

    done = konverge("init", *arguments)

    assert done.returncode == 3
    assert problem in done.stderr
    assert (done.stdout, sorted(tmp_path.iterdir())) == ("", before)


def test_an_option_is_no_name(konverge: Konverge) -> None:
    assert konverge("init", "--shop").returncode == 2


@pytest.mark.parametrize("content", ["main.py", ".hidden", "folder"])
def test_a_directory_that_is_not_empty_stays_as_it_is(konverge: Konverge, tmp_path: Path, content: str) -> None:
    shop = tmp_path / "shop"
    shop.mkdir()
    if content == "folder":
        (shop / content).mkdir()
    else:
        (shop / content).write_text("mine")

    done = konverge("init", "shop")

    assert (done.returncode, done.stdout) == (3, "")
    assert done.stderr == "konverge: shop: expected an empty directory or none, found files; use --folder\n"
    assert [path.name for path in shop.rglob("*")] == [content]


@pytest.mark.parametrize("folder", ["file", "file/below", "link"])
def test_a_folder_that_cannot_be_made_is_named(konverge: Konverge, tmp_path: Path, folder: str) -> None:
    (tmp_path / "file").write_text("mine")
    (tmp_path / "link").symlink_to(tmp_path / "absent")

    done = konverge("init", "shop", "--folder", folder)

    assert (done.returncode, done.stdout) == (3, "")
    assert done.stderr.startswith(f"konverge: {folder.partition('/')[0]}")
    assert (tmp_path / "file").read_text() == "mine"


def test_an_empty_directory_and_a_new_one_below_others_are_used(konverge: Konverge, tmp_path: Path) -> None:
    (tmp_path / "shop").mkdir()

    assert konverge("init", "shop").returncode == 0
    assert konverge("init", "shop", "--folder", "a/b/c").returncode == 0
    assert (tmp_path / "a" / "b" / "c" / "main.py").read_text() == (tmp_path / "shop" / "main.py").read_text()


def test_after_an_error_nothing_is_left(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"x/a: File exists"):
        write_project(tmp_path / "x", {"a": "", "d/e": "", "a/b": ""})

    assert list(tmp_path.iterdir()) == []
    (tmp_path / "y").mkdir()
    with pytest.raises(ConfigurationError):
        write_project(tmp_path / "y", {"a": "", "a/b": ""})
    assert list((tmp_path / "y").iterdir()) == []
