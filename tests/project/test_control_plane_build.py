"""The build script of the real control plane, without a compilation."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from konverge_cluster.controlplane import PROGRAMS

SCRIPT = Path(__file__).parents[2] / "tools" / "controlplane" / "build.py"


def build(**environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, str(SCRIPT)], env=environment, capture_output=True, text=True, check=False)


def write_programs(folder: Path, script: str = "") -> Path:
    folder.mkdir(parents=True)
    for program in PROGRAMS:
        (folder / program).write_text(f"#!/bin/sh\n{script}\n")
        (folder / program).chmod(0o755)
    return folder


def fake_go(folder: Path, script: str) -> str:
    """Return a PATH with only a `go` that is this shell script."""
    folder.mkdir()
    (folder / "go").write_text(f"#!/bin/sh\n{script}\n")
    (folder / "go").chmod(0o755)
    return str(folder)


def test_without_go_one_line_says_which_version_to_install(tmp_path: Path) -> None:
    done = build(XDG_CACHE_HOME=str(tmp_path), PATH=str(tmp_path))

    assert done.returncode == 1
    assert done.stderr.startswith("control plane: Go 1.26.0 or newer is needed and there is no `go` in PATH")
    assert done.stderr.count("\n") == 1


def test_an_old_go_that_may_not_fetch_a_newer_one_is_refused(tmp_path: Path) -> None:
    path = fake_go(tmp_path / "bin", "echo go1.22.5; echo local")

    done = build(XDG_CACHE_HOME=str(tmp_path), PATH=path)

    assert done.returncode == 1
    assert done.stderr == "control plane: Go 1.26.0 or newer is needed, found 1.22.5\n"


def test_a_network_failure_is_told_from_a_broken_build(tmp_path: Path) -> None:
    lookup = 'case "$1" in env) echo go1.99.0; echo auto;; *) echo "some/package" >&2; '
    path = fake_go(tmp_path / "bin", lookup + 'echo "m: Get x: dial tcp: no such host" >&2; exit 1;; esac')

    done = build(XDG_CACHE_HOME=str(tmp_path), PATH=path)

    assert done.returncode == 1
    assert "the Go modules could not be fetched (m: Get x: dial tcp: no such host)" in done.stderr


def test_a_failed_build_leaves_no_program_behind(tmp_path: Path) -> None:
    path = fake_go(tmp_path / "bin", 'case "$1" in env) echo go1.99.0; echo auto;; *) exit 1;; esac')

    build(XDG_CACHE_HOME=str(tmp_path), PATH=path)

    left = [file.name for file in (tmp_path / "konverge" / "controlplane").rglob("*") if file.is_file()]
    assert left == [".lock"]


def test_nothing_is_built_where_kubebuilder_assets_has_everything(tmp_path: Path) -> None:
    assets = write_programs(tmp_path / "assets")

    done = build(KUBEBUILDER_ASSETS=str(assets), XDG_CACHE_HOME=str(tmp_path / "cache"), PATH="")

    assert done.returncode == 0
    assert not (tmp_path / "cache").exists()
