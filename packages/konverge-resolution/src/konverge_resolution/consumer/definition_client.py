"""The definitions of an operator's owners: asked for, copied, recorded, and let go."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Protocol
from weakref import WeakKeyDictionary

from konverge.cache import CacheOptions
from konverge.errors import BuildError, ConflictError, NotFoundError
from konverge.kube import Condition, ObjectKey
from konverge.kube.name_validation import validate_dns_label
from konverge.operator import READ, Operator
from konverge.operator.owner_context import OperatorRun, OwnerContext
from konverge.runtime import Process
from konverge_resolution.consumer.direct_source import DirectSource, open_direct_source
from konverge_resolution.consumer.remote_definition import (
    CONFIG_MAP,
    RemoteDefinition,
    build_config_map,
    build_config_map_key,
    build_labels,
    parse_config_map,
)
from konverge_resolution.consumer.request_source import RequestSource
from konverge_resolution.consumer.requested_definition import PendingFetch, RequestedDefinition, format_reference
from konverge_resolution.engine import Engine
from konverge_resolution.errors import ResolutionError
from konverge_resolution.reasons import Reason
from konverge_resolution.reference import Reference
from konverge_resolution.reference_parsing import ParsedReference
from konverge_resolution.requests.api_types import ResolutionRequest
from konverge_resolution.requests.request_format import drop_content
from konverge_resolution.resolved_content import ResolvedContent
from konverge_resolution.source_failover import SkippedSource, combine_errors

__all__ = ["CONDITION", "DefinitionClient", "DefinitionRecord"]

CONDITION = "DefinitionsResolved"
"""The owner's condition: whether it has what it asked for, and if not, why it has not the first that it lacks."""

_RESOLVED = "Resolved"
_RESOLVING = "Resolving"


@dataclass(frozen=True)
class DefinitionRecord:
    """What the owner's status has of a definition; for a field ``definitions: dict[str, DefinitionRecord]``.

    Attributes:
        resolver: Who got it.
        uri: Where it came from.
        digest: What it was there, by algorithm.
        entry_point: Which part of it.
        content: The content's own digest.
    """

    resolver: str = ""
    uri: str = ""
    digest: dict[str, str] = field(default_factory=dict)
    entry_point: str = ""
    content: str = ""


class _DefinitionSource(Protocol):
    """Gets what references name, over several passes."""

    async def fetch(self, reference: Reference, ctx: OwnerContext) -> ResolvedContent | PendingFetch:
        """What came, as far as it has."""

    async def release(self, reference: Reference, ctx: OwnerContext) -> None:
        """What came was copied."""


class DefinitionClient:
    """How the owners of an operator get remote definitions.

    Args:
        operator: The operator; what it needs for this is registered with it.
        engine: Makes what fetches in each run; None files requests, which some process has to fulfil
            (`konverge_resolution.requests.resolution_operator`).
        service_account_name: For whom, of the owner's namespace, sources are asked that look at that.
        retry: When to ask again after a failure that may pass by itself. Others stay until the reference changes.
        records_field: The field of the owner's status that gets a `DefinitionRecord` by name; empty for none. It has to
            be in the owner's class: the server drops what is not, and each pass would write it again.
    """

    def __init__(
        self,
        operator: Operator,
        *,
        engine: Callable[[], AbstractAsyncContextManager[Engine]] | None = None,
        service_account_name: str = "default",
        retry: timedelta = timedelta(minutes=1),
        records_field: str = "",
    ) -> None:
        self._engine = engine
        self._service_account_name = service_account_name
        self._retry = retry
        self._records_field = records_field
        self._requests = RequestSource(service_account_name, retry)
        self._runs: WeakKeyDictionary[OperatorRun, DirectSource] = WeakKeyDictionary()
        operator.uses("v1/ConfigMap", *READ, "create", "delete")
        if engine is None:
            operator.uses(ResolutionRequest, *READ, "create", "delete")
            operator.caches(ResolutionRequest, CacheOptions(transform=drop_content))
        else:
            operator.runs_in_background(self._open_source)

    async def resolve(
        self, reference: Reference | ParsedReference, ctx: OwnerContext, *, name: str = "definition"
    ) -> RemoteDefinition | None:
        """The one definition that an owner asks for; None while it is on its way, and its end wakes the owner.

        Args:
            reference: The reference.
            ctx: The pass.
            name: What the owner calls it.

        Raises:
            ResolutionError: It cannot be had; the owner's condition `CONDITION` says so too.
        """
        return (await self.request_all({name: reference}, ctx))[name].get()

    async def request(
        self, name: str, reference: Reference | ParsedReference, ctx: OwnerContext
    ) -> RequestedDefinition:
        """As `ask_all`, for the one definition that an owner asks for."""
        return (await self.request_all({name: reference}, ctx))[name]

    async def request_all(
        self, references: Mapping[str, Reference | ParsedReference], ctx: OwnerContext
    ) -> dict[str, RequestedDefinition]:
        """Ask for everything that an owner needs, at once; what is there already asks nobody.

        The owner's condition `CONDITION` is staged with what came of it. Copies of what it has asked for before under
        one of these names, and does not ask for any more, are deleted.

        Args:
            references: By the names that the owner has for them, which are DNS labels.
            ctx: The pass.

        Returns:
            By name, what is there, on its way or not to be had.

        Raises:
            BuildError: A name is none.
            konverge.errors.KonvergeError: The cluster does not answer.
        """
        if mistakes := [f"definition {name!r}: {each}" for name in references for each in validate_dns_label(name)]:
            raise BuildError("the definitions of an owner", mistakes)
        found = {
            name: await self._request_one(name, _to_parsed_reference(each), ctx) for name, each in references.items()
        }
        self._report(found, ctx)
        return found

    async def _request_one(self, name: str, written: ParsedReference, ctx: OwnerContext) -> RequestedDefinition:
        key = build_config_map_key(name, written, ctx.owner)
        asked = RequestedDefinition(name, format_reference(written), key, ctx.owner_uid)
        try:
            if not written.choices:
                problem = "expected a reference with a resolver: an owner is no definition that a path could be beside"
                raise ResolutionError(Reason.INVALID_PARAMETERS, problem)
            definition = await self._get_or_fetch(name, written, key, ctx)
        except ResolutionError as error:
            return replace(asked, error=error)
        if isinstance(definition, PendingFetch):
            return replace(asked, stall_reason=definition.stall_reason)
        return replace(asked, definition=definition)

    async def _get_or_fetch(
        self, name: str, written: ParsedReference, key: ObjectKey, ctx: OwnerContext
    ) -> RemoteDefinition | PendingFetch:
        try:
            return parse_config_map(await ctx.cluster.get(CONFIG_MAP, key), ctx.owner_uid)
        except NotFoundError:
            pass
        source = self._select_source(ctx)
        if source is None:
            return PendingFetch()
        passed_over: list[SkippedSource] = []
        for reference in written.choices:
            try:
                reference.check()
                fetched = await source.fetch(reference, ctx)
            except ResolutionError as error:
                if not error.traits.allows_failover:
                    raise
                passed_over.append(SkippedSource(reference, error))
                continue
            if isinstance(fetched, PendingFetch):
                return fetched
            copy = build_config_map(name, written, ctx.owner, fetched, reference.resolver)
            definition = parse_config_map(copy, ctx.owner_uid)  # refused before it is written, if it is no definition
            # Before it is created: as soon as it is there, no pass comes here any more.
            await self._remove_other_copies(name, key, ctx)
            try:
                await ctx.cluster.create(copy)
            except ConflictError:
                # An earlier pass made it, of which the caches have not heard: that is the one that counts.
                definition = parse_config_map(await ctx.cluster.get(CONFIG_MAP, key, live=True), ctx.owner_uid)
            for asked in (*(each.reference for each in passed_over), reference):
                await source.release(asked, ctx)
            return definition
        raise combine_errors(passed_over)

    def _select_source(self, ctx: OwnerContext) -> _DefinitionSource | None:
        if self._engine is None:
            return self._requests
        # None in a rehearsal: nothing runs there, and nothing is fetched.
        return None if ctx.run is None else self._runs.get(ctx.run)

    async def _remove_other_copies(self, name: str, key: ObjectKey, ctx: OwnerContext) -> None:
        labels = build_labels(name, ctx.owner)
        # Not through the caches: who lists them through those is woken by each of them from then on.
        for copy in (
            await ctx.cluster.without_read_tracking().list(CONFIG_MAP, namespace=key.namespace, labels=labels)
        )[:100]:
            if copy["metadata"]["name"] != key.name:
                try:
                    await ctx.cluster.delete(CONFIG_MAP, ObjectKey.of(copy), uid=copy["metadata"]["uid"])
                except (NotFoundError, ConflictError):
                    continue  # gone already

    def _report(self, found: Mapping[str, RequestedDefinition], ctx: OwnerContext) -> None:
        failed = [each for each in found.values() if each.error is not None]
        resolving = [each for each in found.values() if each.is_resolving]
        listed = failed or resolving or list(found.values())
        message = "; ".join(each.message for each in listed) or "nothing is asked for"
        if failed:
            assert failed[0].error is not None
            status, reason = "False", failed[0].error.reason.value
        else:
            status, reason = ("Unknown", _RESOLVING) if resolving else ("True", _RESOLVED)
        ctx.stage(Condition(CONDITION, status, reason, message, ctx.owner_generation))
        if self._records_field:
            records = {
                name: _build_record(each.definition) for name, each in found.items() if each.definition is not None
            }
            recorded = ctx.owner.setdefault("status", {})
            recorded[self._records_field] = {**(recorded.get(self._records_field) or {}), **records}

    @asynccontextmanager
    async def _open_source(self, run: OperatorRun, process: Process) -> AsyncIterator[None]:
        assert self._engine is not None, "registered with an engine alone"
        async with open_direct_source(
            self._engine, process, run.clock, self._service_account_name, self._retry
        ) as fetches:
            self._runs[run] = fetches
            try:
                yield
            finally:
                self._runs.pop(run, None)


def _to_parsed_reference(reference: Reference | ParsedReference) -> ParsedReference:
    return reference if isinstance(reference, ParsedReference) else ParsedReference((reference,))


def _build_record(definition: RemoteDefinition) -> dict[str, object]:
    return {
        "resolver": definition.resolver,
        "uri": definition.source.uri,
        "digest": dict(definition.source.digest),
        "entryPoint": definition.source.entry_point,
        "content": str(definition.digest),
    }
