"""One reconcile of the items of one owner: record the intended items, call the providers, record the results.

The order makes a crash harmless. An item is recorded before its provider creates it, and its record is removed after
the provider has deleted it. In between, the record means that the item *may exist*, and both calls are idempotent.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Protocol, TypeVar

import msgspec

from konverge._internal.client import PatchType
from konverge._internal.kube import Condition, GroupVersionKind, Object, ObjectKey
from konverge.errors import ConflictError, KonvergeError, format_error
from konverge_box._internal.providers.call_runner import ProviderTimeoutError
from konverge_box._internal.providers.declared_settings import DeclaredSettings
from konverge_box._internal.providers.item_outcomes import (
    ItemOutcome,
    State,
    build_conditions,
    build_results,
    build_status,
    check_deletion,
    check_result,
    find_secrets,
    redact_secrets,
)
from konverge_box._internal.providers.item_records import PROVIDERS_ANNOTATION, ItemRecord, ItemRecords
from konverge_box._internal.providers.items import MAX_ITEMS, DeclaredItem, PlannedItem, PreparedItem
from konverge_box._internal.providers.plugin import (
    ItemOwner,
    ItemRequest,
    ItemResult,
    PendingDeletion,
    ReconcileRequest,
)
from konverge_box._internal.providers.provider_pool import ProviderPool
from konverge_box._internal.providers.secret_refs import MissingSecretError
from konverge_box._internal.steps import ObjectReader, Scope, StepError

__all__ = ["DispatchResult", "Dispatcher", "OwnerWriter"]

T = TypeVar("T")

_PENDING_AGAIN = timedelta(seconds=15)


class OwnerWriter(Protocol):
    """A writer of the owner; `konverge.runtime.CachedClient` implements it."""

    async def patch(self, gvk: GroupVersionKind, key: ObjectKey, body: Any, *, patch_type: PatchType) -> Object:
        """Patch an object and return the new object.

        Raises:
            konverge.errors.ConflictError: The object does not have the version in the patch.
        """


@dataclass(frozen=True, slots=True)
class DispatchResult:
    """The result of one reconcile of the items.

    Args:
        results: The value of ``providers`` in expressions.
        conditions: One condition for each provider.
        status: The list ``status.providers``.
        problems: The errors, which require a retry.
        requeue_after: The delay until the next call for items that are not ready; None without such items.
        pending_deletions: The items that their services still delete, in words.
    """

    results: Mapping[str, Any]
    conditions: tuple[Condition, ...]
    status: list[Object]
    problems: tuple[StepError, ...]
    requeue_after: timedelta | None
    pending_deletions: tuple[str, ...] = ()


class Dispatcher:
    """The dispatcher of one reconcile. It is used once.

    Args:
        items: The declared items, by provider, in the file's order.
        missing: The reasons why optional providers are skipped, by name.
        settings_of: Returns the settings of a provider, also of one that is no longer declared.
        where: The path of the items in the file.
        pool: The providers.
        owner: The custom resource in this reconcile.
        reader: Reads Secrets.
        writer: Writes the record.
    """

    def __init__(
        self,
        items: Mapping[str, tuple[DeclaredItem, ...]],
        missing: Mapping[str, str],
        settings_of: Callable[[str], DeclaredSettings],
        where: str,
        pool: ProviderPool,
        owner: Object,
        reader: ObjectReader,
        writer: OwnerWriter,
    ) -> None:
        self._items = items
        self._missing = missing
        self._settings_of = settings_of
        self._where = where
        self._pool = pool
        self._object = owner
        self._owner = ItemOwner(GroupVersionKind.of(owner), ObjectKey.of(owner), owner["metadata"]["uid"])
        self._reader = reader
        self._writer = writer
        self._records = ItemRecords.from_owner(owner)
        self._settings: dict[str, Any] = {}
        self._problems: list[StepError] = []
        self._outcomes: list[ItemOutcome] = []
        self._lingering: list[ItemOutcome] = []
        self._handles: dict[str, str] = {}
        self._gone: list[str] = []
        # Nothing is deleted where the declared items are unknown: for whole providers, or for items by name.
        self._unknown: set[str] = set(missing)
        self._unknown_items: set[tuple[str, str]] = set()
        self._stopped: dict[str, str] = {}
        self._deadlines: dict[str, float] = {}

    async def reconcile(self, scope: Scope) -> DispatchResult:
        """Reconcile the declared items, as described in `konverge_box.providers.ProvidersStep.reconcile`."""
        planned = list(self._plan_items(scope))
        prepared = [each for each in [await self._prepare_item(item) for item in planned] if each is not None]
        prepared = self._reject_duplicates(prepared)
        wanted = {each.record.key for each in prepared}
        await self._write_records(self._records.with_intended(each.record for each in prepared))
        for each in prepared:
            await self._reconcile_item(each)
        await self._delete_records(
            record for record in self._records if record.key not in wanted and self._is_conclusive(record)
        )
        await self._save_results()
        return self._build_result()

    async def delete(self, scope: Scope) -> DispatchResult:
        """Delete the recorded items, as described in `konverge_box.providers.ProvidersStep.delete`."""
        await self._renew_policies(scope)
        await self._delete_records(self._records)
        # A conflict fails the whole call, which is then repeated: no item exists any more.
        await self._write_records(self._records.with_results(self._handles, self._gone))
        return self._build_result()

    def _plan_items(self, scope: Scope) -> Iterable[PlannedItem]:
        """Yield the items whose conditions hold, and record the outcome of all others."""
        count, seen = 0, set[tuple[str, str]]()
        for provider, declared in self._items.items():
            for place, entry in enumerate(declared):
                where = f"{self._where}.{provider}[{place}]"
                try:
                    planned = list(entry.plan_items(scope))
                    count += len(planned)
                    if count > MAX_ITEMS:
                        raise StepError(where, f"expected at most {MAX_ITEMS} items of one owner, found {count}")
                except KonvergeError as error:
                    self._unknown.add(provider)
                    self._add_failure(provider, entry.kind_name, f"[{place}]", where, format_error(error))
                    continue
                for each in planned:
                    if not each.is_desired:
                        self._outcomes.append(
                            ItemOutcome(provider, each.kind, each.item, "Skipped", "its conditions do not hold")
                        )
                    elif (provider, each.item) in seen:
                        problem = "another item has this name; set spec.name for the name outside of the cluster"
                        self._add_failure(provider, each.kind, each.item, each.where, problem)
                        self._unknown.add(provider)
                    else:
                        seen.add((provider, each.item))
                        yield each
        for provider, problem in self._missing.items():
            self._outcomes.append(ItemOutcome(provider, "", "", "Skipped", redact_secrets(problem, ())))

    async def _prepare_item(self, planned: PlannedItem) -> PreparedItem | None:
        provider = planned.declared.provider
        try:
            await self._read_settings(provider)
            return await planned.prepare_item(self._owner.key.namespace, self._reader)
        except MissingSecretError as error:
            self._outcomes.append(ItemOutcome(provider, planned.kind, planned.item, "Blocked", error.problem))
        except KonvergeError as error:
            self._add_failure(provider, planned.kind, planned.item, planned.where, format_error(error))
        self._unknown_items.add((provider, planned.item))
        return None

    def _reject_duplicates(self, prepared: Iterable[PreparedItem]) -> list[PreparedItem]:
        items: dict[str, PreparedItem] = {}
        for each in prepared:
            first = items.setdefault(each.record.key, each)
            if first is not each:
                problem = f"is the same {each.record.kind} {each.record.name} as item {first.planned.item}"
                self._add_failure(
                    each.record.provider, each.record.kind, each.planned.item, each.planned.where, problem
                )
        return list(items.values())

    async def _reconcile_item(self, item: PreparedItem) -> None:
        record = item.record
        record = self._records.get(record.key) or record
        secrets = find_secrets(self._settings[record.provider]) | find_secrets(item.spec)
        request = ReconcileRequest(**self._build_request_fields(record), spec=item.spec)
        provider = self._pool.get_provider(record.provider)

        async def call() -> ItemResult:
            return check_result(await provider.reconcile(request))

        try:
            result = await self._call_provider(record, call)
        except Exception as error:  # noqa: BLE001  # an error of a plug-in does not affect other items
            message = redact_secrets(format_error(error), secrets)
            self._add_failure(record.provider, record.kind, record.item, item.planned.where, message)
            return
        state: State = "Ready" if result.ready else "Pending"
        message = redact_secrets(result.message, secrets)
        self._handles[record.key] = result.handle
        self._outcomes.append(
            ItemOutcome(record.provider, record.kind, record.item, state, message, dict(result.outputs))
        )

    async def _delete_records(self, records: Iterable[ItemRecord]) -> None:
        """Delete items in the reverse order of their creation, since later ones can depend on earlier ones."""
        for record in reversed(list(records)):
            lingering = await self._delete_record(record)
            if lingering is None:
                self._gone.append(record.key)
                continue
            self._lingering.append(lingering)
            if lingering.state == "Failed":
                where = f"{self._where}.{record.provider}"
                self._problems.append(StepError(where, f"{record.kind} {record.name} {lingering.message}"))

    async def _delete_record(self, record: ItemRecord) -> ItemOutcome | None:
        """Delete one item; return None when it is gone, otherwise the state in which it stays."""
        secrets: set[str] = set()
        state: State = "Failed"
        try:
            secrets = find_secrets(await self._read_settings(record.provider))
            provider, request = (
                self._pool.get_provider(record.provider),
                ItemRequest(**self._build_request_fields(record)),
            )

            async def call() -> PendingDeletion | None:
                return check_deletion(await provider.delete(request))

            pending = await self._call_provider(record, call)
            if pending is None:
                return None
            state, message = "Pending", f"is being deleted{f': {pending.message}' if pending.message else ''}"
        except Exception as error:  # noqa: BLE001  # an error of a plug-in does not affect other items
            message = f"not removed: {format_error(error)}"
        return ItemOutcome(record.provider, record.kind, record.item, state, redact_secrets(message, secrets))

    async def _call_provider(self, record: ItemRecord, call: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Call the provider within the remaining time of this owner."""
        limits, name, loop = self._pool.limits, record.provider, asyncio.get_running_loop()
        deadline = self._deadlines.setdefault(name, loop.time() + limits.provider_seconds)
        if name in self._stopped:
            raise ProviderTimeoutError(f"not called, because {self._stopped[name]} took too long")
        left = min(limits.item_seconds, deadline - loop.time())
        try:
            if left <= 0:
                raise ProviderTimeoutError(f"not called: the earlier items took {limits.provider_seconds:g} s")
            return await self._pool.get_call_runner(name).run_call(self._owner.uid, call, left)
        except ProviderTimeoutError:
            # The next items would probably wait as long, and other owners would wait for the worker.
            self._stopped[name] = f"{record.kind} {record.item}"
            raise

    async def _renew_policies(self, scope: Scope) -> None:
        """Read the current ``onDelete`` of the file and the owner: it may have changed since the last reconcile."""
        renewed = []
        for item in self._plan_items(scope):
            try:
                prepared = await item.prepare_item(self._owner.key.namespace, self._reader)
            except KonvergeError:
                continue  # a Secret that it needs is gone already: the record counts
            recorded = self._records.get(prepared.record.key)
            if recorded is not None:
                renewed.append(msgspec.structs.replace(recorded, on_delete=prepared.record.on_delete))
        self._records = self._records.with_intended(renewed)
        self._outcomes.clear()
        self._problems.clear()

    async def _read_settings(self, provider: str) -> Any:
        if provider not in self._settings:
            settings = self._settings_of(provider)
            self._settings[provider] = await settings.read_settings(self._owner.key.namespace, self._reader)
        return self._settings[provider]

    async def _save_results(self) -> None:
        try:
            await self._write_records(self._records.with_results(self._handles, self._gone))
        except ConflictError:
            problem = "the owner has changed during the reconcile; the next reconcile records the results"
            self._problems.append(StepError(self._where, problem))

    async def _write_records(self, records: ItemRecords) -> None:
        if list(records) == list(ItemRecords.from_owner(self._object)):
            self._records = records
            return
        metadata = self._object["metadata"]
        # The version protects a newer list against an older one, whose missing items would be orphaned.
        version = metadata["resourceVersion"]
        body = {
            "metadata": {"resourceVersion": version, "annotations": {PROVIDERS_ANNOTATION: records.to_annotation()}}
        }
        updated = await self._writer.patch(self._owner.gvk, self._owner.key, body, patch_type="merge")
        metadata["resourceVersion"] = updated["metadata"]["resourceVersion"]
        metadata["annotations"] = dict(updated["metadata"].get("annotations") or {})
        self._records = records

    def _build_request_fields(self, record: ItemRecord) -> dict[str, Any]:
        return {
            "kind": record.kind,
            "name": record.name,
            "owner": self._owner,
            "settings": self._settings[record.provider],
            "identity": record.identity,
            "on_delete": record.on_delete,
            "handle": record.handle,
            "token": record.build_token(self._owner.uid),
        }

    def _is_conclusive(self, record: ItemRecord) -> bool:
        return record.provider not in self._unknown and (record.provider, record.item) not in self._unknown_items

    def _add_failure(self, provider: str, kind: str, item: str, where: str, message: str) -> None:
        message = redact_secrets(message, ())
        self._problems.append(StepError(where, message.removeprefix(f"{where}: ")))
        self._outcomes.append(ItemOutcome(provider, kind, item, "Failed", message))

    def _build_result(self) -> DispatchResult:
        outcomes = [*self._outcomes, *self._lingering]
        names = [*self._items, *self._missing]
        is_pending = any(each.state == "Pending" for each in outcomes)
        return DispatchResult(
            build_results(each for each in self._outcomes if each.item),
            build_conditions(names, outcomes),
            build_status(outcomes),
            tuple(self._problems),
            _PENDING_AGAIN if is_pending else None,
            tuple(f"{each.kind} {each.item} {each.message}" for each in self._lingering if each.state == "Pending"),
        )
