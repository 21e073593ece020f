"""`konverge upgrade-check`: its output, its exit codes and bad input; the check itself has tests in tests/upgrade."""

from __future__ import annotations

import json
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio.to_thread
import pytest

from konverge._internal.operator.permission_derivation import derive_permissions
from konverge._internal.operator.role_manifests import build_role_manifests
from konverge.crd import crd_manifest, find_definition
from konverge.kube import ObjectKey
from konverge_cluster.testing import Cluster
from tests.cli.conftest import Konverge
from tests.cli.test_bad_input import check_one_line, find_unused_port, kubeconfig
from tests.upgrade.upgraded_operator import OldApp, old

APP = find_definition(OldApp).gvk
FILE = Path(__file__).parents[1] / "upgrade" / "upgraded_operator.py"
both = [pytest.mark.anyio, pytest.mark.real_time]


@dataclass
class UpgradedCluster:
    """A cluster with two apps, and the command line over it."""

    cluster: Cluster
    konverge: Konverge
    kubeconfig: Path

    async def check(self, variable: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        told = ["upgrade-check", f"{FILE}:{variable}", "--kubeconfig", str(self.kubeconfig), *arguments]
        told += ["-n", self.cluster.namespace, "--account", f"{self.cluster.namespace}/apps"]
        return await anyio.to_thread.run_sync(lambda: self.konverge(*told))


@pytest.fixture
async def upgraded(cluster: Cluster, konverge: Konverge) -> UpgradedCluster:
    await cluster.install(crd_manifest(OldApp))
    specs: dict[str, dict[str, Any]] = {"big": {"replicas": 8}, "fine": {}}
    for name, spec in specs.items():
        metadata = {"name": name, "namespace": cluster.namespace}
        await cluster.client.create({"apiVersion": APP.api_version, "kind": "App", "metadata": metadata, "spec": spec})
    account = ObjectKey(cluster.namespace, "apps")
    for manifest in build_role_manifests(derive_permissions(old.registered.declaration), account, [cluster.namespace]):
        await cluster.client.apply(manifest, field_manager="test")
    return UpgradedCluster(cluster, konverge, await cluster.write_kubeconfig())


class TestOnBothClusters:
    pytestmark = both

    async def test_what_breaks_is_marked_and_is_1(self, upgraded: UpgradedCluster) -> None:
        done = await upgraded.check("new")

        name = f"{upgraded.cluster.namespace}/big"
        assert (done.returncode, done.stderr) == (1, "")
        assert "CustomResourceDefinition apps.upgrade.konverge.test\n" in done.stdout
        assert "  ! breaking  v1 .spec.replicas: maximum changed from 10 to 5; existing objects stay" in done.stdout
        assert "    2 objects checked\n  ! 1 object: would be invalid, and survive" in done.stdout
        assert f"      {name}  spec.replicas: " in done.stdout
        assert "    ! not reconciled any more: " in done.stdout
        assert "    objects: 3 created\n" in done.stdout
        assert "  ! missing permission: add to Role apps in namespace" in done.stdout
        assert done.stdout.endswith("\nThis upgrade breaks something; see the lines with !\n")

    async def test_the_report_for_programs_has_no_secret_value(self, upgraded: UpgradedCluster) -> None:
        done = await upgraded.check("new", "-o", "json")

        report = json.loads(done.stdout)
        assert (done.returncode, report["breaks"], report["operator"]) == (1, True, "apps")
        [definition] = report["definitions"]
        assert (definition["isInstalled"], definition["checkedObjects"]) == (True, 2)
        assert report["owners"]["writes"] == {"create": 3}
        assert "swordfish" not in done.stdout

    async def test_the_same_version_breaks_nothing_and_is_0(self, upgraded: UpgradedCluster) -> None:
        done = await upgraded.check("old")

        assert (done.returncode, done.stderr) == (0, "")
        assert "    unchanged\n    2 objects checked\n" in done.stdout
        assert done.stdout.endswith("    sufficient\nNothing breaks.\n")


@pytest.mark.slow
def test_a_cluster_that_cannot_be_reached(started_konverge: Konverge, tmp_path: Path) -> None:
    file = kubeconfig(tmp_path, f"http://127.0.0.1:{find_unused_port()}")

    done = started_konverge("upgrade-check", f"{FILE}:new", "--kubeconfig", file)

    check_one_line(done, 4, "127.0.0.1")


def test_a_file_that_does_not_load(konverge: Konverge, tmp_path: Path) -> None:
    file = tmp_path / "broken.py"
    file.write_text("1 / 0\n")

    done = konverge("upgrade-check", file)

    check_one_line(done, 3, "broken.py, line 1: ZeroDivisionError")


def test_an_account_without_a_namespace(konverge: Konverge) -> None:
    done = konverge("upgrade-check", f"{FILE}:new", "--account", "apps")

    assert done.returncode == 2
    assert "--account" in done.stderr
