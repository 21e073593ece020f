"""Kubeconfig files beside those of the user."""

from __future__ import annotations

from pathlib import Path

import pytest

from konverge._internal.client.kubeconfig import load_kubeconfig
from konverge.errors import ConfigurationError
from konverge_cluster._internal.cli.kubeconfig_file import build_kubeconfig, write_kubeconfig

FOREIGN = "apiVersion: v1\nkind: Config\nclusters:\n- name: production\n  cluster: {server: 'https://example.com'}\n"


def test_what_is_written_leads_to_the_cluster(tmp_path: Path) -> None:
    write_kubeconfig(build_kubeconfig("http://127.0.0.1:8001", "test"), tmp_path / "config")

    found = load_kubeconfig(tmp_path / "config", env={})

    assert (found.server, found.namespace) == ("http://127.0.0.1:8001", "default")


def test_only_the_owner_can_read_it(tmp_path: Path) -> None:
    write_kubeconfig(build_kubeconfig("http://127.0.0.1:8001", "test"), tmp_path / "config")

    assert (tmp_path / "config").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("bits", [0o600, 0o640, 0o644])
def test_one_that_is_there_keeps_its_permission_bits(tmp_path: Path, bits: int) -> None:
    write_kubeconfig(build_kubeconfig("http://127.0.0.1:8001", "test"), tmp_path / "config")
    (tmp_path / "config").chmod(bits)

    write_kubeconfig(build_kubeconfig("http://127.0.0.1:8002", "test"), tmp_path / "config")

    assert (tmp_path / "config").stat().st_mode & 0o777 == bits


def test_one_of_ours_is_replaced(tmp_path: Path) -> None:
    write_kubeconfig(build_kubeconfig("http://127.0.0.1:8001", "test"), tmp_path / "config")
    write_kubeconfig(build_kubeconfig("http://127.0.0.1:8002", "test"), tmp_path / "config")

    assert load_kubeconfig(tmp_path / "config", env={}).server == "http://127.0.0.1:8002"


@pytest.mark.parametrize(
    "content",
    [FOREIGN, "no kubeconfig at all", "{", "", "[" * 100_000, "[" * 400 + "]" * 400, "a: 2026-99-99"],
    ids=["foreign", "text", "broken", "empty", "too deep", "deep", "no date"],
)
def test_what_is_not_ours_is_left_alone(tmp_path: Path, content: str) -> None:
    (tmp_path / "config").write_text(content)

    with pytest.raises(ConfigurationError, match="found other clusters in it"):
        write_kubeconfig(build_kubeconfig("http://127.0.0.1:8001", "test"), tmp_path / "config")

    assert (tmp_path / "config").read_text() == content
