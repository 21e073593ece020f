"""Grants: the exact privileges of one role on one database or schema.

A privilege cannot have a mark. It belongs to the owner if the role or the database does.
"""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

from msgspec import Struct
from psycopg import sql

from konverge_box._internal.providers.ownership_marks import build_retention_mark, is_owned
from konverge_box._internal.providers.plugin import (
    ForeignError,
    ItemOwner,
    ItemRequest,
    ItemResult,
    ProviderError,
    ReconcileRequest,
)
from konverge_box._internal.providers.postgres.databases import read_database_mark
from konverge_box._internal.providers.postgres.roles import read_role_mark
from konverge_box._internal.providers.postgres.server import Connection, join_role, open_connection

__all__ = ["GrantSpec", "delete_grant", "reconcile_grant"]

Privilege: TypeAlias = Literal["CONNECT", "CREATE", "TEMPORARY", "USAGE"]

_Form: TypeAlias = Literal["GRANT {} ON {} {} TO {}", "REVOKE {} ON {} {} FROM {}"]

_DATABASE_PRIVILEGES = frozenset({"CONNECT", "CREATE", "TEMPORARY"})
_SCHEMA_PRIVILEGES = frozenset({"CREATE", "USAGE"})


class GrantSpec(Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """The desired privileges of a role.

    Args:
        role: The role.
        database: The database.
        privileges: ``CONNECT``, ``CREATE`` and ``TEMPORARY`` for a database, ``USAGE`` and ``CREATE`` for a schema.
        schema: The schema of the privileges; empty for the database itself.
    """

    role: str
    database: str
    privileges: tuple[Privilege, ...]
    schema: str = ""


async def reconcile_grant(request: ReconcileRequest) -> ItemResult:
    """Grant the missing privileges, and revoke all others."""
    spec: GrantSpec = request.spec
    supported = _SCHEMA_PRIVILEGES if spec.schema else _DATABASE_PRIVILEGES
    wanted: set[str] = set(spec.privileges)
    if not wanted <= supported:
        subject, declared = "schema" if spec.schema else "database", ", ".join(sorted(wanted))
        raise ProviderError(f"expected privileges for a {subject} ({', '.join(sorted(supported))}), found {declared}")
    async with open_connection(request.settings, spec.database) as connection:
        role = await _find_role(connection, request.identity, request.owner)
        if role is None:
            raise ProviderError(f'role "{spec.role}" does not exist; create it first')
        current, owner = await _read_privileges(connection, request.identity, role)
        if owner == spec.role:
            return ItemResult()  # an owner has all privileges
        if current & supported != wanted:
            await join_role(connection, owner)
        for privilege in sorted(wanted - current):
            await connection.execute(_build_statement("GRANT {} ON {} {} TO {}", privilege, request.identity))
        for privilege in sorted((current & supported) - wanted):
            await connection.execute(_build_statement("REVOKE {} ON {} {} FROM {}", privilege, request.identity))
    return ItemResult()


async def delete_grant(request: ItemRequest) -> None:
    """Revoke all privileges of the role; do nothing if the role or the database is gone or foreign."""
    if request.on_delete == "retain":
        return
    async with open_connection(request.settings) as outside:
        if await read_database_mark(outside, str(request.identity["database"])) is None:
            return
    async with open_connection(request.settings, str(request.identity["database"])) as connection:
        try:
            role = await _find_role(connection, request.identity, request.owner)
        except ForeignError:
            return
        if role is None:
            return
        found, owner = await _read_privileges(connection, request.identity, role)
        if not found or owner == request.identity["role"]:
            return
        await join_role(connection, owner)
        for privilege in sorted(found):
            await connection.execute(_build_statement("REVOKE {} ON {} {} FROM {}", privilege, request.identity))


async def _find_role(connection: Connection, identity: Any, owner: ItemOwner) -> int | None:
    role, database = str(identity["role"]), str(identity["database"])
    found = await read_role_mark(connection, role)
    if found is None:
        return None
    if not is_owned(found[1], owner) and not is_owned(await read_database_mark(connection, database) or "", owner):
        raise ForeignError(f'role "{role}", as well as database "{database}",', found[1], build_retention_mark(owner))
    return found[0]


async def _read_privileges(connection: Connection, identity: Any, role: int) -> tuple[set[str], str]:
    """Return the privileges of the role, and the owner of the database or schema."""
    if identity["schema"]:
        query = (
            "SELECT pg_get_userbyid(nspowner), ARRAY(SELECT privilege_type FROM "
            "aclexplode(coalesce(nspacl, acldefault('n', nspowner))) WHERE grantee = %s) "
            "FROM pg_namespace WHERE nspname = %s"
        )
        subject, name = "schema", str(identity["schema"])
    else:
        query = (
            "SELECT pg_get_userbyid(datdba), ARRAY(SELECT privilege_type FROM "
            "aclexplode(coalesce(datacl, acldefault('d', datdba))) WHERE grantee = %s) "
            "FROM pg_database WHERE datname = %s"
        )
        subject, name = "database", str(identity["database"])
    found = await (await connection.execute(query, [role, name])).fetchone()
    if found is None:
        raise ProviderError(f'{subject} "{name}" does not exist')
    return set(found[1]), str(found[0])


def _build_statement(form: _Form, privilege: str, identity: Any) -> sql.Composed:
    subject = sql.SQL("SCHEMA") if identity["schema"] else sql.SQL("DATABASE")
    name = str(identity["schema"] or identity["database"])
    verbs = {each: sql.SQL(each) for each in ("CONNECT", "CREATE", "TEMPORARY", "USAGE")}
    return sql.SQL(form).format(verbs[privilege], subject, sql.Identifier(name), sql.Identifier(str(identity["role"])))
