"""The operator for PostgreSQL: on both clusters, with a PostgreSQL server that a test starts instead of the kubelet."""

from __future__ import annotations

import asyncio
import base64
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from konverge.errors import ApiError, NotFoundError
from konverge.kube import Object, ObjectKey
from konverge.operator import Operator, RunOptions
from konverge.webhooks import WebhookOptions
from konverge_cluster.testing import Cluster
from tests.examples.postgres_surroundings import BACKUP, CLUSTER, FILE, SECRET, USER, Database


def postgres_cluster(cluster: Cluster, **spec: Any) -> Object:
    metadata = {"name": "main", "namespace": cluster.namespace}
    return {"apiVersion": CLUSTER.api_version, "kind": CLUSTER.kind, "metadata": metadata, "spec": spec}


async def read_password(cluster: Cluster, name: str) -> str:
    secret = await cluster.client.get(SECRET, ObjectKey(cluster.namespace, name))
    return base64.b64decode(secret["data"]["password"]).decode()


async def wait_until_gone(cluster: Cluster, gvk: Any, name: str) -> None:
    async def is_gone() -> bool:
        try:
            await cluster.client.get(gvk, ObjectKey(cluster.namespace, name))
        except NotFoundError:
            return True
        return False

    await cluster.eventually(is_gone, describe=f"{gvk.kind} {name} is gone")


async def wait_for_phase(cluster: Cluster, gvk: Any, name: str, phase: str) -> Object:
    async def has_phase() -> Object | None:
        obj = await cluster.client.get(gvk, ObjectKey(cluster.namespace, name))
        if obj.get("status", {}).get("phase") != phase:
            raise AssertionError(obj.get("status"))
        status: Object = obj["status"]
        return status

    return await cluster.eventually(has_phase, describe=f"{gvk.kind} {name} is {phase}")


def read_start(file: Path) -> bytes:
    return file.read_bytes()[:5]


def list_children(cluster: Cluster) -> set[str]:
    """Return what the operator has applied for the cluster `main`."""
    paths = {request.path for request in cluster.list_requests("postgres") if request.verb == "patch"}
    return {"/".join(path.split("/")[-2:]) for path in paths if path.split("/")[-1].startswith("main")}


def test_the_operator_has_under_350_lines() -> None:
    assert len(FILE.read_text().splitlines()) < 350


@pytest.mark.slow
@pytest.mark.anyio
@pytest.mark.real_time
@pytest.mark.timeout(300)
async def test_a_cluster_lives_with_its_user_and_backups_and_goes_in_order(
    cluster: Cluster, operator: Operator, database: Database, storage_class: str
) -> None:
    async with cluster.run_operator(operator):
        await cluster.client.create(postgres_cluster(cluster, backupEvery="1h", storageClass=storage_class))
        password = await cluster.eventually(lambda: read_password(cluster, "main-superuser"))
        await database.set_superuser(password)
        status = await wait_for_phase(cluster, CLUSTER, "main", "Running")
        first = await read_password(cluster, "main-user")
        assert await database.can_log_in("main", first)
        assert [[status["version"]], status["endpoints"]] == [
            [row[0] for row in await database.ask("SHOW server_version")],
            [f"main.{cluster.namespace}.svc:5432"],
        ]
        assert list_children(cluster) >= {
            "secrets/main-superuser",
            "secrets/main-tls",
            "secrets/main-user",
            "networkpolicies/main",
            "serviceaccounts/main",
            "services/main",
            "statefulsets/main",
            "poddisruptionbudgets/main",
            "postgresusers/main",
        }

        body = {"spec": {"rotation": "1"}}
        await cluster.client.patch(USER, ObjectKey(cluster.namespace, "main"), body, patch_type="merge")

        async def is_rotated() -> bool:
            second = await read_password(cluster, "main-user")
            return second != first and await database.can_log_in("main", second)

        await cluster.eventually(is_rotated, describe="the server has the new password")
        assert not await database.can_log_in("main", first)

        async def find_last_backup() -> str:
            obj = await cluster.client.get(CLUSTER, ObjectKey(cluster.namespace, "main"))
            return str(obj["status"].get("lastBackup") or "")

        backup = await cluster.eventually(find_last_backup, timeout_seconds=90, describe="there is a backup")
        file = Path((await wait_for_phase(cluster, BACKUP, backup, "Completed"))["file"])
        assert await asyncio.to_thread(read_start, file) == b"PGDMP"

        await cluster.client.delete(CLUSTER, ObjectKey(cluster.namespace, "main"))
        await wait_until_gone(cluster, CLUSTER, "main")
        assert await database.list_roles() == ["postgres"]
        assert await read_password(cluster, "main-superuser") == password
        assert await asyncio.to_thread(file.exists)
        await cluster.client.delete(BACKUP, ObjectKey(cluster.namespace, backup))
        await wait_until_gone(cluster, BACKUP, backup)
        assert not await asyncio.to_thread(file.exists)


@pytest.mark.slow
@pytest.mark.anyio
@pytest.mark.real_time
@pytest.mark.timeout(300)
@pytest.mark.parametrize("existing", ["role", "database"])
async def test_a_role_or_database_of_somebody_else_is_neither_changed_nor_deleted(
    cluster: Cluster, operator: Operator, database: Database, existing: str
) -> None:
    if existing == "role":
        await database.do("CREATE ROLE {} LOGIN PASSWORD 'theirs'", "legacy")
        await database.do("CREATE DATABASE {0} OWNER {0}", "legacy")
    else:
        await database.do("CREATE DATABASE {}", "legacy")
    metadata = {"name": "legacy", "namespace": cluster.namespace}
    user = {"apiVersion": USER.api_version, "kind": USER.kind, "metadata": metadata}
    async with cluster.run_operator(operator):
        await cluster.client.create(postgres_cluster(cluster))
        await database.set_superuser(await cluster.eventually(lambda: read_password(cluster, "main-superuser")))
        await cluster.client.create({**user, "spec": {"cluster": "main", "name": "legacy"}})
        granted = await cluster.wait_for_condition(USER, "legacy", type="Granted", status="False", reason="NotOurs")
        await cluster.client.delete(USER, ObjectKey(cluster.namespace, "legacy"))
        await wait_until_gone(cluster, USER, "legacy")
        await cluster.client.delete(CLUSTER, ObjectKey(cluster.namespace, "main"))
        await wait_until_gone(cluster, CLUSTER, "main")

    assert granted.message == "legacy exists and has another owner"
    assert await database.ask("SELECT FROM pg_database WHERE datname = 'legacy'")
    assert await database.can_log_in("legacy", "theirs") == (existing == "role")
    assert ("legacy" in await database.list_roles()) == (existing == "role")


@pytest.mark.anyio
async def test_a_cluster_waits_for_its_storage_class(cluster: Cluster, operator: Operator) -> None:
    async with cluster.run_operator(operator):
        await cluster.client.create(postgres_cluster(cluster, storageClass="absent"))
        waiting = await cluster.wait_for_condition(CLUSTER, "main", type="ServerReady", status="False")

    assert waiting.reason == "PrerequisiteNotMet"
    assert "StorageFound" in waiting.message


@pytest.mark.anyio
@pytest.mark.real_time
@pytest.mark.slow
async def test_the_webhooks_reject_parameters_and_name_a_role(cluster: Cluster, operator: Operator) -> None:
    options = RunOptions((cluster.namespace,), webhooks=WebhookOptions(port=0), registers_webhooks=True)
    async with cluster.run_operator(operator, options):
        with pytest.raises(ApiError, match=r"spec.parameters\[ssl\]: expected a parameter that the operator does not"):
            await cluster.client.create(postgres_cluster(cluster, parameters={"ssl": "off"}))
        metadata = {"name": "my-app", "namespace": cluster.namespace}
        created = await cluster.client.create(
            {"apiVersion": USER.api_version, "kind": USER.kind, "metadata": metadata, "spec": {"cluster": "absent"}}
        )

    assert created["spec"]["name"] == "my_app"


@pytest.mark.slow
@pytest.mark.embedded
def test_konverge_test_passes_without_a_server(tmp_path: Path) -> None:
    (tmp_path / "cluster.yaml").write_text((FILE.parent / "cluster.yaml").read_text())
    command = [sys.executable, "-m", "konverge", "test", str(FILE), "--sample", "cluster.yaml", "--samples", "2"]
    environment = os.environ | {"POSTGRES_ADDRESS": "127.0.0.1:1"}

    done = subprocess.run(
        command, check=False, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=100
    )

    assert (done.returncode, done.stderr) == (0, ""), done.stdout
    assert done.stdout.startswith("passed    PostgresCluster {version: '17', backupEvery: 24h}")
