"""PostgreSQL clusters, with their passwords, users and backups: the operator itself connects to each server."""

import asyncio
import os
from base64 import b64decode
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Annotated, Literal

import psycopg
from msgspec import Meta
from prometheus_client import Counter
from psycopg import sql
from psycopg.conninfo import make_conninfo

from konverge import Component, ComponentBuilder, Condition, Operator, OwnerContext, Result, options
from konverge import primitives as p
from konverge.crd import CelRule, Metadata, PrintColumn, custom_resource, encode, immutable, rules
from konverge.errors import NotFoundError
from konverge.kube import Object, ObjectKey
from konverge.operator import READ, kind_of
from konverge.prerequisites import depends_on
from konverge.types import apps_v1, core_v1, meta_v1, policy_v1
from konverge.webhooks import AdmissionRequest, Violation

BACKUPS = Path(os.environ.get("POSTGRES_BACKUPS", "/backups"))
ADDRESS = os.environ.get("POSTGRES_ADDRESS")  # outside a cluster, where Services have no address
DUMPS = Counter("postgres_dumps_total", "Dumps by result.", ["result"])


@dataclass
class PostgresClusterSpec:
    version: Annotated[Literal["16", "17", "18"], immutable("restore a backup into a new cluster")] = "17"
    image: str | None = None
    storage: Annotated[str, Meta(pattern="^[1-9][0-9]*(Mi|Gi|Ti)$"), immutable("a volume keeps its size")] = "1Gi"
    storage_class: Annotated[str, immutable("a volume stays where it is")] | None = None
    parameters: dict[str, str] = field(default_factory=dict)
    backup_every: Annotated[timedelta, rules(CelRule("duration(self) >= duration('1h')", "1h at least"))] | None = None
    suspended: bool = False


@dataclass
class PostgresClusterStatus:
    phase: Literal["Creating", "Running", "Suspended", "Failing"] = "Creating"
    endpoints: list[str] = field(default_factory=list)
    version: str | None = None
    last_backup: str | None = None


@custom_resource(group="pg.example.com", version="v1", print_columns=[PrintColumn("Phase", "string", ".status.phase")])
@dataclass
class PostgresCluster:
    """A PostgreSQL server, with a user and a database of the same name."""

    metadata: Metadata
    spec: PostgresClusterSpec
    status: PostgresClusterStatus = field(default_factory=PostgresClusterStatus)


@dataclass
class PostgresUserSpec:
    cluster: Annotated[str, immutable("a user belongs to one cluster")]
    name: Annotated[str, Meta(pattern="^([a-z][a-z0-9_]*)?$", max_length=63), immutable("a role keeps its name")] = ""
    rotation: str = ""


@custom_resource(group="pg.example.com", version="v1")
@dataclass
class PostgresUser:
    """A role that can log in, and a database of its own."""

    metadata: Metadata
    spec: PostgresUserSpec


@dataclass
class PostgresBackupSpec:
    cluster: str
    database: str
    keep: timedelta = timedelta(days=30)


@dataclass
class PostgresBackupStatus:
    phase: Literal["Pending", "Completed"] = "Pending"
    file: str | None = None


@custom_resource(group="pg.example.com", version="v1", print_columns=[PrintColumn("Phase", "string", ".status.phase")])
@dataclass
class PostgresBackup:
    """A dump of a database. It outlives its cluster, and its file is deleted with it."""

    metadata: Metadata
    spec: PostgresBackupSpec
    status: PostgresBackupStatus = field(default_factory=PostgresBackupStatus)


operator = Operator("postgres")
CLUSTER, BACKUP = kind_of(PostgresCluster), kind_of(PostgresBackup)
SECRET, STORAGE_CLASS = kind_of("v1/Secret"), kind_of("storage.k8s.io/v1/StorageClass")


def named(cluster: PostgresCluster, part: str = "") -> meta_v1.ObjectMeta:
    return {"name": cluster.metadata.name + part, "namespace": cluster.metadata.namespace}


def access(cluster: PostgresCluster) -> Component:
    secret = {"metadata": named(cluster, "-superuser")}
    superuser = p.GeneratedSecret(secret, values={"password": p.Generated.password()})
    host, pods = f"{cluster.metadata.name}.{cluster.metadata.namespace}.svc", {"postgres": cluster.metadata.name}
    policy = {"podSelector": {"matchLabels": pods}, "ingress": [{"ports": [{"port": 5432}]}]}
    return (
        ComponentBuilder("access", condition_type="AccessReady")
        .with_resource(superuser, options.unowned())  # the volume outlives the cluster, and has this password
        .with_resource(p.GeneratedCertificate({"metadata": named(cluster, "-tls")}, dns_names=[host]))
        .with_resource(p.NetworkPolicy({"metadata": named(cluster), "spec": policy}))
        .build()
    )


def server(cluster: PostgresCluster) -> Component:
    name, labels = cluster.metadata.name, {"postgres": cluster.metadata.name}
    password: core_v1.EnvVarSource = {"secretKeyRef": {"name": f"{name}-superuser", "key": "password"}}
    tls = {"ssl": "on", "ssl_cert_file": "/tls/tls.crt", "ssl_key_file": "/tls/tls.key"}
    container: core_v1.Container = {
        "name": "postgres",
        "image": cluster.spec.image or f"postgres:{cluster.spec.version}",
        "args": [f"--{parameter}={value}" for parameter, value in (cluster.spec.parameters | tls).items()],
        "env": [{"name": "PGDATA", "value": "/data/pgdata"}, {"name": "POSTGRES_PASSWORD", "valueFrom": password}],
        "readinessProbe": {"exec": {"command": ["pg_isready", "-U", "postgres"]}},
        "volumeMounts": [{"name": volume, "mountPath": f"/{volume}"} for volume in ("data", "tls")],
    }
    pod: core_v1.PodSpec = {
        "serviceAccountName": name,
        "securityContext": {"fsGroup": 999},
        "containers": [container],
        "volumes": [{"name": "tls", "secret": {"secretName": f"{name}-tls", "defaultMode": 0o640}}],
    }
    claim: core_v1.PersistentVolumeClaimSpec = {"accessModes": ["ReadWriteOnce"]}
    claim["resources"] = {"requests": {"storage": cluster.spec.storage}}
    if cluster.spec.storage_class:
        claim["storageClassName"] = cluster.spec.storage_class
    workload: apps_v1.StatefulSet = {
        "metadata": named(cluster),
        "spec": {
            "serviceName": name,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": pod},
            "volumeClaimTemplates": [{"metadata": {"name": "data"}, "spec": claim}],
        },
    }
    budget: policy_v1.PodDisruptionBudgetSpec = {"selector": {"matchLabels": labels}, "maxUnavailable": 0}
    return (
        ComponentBuilder("server", condition_type="ServerReady")
        .with_prerequisite(depends_on("StorageFound"))
        .with_resource(p.ServiceAccount({"metadata": named(cluster)}))
        .with_resource(p.Service({"metadata": named(cluster), "spec": {"selector": labels, "ports": [{"port": 5432}]}}))
        .with_resource(p.StatefulSet(workload), options.deletion_wave(2))
        .with_resource(p.PodDisruptionBudget({"metadata": named(cluster), "spec": budget}))
        .with_grace_period(timedelta(minutes=5))
        .suspend(cluster.spec.suspended)
        .build()
    )


def user(cluster: PostgresCluster) -> Component:
    metadata = Metadata(name=cluster.metadata.name, namespace=cluster.metadata.namespace)
    spec = PostgresUserSpec(metadata.name, metadata.name.replace("-", "_"))
    resource = p.Custom(encode(PostgresUser(metadata, spec)), required_conditions="Ready")
    builder = ComponentBuilder("user", condition_type="UserReady").with_prerequisite(depends_on("Reachable"))
    return builder.with_resource(resource, options.deletion_wave(1, timeout=timedelta(minutes=10))).build()


async def find_storage(cluster: PostgresCluster, ctx: OwnerContext) -> None:
    """Let the server wait for its class; the read requeues the cluster when the class appears."""
    names = [found["metadata"]["name"] for found in await ctx.cluster.list(STORAGE_CLASS)]
    is_found = cluster.spec.storage_class in (None, *names)
    reason, message = "Found" if is_found else "NotFound", f"StorageClasses: {', '.join(names) or 'none'}"
    ctx.stage(Condition("StorageFound", str(is_found), reason, message))


async def observe(cluster: PostgresCluster, ctx: OwnerContext) -> Result | None:
    if not cluster.spec.suspended and ctx.components["server"].is_ready:
        try:
            async with await connect(ctx, cluster.metadata.namespace, cluster.metadata.name) as connection:
                cluster.status.version = connection.info.parameter_status("server_version")
                ctx.stage(Condition("Reachable", "True", "Connected", ""))
        except psycopg.OperationalError as error:
            ctx.stage(Condition("Reachable", "False", "Unreachable", str(error)))
            return Result(requeue_after=timedelta(seconds=5))
    return None


async def find_backup(cluster: PostgresCluster, ctx: OwnerContext) -> None:
    """Find the last complete backup; the read requeues the cluster when another one is complete."""
    backups = [b for b in await list_backups(cluster, ctx) if b.get("status", {}).get("phase") == "Completed"]
    cluster.status.last_backup = backups[-1]["metadata"]["name"] if backups else None


def report(cluster: PostgresCluster, ctx: OwnerContext) -> PostgresClusterStatus:
    status, parts, service = cluster.status, ctx.components, ctx.components.find("v1/Service")
    failed = any(part.condition.reason in ("Down", "Degraded", "Error") for part in parts.values())
    running: Literal["Running", "Creating"] = "Running" if parts.are_ready else "Creating"
    status.phase = "Suspended" if cluster.spec.suspended else "Failing" if failed else running
    status.endpoints = [f"{service['metadata']['name']}.{cluster.metadata.namespace}.svc:5432"] if service else []
    return status


operator.manages(PostgresCluster, find_storage, access, server, observe, user, find_backup, status=report)


@operator.runs_timer(PostgresCluster, interval=timedelta(seconds=10))
async def schedule_backups(cluster: PostgresCluster, ctx: OwnerContext) -> None:
    name, every, now = cluster.metadata.name, cluster.spec.backup_every, ctx.clock.now()
    if every is not None and cluster.status.phase == "Running":
        backups = await list_backups(cluster, ctx)
        if not backups or now - datetime.fromisoformat(backups[-1]["metadata"]["creationTimestamp"]) >= every:
            metadata = Metadata(name=f"{name}-{now:%Y%m%d-%H%M%S}", namespace=cluster.metadata.namespace)
            await ctx.cluster.create(encode(PostgresBackup(metadata, PostgresBackupSpec(name, name.replace("-", "_")))))


async def list_backups(cluster: PostgresCluster, ctx: OwnerContext) -> list[Object]:
    backups = await ctx.cluster.list(BACKUP, namespace=cluster.metadata.namespace)
    backups.sort(key=lambda backup: backup["metadata"]["creationTimestamp"])
    return [backup for backup in backups if backup["spec"]["cluster"] == cluster.metadata.name]


async def connect(ctx: OwnerContext, namespace: str, cluster: str) -> psycopg.AsyncConnection:
    """Connect as the superuser. Without a cluster or its password, there is no server: `NotFoundError`."""
    server = await find_server(ctx, namespace, cluster)
    return await psycopg.AsyncConnection.connect(make_conninfo(**server, connect_timeout=5), autocommit=True)


async def find_server(ctx: OwnerContext, namespace: str, cluster: str) -> dict[str, str]:
    await ctx.cluster.get(CLUSTER, ObjectKey(namespace, cluster))
    secret = await ctx.cluster.get(SECRET, ObjectKey(namespace, f"{cluster}-superuser"))
    host, _, port = (ADDRESS or f"{cluster}.{namespace}.svc:5432").rpartition(":")
    password = b64decode(secret["data"]["password"]).decode()
    return {"host": host, "port": port, "user": "postgres", "password": password, "dbname": "postgres"}


def credentials(user: PostgresUser) -> Component:
    namespace, role, cluster = user.metadata.namespace, user.spec.name, user.spec.cluster
    secret = p.GeneratedSecret(
        {"metadata": {"name": f"{user.metadata.name}-user", "namespace": namespace}, "stringData": {"username": role}},
        values={"password": p.Generated.password()},
        derive=lambda values: {"url": f"postgresql://{role}:{values['password']}@{cluster}.{namespace}.svc/{role}"},
        rotate_after=timedelta(days=90),
        rotation=user.spec.rotation,
    )
    return ComponentBuilder("credentials", condition_type="CredentialsReady").with_resource(secret).build()


def role(user: PostgresUser) -> Component:
    return ComponentBuilder("role", condition_type="RoleReady").with_prerequisite(depends_on("Granted")).build()


async def grant(user: PostgresUser, ctx: OwnerContext) -> None:
    secret, name = ctx.components["credentials"].find("v1/Secret"), sql.Identifier(user.spec.name)
    if secret is None:
        return
    try:
        async with await connect(ctx, user.metadata.namespace, user.spec.cluster) as connection:
            found, mark = await find_marks(connection, user)
            if found not in ([], [mark]):
                ctx.stage(Condition("Granted", "False", "NotOurs", f"{user.spec.name} exists and has another owner"))
                return
            verb, password = sql.SQL("ALTER" if found else "CREATE"), b64decode(secret["data"]["password"]).decode()
            role = sql.SQL("{0} ROLE {1} LOGIN PASSWORD {2}; COMMENT ON ROLE {1} IS {3}")  # one transaction
            await connection.execute(role.format(verb, name, password, mark))
            databases = await connection.execute("SELECT FROM pg_database WHERE datname = %s", [user.spec.name])
            if not databases.rowcount:
                await connection.execute(sql.SQL("CREATE DATABASE {0} OWNER {0}").format(name))
            ctx.stage(Condition("Granted", "True", "Granted", ""))
    except NotFoundError:
        ctx.stage(Condition("Granted", "False", "NoCluster", f"there is no PostgresCluster {user.spec.cluster}"))


async def find_marks(connection: psycopg.AsyncConnection, user: PostgresUser) -> tuple[list[str], str]:
    """Return the comment of the role, if any, and 'other' for a database of another role; and our own comment."""
    query = """SELECT coalesce(shobj_description(oid, 'pg_authid'), '') FROM pg_roles WHERE rolname = %(name)s UNION ALL
    SELECT 'other' FROM pg_database WHERE datname = %(name)s AND pg_get_userbyid(datdba) <> datname"""
    rows = await (await connection.execute(query, {"name": user.spec.name})).fetchall()
    return [row[0] for row in rows], f"PostgresUser {user.metadata.namespace}/{user.metadata.name}"


operator.manages(PostgresUser, credentials, grant, role)


@operator.finalizes(PostgresUser)
async def revoke(user: PostgresUser, ctx: OwnerContext) -> None:
    with suppress(NotFoundError):  # gone with its cluster
        async with await connect(ctx, user.metadata.namespace, user.spec.cluster) as connection:
            found, mark = await find_marks(connection, user)
            for statement in ("DROP DATABASE IF EXISTS {} WITH (FORCE)", "DROP ROLE {}") if found == [mark] else ():
                await connection.execute(sql.SQL(statement).format(sql.Identifier(user.spec.name)))


@operator.reconciles(PostgresBackup)
async def expire(backup: PostgresBackup, ctx: OwnerContext) -> Result:
    age = ctx.clock.now() - datetime.fromisoformat(ctx.owner["metadata"]["creationTimestamp"])
    if age >= backup.spec.keep:
        await ctx.cluster.delete(BACKUP, ctx.owner_key, uid=ctx.owner_uid)
    return Result(requeue_after=max(backup.spec.keep - age, timedelta(seconds=1)))


@operator.runs_task(PostgresBackup)
async def dump(backup: PostgresBackup, ctx: OwnerContext) -> None:
    if backup.status.phase == "Completed":
        return
    server = await find_server(ctx, backup.metadata.namespace, backup.spec.cluster)
    file = BACKUPS / f"{backup.metadata.uid}.dump"
    command = ["pg_dump", "--format=custom", f"--file={file}", f"--dbname={backup.spec.database}"]
    variables = os.environ | {f"PG{name.upper()}": text for name, text in server.items()}
    process = await asyncio.create_subprocess_exec(*command, env=variables, stderr=asyncio.subprocess.PIPE)
    try:
        _, stderr = await process.communicate()
    except asyncio.CancelledError:  # the backup is deleted, or the operator ends
        process.kill()
        raise
    DUMPS.labels("failed" if process.returncode else "completed").inc()
    if process.returncode:
        raise RuntimeError(stderr.decode())
    ctx.stage_status(PostgresBackupStatus("Completed", str(file)))


@operator.finalizes(PostgresBackup)
async def remove(backup: PostgresBackup, ctx: OwnerContext) -> None:
    (BACKUPS / f"{backup.metadata.uid}.dump").unlink(missing_ok=True)


@operator.validates(PostgresCluster)
def check_parameters(cluster: PostgresCluster, request: AdmissionRequest[PostgresCluster]) -> Iterable[Violation]:
    for name in cluster.spec.parameters:
        if name.startswith("ssl") or not name.replace(".", "_").isidentifier():
            yield Violation(f"spec.parameters[{name}]", "expected a parameter that the operator does not set")


@operator.defaults(PostgresUser)
def complete(user: PostgresUser, request: AdmissionRequest[PostgresUser]) -> None:
    user.spec.name = user.spec.name or user.metadata.name.replace("-", "_")


operator.uses(STORAGE_CLASS, *READ)
operator.uses(BACKUP, *READ, "create", "delete")
