"""The step ``providers``: compiled once of what the file declares, then run in each pass and when an owner goes."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from datetime import datetime

from konverge.kube import Object
from konverge_box.file import ProviderItem, ProviderSettings
from konverge_box.providers.declared_settings import DeclaredSettings
from konverge_box.providers.dispatcher import Dispatcher, DispatchResult, OwnerWriter
from konverge_box.providers.items import DeclaredItem, PlannedItem
from konverge_box.providers.provider_pool import ProviderPool
from konverge_box.providers.provider_registry import ProviderNotFoundError
from konverge_box.steps import ObjectReader, Scope

__all__ = ["ProvidersStep"]

_log = logging.getLogger(__name__)


class ProvidersStep:
    """What one custom resource of a box has outside of the cluster.

    Args:
        declared: The items of the file, by provider.
        settings: How the box reaches its providers.
        where: The path of the items in the file, for example ``spec.crds.site.providers``.
        pool: The providers of the process.

    Raises:
        konverge_box.providers.provider_registry.ProviderNotFoundError: One that is required is not installed.
        konverge_box.steps.StepError: Settings or items are not what their provider expects.
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
                        f"{where}.{name}: {error}. Or say required: false in spec.providers"
                    ) from error
                _log.warning("%s.%s is left out: %s", where, name, error)
                self._missing[name] = str(error)
                continue
            self._compile_settings(name)
            self._items[name] = tuple(
                DeclaredItem(item, provider, f"{where}.{name}[{place}]") for place, item in enumerate(items)
            )

    async def reconcile(self, scope: Scope, owner: Object, reader: ObjectReader, writer: OwnerWriter) -> DispatchResult:
        """Bring everything outside of the cluster to what is wanted; what is not wanted any more is deleted.

        Cancelled, it ends the call that is under way; what that had begun is recorded, and the next pass goes on.

        Args:
            scope: What the steps before have made.
            owner: The object as this pass has it; its metadata become those of what is recorded.
            reader: Reads Secrets, so that their change wakes the owner.
            writer: Writes the record to the owner.

        Raises:
            konverge.errors.KonvergeError: What is recorded cannot be read or written: nobody was called.
        """
        return await self._build_dispatcher(owner, reader, writer).reconcile(scope)

    async def delete(self, scope: Scope, owner: Object, reader: ObjectReader, writer: OwnerWriter) -> DispatchResult:
        """Delete, or let go of, everything that was ever recorded, whatever the conditions say.

        The owner may go when the answer has no problems.

        Args:
            scope: What is known of an owner that goes.
            owner: The object as this pass has it.
            reader: Reads Secrets.
            writer: Writes what is left to the owner.

        Raises:
            konverge.errors.KonvergeError: What is recorded cannot be read or written.
        """
        return await self._build_dispatcher(owner, reader, writer).delete(scope)

    def plan_items(self, scope: Scope) -> list[PlannedItem]:
        """What is wanted, without asking anybody: no Secret is read, and no provider is called.

        Raises:
            konverge.errors.KonvergeError: It cannot be said of one what is wanted.
        """
        return [item for declared in self._items.values() for each in declared for item in each.plan_items(scope)]

    def find_next_change(self, now: datetime) -> datetime | None:
        """When the conditions of an item may be otherwise although nothing else is."""
        changes = [item.find_next_change(now) for items in self._items.values() for item in items]
        return min((each for each in changes if each is not None), default=None)

    def _build_dispatcher(self, owner: Object, reader: ObjectReader, writer: OwnerWriter) -> Dispatcher:
        return Dispatcher(
            self._items, self._missing, self._compile_settings, self._where, self._pool, owner, reader, writer
        )

    def _compile_settings(self, name: str) -> DeclaredSettings:
        if name not in self._compiled:
            declared, provider = self._get_declared_settings(name), self._pool.get_provider(name)
            self._compiled[name] = DeclaredSettings(declared, provider, f"spec.providers.{name}")
        return self._compiled[name]

    def _get_declared_settings(self, name: str) -> ProviderSettings:
        return self._settings.get(name, ProviderSettings())
