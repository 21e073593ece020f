"""One pass over the items of one owner: record what is intended, call the providers, record what was learned.

The order makes a crash harmless. An item is recorded before its provider is asked to make it, and struck out after the
provider has said that it is gone. In between the record says *may be there*, and both calls are idempotent.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Protocol, TypeVar

import msgspec

from konverge.box.providers.attempts import TimedOutError
from konverge.box.providers.items import MOST_ITEMS, DeclaredItem, PlannedItem, Prepared
from konverge.box.providers.outcomes import (
    ItemOutcome,
    State,
    checked,
    conditions_of_outcomes,
    hidden,
    results_of,
    secrets_in,
    status_of,
)
from konverge.box.providers.plugin import ItemOwner, ItemRequest, ItemResult, ReconcileRequest
from konverge.box.providers.pool import ProviderPool
from konverge.box.providers.records import RECORDED, Record, Records
from konverge.box.providers.secret_refs import MissingSecretError
from konverge.box.providers.settings import DeclaredSettings
from konverge.box.steps import Reader, Scope, StepError
from konverge.client import PatchType
from konverge.errors import ConflictError, KonvergeError, describe
from konverge.kube import Condition, GroupVersionKind, Object, ObjectKey

__all__ = ["Dispatch", "Dispatched", "Writer"]

T = TypeVar("T")

_PENDING_AGAIN = timedelta(seconds=15)


class Writer(Protocol):
    """Writes the owner; `konverge.runtime.CachedClient` is one."""

    async def patch(self, gvk: GroupVersionKind, key: ObjectKey, body: Any, *, patch_type: PatchType) -> Object:
        """Patch an object, and answer what it is then.

        Raises:
            konverge.errors.ConflictError: It is not of the version that the patch names.
        """


@dataclass(frozen=True, slots=True)
class Dispatched:
    """What a pass over the items came to.

    Args:
        results: For expressions: ``providers``.
        conditions: One for each provider.
        status: The list ``status.providers``.
        problems: Everything that failed; the pass has to be repeated.
        again_after: When to ask again for what is not ready yet; None for no need.
    """

    results: Mapping[str, Any]
    conditions: tuple[Condition, ...]
    status: list[Object]
    problems: tuple[StepError, ...]
    again_after: timedelta | None


class Dispatch:
    """One pass; used once.

    Args:
        items: What is declared, by provider, in the file's order.
        missing: Why providers are left out that need not be there.
        settings_of: The settings of a provider, also of one that is not declared any more.
        where: The path of the items in the file.
        pool: The providers.
        owner: The object as this pass has it.
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
        reader: Reader,
        writer: Writer,
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
        self._records = Records.of(owner)
        self._settings: dict[str, Any] = {}
        self._problems: list[StepError] = []
        self._outcomes: list[ItemOutcome] = []
        self._lingering: list[ItemOutcome] = []
        self._handles: dict[str, str] = {}
        self._gone: list[str] = []
        # Where it is not known what is wanted, nothing is removed: whole providers, or items by their names.
        self._unsure: set[str] = set(missing)
        self._unsure_items: set[tuple[str, str]] = set()
        self._stopped: dict[str, str] = {}
        self._deadlines: dict[str, float] = {}

    async def reconcile(self, scope: Scope) -> Dispatched:
        """See `konverge.box.providers.Providers.reconcile`."""
        planned = list(self._planned(scope))
        prepared = [each for each in [await self._prepared(item) for item in planned] if each is not None]
        prepared = self._distinct(prepared)
        wanted = {each.record.key for each in prepared}
        await self._write(self._records.intending(each.record for each in prepared))
        for each in prepared:
            await self._reconcile(each)
        await self._remove(record for record in self._records if record.key not in wanted and self._is_sure(record))
        await self._settle()
        return self._dispatched()

    async def delete(self, scope: Scope) -> Dispatched:
        """See `konverge.box.providers.Providers.delete`."""
        await self._renew_policies(scope)
        await self._remove(self._records)
        await self._settle()
        return self._dispatched()

    def _planned(self, scope: Scope) -> Iterable[PlannedItem]:
        """The items that are wanted; the others have their outcome."""
        count, seen = 0, set[tuple[str, str]]()
        for provider, declared in self._items.items():
            for place, entry in enumerate(declared):
                where = f"{self._where}.{provider}[{place}]"
                try:
                    planned = list(entry.plan(scope))
                    count += len(planned)
                    if count > MOST_ITEMS:
                        raise StepError(where, f"{count} items of one owner; expected at most {MOST_ITEMS}")
                except KonvergeError as error:
                    self._unsure.add(provider)
                    self._fail(provider, entry.kind_name, f"[{place}]", where, describe(error))
                    continue
                for each in planned:
                    if not each.is_wanted:
                        self._outcomes.append(
                            ItemOutcome(provider, each.kind, each.item, "Skipped", "its conditions do not hold")
                        )
                    elif (provider, each.item) in seen:
                        problem = "another item has this name; say under spec.name what it is called outside"
                        self._fail(provider, each.kind, each.item, each.where, problem)
                        self._unsure.add(provider)
                    else:
                        seen.add((provider, each.item))
                        yield each
        for provider, problem in self._missing.items():
            self._outcomes.append(ItemOutcome(provider, "", "", "Skipped", hidden(problem, ())))

    async def _prepared(self, planned: PlannedItem) -> Prepared | None:
        provider = planned.declared.provider
        try:
            await self._read_settings(provider)
            return await planned.prepared(self._owner.key.namespace, self._reader)
        except MissingSecretError as error:
            self._outcomes.append(ItemOutcome(provider, planned.kind, planned.item, "Blocked", error.problem))
        except KonvergeError as error:
            self._fail(provider, planned.kind, planned.item, planned.where, describe(error))
        self._unsure_items.add((provider, planned.item))
        return None

    def _distinct(self, prepared: Iterable[Prepared]) -> list[Prepared]:
        found: dict[str, Prepared] = {}
        for each in prepared:
            first = found.setdefault(each.record.key, each)
            if first is not each:
                problem = f"is the same {each.record.kind} {each.record.name} as item {first.planned.item}"
                self._fail(each.record.provider, each.record.kind, each.planned.item, each.planned.where, problem)
        return list(found.values())

    async def _reconcile(self, item: Prepared) -> None:
        record = item.record
        record = self._records.get(record.key) or record
        secrets = secrets_in(self._settings[record.provider]) | secrets_in(item.spec)
        request = ReconcileRequest(**self._common(record), spec=item.spec)
        provider = self._pool.provider(record.provider)

        async def call() -> ItemResult:
            return checked(await provider.reconcile(request))

        try:
            result = await self._called(record, call)
        except Exception as error:  # noqa: BLE001  # a plug-in's code: the other items are not to suffer
            message = hidden(describe(error), secrets)
            self._fail(record.provider, record.kind, record.item, item.planned.where, message)
            return
        state: State = "Ready" if result.ready else "Pending"
        message = hidden(result.message, secrets)
        self._handles[record.key] = result.handle
        self._outcomes.append(
            ItemOutcome(record.provider, record.kind, record.item, state, message, dict(result.outputs))
        )

    async def _remove(self, records: Iterable[Record]) -> None:
        """Delete what is not wanted, the last that was made first: it may depend on the others."""
        for record in reversed(list(records)):
            problem = await self._removed(record)
            if not problem:
                self._gone.append(record.key)
                continue
            message = f"not removed: {problem}"
            where = f"{self._where}.{record.provider}"
            self._problems.append(StepError(where, f"{record.kind} {record.name} {message}"))
            self._lingering.append(ItemOutcome(record.provider, record.kind, record.item, "Failed", message))

    async def _removed(self, record: Record) -> str:
        """Delete one, and say what went wrong; empty for nothing."""
        secrets: set[str] = set()
        try:
            secrets = secrets_in(await self._read_settings(record.provider))
            provider, request = self._pool.provider(record.provider), ItemRequest(**self._common(record))
            await self._called(record, lambda: provider.delete(request))
        except Exception as error:  # noqa: BLE001  # a plug-in's code: the other items are not to suffer
            return hidden(describe(error), secrets)
        return ""

    async def _called(self, record: Record, call: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Call the provider within what is left of the owner's time with it."""
        limits, name, loop = self._pool.limits, record.provider, asyncio.get_running_loop()
        deadline = self._deadlines.setdefault(name, loop.time() + limits.provider_seconds)
        if name in self._stopped:
            raise TimedOutError(f"not tried, since {self._stopped[name]} took too long")
        left = min(limits.item_seconds, deadline - loop.time())
        try:
            if left <= 0:
                raise TimedOutError(f"not tried: the items before it took {limits.provider_seconds:g} s")
            return await self._pool.attempts(name).run(self._owner.uid, call, left)
        except TimedOutError:
            # The next items would most likely wait as long, and others for the worker.
            self._stopped[name] = f"{record.kind} {record.item}"
            raise

    async def _renew_policies(self, scope: Scope) -> None:
        """Take what the file and the owner say now of ``onDelete``: no pass may have come since it changed."""
        renewed = []
        for item in self._planned(scope):
            try:
                prepared = await item.prepared(self._owner.key.namespace, self._reader)
            except KonvergeError:
                continue  # what it needs is gone already; what is recorded counts
            known = self._records.get(prepared.record.key)
            if known is not None:
                renewed.append(msgspec.structs.replace(known, on_delete=prepared.record.on_delete))
        self._records = self._records.intending(renewed)
        self._outcomes.clear()
        self._problems.clear()

    async def _read_settings(self, provider: str) -> Any:
        if provider not in self._settings:
            settings = self._settings_of(provider)
            self._settings[provider] = await settings.read(self._owner.key.namespace, self._reader)
        return self._settings[provider]

    async def _settle(self) -> None:
        try:
            await self._write(self._records.settled(self._handles, self._gone))
        except ConflictError:
            problem = "the owner changed meanwhile; the next pass records what was done"
            self._problems.append(StepError(self._where, problem))

    async def _write(self, records: Records) -> None:
        if list(records) == list(Records.of(self._object)):
            self._records = records
            return
        metadata = self._object["metadata"]
        # The version makes sure that an older list never replaces a newer one: what it lacks would be forgotten.
        version = metadata["resourceVersion"]
        body = {"metadata": {"resourceVersion": version, "annotations": {RECORDED: records.to_annotation()}}}
        answer = await self._writer.patch(self._owner.gvk, self._owner.key, body, patch_type="merge")
        metadata["resourceVersion"] = answer["metadata"]["resourceVersion"]
        metadata["annotations"] = dict(answer["metadata"].get("annotations") or {})
        self._records = records

    def _common(self, record: Record) -> dict[str, Any]:
        return {
            "kind": record.kind,
            "name": record.name,
            "owner": self._owner,
            "settings": self._settings[record.provider],
            "identity": record.identity,
            "on_delete": record.on_delete,
            "handle": record.handle,
            "token": record.token(self._owner.uid),
        }

    def _is_sure(self, record: Record) -> bool:
        return record.provider not in self._unsure and (record.provider, record.item) not in self._unsure_items

    def _fail(self, provider: str, kind: str, item: str, where: str, message: str) -> None:
        message = hidden(message, ())
        self._problems.append(StepError(where, message.removeprefix(f"{where}: ")))
        self._outcomes.append(ItemOutcome(provider, kind, item, "Failed", message))

    def _dispatched(self) -> Dispatched:
        outcomes = [*self._outcomes, *self._lingering]
        names = [*self._items, *self._missing]
        is_pending = any(each.state == "Pending" for each in outcomes)
        return Dispatched(
            results_of(each for each in self._outcomes if each.item),
            conditions_of_outcomes(names, outcomes),
            status_of(outcomes),
            tuple(self._problems),
            _PENDING_AGAIN if is_pending else None,
        )
