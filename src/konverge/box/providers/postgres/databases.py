"""Databases: the owner, the encoding, extensions.

A database and its mark cannot be made in one transaction. So it is made under a name that follows from the request's
token, marked, and only then gets its own name: what has that name is always marked, and what a crash leaves behind is
found again.
"""

from __future__ import annotations

from typing import NamedTuple

from msgspec import Struct
from psycopg import sql

from konverge.box.providers.marks import is_owned, owned_mark, retained_mark, take
from konverge.box.providers.plugin import ItemRequest, ItemResult, ProviderError, ReconcileRequest
from konverge.box.providers.postgres.server import Connection, Settings, act_as, connected

__all__ = ["DatabaseSpec", "delete_database", "mark_of_database", "reconcile_database"]


class DatabaseSpec(Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """What a database is like.

    Args:
        owner: The role that owns it; empty: whoever does.
        encoding: Its encoding, which cannot be changed later.
        extensions: What is installed in it. Others are left as they are.
    """

    owner: str = ""
    encoding: str = "UTF8"
    extensions: tuple[str, ...] = ()


class _Found(NamedTuple):
    owner: str
    encoding: str
    mark: str


async def reconcile_database(request: ReconcileRequest) -> ItemResult:
    """Make the database so."""
    spec: DatabaseSpec = request.spec
    settings: Settings = request.settings
    name = sql.Identifier(request.name)
    async with connected(settings) as connection:
        found = await _find(connection, request.name)
        if found is None:
            await _make(connection, request, spec)
            found = await _find(connection, request.name) or _Found("", spec.encoding, owned_mark(request.owner))
        if take(f'database "{request.name}"', found.mark, request.owner):
            await _mark(connection, request.name, owned_mark(request.owner))
        if _letters(found.encoding) != _letters(spec.encoding):
            raise ProviderError(
                f'database "{request.name}" has the encoding {found.encoding}, which cannot be changed to '
                f"{spec.encoding}: give the new one another name, and move the data"
            )
        if spec.owner and found.owner != spec.owner:
            await act_as(connection, spec.owner)
            await connection.execute(sql.SQL("ALTER DATABASE {} OWNER TO {}").format(name, sql.Identifier(spec.owner)))
    if spec.extensions:
        async with connected(settings, request.name) as inside:
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
    """Drop it with all connections to it, or let go of it."""
    async with connected(request.settings) as connection:
        await connection.execute(sql.SQL("DROP DATABASE IF EXISTS {}").format(sql.Identifier(_unfinished(request))))
        found = await _find(connection, request.name)
        if found is None or not is_owned(found.mark, request.owner):
            return
        if request.on_delete == "retain":
            await _mark(connection, request.name, retained_mark(request.owner))
            return
        if found.owner:
            await act_as(connection, found.owner)
        await connection.execute(
            sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(request.name))
        )


async def mark_of_database(connection: Connection, name: str) -> str | None:
    """Its mark; None if there is no such database."""
    found = await _find(connection, name)
    return None if found is None else found.mark


async def _make(connection: Connection, request: ReconcileRequest, spec: DatabaseSpec) -> None:
    unfinished = _unfinished(request)
    first, name = sql.Identifier(unfinished), sql.Identifier(request.name)
    begun = await _find(connection, unfinished)
    if begun is not None and _letters(begun.encoding) != _letters(spec.encoding):
        await connection.execute(sql.SQL("DROP DATABASE {}").format(first))
        begun = None
    if begun is None:
        # Of template1 it could not have another encoding.
        create = sql.SQL("CREATE DATABASE {} TEMPLATE template0 ENCODING {}")
        await connection.execute(create.format(first, sql.Literal(spec.encoding)))
    await _mark(connection, unfinished, owned_mark(request.owner))
    await connection.execute(sql.SQL("ALTER DATABASE {} RENAME TO {}").format(first, name))


async def _mark(connection: Connection, name: str, mark: str) -> None:
    comment = sql.SQL("COMMENT ON DATABASE {} IS {}").format(sql.Identifier(name), sql.Literal(mark))
    await connection.execute(comment)


async def _find(connection: Connection, name: str) -> _Found | None:
    query = (
        "SELECT pg_get_userbyid(datdba), pg_encoding_to_char(encoding), "
        "coalesce(shobj_description(oid, 'pg_database'), '') FROM pg_database WHERE datname = %s"
    )
    found = await (await connection.execute(query, [name])).fetchone()
    return None if found is None else _Found(*found)


def _unfinished(request: ItemRequest) -> str:
    return f"konverge_{request.token}"


def _letters(encoding: str) -> str:
    return "".join(letter for letter in encoding.upper() if letter.isalnum())
