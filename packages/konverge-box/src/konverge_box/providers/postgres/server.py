"""Connections to the server, and what all kinds ask of it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Literal, TypeAlias

import psycopg
from msgspec import Struct
from psycopg import AsyncConnection, sql
from psycopg.rows import TupleRow

from konverge_box.expressions import Sensitive
from konverge_box.providers.plugin import ProviderError

__all__ = ["Connection", "PostgresSettings", "join_role", "open_connection"]

Connection: TypeAlias = AsyncConnection[TupleRow]

_CONNECT_SECONDS = 10
# The server ends what the client has no time to wait for, and nobody queues behind our wait for a lock.
_OPTIONS = "-c statement_timeout=25s -c lock_timeout=10s -c idle_in_transaction_session_timeout=30s"


class PostgresSettings(Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """How the server is reached, by a user that may make databases and roles.

    Args:
        host: Its name or address.
        user: The user.
        password: The user's password, from a Secret.
        port: Its port.
        database: What the user connects to when no database is meant.
        tls: As libpq's ``sslmode``.
        certificate_authorities: The file with those that the server's certificate is checked with.
    """

    host: str
    user: str
    password: Sensitive | None = None
    port: int = 5432
    database: str = "postgres"
    tls: Literal["disable", "prefer", "require", "verify-ca", "verify-full"] = "prefer"
    certificate_authorities: str = ""


@asynccontextmanager
async def open_connection(settings: PostgresSettings, database: str = "") -> AsyncIterator[Connection]:
    """A connection, of which each statement is a transaction of its own; closed at the end, also by cancellation.

    Args:
        settings: Where and as whom.
        database: To which database; empty for the one of the settings.

    Raises:
        ProviderError: The server cannot be reached, or has refused a statement.
    """
    try:
        connection = await AsyncConnection.connect(
            host=settings.host,
            port=settings.port,
            user=settings.user,
            password=settings.password.reveal() if settings.password is not None else None,
            dbname=database or settings.database,
            sslmode=settings.tls,
            sslrootcert=settings.certificate_authorities or None,
            connect_timeout=_CONNECT_SECONDS,
            application_name="konverge",
            options=_OPTIONS,
            autocommit=True,
        )
        async with connection:
            yield connection
    except psycopg.Error as error:
        # What the server says first; its details may quote a statement, and so a password.
        raise ProviderError(error.diag.message_primary or str(error)) from None


async def join_role(connection: Connection, role: str) -> None:
    """Become a member of a role, without which only a superuser may give it something, or take it away."""
    query = "SELECT rolsuper OR pg_has_role(current_user, %s, 'MEMBER') FROM pg_roles WHERE rolname = current_user"
    found = await (await connection.execute(query, [role])).fetchone()
    if found is not None and not found[0]:
        await connection.execute(sql.SQL("GRANT {} TO CURRENT_USER").format(sql.Identifier(role)))
