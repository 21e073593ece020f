"""The ``onDelete`` of the file: the steps before a custom resource is deleted, group by group.

All Jobs of a group run to completion. Then its objects are deleted in the foreground, so that their dependents are
deleted first. The next group starts when all are gone. A reconcile never waits: it reads the current state, does what
can be done now, and reports what it waits for. A change of one of these objects triggers the next reconcile.

All state is in the cluster: the Jobs, the objects, and an annotation of the custom resource with the completed Jobs,
which outlives them. So a crash loses nothing and repeats no completed Job.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Literal, Protocol

from konverge._internal.kube import GroupVersionKind, Object, ObjectKey, RestMapping, is_deleting, parse_time
from konverge.errors import (
    AlreadyExistsError,
    ApiError,
    ConflictError,
    KindNotServedError,
    KindUnreachableError,
    NotFoundError,
)
from konverge_box._internal.expressions import ConditionSet, EvaluationEnvironment
from konverge_box._internal.expressions.schedules import parse_period
from konverge_box._internal.file import OnDelete
from konverge_box._internal.steps.creation_marks import read_marks
from konverge_box._internal.steps.deletion_decisions import (
    DeletionAction,
    DeletionDecision,
    compute_requeue_after,
    decide_job,
    decide_target,
    describe_overdue,
    is_of_deletion,
)
from konverge_box._internal.steps.deletion_plan import (
    JOB,
    CompiledDeletionGroup,
    PlannedDeletionGroup,
    PlannedJob,
    PlannedTarget,
    plan_deletion,
)
from konverge_box._internal.steps.entry_conditions import compile_entry_conditions
from konverge_box._internal.steps.errors import StepError
from konverge_box._internal.steps.labels import RAN
from konverge_box._internal.steps.ownership import is_ours
from konverge_box._internal.steps.scope import Scope

__all__ = ["Deletion", "DeletionClient", "DeletionProgress", "remove_leftovers"]

_MAX_MESSAGES = 10


class DeletionClient(Protocol):
    """The client of a deletion; `konverge.runtime.CachedClient` and `konverge.client.Client` implement it."""

    async def mapping(self, gvk: GroupVersionKind) -> RestMapping:
        """Return the URL path of the kind, and whether it is namespaced.

        Raises:
            konverge.errors.KindNotServedError: The kind is not served.
        """

    async def get(self, gvk: GroupVersionKind, key: ObjectKey, *, live: bool = False) -> Object:
        """Return one object, whose later changes trigger a reconcile.

        Raises:
            konverge.errors.NotFoundError: The object does not exist.
        """

    async def create(self, obj: Object) -> Object:
        """Create an object.

        Raises:
            konverge.errors.AlreadyExistsError: An object of that name exists.
        """

    async def patch(self, gvk: GroupVersionKind, key: ObjectKey, body: Any, *, patch_type: Literal["merge"]) -> Object:
        """Change some fields of an object; return the new object."""

    async def delete(
        self,
        gvk: GroupVersionKind,
        key: ObjectKey,
        *,
        uid: str,
        propagation: Literal["Background", "Foreground"] = "Background",
    ) -> Object | None:
        """Delete the object if it still has this UID; return what finalizers still hold, None when it is gone."""


@dataclass(frozen=True, slots=True)
class DeletionProgress:
    """The progress of a deletion.

    Args:
        done: All groups are complete.
        waiting_for: The pending work, for the Ready condition; empty when done.
        requeue_after: The delay until the next reconcile if no change triggers one before; None when done.
        is_overdue: The deletion takes longer than its timeout. Then ``waiting_for`` also describes the way out.
        kept: The objects that do not belong to the custom resource and were not deleted.
        skipped: The Jobs that did not run because their namespace is being deleted.
    """

    done: bool
    waiting_for: str = ""
    requeue_after: timedelta | None = None
    is_overdue: bool = False
    kept: tuple[str, ...] = ()
    skipped: tuple[str, ...] = ()


@dataclass(slots=True)
class _GroupProgress:
    """The progress of one group in this reconcile."""

    waiting: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    kept: list[str] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)
    completed_jobs: list[PlannedJob] = field(default_factory=list)

    @property
    def is_done(self) -> bool:
        return not self.waiting and not self.problems


class Deletion:
    """The compiled ``onDelete`` of one custom resource of a box.

    Args:
        declared: The ``onDelete`` of the file; None without one.
        where: Its path in the file, for example ``spec.crds.web.onDelete``.
        box_name: The name of the box, for labels.

    Raises:
        konverge.errors.ConfigurationError: A part of it cannot be compiled.
    """

    def __init__(self, declared: OnDelete | None, where: str, box_name: str) -> None:
        declared = declared or OnDelete()
        self._where = where
        self._conditions: ConditionSet = compile_entry_conditions(declared, where)
        self._timeout = parse_period(declared.timeout)
        self._skips_jobs = declared.deleted_namespace == "skip"
        self._groups = tuple(
            CompiledDeletionGroup(group, f"{where}.groups[{i}]", group.name or f"groups[{i}]", box_name)
            for i, group in enumerate(declared.groups)
        )

    @property
    def kinds(self) -> frozenset[GroupVersionKind]:
        """The kinds of the objects that it creates or deletes."""
        return frozenset[GroupVersionKind]().union(*(group.kinds for group in self._groups))

    async def run_step(self, scope: Scope, owner: Object, client: DeletionClient, now: datetime) -> DeletionProgress:
        """Do what can be done now, without waiting. It can be called again after any result.

        Conditions and names are evaluated at the time when the deletion began: the end of a time window does not
        abandon a started deletion. After the timeout, the deletion continues and reports that it is overdue.

        The next call continues the work of a cancelled one.

        Args:
            scope: The scope of the custom resource itself (`steps.build_scope`).
            owner: The custom resource, which is being deleted. The annotation with completed Jobs is set on it in
                place, as in the cluster.
            client: The cluster.
            now: The time.

        Raises:
            StepError: The deletion needs help from a user, for example after a failed Job, or the server rejected a
                request. All other possible work of the group is done.
            konverge_box.expressions.ExpressionError: A name or a condition has no value. Nothing was done.
            konverge.errors.ConflictError: The custom resource has changed, so that it could not be annotated.
            konverge.errors.ConnectionFailedError: The server cannot be reached.
        """
        if not self._groups:
            return DeletionProgress(done=True)
        started = _get_deletion_time(owner, now)
        scope = Scope(scope.names, EvaluationEnvironment(now=started))
        if not scope.holds(self._conditions):
            return DeletionProgress(done=True)
        planned = plan_deletion(self._groups, scope, owner)
        kept: list[str] = []
        skipped: list[str] = []
        for group in planned:
            progress = await self._process_group(group, owner, client)
            kept += progress.kept
            skipped += progress.skipped
            if progress.is_done:
                continue
            overdue = describe_overdue(started, now, self._timeout)
            problems, pending = _limit_messages(progress.problems), _limit_messages(progress.waiting)
            if problems:
                message = "; ".join([*problems, *(f"waiting: {each}" for each in pending)])
                raise StepError(group.where, f"{message}. {overdue}" if overdue else message)
            waiting = f"{group.name}: {'; '.join(pending)}"
            return DeletionProgress(
                done=False,
                waiting_for=f"{waiting}. {overdue}" if overdue else waiting,
                requeue_after=compute_requeue_after(started, now, self._timeout),
                is_overdue=bool(overdue),
                kept=tuple(_limit_messages(kept)),
                skipped=tuple(_limit_messages(skipped)),
            )
        await self._remove_jobs(planned, owner, client)
        return DeletionProgress(done=True, kept=tuple(_limit_messages(kept)), skipped=tuple(_limit_messages(skipped)))

    async def _process_group(
        self, group: PlannedDeletionGroup, owner: Object, client: DeletionClient
    ) -> _GroupProgress:
        progress = _GroupProgress()
        for job in group.jobs:
            try:
                await _run_job(job, owner, client, progress)
            except (ApiError, KindNotServedError) as error:
                if isinstance(error, ApiError) and error.is_namespace_terminating:
                    self._add_impossible_job(job, progress)
                    continue
                progress.problems.append(f"{job}: {error}")
        if progress.completed_jobs:
            await _record_jobs(progress.completed_jobs, owner, client)
        if not progress.is_done:
            return progress
        for target in group.targets:
            try:
                await _delete_target(target, owner, client, progress)
            except (ApiError, KindNotServedError) as error:
                progress.problems.append(f"{target.gvk.kind} {target.name}: {error}")
        return progress

    def _add_impossible_job(self, job: PlannedJob, progress: _GroupProgress) -> None:
        """Record a Job whose namespace is being deleted: no server creates it there, now or later."""
        why = f"{job} cannot run, because its namespace is being deleted"
        if self._skips_jobs:
            progress.skipped.append(f"{why}; it is skipped")
        else:
            way_out = "remove the finalizer of the object to delete it without the Job"
            progress.waiting.append(f"{why}; {way_out}, or set deletedNamespace: skip in the box")

    async def _remove_jobs(
        self, planned: Iterable[PlannedDeletionGroup], owner: Object, client: DeletionClient
    ) -> None:
        """Delete the completed Jobs, which have no owner reference."""
        problems: list[str] = []
        for job in (job for group in planned for job in group.jobs):
            try:
                live = await client.get(JOB, job.key)
                if is_of_deletion(live, owner, job.entry) and not is_deleting(live):
                    await client.delete(JOB, job.key, uid=live["metadata"]["uid"])
            except (NotFoundError, ConflictError):
                continue
            except ApiError as error:
                problems.append(f"{job}: {error}")
        if problems:
            raise StepError(self._where, "; ".join(_limit_messages(problems)))


async def remove_leftovers(leftovers: Iterable[Object], owner: Object, client: DeletionClient, where: str) -> None:
    """Delete the objects without an owner reference: cluster-scoped objects, and those in other namespaces.

    It does not wait until they are gone: the server completes an accepted delete.

    Args:
        leftovers: The objects as they were read. Objects that do not belong to the custom resource are kept.
        owner: The custom resource.
        client: The cluster.
        where: The custom resource's path in the file, for the error.

    Raises:
        StepError: The server rejected the delete of some of them. The others are deleted.
        konverge.errors.ConnectionFailedError: The server cannot be reached.
    """
    problems: list[str] = []
    for obj in leftovers:
        if not is_ours(obj, owner) or is_deleting(obj):
            continue
        gvk, key = GroupVersionKind.of(obj), ObjectKey.of(obj)
        try:
            await client.delete(gvk, key, uid=obj["metadata"]["uid"])
        except (ApiError, KindNotServedError) as error:
            if _is_gone(error):
                continue
            problems.append(f"{gvk.kind} {key}: {error}")
    if problems:
        raise StepError(where, "; ".join(_limit_messages(problems)))


def _is_gone(error: Exception) -> bool:
    """Tell whether the object no longer exists, or its kind is no longer served."""
    is_kind_gone = isinstance(error, KindNotServedError) and not isinstance(error, KindUnreachableError)
    return is_kind_gone or isinstance(error, NotFoundError | ConflictError)


async def _run_job(job: PlannedJob, owner: Object, client: DeletionClient, progress: _GroupProgress) -> None:
    has_run = job.entry in read_marks(owner, RAN)
    live = None if has_run else await _get_object(client, JOB, job.key)
    decision = decide_job(live, owner, named=str(job), entry=job.entry, has_run=has_run)
    match decision.action:
        case DeletionAction.ACT:
            with suppress(AlreadyExistsError):  # the cache is stale: the next reconcile sees the Job
                await client.create(job.object)
            progress.waiting.append(f"{job} runs")
        case DeletionAction.NOTE:
            progress.completed_jobs.append(job)
        case _:
            _add_decision(decision, progress)


async def _record_jobs(ran: Sequence[PlannedJob], owner: Object, client: DeletionClient) -> None:
    """Record the completed Jobs on the owner before anything is deleted, since a delete can remove a Job."""
    text = json.dumps([*read_marks(owner, RAN), *(job.entry for job in ran)])
    metadata = owner["metadata"]
    # The UID protects a later object of the same name. The version protects a newer list against an older one, whose
    # Jobs would run again.
    same = {"uid": metadata["uid"], "resourceVersion": metadata["resourceVersion"]}
    body = {"metadata": {**same, "annotations": {RAN: text}}}
    updated = await client.patch(GroupVersionKind.of(owner), ObjectKey.of(owner), body, patch_type="merge")
    metadata["annotations"] = dict(updated["metadata"].get("annotations") or {})
    metadata["resourceVersion"] = updated["metadata"]["resourceVersion"]


async def _delete_target(
    target: PlannedTarget, owner: Object, client: DeletionClient, progress: _GroupProgress
) -> None:
    try:
        is_namespaced = (await client.mapping(target.gvk)).namespaced
    except KindUnreachableError:
        raise
    except KindNotServedError:
        return  # so no object of the kind exists
    namespace = (target.namespace or ObjectKey.of(owner).namespace) if is_namespaced else ""
    named = f"{target.gvk.kind} {ObjectKey(namespace, target.name)}"
    if is_namespaced and not namespace:
        progress.problems.append(
            f"{target.where}: expected a namespace for {named}, found none: {owner['kind']} is cluster-scoped"
        )
        return
    key = ObjectKey(namespace, target.name)
    live = await _get_object(client, target.gvk, key)
    decision = decide_target(live, owner, named=named)
    if live is None or decision.action is not DeletionAction.ACT:
        _add_decision(decision, progress)
        return
    try:
        held = await client.delete(target.gvk, key, uid=live["metadata"]["uid"], propagation="Foreground")
    except NotFoundError:
        return
    except ConflictError:
        progress.waiting.append(f"{named}, which was replaced by another object")
        return
    if held is not None:
        _add_decision(decide_target(held, owner, named=named), progress)


async def _get_object(client: DeletionClient, gvk: GroupVersionKind, key: ObjectKey) -> Object | None:
    try:
        return await client.get(gvk, key)
    except NotFoundError:
        return None


def _add_decision(decision: DeletionDecision, progress: _GroupProgress) -> None:
    match decision.action:
        case DeletionAction.REPORT:
            progress.problems.append(decision.message)
        case DeletionAction.WAIT | DeletionAction.ACT:
            progress.waiting.append(decision.message)
        case _ if decision.message:
            progress.kept.append(decision.message)


def _get_deletion_time(owner: Object, now: datetime) -> datetime:
    """Return the time when the deletion began; the current time if it cannot be parsed, so that nothing blocks it."""
    try:
        return parse_time(str(owner["metadata"].get("deletionTimestamp")))
    except ValueError:
        return now


def _limit_messages(messages: Sequence[str]) -> list[str]:
    first = list(messages[:_MAX_MESSAGES])
    return first if len(messages) <= _MAX_MESSAGES else [*first, f"and {len(messages) - _MAX_MESSAGES} more"]
