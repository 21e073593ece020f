"""The provider ``postgres``: databases, roles and grants of a PostgreSQL server (13 or newer).

Names are composed by the driver, never pasted. What is made carries its owner's UID as its comment, so a database that
somebody else has made is neither taken over nor dropped. Databases are retained unless the file says otherwise: data
that are gone do not come back, while roles and grants are made again from the file.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from konverge_box.providers.plugin import ItemKind, ItemRequest, ItemResult, ProviderError, ReconcileRequest
from konverge_box.providers.postgres.databases import DatabaseSpec, delete_database, reconcile_database
from konverge_box.providers.postgres.grants import GrantSpec, delete_grant, reconcile_grant
from konverge_box.providers.postgres.roles import Roles, RoleSpec
from konverge_box.providers.postgres.server import PostgresSettings

__all__ = ["DatabaseSpec", "GrantSpec", "Postgres", "PostgresSettings", "RoleSpec"]

_MAX_NAME_LENGTH = 63


class Postgres:
    """The provider. It keeps no connections: each call opens those that it needs."""

    name = "postgres"
    settings: type[Struct] = PostgresSettings
    kinds: Mapping[str, ItemKind] = {
        "Database": ItemKind(DatabaseSpec, on_delete="retain"),
        "Role": ItemKind(RoleSpec),
        "Grant": ItemKind(GrantSpec, identity=("role", "database", "schema"), is_named=False),
    }

    def __init__(self) -> None:
        self._roles = Roles()
        self._reconcile = {
            "Database": reconcile_database,
            "Role": self._roles.reconcile,
            "Grant": reconcile_grant,
        }
        self._delete = {"Database": delete_database, "Role": self._roles.delete, "Grant": delete_grant}

    async def reconcile(self, request: ReconcileRequest) -> ItemResult:
        """Make it so."""
        for name in (request.name, *request.identity.values()):
            if len(str(name).encode()) > _MAX_NAME_LENGTH:  # it would be cut off, and then be another's name
                raise ProviderError(f"names have at most {_MAX_NAME_LENGTH} bytes in PostgreSQL; found {name}")
        return await self._reconcile[request.kind](request)

    async def delete(self, request: ItemRequest) -> None:
        """Drop it, or let go of it."""
        await self._delete[request.kind](request)

    async def close(self) -> None:
        """Nothing is open between calls."""
