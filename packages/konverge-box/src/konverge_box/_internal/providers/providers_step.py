"""The step ``providers``: compiled once, then run in each reconcile and in the deletion of an owner."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from datetime import datetime

from konverge._internal.kube import Object
from konverge_box._internal.file import ProviderItem, ProviderSettings
from konverge_box._internal.providers.declared_settings import DeclaredSettings
from konverge_box._internal.providers.dispatcher import Dispatcher, DispatchResult, OwnerWriter
from konverge_box._internal.providers.items import DeclaredItem, PlannedItem
from konverge_box._internal.providers.provider_pool import ProviderPool
from konverge_box._internal.providers.provider_registry import ProviderNotFoundError
from konverge_box._internal.steps import ObjectReader, Scope

__all__ = ["ProvidersStep"]

_log = logging.getLogger(__name__)


class ProvidersStep:
    """The external items of one custom resource of a box.

    Args:
        declared: The items of the file, by provider.
        settings: The settings of the box's providers.
        where: The path of the items in the file, for example ``spec.crds.site.providers``.
        pool: The providers of the process.

    Raises:
        providers.provider_registry.ProviderNotFoundError: A required provider is not installed.
        steps.StepError: Settings or items do not fit their provider.
    """

    def __init__(
        self,
        declared: Mapping[str, tuple[ProviderItem, ...]],
        settings: Mapping[str, ProviderSettings],
        where: str,
        pool: ProviderPool,
    ) -> None:
        self._declared = declared
        self._settings = settings
        self._where = where
        self._pool = pool
        self._items: dict[str, tuple[DeclaredItem, ...]] = {}
        self._missing: dict[str, str] = {}
        self._compiled: dict[str, DeclaredSettings] = {}
        for name, items in declared.items():
            try:
                provider = pool.get_provider(name)
            except ProviderNotFoundError as error:
                if self._get_declared_settings(name).required:
                    raise ProviderNotFoundError(
                        f"{where}.{name}: {error}. Or set required: false in spec.providers"
                    ) from error
                _log.warning("%s.%s is skipped: %s", where, name, error)
                self._missing[name] = str(error)
                continue
            self._compile_settings(name)
            self._items[name] = tuple(
                DeclaredItem(item, provider, f"{where}.{name}[{place}]") for place, item in enumerate(items)
            )

    async def reconcile(self, scope: Scope, owner: Object, reader: ObjectReader, writer: OwnerWriter) -> DispatchResult:
        """Reconcile the declared items, and delete items that are no longer declared.

        A cancellation ends the running call. Its item is recorded, and the next reconcile continues.

        Args:
            scope: The scope with the results of earlier steps.
            owner: The custom resource in this reconcile. Its metadata follow the written records.
            reader: Reads Secrets. Their later changes queue the owner.
            writer: Writes the records to the owner.

        Raises:
            konverge.errors.KonvergeError: The records cannot be read or written. No provider was called.
        """
        return await self._build_dispatcher(owner, reader, writer).reconcile(scope)

    async def delete(self, scope: Scope, owner: Object, reader: ObjectReader, writer: OwnerWriter) -> DispatchResult:
        """Delete or release every recorded item, independent of conditions.

        The owner may be deleted when the result has neither problems nor pending deletions.

        Args:
            scope: The scope of the owner.
            owner: The custom resource in this reconcile.
            reader: Reads Secrets.
            writer: Writes the remaining records to the owner.

        Raises:
            konverge.errors.KonvergeError: The records cannot be read or written.
        """
        return await self._build_dispatcher(owner, reader, writer).delete(scope)

    def plan_items(self, scope: Scope) -> list[PlannedItem]:
        """Return the declared items without reading a Secret or calling a provider.

        Raises:
            konverge.errors.KonvergeError: An item cannot be determined.
        """
        return [item for declared in self._items.values() for each in declared for item in each.plan_items(scope)]

    def find_next_change(self, now: datetime) -> datetime | None:
        """Return the next time at which the conditions of an item can change by themselves; None without one."""
        changes = [item.find_next_change(now) for items in self._items.values() for item in items]
        return min((each for each in changes if each is not None), default=None)

    def _build_dispatcher(self, owner: Object, reader: ObjectReader, writer: OwnerWriter) -> Dispatcher:
        return Dispatcher(
            self._items, self._missing, self._compile_settings, self._where, self._pool, owner, reader, writer
        )

    def _compile_settings(self, name: str) -> DeclaredSettings:
        if name not in self._compiled:
            declared, provider = self._get_declared_settings(name), self._pool.get_provider(name)
            self._compiled[name] = DeclaredSettings(
                declared, provider, f"spec.providers.{name}", f"{self._where}.{name}"
            )
        return self._compiled[name]

    def _get_declared_settings(self, name: str) -> ProviderSettings:
        return self._settings.get(name, ProviderSettings())
