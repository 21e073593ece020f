"""The search for the programs of the real control plane."""

from __future__ import annotations

from pathlib import Path

import pytest

from konverge_cluster.controlplane import (
    KUBERNETES_VERSION,
    PROGRAMS,
    BinariesNotFoundError,
    find_binaries,
    get_cache_folder,
)


def write_programs(folder: Path, *, without: str = "") -> None:
    folder.mkdir(parents=True)
    for program in PROGRAMS:
        if program != without:
            (folder / program).touch(mode=0o755)


def test_cache_folder_follows_xdg_and_names_the_version() -> None:
    assert get_cache_folder({"XDG_CACHE_HOME": "/caches"}) == Path(
        f"/caches/konverge/controlplane/{KUBERNETES_VERSION}"
    )


def test_programs_are_found_in_the_cache_folder(tmp_path: Path) -> None:
    environment = {"XDG_CACHE_HOME": str(tmp_path)}
    write_programs(get_cache_folder(environment))

    assert find_binaries(environment) == get_cache_folder(environment)


def test_kubebuilder_assets_win_over_the_cache_folder(tmp_path: Path) -> None:
    environment = {"XDG_CACHE_HOME": str(tmp_path / "cache"), "KUBEBUILDER_ASSETS": str(tmp_path / "assets")}
    write_programs(get_cache_folder(environment))
    write_programs(tmp_path / "assets")

    assert find_binaries(environment) == tmp_path / "assets"


def test_incomplete_kubebuilder_assets_are_refused_by_naming_what_is_absent(tmp_path: Path) -> None:
    write_programs(tmp_path / "assets", without="kwok")

    with pytest.raises(BinariesNotFoundError, match="has no kwok: run `make control-plane` once"):
        find_binaries({"KUBEBUILDER_ASSETS": str(tmp_path / "assets")})


def test_a_file_that_cannot_be_executed_is_no_program(tmp_path: Path) -> None:
    environment = {"XDG_CACHE_HOME": str(tmp_path)}
    write_programs(get_cache_folder(environment))
    (get_cache_folder(environment) / "etcd").chmod(0o644)

    with pytest.raises(BinariesNotFoundError, match="has no etcd"):
        find_binaries(environment)
