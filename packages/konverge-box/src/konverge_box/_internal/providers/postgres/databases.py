"""Databases: the owner, the encoding, extensions.

One transaction cannot create a database and its mark. So the database is created under a temporary name from the
request's token, marked, and then renamed. A database with the final name is always marked, and an unfinished one is
found again after a crash.
"""

from __future__ import annotations

from typing import NamedTuple

from msgspec import Struct
from psycopg import sql

from konverge_box._internal.providers.ownership_marks import (
    build_owner_mark,
    build_retention_mark,
    is_owned,
    needs_mark,
)
from konverge_box._internal.providers.plugin import ItemRequest, ItemResult, ProviderError, ReconcileRequest
from konverge_box._internal.providers.postgres.server import Connection, PostgresSettings, join_role, open_connection

__all__ = ["DatabaseSpec", "delete_database", "read_database_mark", "reconcile_database"]


class DatabaseSpec(Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """The desired state of a database.

    Args:
        owner: The role that owns it; empty keeps the current owner.
        encoding: Its encoding, which cannot be changed later.
        extensions: The extensions to install in it. Other extensions are not changed.
    """

    owner: str = ""
    encoding: str = "UTF8"
    extensions: tuple[str, ...] = ()


class _DatabaseState(NamedTuple):
    owner: str
    encoding: str
    mark: str


async def reconcile_database(request: ReconcileRequest) -> ItemResult:
    """Reconcile the database and return its state."""
    spec: DatabaseSpec = request.spec
    settings: PostgresSettings = request.settings
    name = sql.Identifier(request.name)
    async with open_connection(settings) as connection:
        found = await _find_database(connection, request.name)
        if found is None:
            await _create_database(connection, request, spec)
            found = await _find_database(connection, request.name) or _DatabaseState(
                "", spec.encoding, build_owner_mark(request.owner)
            )
        if needs_mark(f'database "{request.name}"', found.mark, request.owner):
            await _write_mark(connection, request.name, build_owner_mark(request.owner))
        if _normalize_encoding(found.encoding) != _normalize_encoding(spec.encoding):
            raise ProviderError(
                f'database "{request.name}" has the encoding {found.encoding}, which cannot be changed to '
                f"{spec.encoding}; declare a database with another name, and move the data"
            )
        if spec.owner and found.owner != spec.owner:
            await join_role(connection, spec.owner)
            await connection.execute(sql.SQL("ALTER DATABASE {} OWNER TO {}").format(name, sql.Identifier(spec.owner)))
    if spec.extensions:
        async with open_connection(settings, request.name) as inside:
            for extension in spec.extensions:
                await inside.execute(sql.SQL("CREATE EXTENSION IF NOT EXISTS {}").format(sql.Identifier(extension)))
    outputs = {
        "database": request.name,
        "host": settings.host,
        "port": settings.port,
        "owner": spec.owner or found.owner,
    }
    return ItemResult(outputs=outputs)


async def delete_database(request: ItemRequest) -> None:
    """Drop the database and terminate its connections, or release it."""
    async with open_connection(request.settings) as connection:
        await connection.execute(
            sql.SQL("DROP DATABASE IF EXISTS {}").format(sql.Identifier(_format_temporary_name(request)))
        )
        found = await _find_database(connection, request.name)
        if found is None or not is_owned(found.mark, request.owner):
            return
        if request.on_delete == "retain":
            await _write_mark(connection, request.name, build_retention_mark(request.owner))
            return
        if found.owner:
            await join_role(connection, found.owner)
        await connection.execute(
            sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(request.name))
        )


async def read_database_mark(connection: Connection, name: str) -> str | None:
    """Return the mark of a database; None if it does not exist."""
    found = await _find_database(connection, name)
    return None if found is None else found.mark


async def _create_database(connection: Connection, request: ReconcileRequest, spec: DatabaseSpec) -> None:
    unfinished = _format_temporary_name(request)
    first, name = sql.Identifier(unfinished), sql.Identifier(request.name)
    begun = await _find_database(connection, unfinished)
    if begun is not None and _normalize_encoding(begun.encoding) != _normalize_encoding(spec.encoding):
        await connection.execute(sql.SQL("DROP DATABASE {}").format(first))
        begun = None
    if begun is None:
        # A copy of template1 could not have another encoding.
        create = sql.SQL("CREATE DATABASE {} TEMPLATE template0 ENCODING {}")
        await connection.execute(create.format(first, sql.Literal(spec.encoding)))
    await _write_mark(connection, unfinished, build_owner_mark(request.owner))
    await connection.execute(sql.SQL("ALTER DATABASE {} RENAME TO {}").format(first, name))


async def _write_mark(connection: Connection, name: str, mark: str) -> None:
    comment = sql.SQL("COMMENT ON DATABASE {} IS {}").format(sql.Identifier(name), sql.Literal(mark))
    await connection.execute(comment)


async def _find_database(connection: Connection, name: str) -> _DatabaseState | None:
    query = (
        "SELECT pg_get_userbyid(datdba), pg_encoding_to_char(encoding), "
        "coalesce(shobj_description(oid, 'pg_database'), '') FROM pg_database WHERE datname = %s"
    )
    found = await (await connection.execute(query, [name])).fetchone()
    return None if found is None else _DatabaseState(*found)


def _format_temporary_name(request: ItemRequest) -> str:
    return f"konverge_{request.token}"


def _normalize_encoding(encoding: str) -> str:
    return "".join(letter for letter in encoding.upper() if letter.isalnum())
