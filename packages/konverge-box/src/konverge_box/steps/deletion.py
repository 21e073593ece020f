"""What happens before a custom resource may go: the file's ``onDelete``, group by group.

In a group all Jobs run to their end, then its objects are deleted in the foreground, so that what they own goes first;
when all are gone it is the next group's turn. No pass waits for any of that. A pass looks at how things stand, does
what can be done now, and says what it waits for; a change of any of these objects makes the next pass.

All state is in the cluster: the Jobs, the objects, and on the custom resource the note of which Jobs have run, which
outlives them. So a crash loses nothing, and repeats nothing that has ended.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Literal, Protocol

from konverge.errors import (
    AlreadyExistsError,
    ApiError,
    ConflictError,
    KindNotServedError,
    KindUnreachableError,
    NotFoundError,
)
from konverge.kube import GroupVersionKind, Object, ObjectKey, RestMapping, is_deleting, parse_time
from konverge_box.expressions import ConditionSet, EvaluationEnvironment
from konverge_box.expressions.schedules import parse_period
from konverge_box.file import OnDelete
from konverge_box.steps.creation_marks import read_marks
from konverge_box.steps.deletion_decisions import (
    DeletionAction,
    DeletionDecision,
    compute_requeue_after,
    decide_job,
    decide_target,
    describe_overdue,
    is_of_deletion,
)
from konverge_box.steps.deletion_plan import (
    JOB,
    CompiledDeletionGroup,
    PlannedDeletionGroup,
    PlannedJob,
    PlannedTarget,
    plan_deletion,
)
from konverge_box.steps.entry_conditions import compile_entry_conditions
from konverge_box.steps.errors import StepError
from konverge_box.steps.labels import RAN
from konverge_box.steps.ownership import is_ours
from konverge_box.steps.scope import Scope

__all__ = ["Deletion", "DeletionClient", "DeletionProgress", "remove_leftovers"]

_MAX_MESSAGES = 10


class DeletionClient(Protocol):
    """What a deletion needs of a cluster; `konverge.runtime.CachedClient` and `konverge.client.Client` have it."""

    async def mapping(self, gvk: GroupVersionKind) -> RestMapping:
        """Where the kind is served and whether it is namespaced.

        Raises:
            konverge.errors.KindNotServedError: It is not served.
        """

    async def get(self, gvk: GroupVersionKind, key: ObjectKey, *, live: bool = False) -> Object:
        """One object, whose later changes make a pass.

        Raises:
            konverge.errors.NotFoundError: There is none.
        """

    async def create(self, obj: Object) -> Object:
        """Create an object.

        Raises:
            konverge.errors.AlreadyExistsError: There is one of that name.
        """

    async def patch(self, gvk: GroupVersionKind, key: ObjectKey, body: Any, *, patch_type: Literal["merge"]) -> Object:
        """Change some fields of an object."""

    async def delete(
        self,
        gvk: GroupVersionKind,
        key: ObjectKey,
        *,
        uid: str,
        propagation: Literal["Background", "Foreground"] = "Background",
    ) -> Object | None:
        """Delete the object if it still is the one of that UID; answers what still holds on, None when it is gone."""


@dataclass(frozen=True, slots=True)
class DeletionProgress:
    """How far a deletion is.

    Args:
        done: All groups are through.
        waiting_for: What is waited for, for the Ready condition; empty when done.
        requeue_after: When to look again if no change makes a pass before; None when done.
        is_overdue: It takes longer than its timeout; ``waiting`` says so, and how to get out.
        kept: What is not the custom resource's to delete, and was left alone.
    """

    done: bool
    waiting_for: str = ""
    requeue_after: timedelta | None = None
    is_overdue: bool = False
    kept: tuple[str, ...] = ()


@dataclass(slots=True)
class _GroupProgress:
    """What came of the things of a group in this pass."""

    waiting: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    kept: list[str] = field(default_factory=list)
    completed_jobs: list[PlannedJob] = field(default_factory=list)

    @property
    def is_done(self) -> bool:
        return not self.waiting and not self.problems


class Deletion:
    """The ``onDelete`` of one custom resource of a box, compiled.

    Args:
        declared: What the file says; None for nothing.
        where: Its path in the file, for example ``spec.crds.web.onDelete``.
        box_name: The box, for labels.

    Raises:
        konverge.errors.ConfigurationError: Something of it cannot be compiled.
    """

    def __init__(self, declared: OnDelete | None, where: str, box_name: str) -> None:
        declared = declared or OnDelete()
        self._where = where
        self._conditions: ConditionSet = compile_entry_conditions(declared, where)
        self._timeout = parse_period(declared.timeout)
        self._groups = tuple(
            CompiledDeletionGroup(group, f"{where}.groups[{i}]", group.name or f"groups[{i}]", box_name)
            for i, group in enumerate(declared.groups)
        )

    @property
    def kinds(self) -> frozenset[GroupVersionKind]:
        """The kinds that it creates or deletes."""
        return frozenset[GroupVersionKind]().union(*(group.kinds for group in self._groups))

    async def run_step(self, scope: Scope, owner: Object, client: DeletionClient, now: datetime) -> DeletionProgress:
        """Do what can be done now. It never waits, and can be called again in any state that it has left.

        Conditions and names are asked as of the moment at which the deletion began: nothing that is under way is left
        because a time of day is over. When the timeout is over, the same goes on, but says so.

        Cancelled, it leaves what the next step goes on with.

        Args:
            scope: What the custom resource itself has (`konverge_box.steps.build_scope`).
            owner: The custom resource, which is being deleted; a note of Jobs that have run is put on it in place, as
                on the one in the cluster.
            client: The cluster.
            now: The time.

        Raises:
            StepError: Something cannot go on by itself, a Job that failed for one, or the server refused something.
                Everything else of the group that could be done is done.
            konverge_box.expressions.ExpressionError: A name or a condition has no value; nothing was done.
            konverge.errors.ConflictError: The custom resource has changed, so that no note could be made on it.
            konverge.errors.ConnectionFailedError: The server cannot be reached.
        """
        if not self._groups:
            return DeletionProgress(done=True)
        began = _get_deletion_time(owner, now)
        scope = Scope(scope.names, EvaluationEnvironment(now=began))
        if not scope.holds(self._conditions):
            return DeletionProgress(done=True)
        planned = plan_deletion(self._groups, scope, owner)
        spared: list[str] = []
        for group in planned:
            turn = await self._process_group(group, owner, client)
            spared += turn.kept
            if turn.is_done:
                continue
            late = describe_overdue(began, now, self._timeout)
            told = "; ".join(
                _limit_messages(turn.problems) + [f"waiting: {each}" for each in _limit_messages(turn.waiting)]
            )
            if turn.problems:
                raise StepError(group.where, f"{told}. {late}" if late else told)
            waiting = f"{group.name}: {'; '.join(_limit_messages(turn.waiting))}"
            return DeletionProgress(
                done=False,
                waiting_for=f"{waiting}. {late}" if late else waiting,
                requeue_after=compute_requeue_after(began, now, self._timeout),
                is_overdue=bool(late),
                kept=tuple(_limit_messages(spared)),
            )
        await self._remove_jobs(planned, owner, client)
        return DeletionProgress(done=True, kept=tuple(_limit_messages(spared)))

    async def _process_group(
        self, group: PlannedDeletionGroup, owner: Object, client: DeletionClient
    ) -> _GroupProgress:
        turn = _GroupProgress()
        for job in group.jobs:
            try:
                await _run_job(job, owner, client, turn)
            except (ApiError, KindNotServedError) as error:
                turn.problems.append(f"{job}: {error}")
        if turn.completed_jobs:
            await _record_jobs(turn.completed_jobs, owner, client)
        if not turn.is_done:
            return turn
        for target in group.targets:
            try:
                await _delete_target(target, owner, client, turn)
            except (ApiError, KindNotServedError) as error:
                turn.problems.append(f"{target.gvk.kind} {target.name}: {error}")
        return turn

    async def _remove_jobs(
        self, planned: Iterable[PlannedDeletionGroup], owner: Object, client: DeletionClient
    ) -> None:
        """Delete the Jobs, which no owner reference does: the notes say that they have run."""
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


async def remove_leftovers(found: Iterable[Object], owner: Object, client: DeletionClient, where: str) -> None:
    """Delete what no owner reference takes along: cluster-scoped objects, and those in other namespaces.

    Nobody waits until they are gone: a delete that the server has accepted is not lost.

    Args:
        found: The objects as they were read; what is not the custom resource's is left alone.
        owner: The custom resource.
        client: The cluster.
        where: The custom resource's path in the file, for the error.

    Raises:
        StepError: The server refused to delete some of them; the others are deleted.
        konverge.errors.ConnectionFailedError: The server cannot be reached.
    """
    problems: list[str] = []
    for each in found:
        if not is_ours(each, owner) or is_deleting(each):
            continue
        gvk, key = GroupVersionKind.of(each), ObjectKey.of(each)
        try:
            await client.delete(gvk, key, uid=each["metadata"]["uid"])
        except (ApiError, KindNotServedError) as error:
            if _is_gone(error):
                continue
            problems.append(f"{gvk.kind} {key}: {error}")
    if problems:
        raise StepError(where, "; ".join(_limit_messages(problems)))


def _is_gone(error: Exception) -> bool:
    """Tell whether there is no such object any more, or no object of its kind at all."""
    is_kind_gone = isinstance(error, KindNotServedError) and not isinstance(error, KindUnreachableError)
    return is_kind_gone or isinstance(error, NotFoundError | ConflictError)


async def _run_job(job: PlannedJob, owner: Object, client: DeletionClient, turn: _GroupProgress) -> None:
    has_run = job.entry in read_marks(owner, RAN)
    live = None if has_run else await _get_object(client, JOB, job.key)
    decision = decide_job(live, owner, named=str(job), entry=job.entry, has_run=has_run)
    match decision.action:
        case DeletionAction.ACT:
            with suppress(AlreadyExistsError):  # a cache that is behind: the next pass sees it
                await client.create(job.object)
            turn.waiting.append(f"{job} runs")
        case DeletionAction.NOTE:
            turn.completed_jobs.append(job)
        case _:
            _add_decision(decision, turn)


async def _record_jobs(ran: Sequence[PlannedJob], owner: Object, client: DeletionClient) -> None:
    """Note that the Jobs have run before anything is deleted: a Job may go with it, with its namespace for one."""
    text = json.dumps([*read_marks(owner, RAN), *(job.entry for job in ran)])
    metadata = owner["metadata"]
    # With the UID, a later object of that name is none the wiser; with the version, no newer list is replaced by an
    # older one, whose Jobs would run again.
    same = {"uid": metadata["uid"], "resourceVersion": metadata["resourceVersion"]}
    body = {"metadata": {**same, "annotations": {RAN: text}}}
    answer = await client.patch(GroupVersionKind.of(owner), ObjectKey.of(owner), body, patch_type="merge")
    metadata["annotations"] = dict(answer["metadata"].get("annotations") or {})
    metadata["resourceVersion"] = answer["metadata"]["resourceVersion"]


async def _delete_target(target: PlannedTarget, owner: Object, client: DeletionClient, turn: _GroupProgress) -> None:
    try:
        is_namespaced = (await client.mapping(target.gvk)).namespaced
    except KindUnreachableError:
        raise
    except KindNotServedError:
        return  # and so there is no object of it
    namespace = (target.namespace or ObjectKey.of(owner).namespace) if is_namespaced else ""
    named = f"{target.gvk.kind} {ObjectKey(namespace, target.name)}"
    if is_namespaced and not namespace:
        turn.problems.append(f"{target.where}: expected a namespace for {named}, since {owner['kind']} has none")
        return
    key = ObjectKey(namespace, target.name)
    live = await _get_object(client, target.gvk, key)
    decision = decide_target(live, owner, named=named)
    if live is None or decision.action is not DeletionAction.ACT:
        _add_decision(decision, turn)
        return
    try:
        held = await client.delete(target.gvk, key, uid=live["metadata"]["uid"], propagation="Foreground")
    except NotFoundError:
        return
    except ConflictError:
        turn.waiting.append(f"{named}, of which there is another one now")
        return
    if held is not None:
        _add_decision(decide_target(held, owner, named=named), turn)


async def _get_object(client: DeletionClient, gvk: GroupVersionKind, key: ObjectKey) -> Object | None:
    try:
        return await client.get(gvk, key)
    except NotFoundError:
        return None


def _add_decision(decision: DeletionDecision, turn: _GroupProgress) -> None:
    match decision.action:
        case DeletionAction.REPORT:
            turn.problems.append(decision.message)
        case DeletionAction.WAIT | DeletionAction.ACT:
            turn.waiting.append(decision.message)
        case _ if decision.message:
            turn.kept.append(decision.message)


def _get_deletion_time(owner: Object, now: datetime) -> datetime:
    """When the deletion began; a time that cannot be read counts as now, since it must not hold the object for ever."""
    try:
        return parse_time(str(owner["metadata"].get("deletionTimestamp")))
    except ValueError:
        return now


def _limit_messages(told: Sequence[str]) -> list[str]:
    shown = list(told[:_MAX_MESSAGES])
    return shown if len(told) <= _MAX_MESSAGES else [*shown, f"and {len(told) - _MAX_MESSAGES} more"]
