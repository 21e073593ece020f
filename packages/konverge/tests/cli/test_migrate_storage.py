"""`konverge migrate-storage`: output, exit codes and bad input; the migration has tests in tests/upgrade."""

from __future__ import annotations

import json
import subprocess
from collections.abc import AsyncIterator
from pathlib import Path

import anyio.to_thread
import pytest

from konverge.kube import ObjectKey
from konverge_cluster.testing import Cluster
from tests.cli.conftest import Konverge
from tests.cli.test_bad_input import check_one_line, find_unused_port, kubeconfig
from tests.upgrade.test_storage_migration import DEFINITION, Kites

both = [pytest.mark.anyio, pytest.mark.real_time]


class TestOnBothClusters:
    pytestmark = both

    @pytest.fixture
    async def kites(self, cluster: Cluster) -> AsyncIterator[Kites]:
        kites = Kites(cluster, f"{cluster.namespace}.migration.konverge.test")
        await kites.install("v1beta1")
        metadata = {"name": "b", "namespace": cluster.namespace}
        await cluster.client.create(
            {"apiVersion": f"{kites.group}/v1beta1", "kind": "Kite", "metadata": metadata, "spec": {"name": "b"}}
        )
        await kites.install("v1")
        yield kites
        await cluster.client.delete(DEFINITION, ObjectKey("", kites.name))

    async def test_the_result_is_a_line_and_a_second_run_has_nothing_to_do(
        self, kites: Kites, konverge: Konverge
    ) -> None:
        file = await kites.cluster.write_kubeconfig()

        async def run(*arguments: str) -> subprocess.CompletedProcess[str]:
            return await anyio.to_thread.run_sync(
                lambda: konverge("migrate-storage", kites.name, "--kubeconfig", file, *arguments)
            )

        tried, done, again = await run("--dry-run"), await run(), await run("-o", "json")

        assert (tried.returncode, tried.stderr) == (0, "")
        assert tried.stdout == f"{kites.name}: 1 object can be rewritten; stored versions: v1beta1, v1\n"
        assert (done.returncode, done.stderr) == (0, "")
        assert done.stdout == f"{kites.name}: 1 object rewritten; stored versions: v1beta1, v1 → v1\n"
        failed = await anyio.to_thread.run_sync(
            lambda: konverge("migrate-storage", kites.name, "none.example.com", "--kubeconfig", file)
        )

        assert failed.returncode == 1
        assert failed.stdout == f"{kites.name}: nothing to do: all objects are stored in v1\n"
        assert failed.stderr.startswith("konverge: none.example.com: expected the name of a CustomResourceDefinition")
        [report] = json.loads(again.stdout)["definitions"]
        assert (report["storageVersion"], report["storedVersions"], report["rewritten"]) == ("v1", ["v1"], 0)

    async def test_an_object_that_cannot_be_rewritten_is_named_on_stderr_and_is_1(
        self, kites: Kites, konverge: Konverge
    ) -> None:
        await kites.refuse("b")
        file = await kites.cluster.write_kubeconfig()

        done = await anyio.to_thread.run_sync(lambda: konverge("migrate-storage", kites.name, "--kubeconfig", file))

        assert done.returncode == 1
        assert done.stdout == f"{kites.name}: 0 objects rewritten, 1 not rewritten; stored versions: v1beta1, v1\n"
        assert done.stderr.startswith(f"konverge: not rewritten: {kites.cluster.namespace}/b: ")
        assert done.stderr.count("\n") == 1


@pytest.mark.slow
def test_a_cluster_that_cannot_be_reached(started_konverge: Konverge, tmp_path: Path) -> None:
    file = kubeconfig(tmp_path, f"http://127.0.0.1:{find_unused_port()}")

    done = started_konverge("migrate-storage", "kites.example.com", "--kubeconfig", file)

    check_one_line(done, 4, "127.0.0.1")


@pytest.mark.parametrize("rate", ["0", "-1", "nan", "100000"])
def test_a_rate_that_cannot_be(konverge: Konverge, rate: str) -> None:
    done = konverge("migrate-storage", "kites.example.com", "--rate", rate)

    assert done.returncode == 2
    assert "--rate" in done.stderr


def test_a_definition_is_required(konverge: Konverge) -> None:
    assert konverge("migrate-storage").returncode == 2
