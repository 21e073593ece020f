"""Where only konverge is installed, what other packages bring is listed, and a call of it says what brings it."""

from __future__ import annotations

import sys
from importlib.metadata import EntryPoint, EntryPoints, entry_points
from pathlib import Path

import click
import pytest

from konverge._internal.cli import main, operator_file
from konverge._internal.cli.operator_file import OperatorReference, load_operator
from konverge._internal.extras import missing_package
from konverge.errors import ConfigurationError

hello = click.Command("hello", callback=lambda: click.echo("hello"))


@pytest.fixture
def only_konverge(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing of another package is installed."""

    def found(group: str, name: str = "") -> EntryPoints:
        own = [each for each in entry_points(group=group) if each.value.startswith("konverge.")]
        return EntryPoints(each for each in own if name in ("", each.name))

    monkeypatch.setattr(main, "entry_points", found)
    monkeypatch.setattr(operator_file, "entry_points", found)
    monkeypatch.setitem(sys.modules, "konverge_cluster", None)
    for name in [name for name in sys.modules if name.startswith("konverge_cluster.")]:
        monkeypatch.delitem(sys.modules, name)


@pytest.mark.usefixtures("only_konverge")
@pytest.mark.parametrize(
    ("command", "extra"), [("box", "box"), ("demo", "local"), ("local", "local"), ("resolve", "resolution")]
)
def test_a_command_that_is_not_installed_says_what_brings_it(
    command: str, extra: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main.run_command([command, "--help"]) == 3
    assert capsys.readouterr().err == (
        f"konverge: konverge {command} is not installed: pip install 'konverge[{extra}]' installs it\n"
    )


@pytest.mark.usefixtures("only_konverge")
def test_the_list_has_all_commands_and_says_what_they_need(capsys: pytest.CaptureFixture[str]) -> None:
    assert main.run_command(["--help"]) == 0

    text = " ".join(capsys.readouterr().out.split())
    assert "local Start and stop a cluster on this machine. Needs konverge[local]." in text
    assert "run Run an operator file against a cluster. test" in text


def test_a_package_adds_a_command(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    added = EntryPoint("hello", f"{__name__}:hello", main.COMMANDS)

    def found(group: str, name: str = "") -> EntryPoints:
        return EntryPoints(each for each in (*entry_points(group=group), added) if name in ("", each.name))

    monkeypatch.setattr(main, "entry_points", found)

    assert (main.run_command(["hello"]), main.run_command(["--help"])) == (0, 0)
    assert capsys.readouterr().out.startswith("hello\n")


@pytest.mark.usefixtures("only_konverge")
def test_a_box_file_and_the_cluster_of_a_run_say_what_brings_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(ConfigurationError, match=r"hello.yaml: .* is not installed: pip install 'konverge\[box\]'"):
        load_operator(OperatorReference(Path("hello.yaml")))
    (tmp_path / "idle.py").write_text("from konverge import Operator\n\noperator = Operator('idle')\n")

    assert main.run_command(["run", str(tmp_path / "idle.py"), "--local"]) == 3
    assert "konverge: the cluster of --local is not installed: pip install 'konverge[local]'" in capsys.readouterr().err


@pytest.mark.parametrize("error", [ModuleNotFoundError("jinja2", name="jinja2"), ImportError("broken")])
def test_an_import_that_fails_for_another_reason_stays_what_it_is(error: ImportError) -> None:
    assert missing_package("a server", error) is error
