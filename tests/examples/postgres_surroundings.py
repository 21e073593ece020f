"""The operator for PostgreSQL and its surroundings, for tests: loaded once, because its metrics are the process's."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from pathlib import Path
from types import ModuleType
from typing import Any

import psycopg
import pytest
from psycopg import AsyncConnection, sql

from konverge._internal.cli.operator_file import OperatorReference, load_operator
from konverge.kube import ObjectKey
from konverge.operator import Operator, kind_of
from konverge_cluster.testing import Cluster
from tests.database_servers import PostgresServer
from tests.docs.pages import REPOSITORY

__all__ = [
    "BACKUP",
    "CLUSTER",
    "FILE",
    "SECRET",
    "USER",
    "Database",
    "database",
    "example",
    "operator",
    "storage_class",
]

FILE = REPOSITORY / "examples" / "postgres" / "operator.py"
CLUSTER, USER, BACKUP = (kind_of(f"pg.example.com/v1/Postgres{name}") for name in ("Cluster", "User", "Backup"))
SECRET, STATEFUL_SET = kind_of("v1/Secret"), kind_of("apps/v1/StatefulSet")
VOLUME, STORAGE_CLASS = kind_of("v1/PersistentVolume"), kind_of("storage.k8s.io/v1/StorageClass")


@pytest.fixture(scope="session")
def operator() -> Operator:
    """Load the file."""
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
