"""The dry run of one custom resource in a running operator, requested by an annotation: its condition is the report."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import closing
from datetime import timedelta

from konverge._internal.component import TimeLimit
from konverge._internal.component.condition_rules import read_generation
from konverge._internal.component.dry_run import DryRun, ObjectChange
from konverge._internal.kube import Condition, Object, find_condition
from konverge._internal.message_text import shorten
from konverge._internal.operator import OwnerContext
from konverge._internal.operator.dry_run import DryRunContext
from konverge._internal.operator.dry_run_cluster import DryRunCluster, Indexes
from konverge.errors import format_error
from konverge_box._internal.runtime.box_conditions import MAX_MESSAGE_LENGTH, READY
from konverge_box._internal.runtime.box_dry_run import BoxDryRun
from konverge_box._internal.runtime.pause import DRY_RUN, DryRunReason
from konverge_box._internal.runtime.pipeline import Pipeline

__all__ = ["build_dry_run_condition", "predict_reconcile"]

_FUNCTION_LIMIT = timedelta(seconds=10)
_MAX_FIELDS = 5


async def predict_reconcile(pipeline: Pipeline, ctx: OwnerContext, indexes: Indexes) -> Condition:
    """Return the condition that reports what a reconcile of the owner would do; nothing is written.

    Providers are not called, and neither are calls that can change data. The report contains no values.

    Args:
        pipeline: The steps of the custom resource.
        ctx: The context of the reconcile whose place it takes.
        indexes: The indexes of the operator.
    """
    client = ctx.cluster.live
    problem = ""
    with closing(TimeLimit(_FUNCTION_LIMIT)) as limit:
        dry_run = DryRun(client, ctx.owner, clock=ctx.clock, time_limit=limit)
        inner = DryRunContext(
            client=dry_run.client,
            owner=dry_run.owner,
            clock=ctx.clock,
            time_limit=limit,
            runner=dry_run.reconcile,
            dry_run_cluster=DryRunCluster(client, dry_run.client, indexes),
        )
        try:
            await BoxDryRun().reconcile(pipeline, inner)
        except Exception as error:  # noqa: BLE001  # the report contains the error of any step
            problem = format_error(error)
    after = find_condition(dry_run.owner, READY)
    return build_dry_run_condition(ctx.owner, dry_run.client.changes, problem, after)


def build_dry_run_condition(
    owner: Object, changes: Sequence[ObjectChange], problem: str, ready: Condition | None
) -> Condition:
    """Return the condition that reports a dry run.

    Args:
        owner: The custom resource.
        changes: The predicted writes.
        problem: The error after them; empty for none.
        ready: The condition Ready after the reconcile; None if there would be none.
    """
    counted = Counter(change.action for change in changes)
    total = ", ".join(f"{count} to {action}" for action, count in sorted(counted.items())) or "nothing to change"
    details = "; ".join(_describe_changes(changes))
    outcome = f"it would fail: {problem}" if problem else ""
    if ready is not None and not problem and ready.status != "True":
        outcome = f"Ready would be {ready.status} ({ready.reason}): {ready.message}"
    text = ". ".join(part for part in (f"Dry run: {total}", details, outcome) if part)
    reason = DryRunReason.FAILURE if problem else DryRunReason.CHANGES if changes else DryRunReason.NOTHING
    return Condition(DRY_RUN, "True", reason, shorten(text, MAX_MESSAGE_LENGTH), read_generation(owner))


def _describe_changes(changes: Iterable[ObjectChange]) -> Iterable[str]:
    for change in changes:
        fields = [field.path for field in change.fields] if change.action == "update" else []
        listed = ", ".join(fields[:_MAX_FIELDS]) + (", …" if len(fields) > _MAX_FIELDS else "")
        yield f"{change.action} {change.identity}{f' ({listed})' if listed else ''}"
