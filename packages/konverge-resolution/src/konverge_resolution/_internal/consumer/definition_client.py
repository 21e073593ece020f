"""Client for the definitions of an operator's owners: request, copy, record and release."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Protocol
from weakref import WeakKeyDictionary

from konverge._internal.cache import CacheOptions
from konverge._internal.kube import Condition, ObjectKey
from konverge._internal.kube.name_validation import validate_dns_label
from konverge._internal.operator import READ, Operator
from konverge._internal.operator.owner_context import OperatorRun, OwnerContext
from konverge._internal.runtime import Process
from konverge.errors import BuildError, ConflictError, NotFoundError
from konverge_resolution._internal.consumer.direct_source import DirectSource, open_direct_source
from konverge_resolution._internal.consumer.remote_definition import (
    CONFIG_MAP,
    RemoteDefinition,
    build_config_map,
    build_config_map_key,
    build_labels,
    parse_config_map,
)
from konverge_resolution._internal.consumer.request_source import RequestSource
from konverge_resolution._internal.consumer.requested_definition import (
    PendingFetch,
    RequestedDefinition,
    format_reference,
)
from konverge_resolution._internal.engine import Engine
from konverge_resolution._internal.errors import ResolutionError
from konverge_resolution._internal.reasons import Reason
from konverge_resolution._internal.reference import Reference
from konverge_resolution._internal.reference_parsing import ParsedReference
from konverge_resolution._internal.requests.api_types import ResolutionRequest
from konverge_resolution._internal.requests.request_format import drop_content
from konverge_resolution._internal.resolved_content import ResolvedContent
from konverge_resolution._internal.source_failover import SkippedSource, combine_errors

__all__ = ["CONDITION", "DefinitionClient", "DefinitionRecord"]

CONDITION = "DefinitionsResolved"
"""Condition of the owner: whether it has all definitions, and otherwise the reason for the first that is missing."""

_RESOLVED = "Resolved"
_RESOLVING = "Resolving"


@dataclass(frozen=True)
class DefinitionRecord:
    """Record of a definition in the owner's status; for a field ``definitions: dict[str, DefinitionRecord]``.

    Attributes:
        resolver: The name of the resolver.
        uri: The address of the source.
        digest: The version by algorithm.
        entry_point: The part of the source.
        content: The digest of the content itself.
    """

    resolver: str = ""
    uri: str = ""
    digest: dict[str, str] = field(default_factory=dict)
    entry_point: str = ""
    content: str = ""


class _DefinitionSource(Protocol):
    """Source of definitions whose results arrive in a later reconcile."""

    async def fetch(self, reference: Reference, ctx: OwnerContext) -> ResolvedContent | PendingFetch:
        """Return the content, or the state of its fetch."""

    async def release(self, reference: Reference, ctx: OwnerContext) -> None:
        """Release the fetch after its content was copied."""


class DefinitionClient:
    """Client with which the owners of an operator get remote definitions.

    Args:
        operator: The operator; the client registers the permissions that it needs.
        engine: Builds the engine of each run; None creates requests, which another process fulfils
            (`requests.resolution_operator`).
        service_account_name: The ServiceAccount of the owner's namespace whose read access sources may check.
        retry: The interval of retries after transient failures. Other failures stay until the reference changes.
        records_field: The field of the owner's status with a `DefinitionRecord` by name; empty for none. The owner's
            class must have it: the API server drops unknown fields, and each reconcile would write it again.
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
        """Request the one definition of an owner; return None while it is fetched. Its end requeues the owner.

        Args:
            reference: The reference.
            ctx: The context of the reconcile.
            name: The owner's name for the definition.

        Raises:
            ResolutionError: It cannot be resolved; the owner's condition `CONDITION` reports it, too.
        """
        return (await self.request_all({name: reference}, ctx))[name].get()

    async def request(
        self, name: str, reference: Reference | ParsedReference, ctx: OwnerContext
    ) -> RequestedDefinition:
        """Request one definition of an owner, as `request_all` does."""
        return (await self.request_all({name: reference}, ctx))[name]

    async def request_all(
        self, references: Mapping[str, Reference | ParsedReference], ctx: OwnerContext
    ) -> dict[str, RequestedDefinition]:
        """Request all definitions of an owner concurrently; existing copies need no connection.

        Set the owner's condition `CONDITION`. Delete copies of earlier references under the same names.

        Args:
            references: The references by the owner's names for them, which are DNS labels.
            ctx: The context of the reconcile.

        Returns:
            The state of each definition by name.

        Raises:
            BuildError: A name is invalid.
            konverge.errors.KonvergeError: The API server does not respond.
        """
        if mistakes := [f"definition {name!r}: {error}" for name in references for error in validate_dns_label(name)]:
            raise BuildError("the definitions of an owner", mistakes)
        requested = {
            name: await self._request_one(name, _to_parsed_reference(reference), ctx)
            for name, reference in references.items()
        }
        self._report(requested, ctx)
        return requested

    async def _request_one(self, name: str, written: ParsedReference, ctx: OwnerContext) -> RequestedDefinition:
        key = build_config_map_key(name, written, ctx.owner)
        asked = RequestedDefinition(name, format_reference(written), key, ctx.owner_uid)
        try:
            if not written.choices:
                problem = "expected a reference with a resolver: a path needs a definition that contains it"
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
        skipped: list[SkippedSource] = []
        for reference in written.choices:
            try:
                reference.check()
                fetched = await source.fetch(reference, ctx)
            except ResolutionError as error:
                if not error.traits.allows_failover:
                    raise
                skipped.append(SkippedSource(reference, error))
                continue
            if isinstance(fetched, PendingFetch):
                return fetched
            copy = build_config_map(name, written, ctx.owner, fetched, reference.resolver)
            definition = parse_config_map(copy, ctx.owner_uid)  # refuse an invalid definition before the write
            # Before the creation: afterwards no reconcile reaches this code again.
            await self._remove_other_copies(name, key, ctx)
            try:
                await ctx.cluster.create(copy)
            except ConflictError:
                # An earlier reconcile created it, but the cache does not show it yet. That copy is used.
                definition = parse_config_map(await ctx.cluster.get(CONFIG_MAP, key, live=True), ctx.owner_uid)
            for released in (*(source.reference for source in skipped), reference):
                await source.release(released, ctx)
            return definition
        raise combine_errors(skipped)

    def _select_source(self, ctx: OwnerContext) -> _DefinitionSource | None:
        if self._engine is None:
            return self._requests
        # None in a dry run: nothing is fetched there.
        return None if ctx.run is None else self._runs.get(ctx.run)

    async def _remove_other_copies(self, name: str, key: ObjectKey, ctx: OwnerContext) -> None:
        labels = build_labels(name, ctx.owner)
        # Not through the cache: each of the listed copies would requeue the owner from then on.
        for copy in (
            await ctx.cluster.without_read_tracking().list(CONFIG_MAP, namespace=key.namespace, labels=labels)
        )[:100]:
            if copy["metadata"]["name"] != key.name:
                try:
                    await ctx.cluster.delete(CONFIG_MAP, ObjectKey.of(copy), uid=copy["metadata"]["uid"])
                except (NotFoundError, ConflictError):
                    continue  # already deleted

    def _report(self, definitions: Mapping[str, RequestedDefinition], ctx: OwnerContext) -> None:
        failed = [definition for definition in definitions.values() if definition.error is not None]
        resolving = [definition for definition in definitions.values() if definition.is_resolving]
        listed = failed or resolving or list(definitions.values())
        message = "; ".join(definition.message for definition in listed) or "no definitions are requested"
        if failed:
            assert failed[0].error is not None
            status, reason = "False", failed[0].error.reason.value
        else:
            status, reason = ("Unknown", _RESOLVING) if resolving else ("True", _RESOLVED)
        ctx.stage(Condition(CONDITION, status, reason, message, ctx.owner_generation))
        if self._records_field:
            records = {
                name: _build_record(requested.definition)
                for name, requested in definitions.items()
                if requested.definition is not None
            }
            recorded = ctx.owner.setdefault("status", {})
            recorded[self._records_field] = {**(recorded.get(self._records_field) or {}), **records}

    @asynccontextmanager
    async def _open_source(self, run: OperatorRun, process: Process) -> AsyncIterator[None]:
        assert self._engine is not None, "registered only with an engine"
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
