"""The provider ``postgres``: databases, roles and grants of a PostgreSQL server (13 or newer).

The driver quotes names; they are never concatenated into statements. The comment of each item contains its owner's UID,
so that a foreign database is neither taken over nor dropped. Databases are retained by default, because their data
cannot be restored. Roles and grants can be created again from the file.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from konverge_box._internal.providers.plugin import ItemKind, ItemRequest, ItemResult, ProviderError, ReconcileRequest
from konverge_box._internal.providers.postgres.databases import DatabaseSpec, delete_database, reconcile_database
from konverge_box._internal.providers.postgres.grants import GrantSpec, delete_grant, reconcile_grant
from konverge_box._internal.providers.postgres.roles import Roles, RoleSpec
from konverge_box._internal.providers.postgres.server import PostgresSettings

__all__ = ["DatabaseSpec", "GrantSpec", "Postgres", "PostgresSettings", "RoleSpec"]

_MAX_NAME_LENGTH = 63


class Postgres:
    """The provider of PostgreSQL items. It keeps no connections: each call opens its own."""

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
        """Reconcile the item and return its state."""
        for name in (request.name, *request.identity.values()):
            if len(str(name).encode()) > _MAX_NAME_LENGTH:  # PostgreSQL would truncate it to another item's name
                raise ProviderError(f"name {name}: expected at most {_MAX_NAME_LENGTH} bytes for PostgreSQL")
        return await self._reconcile[request.kind](request)

    async def delete(self, request: ItemRequest) -> None:
        """Drop or release the item."""
        await self._delete[request.kind](request)

    async def close(self) -> None:
        """Do nothing: no connection is open between calls."""
