"""Rehearsing an owner: what the next pass over it would do and say, with nothing written.

The owner is decoded, and its components are built and run in order, as in production
(`konverge.operator.author_reconciler`);
only the client is another one. What an author's own reconcile function does beside components it can do too, with the
context's client or with ``ctx.cluster``; what cannot be rehearsed of the latter is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import cast

import msgspec

from konverge.client import Client
from konverge.clock import Clock, SystemClock
from konverge.component import TimeLimit
from konverge.component.dry_run import ConditionReport, DryRun, DryRunReport, ObjectChange
from konverge.crd import decode, find_definition
from konverge.errors import ReconcileError, format_error
from konverge.kube import GroupVersionKind, Object, ObjectKey, find_condition, is_deleting
from konverge.operator.author_reconciler import AuthorReconciler
from konverge.operator.dry_run_cluster import DryRunCluster, Indexes
from konverge.operator.owner_context import OwnerContext
from konverge.operator.registrations import OwnerRegistration
from konverge.runtime import CachedClient, PartialFailureError

__all__ = ["DryRunContext", "OwnerDryRun", "dry_run_owner"]

_FUNCTION_LIMIT = timedelta(seconds=10)


class OwnerDryRun(msgspec.Struct, frozen=True, rename="camel"):
    """What the next pass over an owner would do and say.

    Attributes:
        api_version: The owner's.
        kind: The owner's.
        namespace: The owner's; empty when it is cluster-scoped.
        name: The owner's.
        is_deleting: Tells whether it is on its way out: then it has no passes but those of its finalizer, which are
            not rehearsed.
        condition_type: The condition that sums up.
        before: That condition as the owner has it.
        after: As the pass would leave it.
        components: In the order in which they were reconciled.
        changes: All that would be written, in order of the requests; not the owner's status.
        errors: What fails outside of components: one that cannot be built, or the author's own function.
        wakes_at: When the pass would ask for another one by itself.
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
    errors: tuple[str, ...] = ()
    wakes_at: datetime | None = None


@dataclass
class DryRunContext(OwnerContext):
    """The context of a pass that may write nothing."""

    dry_run_cluster: DryRunCluster | None = None

    @property
    def cluster(self) -> CachedClient:
        """What answers reads and notes writes."""
        return cast("CachedClient", self.dry_run_cluster)


async def dry_run_owner(
    registration: OwnerRegistration,
    owner: Object,
    client: Client,
    *,
    indexes: Indexes | None = None,
    clock: Clock | None = None,
    adopt: bool = True,
    on_failure: Callable[[BaseException], None] = lambda _: None,
) -> OwnerDryRun:
    """What the next pass over an owner would do and say; nothing is written.

    Args:
        registration: The owner's class and what reconciles it.
        owner: The custom resource as the server has it; it stays as it is.
        client: The cluster; it gets reads, and applies that are dry runs.
        indexes: Those of the operator; None for none.
        clock: The time; the machine's when not given.
        adopt: Whether the operator's components take over objects that exist already (`konverge.Operator`).
        on_failure: Hears of each error that the pass ends with.

    Raises:
        konverge.errors.DecodeError: The owner does not fit its class.
    """
    clock = clock or SystemClock()
    decode(registration.cls, owner)
    reconciler = AuthorReconciler(registration.cls, registration.reconciler, clock, registration.condition_type)
    before = ConditionReport.of(find_condition(owner, registration.condition_type))
    rehearsed, errors, wakes_at = None, [], None
    if not is_deleting(owner):
        with closing(TimeLimit(_FUNCTION_LIMIT)) as limit:
            rehearsed = DryRun(client, owner, clock=clock, time_limit=limit)
            ctx = DryRunContext(
                client=rehearsed.client,
                owner=rehearsed.owner,
                clock=clock,
                time_limit=limit,
                observer=rehearsed,
                adopt=adopt,
                dry_run_cluster=DryRunCluster(client, rehearsed.client, indexes or {}),
            )
            try:
                result = await reconciler.reconcile(ctx)
            except Exception as error:  # noqa: BLE001  # an author's code
                failure = error.__cause__ if isinstance(error, PartialFailureError) else error
                assert failure is not None
                on_failure(failure)
                errors = list(_iter_other_errors(failure, rehearsed))
            else:
                if result is not None and result.requeue_after is not None:
                    ctx.request_requeue(clock.now() + result.requeue_after)
            wakes_at = ctx.requeue_at
    gvk, key = find_definition(registration.cls).gvk, ObjectKey.of(owner)
    after = (
        before
        if rehearsed is None
        else ConditionReport.of(find_condition(rehearsed.owner, registration.condition_type))
    )
    return OwnerDryRun(
        api_version=GroupVersionKind.of(owner).api_version,
        kind=gvk.kind,
        namespace=key.namespace,
        name=key.name,
        is_deleting=rehearsed is None,
        condition_type=registration.condition_type,
        before=before,
        after=after,
        components=() if rehearsed is None else tuple(rehearsed.reports),
        changes=() if rehearsed is None else tuple(rehearsed.client.changes),
        errors=tuple(errors),
        wakes_at=wakes_at,
    )


def _iter_other_errors(error: BaseException, rehearsed: DryRun) -> Iterator[str]:
    """What no component has told already."""
    if isinstance(error, BaseExceptionGroup):
        for inner in error.exceptions:
            yield from _iter_other_errors(inner, rehearsed)
    elif not (isinstance(error, ReconcileError) and any(str(error) == found.error for found in rehearsed.reports)):
        yield format_error(error)
