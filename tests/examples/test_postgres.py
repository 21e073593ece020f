"""The operator for PostgreSQL: on both clusters, with a PostgreSQL server that a test starts instead of the kubelet."""

from __future__ import annotations

import asyncio
import base64
import os
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from types import ModuleType
from typing import Any

import psycopg
import pytest
from psycopg import AsyncConnection, sql

from konverge._internal.cli.operator_file import OperatorReference, load_operator
from konverge.errors import ApiError, NotFoundError
from konverge.kube import Object, ObjectKey
from konverge.operator import Operator, RunOptions, kind_of
from konverge.webhooks import WebhookOptions
from konverge_cluster.testing import Cluster
from tests.database_servers import PostgresServer
from tests.docs.pages import REPOSITORY

FILE = REPOSITORY / "examples" / "postgres" / "operator.py"
CLUSTER, USER, BACKUP = (kind_of(f"pg.example.com/v1/Postgres{name}") for name in ("Cluster", "User", "Backup"))
SECRET, STATEFUL_SET = kind_of("v1/Secret"), kind_of("apps/v1/StatefulSet")
VOLUME, STORAGE_CLASS = kind_of("v1/PersistentVolume"), kind_of("storage.k8s.io/v1/StorageClass")


@pytest.fixture(scope="session")
def operator() -> Operator:
    """Load the file once: its metrics are in the registry of the process."""
    return load_operator(OperatorReference(FILE))


@pytest.fixture
def example(operator: Operator) -> ModuleType:
    return sys.modules[operator.custom_resources[0].__module__]


class Database:
    """The PostgreSQL server that runs in place of a Pod."""

    def __init__(self, server: PostgresServer) -> None:
        self._server = server

    async def ask(self, query: str, *values: Any) -> list[Any]:
        async with await AsyncConnection.connect(self._server.conninfo(), autocommit=True) as connection:
            return await (await connection.execute(query.encode(), values)).fetchall()

    async def do(self, statement: str, *names: str) -> None:
        async with await AsyncConnection.connect(self._server.conninfo(), autocommit=True) as connection:
            await connection.execute(sql.SQL(statement).format(*map(sql.Identifier, names)))

    async def set_superuser(self, password: str) -> None:
        """Do what the image does at its first start."""
        verb = "ALTER" if await self.ask("SELECT FROM pg_roles WHERE rolname = 'postgres'") else "CREATE"
        await self.do(f"{verb} ROLE postgres SUPERUSER LOGIN PASSWORD '{password}'")

    async def list_roles(self) -> list[str]:
        rows = await self.ask("SELECT rolname FROM pg_roles WHERE rolname !~ '^pg_' AND rolname <> 'admin' ORDER BY 1")
        return [row[0] for row in rows]

    async def can_log_in(self, user: str, password: str) -> bool:
        try:
            conninfo = f"{self._server.conninfo(user)} user={user} password={password}"
            await (await AsyncConnection.connect(conninfo)).close()
        except psycopg.OperationalError:
            return False
        return True

    async def clear(self) -> None:
        for (name,) in await self.ask("SELECT datname FROM pg_database WHERE datname !~ '^(postgres|template.*)$'"):
            await self.do("DROP DATABASE {} WITH (FORCE)", name)
        for name in await self.list_roles():
            await self.do("DROP ROLE {}", name)


@pytest.fixture
async def database(
    postgres_server: PostgresServer, example: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Database]:
    monkeypatch.setattr(example, "ADDRESS", f"{postgres_server.host}:{postgres_server.port}")
    monkeypatch.setattr(example, "BACKUPS", tmp_path)
    database = Database(postgres_server)
    yield database
    await database.clear()


@pytest.fixture
async def storage_class(cluster: Cluster) -> AsyncIterator[str]:
    """Create a class and a volume of it: the real control plane has no provisioner."""
    name = f"{cluster.namespace}-fast"
    storage = {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "provisioner": "kubernetes.io/no-provisioner"}
    spec = {
        "storageClassName": name,
        "capacity": {"storage": "1Gi"},
        "accessModes": ["ReadWriteOnce"],
        "hostPath": {"path": "/data"},
    }
    volume = {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name}, "spec": spec}
    await cluster.client.create({**storage, "metadata": {"name": name}})
    await cluster.client.create(volume)
    yield name
    await cluster.client.delete(VOLUME, ObjectKey("", name))
    await cluster.client.delete(STORAGE_CLASS, ObjectKey("", name))


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
