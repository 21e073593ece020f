"""Roles: login, password, memberships and the connection limit."""

from __future__ import annotations

from typing import NamedTuple

from msgspec import Struct
from psycopg import sql

from konverge_box._internal.expressions import Sensitive
from konverge_box._internal.providers.ownership_marks import (
    build_owner_mark,
    build_retention_mark,
    is_owned,
    needs_mark,
)
from konverge_box._internal.providers.plugin import ItemRequest, ItemResult, ReconcileRequest
from konverge_box._internal.providers.postgres.scram import matches_verifier
from konverge_box._internal.providers.postgres.server import Connection, PostgresSettings, join_role, open_connection

__all__ = ["RoleSpec", "Roles", "read_role_mark"]


class RoleSpec(Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """The desired state of a role.

    Args:
        login: Tells whether the role can log in.
        password: Its password, from a Secret; null keeps the current password.
        member_of: All roles that the role is a member of.
        connection_limit: The maximum number of its connections; -1 for no limit.
    """

    login: bool = True
    password: Sensitive | None = None
    member_of: tuple[str, ...] = ()
    connection_limit: int = -1


class _RoleState(NamedTuple):
    oid: int
    login: bool
    connection_limit: int
    mark: str


class Roles:
    """The reconciler of roles.

    Only superusers can read the verifier of a password. For other users, this class keeps the last verifier that it has
    set. After a start it sets each password again, which has no visible effect.
    """

    def __init__(self) -> None:
        self._set: dict[tuple[str, int, str], str] = {}

    async def reconcile(self, request: ReconcileRequest) -> ItemResult:
        """Reconcile the role in one transaction, and return its state."""
        spec: RoleSpec = request.spec
        settings: PostgresSettings = request.settings
        name, mark = sql.Identifier(request.name), build_owner_mark(request.owner)
        async with open_connection(settings) as connection, connection.transaction():
            found = await _find_role(connection, request.name)
            if found is None:
                await connection.execute(sql.SQL("CREATE ROLE {}").format(name))
            if found is None or needs_mark(f'role "{request.name}"', found.mark, request.owner):
                await connection.execute(sql.SQL("COMMENT ON ROLE {} IS {}").format(name, sql.Literal(mark)))
            if found is None or (found.login, found.connection_limit) != (spec.login, spec.connection_limit):
                login = sql.SQL("LOGIN" if spec.login else "NOLOGIN")
                limit = sql.Literal(spec.connection_limit)
                await connection.execute(sql.SQL("ALTER ROLE {} {} CONNECTION LIMIT {}").format(name, login, limit))
            await self._set_memberships(connection, request.name, spec)
            await self._set_password(connection, request, spec)
        outputs = {"role": request.name, "host": settings.host, "port": settings.port}
        return ItemResult(outputs=outputs)

    async def delete(self, request: ItemRequest) -> None:
        """Drop or release the role. The user of the settings becomes the owner of its objects in all databases."""
        settings: PostgresSettings = request.settings
        name = sql.Identifier(request.name)
        async with open_connection(settings) as connection:
            found = await _find_role(connection, request.name)
            if found is None or not is_owned(found.mark, request.owner):
                return
            if request.on_delete == "retain":
                mark = sql.Literal(build_retention_mark(request.owner))
                await connection.execute(sql.SQL("COMMENT ON ROLE {} IS {}").format(name, mark))
                return
            await join_role(connection, request.name)
            for database in await _list_databases(connection, found.oid):
                if database == settings.database:
                    continue
                async with open_connection(settings, database) as inside:
                    await _drop_owned_objects(inside, name)
            await _drop_owned_objects(connection, name)
            await connection.execute(sql.SQL("DROP ROLE IF EXISTS {}").format(name))

    async def _set_memberships(self, connection: Connection, role: str, spec: RoleSpec) -> None:
        query = (
            "SELECT groups.rolname FROM pg_auth_members m JOIN pg_roles groups ON groups.oid = m.roleid "
            "JOIN pg_roles members ON members.oid = m.member WHERE members.rolname = %s"
        )
        found = {row[0] for row in await (await connection.execute(query, [role])).fetchall()}
        for group in sorted(set(spec.member_of) - found):
            await connection.execute(sql.SQL("GRANT {} TO {}").format(sql.Identifier(group), sql.Identifier(role)))
        for group in sorted(found - set(spec.member_of)):
            await connection.execute(sql.SQL("REVOKE {} FROM {}").format(sql.Identifier(group), sql.Identifier(role)))

    async def _set_password(self, connection: Connection, request: ReconcileRequest, spec: RoleSpec) -> None:
        if spec.password is None:
            return
        settings: PostgresSettings = request.settings
        place, password = (settings.host, settings.port, request.name), str(spec.password.reveal())
        kept = await _read_verifier(connection, request.name)
        if matches_verifier(self._set.get(place, "") if kept is None else kept, password):
            return
        # The client computes the verifier: neither the server nor its log sees the password.
        verifier = connection.pgconn.encrypt_password(
            password.encode(), request.name.encode(), b"scram-sha-256"
        ).decode()
        alter = sql.SQL("ALTER ROLE {} PASSWORD {}").format(sql.Identifier(request.name), sql.Literal(verifier))
        await connection.execute(alter)
        self._set[place] = verifier


async def read_role_mark(connection: Connection, name: str) -> tuple[int, str] | None:
    """Return the identifier and the mark of a role; None if it does not exist."""
    found = await _find_role(connection, name)
    return None if found is None else (found.oid, found.mark)


async def _find_role(connection: Connection, name: str) -> _RoleState | None:
    query = (
        "SELECT oid, rolcanlogin, rolconnlimit, coalesce(shobj_description(oid, 'pg_authid'), '') FROM pg_roles "
        "WHERE rolname = %s"
    )
    found = await (await connection.execute(query, [name])).fetchone()
    return None if found is None else _RoleState(*found)


async def _read_verifier(connection: Connection, name: str) -> str | None:
    """Return the verifier of the role's password; None if the user may not read it."""
    allowed = await (await connection.execute("SELECT has_table_privilege('pg_authid', 'SELECT')")).fetchone()
    if allowed is None or not allowed[0]:
        return None
    found = await (await connection.execute("SELECT rolpassword FROM pg_authid WHERE rolname = %s", [name])).fetchone()
    return "" if found is None or found[0] is None else str(found[0])


async def _list_databases(connection: Connection, role: int) -> list[str]:
    """Return the databases in which the role owns objects or has privileges."""
    query = (
        "SELECT DISTINCT datname FROM pg_shdepend s JOIN pg_database d ON d.oid = s.dbid "
        "WHERE s.refclassid = 'pg_authid'::regclass AND s.refobjid = %s AND d.datallowconn ORDER BY datname"
    )
    return [row[0] for row in await (await connection.execute(query, [role])).fetchall()]


async def _drop_owned_objects(connection: Connection, role: sql.Identifier) -> None:
    await connection.execute(sql.SQL("REASSIGN OWNED BY {} TO CURRENT_USER").format(role))
    await connection.execute(sql.SQL("DROP OWNED BY {}").format(role))  # only its privileges are left
