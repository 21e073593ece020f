"""Grants: the privileges of one role on one database or schema, and no others.

A privilege has no place for a mark. It belongs to the owner if the role does, or the database.
"""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

from msgspec import Struct
from psycopg import sql

from konverge_box.providers.ownership_marks import build_retention_mark, is_owned
from konverge_box.providers.plugin import (
    ForeignError,
    ItemOwner,
    ItemRequest,
    ItemResult,
    ProviderError,
    ReconcileRequest,
)
from konverge_box.providers.postgres.databases import read_database_mark
from konverge_box.providers.postgres.roles import read_role_mark
from konverge_box.providers.postgres.server import Connection, join_role, open_connection

__all__ = ["GrantSpec", "delete_grant", "reconcile_grant"]

Privilege: TypeAlias = Literal["CONNECT", "CREATE", "TEMPORARY", "USAGE"]

_Form: TypeAlias = Literal["GRANT {} ON {} {} TO {}", "REVOKE {} ON {} {} FROM {}"]

_DATABASE_PRIVILEGES = frozenset({"CONNECT", "CREATE", "TEMPORARY"})
_SCHEMA_PRIVILEGES = frozenset({"CREATE", "USAGE"})


class GrantSpec(Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """Who may do what.

    Args:
        role: Who.
        database: Where.
        privileges: ``CONNECT``, ``CREATE`` and ``TEMPORARY`` of a database, ``USAGE`` and ``CREATE`` of a schema.
        schema: The schema that they are for; empty: the database itself.
    """

    role: str
    database: str
    privileges: tuple[Privilege, ...]
    schema: str = ""


async def reconcile_grant(request: ReconcileRequest) -> ItemResult:
    """Give the role what it lacks, and take away what it should not have."""
    spec: GrantSpec = request.spec
    known = _SCHEMA_PRIVILEGES if spec.schema else _DATABASE_PRIVILEGES
    wanted: set[str] = set(spec.privileges)
    if not wanted <= known:
        subject, found_text = "schema" if spec.schema else "database", ", ".join(sorted(wanted))
        raise ProviderError(f"expected privileges of a {subject} ({', '.join(sorted(known))}), found {found_text}")
    async with open_connection(request.settings, spec.database) as connection:
        role = await _find_role(connection, request.identity, request.owner)
        if role is None:
            raise ProviderError(f'role "{spec.role}" does not exist')
        found, owner = await _read_privileges(connection, request.identity, role)
        if owner == spec.role:
            return ItemResult()  # it has them all, by itself
        if found & known != wanted:
            await join_role(connection, owner)
        for privilege in sorted(wanted - found):
            await connection.execute(_build_statement("GRANT {} ON {} {} TO {}", privilege, request.identity))
        for privilege in sorted((found & known) - wanted):
            await connection.execute(_build_statement("REVOKE {} ON {} {} FROM {}", privilege, request.identity))
    return ItemResult()


async def delete_grant(request: ItemRequest) -> None:
    """Take away all that the role has there; nothing if role or database are gone or belong to others."""
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
    """What the role has there, and to whom the database or schema belongs."""
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
