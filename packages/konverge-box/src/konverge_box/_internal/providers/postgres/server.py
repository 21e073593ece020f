"""Connections to the server, and statements that all kinds use."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Literal, TypeAlias

import psycopg
from msgspec import Struct
from psycopg import AsyncConnection, sql
from psycopg.rows import TupleRow

from konverge_box._internal.expressions import Sensitive
from konverge_box._internal.providers.plugin import ProviderError

__all__ = ["Connection", "PostgresSettings", "join_role", "open_connection"]

Connection: TypeAlias = AsyncConnection[TupleRow]

_CONNECT_SECONDS = 10
# The server aborts statements that take too long, so that no other client queues behind a lock.
_OPTIONS = "-c statement_timeout=25s -c lock_timeout=10s -c idle_in_transaction_session_timeout=30s"


class PostgresSettings(Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """The settings of the provider, with a user that can create databases and roles.

    Args:
        host: The name or address of the server.
        user: The user.
        password: The user's password, from a Secret.
        port: The port of the server.
        database: The database of connections that need no specific one.
        tls: The TLS mode, with the values of libpq's ``sslmode``.
        certificate_authorities: The file with the certificate authorities for the server's certificate.
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
    """Open a connection in autocommit mode. It is closed at the end of the block, also after a cancellation.

    Args:
        settings: The server, the user and the password.
        database: The database; empty for the one of the settings.

    Raises:
        ProviderError: The server is unreachable, or rejected a statement.
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
        # Only the primary message: the details can quote a statement, and so a password.
        raise ProviderError(error.diag.message_primary or str(error)) from None


async def join_role(connection: Connection, role: str) -> None:
    """Become a member of a role. Otherwise only a superuser can change its privileges or objects."""
    query = "SELECT rolsuper OR pg_has_role(current_user, %s, 'MEMBER') FROM pg_roles WHERE rolname = current_user"
    found = await (await connection.execute(query, [role])).fetchone()
    if found is not None and not found[0]:
        await connection.execute(sql.SQL("GRANT {} TO CURRENT_USER").format(sql.Identifier(role)))
