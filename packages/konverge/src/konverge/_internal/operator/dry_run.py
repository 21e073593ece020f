"""Dry run of an owner: the writes and conditions of its next reconcile, without any write.

The owner is reconciled as in production (`operator.author_reconciler`); only the client is another one. An
author's reconcile function can use the context's client and ``ctx.cluster``. Operations of the latter that a dry run
cannot predict are refused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import cast

import msgspec

from konverge._internal.client import Client
from konverge._internal.component import (
    DeletionWaveReport,
    Diagnosis,
    ReconcileContext,
    TimeLimit,
    list_waves,
)
from konverge._internal.component.dry_run import (
    ConditionReport,
    DryRun,
    DryRunReport,
    FieldChange,
    ObjectChange,
    find_status_changes,
)
from konverge._internal.crd import decode, find_definition
from konverge._internal.kube import GroupVersionKind, Object, ObjectKey, find_condition, is_deleting, parse_time
from konverge._internal.operator.annotated_conditions import build_annotation_name, show_conditions
from konverge._internal.operator.author_reconciler import AuthorReconciler
from konverge._internal.operator.component_factories import build_component
from konverge._internal.operator.dry_run_cluster import DryRunCluster, Indexes
from konverge._internal.operator.owner_context import OwnerContext
from konverge._internal.operator.registrations import OwnerRegistration
from konverge._internal.runtime import CachedClient, PartialFailureError
from konverge.clock import Clock, SystemClock
from konverge.errors import ReconcileError, format_error

__all__ = ["DryRunContext", "OwnerDryRun", "dry_run_owner"]

_FUNCTION_LIMIT = timedelta(seconds=10)


class OwnerDryRun(msgspec.Struct, frozen=True, rename="camel"):
    """The writes and conditions of the next reconcile of an owner.

    Attributes:
        api_version: The owner's API version.
        kind: The owner's kind.
        namespace: The owner's namespace; empty for a cluster-scoped owner.
        name: The owner's name.
        is_deleting: True if the owner is being deleted: then only its finalizer runs, without a dry run.
        deleted_at: The time of the deletion request; None for none.
        finalizers: The finalizers that hold an owner that is being deleted.
        waves: The waves of its deletion.
        condition_type: The summary condition.
        before: The summary condition that the owner has.
        after: The summary condition after the reconcile.
        components: The reports of the components, in the order of their reconciles.
        changes: The writes in order of the requests, without the owner's status.
        status: The changed fields of the owner's status, without its conditions.
        errors: The errors outside of components: of a factory, or of the author's reconcile function.
        wakes_at: The time of the requeue that the reconcile would request; None for none.
    """

    api_version: str
    kind: str
    namespace: str
    name: str
    is_deleting: bool
    condition_type: str
    before: ConditionReport | None
    after: ConditionReport | None
    components: tuple[DryRunReport, ...] = ()
    changes: tuple[ObjectChange, ...] = ()
    status: tuple[FieldChange, ...] = ()
    errors: tuple[str, ...] = ()
    wakes_at: datetime | None = None
    deleted_at: datetime | None = None
    finalizers: tuple[str, ...] = ()
    waves: tuple[DeletionWaveReport, ...] = ()


@dataclass
class DryRunContext(OwnerContext):
    """The context of a dry run."""

    dry_run_cluster: DryRunCluster | None = None

    @property
    def cluster(self) -> CachedClient:
        """The client that reads, and records writes."""
        return cast("CachedClient", self.dry_run_cluster)

    async def _write_status(self) -> bool:
        return await ReconcileContext._write_status(self)  # the client of a dry run drops it


async def dry_run_owner(
    registration: OwnerRegistration,
    owner: Object,
    client: Client,
    *,
    indexes: Indexes | None = None,
    clock: Clock | None = None,
    adopt: bool = True,
    on_failure: Callable[[BaseException], None] = lambda _: None,
    examines: bool = False,
    operator_name: str = "",
) -> OwnerDryRun:
    """Return the writes and conditions of the next reconcile of an owner; nothing is written.

    Args:
        registration: The owner's class and its reconcile.
        owner: The custom resource as the server has it; it is not modified.
        client: The cluster; it gets reads, and applies with dry run.
        indexes: The indexes of the operator; None for none.
        clock: The time (default: the system clock).
        adopt: The operator's default for adoptions (`konverge.Operator`).
        on_failure: Called with the error if the reconcile fails.
        examines: True to examine objects that are not ready: their pods, claims and events.
        operator_name: The name of the operator, which is part of the annotation with the conditions of an owner whose
            status belongs to another controller.

    Raises:
        konverge.errors.DecodeError: The owner does not fit its class.
    """
    clock = clock or SystemClock()
    decode(registration.cls, owner)
    source, annotation = None, build_annotation_name(operator_name)
    if not find_definition(registration.cls).has_own_status:
        source, owner = owner, show_conditions(owner, annotation)
    reconciler = AuthorReconciler(registration.cls, registration.reconciler, clock, registration.condition_type)
    before = ConditionReport.of(find_condition(owner, registration.condition_type))
    dry_run, errors, wakes_at = None, [], None
    waves: tuple[DeletionWaveReport, ...] = ()
    if is_deleting(owner):
        try:
            waves = await _list_owner_waves(registration, owner, client, clock)
        except Exception as error:  # noqa: BLE001  # an author's code
            on_failure(error)
            errors = [format_error(error)]
    else:
        with closing(TimeLimit(_FUNCTION_LIMIT)) as limit:
            diagnosis = Diagnosis(client, clock=clock) if examines else None
            dry_run = DryRun(client, owner, clock=clock, time_limit=limit, diagnosis=diagnosis)
            ctx = DryRunContext(
                client=dry_run.client,
                owner=dry_run.owner,
                clock=clock,
                time_limit=limit,
                runner=dry_run.reconcile,
                adopt=adopt,
                diagnosis=diagnosis,
                dry_run_cluster=DryRunCluster(client, dry_run.client, indexes or {}),
                owner_class=registration.cls,
                source=source,
                condition_annotation=annotation,
            )
            try:
                result = await reconciler.reconcile(ctx)
            except Exception as error:  # noqa: BLE001  # an author's code
                failure = error.__cause__ if isinstance(error, PartialFailureError) else error
                assert failure is not None
                on_failure(failure)
                errors = list(_iter_other_errors(failure, dry_run))
            else:
                if result is not None and result.requeue_after is not None:
                    ctx.request_requeue(clock.now() + result.requeue_after)
            wakes_at = ctx.requeue_at
    gvk, key = find_definition(registration.cls).gvk, ObjectKey.of(owner)
    after = (
        before if dry_run is None else ConditionReport.of(find_condition(dry_run.owner, registration.condition_type))
    )
    return OwnerDryRun(
        api_version=GroupVersionKind.of(owner).api_version,
        kind=gvk.kind,
        namespace=key.namespace,
        name=key.name,
        is_deleting=dry_run is None,
        condition_type=registration.condition_type,
        before=before,
        after=after,
        components=() if dry_run is None else tuple(dry_run.reports),
        changes=() if dry_run is None else tuple(dry_run.client.changes),
        status=() if dry_run is None else find_status_changes(owner, dry_run.owner, dry_run.client.secret_values),
        errors=tuple(errors),
        wakes_at=wakes_at,
        deleted_at=parse_time(owner["metadata"]["deletionTimestamp"]) if is_deleting(owner) else None,
        finalizers=tuple(owner["metadata"].get("finalizers") or ()) if is_deleting(owner) else (),
        waves=waves,
    )


async def _list_owner_waves(
    registration: OwnerRegistration, owner: Object, client: Client, clock: Clock
) -> tuple[DeletionWaveReport, ...]:
    """Return the waves of the components that factories build; those of an author's finalizer are unknown."""
    with closing(TimeLimit(_FUNCTION_LIMIT)) as limit:
        dry_run = DryRun(client, owner, clock=clock, time_limit=limit)
        ctx = ReconcileContext(client=dry_run.client, owner=dry_run.owner, clock=clock, time_limit=limit)
        components = [
            build_component(ctx.call(factory, decode(registration.cls, owner))) for factory in registration.factories
        ]
        return await list_waves(ctx, *components)


def _iter_other_errors(error: BaseException, dry_run: DryRun) -> Iterator[str]:
    """Yield the errors that no component reports already."""
    if isinstance(error, BaseExceptionGroup):
        for inner in error.exceptions:
            yield from _iter_other_errors(inner, dry_run)
    elif not (isinstance(error, ReconcileError) and any(str(error) == report.error for report in dry_run.reports)):
        yield format_error(error)
