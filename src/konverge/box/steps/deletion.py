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

from konverge.box.expressions import Conditions, Environment
from konverge.box.expressions.schedule import parse_period
from konverge.box.file import OnDelete
from konverge.box.steps.conditional import conditions_of
from konverge.box.steps.deletion_decisions import (
    Decision,
    Next,
    decide_job,
    decide_target,
    is_of_deletion,
    lateness,
    look_again_after,
)
from konverge.box.steps.deletion_plan import JOB, CompiledGroup, PlannedGroup, PlannedJob, PlannedTarget, plan
from konverge.box.steps.errors import StepError
from konverge.box.steps.labels import RAN
from konverge.box.steps.marks import marks_of
from konverge.box.steps.ownership import is_ours
from konverge.box.steps.scope import Scope
from konverge.errors import (
    AlreadyExistsError,
    ApiError,
    ConflictError,
    KindNotServedError,
    KindUnreachableError,
    NotFoundError,
)
from konverge.kube import GroupVersionKind, Object, ObjectKey, ResourceMapping, is_deleting, parse_time

__all__ = ["Deleted", "Deletion", "DeletionClient", "remove_leftovers"]

_MOST_TOLD = 10


class DeletionClient(Protocol):
    """What a deletion needs of a cluster; `konverge.runtime.CachedClient` and `konverge.client.Client` have it."""

    async def mapping(self, gvk: GroupVersionKind) -> ResourceMapping:
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
class Deleted:
    """How far a deletion is.

    Args:
        done: All groups are through.
        waiting: What is waited for, for the Ready condition; empty when done.
        again_after: When to look again if no change makes a pass before; None when done.
        is_late: It takes longer than its timeout; ``waiting`` says so, and how to get out.
        spared: What is not the custom resource's to delete, and was left alone.
    """

    done: bool
    waiting: str = ""
    again_after: timedelta | None = None
    is_late: bool = False
    spared: tuple[str, ...] = ()


@dataclass(slots=True)
class _Turn:
    """What came of the things of a group in this pass."""

    waiting: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    spared: list[str] = field(default_factory=list)
    ran: list[PlannedJob] = field(default_factory=list)

    @property
    def is_over(self) -> bool:
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
        self._conditions: Conditions = conditions_of(declared, where)
        self._timeout = parse_period(declared.timeout)
        self._groups = tuple(
            CompiledGroup(group, f"{where}.groups[{i}]", group.name or f"groups[{i}]", box_name)
            for i, group in enumerate(declared.groups)
        )

    @property
    def kinds(self) -> frozenset[GroupVersionKind]:
        """The kinds that it creates or deletes."""
        return frozenset[GroupVersionKind]().union(*(group.kinds for group in self._groups))

    async def step(self, scope: Scope, owner: Object, client: DeletionClient, now: datetime) -> Deleted:
        """Do what can be done now. It never waits, and can be called again in any state that it has left.

        Conditions and names are asked as of the moment at which the deletion began: nothing that is under way is left
        because a time of day is over. When the timeout is over, the same goes on, but says so.

        Cancelled, it leaves what the next step goes on with.

        Args:
            scope: What the custom resource itself has (`konverge.box.steps.scope_of`).
            owner: The custom resource, which is being deleted; a note of Jobs that have run is put on it in place, as
                on the one in the cluster.
            client: The cluster.
            now: The time.

        Raises:
            StepError: Something cannot go on by itself, a Job that failed for one, or the server refused something.
                Everything else of the group that could be done is done.
            konverge.box.expressions.ExpressionError: A name or a condition has no value; nothing was done.
            konverge.errors.ConflictError: The custom resource has changed, so that no note could be made on it.
            konverge.errors.ConnectionFailedError: The server cannot be reached.
        """
        if not self._groups:
            return Deleted(done=True)
        began = _began(owner, now)
        scope = Scope(scope.names, Environment(now=began))
        if not scope.holds(self._conditions):
            return Deleted(done=True)
        planned = plan(self._groups, scope, owner)
        spared: list[str] = []
        for group in planned:
            turn = await self._turn(group, owner, client)
            spared += turn.spared
            if turn.is_over:
                continue
            late = lateness(began, now, self._timeout)
            told = "; ".join(_bounded(turn.problems) + [f"waiting: {each}" for each in _bounded(turn.waiting)])
            if turn.problems:
                raise StepError(group.where, f"{told}. {late}" if late else told)
            waiting = f"{group.name}: {'; '.join(_bounded(turn.waiting))}"
            return Deleted(
                done=False,
                waiting=f"{waiting}. {late}" if late else waiting,
                again_after=look_again_after(began, now, self._timeout),
                is_late=bool(late),
                spared=tuple(_bounded(spared)),
            )
        await self._remove_jobs(planned, owner, client)
        return Deleted(done=True, spared=tuple(_bounded(spared)))

    async def _turn(self, group: PlannedGroup, owner: Object, client: DeletionClient) -> _Turn:
        turn = _Turn()
        for job in group.jobs:
            try:
                await _run(job, owner, client, turn)
            except (ApiError, KindNotServedError) as error:
                turn.problems.append(f"{job}: {error}")
        if turn.ran:
            await _note(turn.ran, owner, client)
        if not turn.is_over:
            return turn
        for target in group.targets:
            try:
                await _delete(target, owner, client, turn)
            except (ApiError, KindNotServedError) as error:
                turn.problems.append(f"{target.gvk.kind} {target.name}: {error}")
        return turn

    async def _remove_jobs(self, planned: Iterable[PlannedGroup], owner: Object, client: DeletionClient) -> None:
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
            raise StepError(self._where, "; ".join(_bounded(problems)))


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
        raise StepError(where, "; ".join(_bounded(problems)))


def _is_gone(error: Exception) -> bool:
    """Tell whether there is no such object any more, or no object of its kind at all."""
    is_kind_gone = isinstance(error, KindNotServedError) and not isinstance(error, KindUnreachableError)
    return is_kind_gone or isinstance(error, NotFoundError | ConflictError)


async def _run(job: PlannedJob, owner: Object, client: DeletionClient, turn: _Turn) -> None:
    has_run = job.entry in marks_of(owner, RAN)
    live = None if has_run else await _read(client, JOB, job.key)
    decision = decide_job(live, owner, named=str(job), entry=job.entry, has_run=has_run)
    match decision.next:
        case Next.ACT:
            with suppress(AlreadyExistsError):  # a cache that is behind: the next pass sees it
                await client.create(job.object)
            turn.waiting.append(f"{job} runs")
        case Next.NOTE:
            turn.ran.append(job)
        case _:
            _tell(decision, turn)


async def _note(ran: Sequence[PlannedJob], owner: Object, client: DeletionClient) -> None:
    """Note that the Jobs have run before anything is deleted: a Job may go with it, with its namespace for one."""
    text = json.dumps([*marks_of(owner, RAN), *(job.entry for job in ran)])
    metadata = owner["metadata"]
    # With the UID, a later object of that name is none the wiser; with the version, no newer list is replaced by an
    # older one, whose Jobs would run again.
    same = {"uid": metadata["uid"], "resourceVersion": metadata["resourceVersion"]}
    body = {"metadata": {**same, "annotations": {RAN: text}}}
    answer = await client.patch(GroupVersionKind.of(owner), ObjectKey.of(owner), body, patch_type="merge")
    metadata["annotations"] = dict(answer["metadata"].get("annotations") or {})
    metadata["resourceVersion"] = answer["metadata"]["resourceVersion"]


async def _delete(target: PlannedTarget, owner: Object, client: DeletionClient, turn: _Turn) -> None:
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
    live = await _read(client, target.gvk, key)
    decision = decide_target(live, owner, named=named)
    if live is None or decision.next is not Next.ACT:
        _tell(decision, turn)
        return
    try:
        held = await client.delete(target.gvk, key, uid=live["metadata"]["uid"], propagation="Foreground")
    except NotFoundError:
        return
    except ConflictError:
        turn.waiting.append(f"{named}, of which there is another one now")
        return
    if held is not None:
        _tell(decide_target(held, owner, named=named), turn)


async def _read(client: DeletionClient, gvk: GroupVersionKind, key: ObjectKey) -> Object | None:
    try:
        return await client.get(gvk, key)
    except NotFoundError:
        return None


def _tell(decision: Decision, turn: _Turn) -> None:
    match decision.next:
        case Next.REPORT:
            turn.problems.append(decision.told)
        case Next.WAIT | Next.ACT:
            turn.waiting.append(decision.told)
        case _ if decision.told:
            turn.spared.append(decision.told)


def _began(owner: Object, now: datetime) -> datetime:
    """When the deletion began; a time that cannot be read counts as now, since it must not hold the object for ever."""
    try:
        return parse_time(str(owner["metadata"].get("deletionTimestamp")))
    except ValueError:
        return now


def _bounded(told: Sequence[str]) -> list[str]:
    shown = list(told[:_MOST_TOLD])
    return shown if len(told) <= _MOST_TOLD else [*shown, f"and {len(told) - _MOST_TOLD} more"]
