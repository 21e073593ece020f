"""Rehearsing: passes of components in which the server is asked everything and told nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import suppress
from datetime import datetime

from konverge.clock import Clock, SystemClock
from konverge.component import engine
from konverge.component.aggregation import Verdict, converge
from konverge.component.component import Component
from konverge.component.composition import Entry
from konverge.component.condition import wake_up
from konverge.component.context import ReconcileContext
from konverge.component.options import Mode
from konverge.component.ownership import field_manager
from konverge.component.rehearsal.client import DryRunServer, RehearsingClient
from konverge.component.rehearsal.observing import Observed, prerequisite_name
from konverge.component.rehearsal.outlook import Outlook
from konverge.component.rehearsal.values import (
    Change,
    Judgement,
    Outcome,
    PrerequisiteStory,
    Rehearsal,
    Reported,
    ResourceStory,
)
from konverge.component.time_limit import TimeLimit
from konverge.errors import ReconcileError
from konverge.kube import Condition, Object
from konverge.mutation import json_copy
from konverge.primitives.lifecycle import READY, Convergence, ConvergingStatus, Suspension

__all__ = ["Rehearsing", "rehearse"]


async def rehearse(
    component: Component, client: DryRunServer, owner: Object, *, clock: Clock | None = None, adopt: bool = True
) -> Rehearsal:
    """What a pass of the component would do now and say, and why; nothing is written.

    Args:
        component: The component.
        client: The cluster; it gets reads, and applies that are dry runs.
        owner: The custom resource as the server has it; it stays as it is.
        clock: The time; the machine's when not given.
        adopt: Whether the component takes over objects that exist already, where the resource does not say.

    Raises:
        asyncio.CancelledError: It was stopped; there is nothing to undo.
    """
    rehearsing = Rehearsing(client, owner, clock=clock, adopt=adopt)
    with suppress(ReconcileError):  # the rehearsal tells it
        await component.reconcile(rehearsing.context())
    return rehearsing.rehearsals[-1]


class Rehearsing:
    """A rehearsal of any number of components of one owner, which see what the earlier ones would have done.

    It is the `konverge.component.PassObserver` of its contexts.

    Args:
        client: The cluster; it gets reads, and applies that are dry runs.
        owner: The custom resource as the server has it; it stays as it is.
        clock: The time; the machine's when not given.
        time_limit: How long each of the author's functions may take; None is without a limit.
        adopt: Whether components take over objects that exist already, where the resource does not say.

    Attributes:
        client: What passes are to work with.
        owner: A copy of the owner, on which they stage conditions.
        rehearsals: What each pass of a component came to, in order.
    """

    def __init__(
        self,
        client: DryRunServer,
        owner: Object,
        *,
        clock: Clock | None = None,
        time_limit: TimeLimit | None = None,
        adopt: bool = True,
    ) -> None:
        self.client = RehearsingClient(client)
        self.owner: Object = json_copy(owner)
        self.rehearsals: list[Rehearsal] = []
        self._clock = clock or SystemClock()
        self._time_limit = time_limit
        self._adopt = adopt
        self._observed: Observed | None = None
        self._one_at_a_time = asyncio.Lock()

    def context(self) -> ReconcileContext:
        """The context of a pass."""
        return ReconcileContext(
            client=self.client,
            owner=self.owner,
            clock=self._clock,
            time_limit=self._time_limit,
            observer=self,
            adopt=self._adopt,
        )

    async def reconcile(self, component: Component, ctx: ReconcileContext) -> Condition:
        """Run one pass and note what it comes to.

        Raises:
            konverge.errors.ReconcileError: A step failed; the rehearsal tells it.
        """
        async with self._one_at_a_time:
            self._observed = observed = Observed(component, self.client.secret_values)
            before, woken, start = ctx.condition(component.condition_type), ctx.wake_at, len(self.client.changes)
            failure: ReconcileError | None = None
            try:
                await engine.reconcile(observed.disguised(), ctx)
            except ReconcileError as error:
                failure = error
            after = ctx.condition(component.condition_type)
            assert after is not None, "every pass stages the component's condition"
            now = ctx.clock.now()
            wakes_at = ctx.wake_at
            if wakes_at == woken:  # this one's may be hidden behind an earlier one of another component
                wakes_at = None if failure is not None else wake_up(after, component.grace_period, now)
            ended = _Ended(self.client, observed, ctx, failure, self.client.changes[start:])
            self.rehearsals.append(ended.rehearsal(before, after, wakes_at, now))
            if failure is not None:
                raise failure
            return after

    def processed(self, identity: str, live: Object | None, halt: Convergence | None) -> None:
        """Note what became of a resource."""
        assert self._observed is not None
        self._observed.processed[identity] = live, halt

    def suspended(self, identity: str, suspension: Suspension) -> None:
        """Note how far a resource is suspended."""
        assert self._observed is not None
        self._observed.suspensions[identity] = suspension

    def adopted(self, identity: str, message: str) -> None:
        """Note whose object a resource would be taken over from."""
        assert self._observed is not None
        self._observed.adoptions[identity] = message

    def left_alone(self, identity: str, message: str) -> None:
        """Note why an object is not deleted."""
        assert self._observed is not None
        self._observed.left_alone[identity] = message

    def overridden(self, identity: str, message: str) -> None:
        """Note which fields would be stored with other values."""
        assert self._observed is not None
        self._observed.overrides[identity] = message


class _Ended:
    """A pass that is over, and its notes."""

    def __init__(
        self,
        client: RehearsingClient,
        observed: Observed,
        ctx: ReconcileContext,
        failure: ReconcileError | None,
        changes: Sequence[Change],
    ) -> None:
        self._client = client
        self._observed = observed
        self._component = observed.component
        self._ctx = ctx
        self._error = "" if failure is None else str(failure)
        self._changes = tuple(changes)

    def rehearsal(
        self, before: Condition | None, after: Condition, wakes_at: datetime | None, now: datetime
    ) -> Rehearsal:
        component = self._component
        self._ask_for_grades()
        resources = tuple(self._resource(entry) for entry in component.entries)
        prerequisites = tuple(self._prerequisites(before))
        outlook = Outlook(component, before, after, self._aggregate(), resources, prerequisites, now, self._error)
        return Rehearsal(
            component=component.name,
            condition_type=component.condition_type,
            before=Reported.of(before),
            after=Reported.of(after),
            gate=self._observed.gate,
            prerequisites=prerequisites,
            is_suspended=component.is_suspended,
            resources=resources,
            changes=self._changes,
            rule=outlook.rule(),
            next=tuple(outlook.next(wakes_at)),
            grace_ends=outlook.grace_ends,
            wakes_at=wakes_at,
            error=self._error,
        )

    def _ask_for_grades(self) -> None:
        """Ask also where the grace is not over yet: what it would end in is worth to know before."""
        if not self._component.grace_period:
            return
        for identity, (live, _) in self._observed.processed.items():
            resource = self._observed.resources[identity]
            judged = resource.convergence
            if live is None or resource.grace is not None or judged is None or judged.status in READY:
                continue
            with suppress(Exception):  # an author's code; the pass that grades will say so
                self._ctx.call(resource.grace_status, live)

    def _aggregate(self) -> Verdict | None:
        if self._error or self._component.is_suspended or not self._has_begun():
            return None
        results = []
        for entry in self._component.entries:
            live, halt = self._observed.processed.get(entry.identity, (None, None))
            judged = self._observed.resources[entry.identity].convergence
            if halt is not None:
                results.append(halt)
            elif live is not None and judged is not None and not entry.treatment.is_auxiliary:
                results.append(Convergence(ConvergingStatus(judged.status), judged.reason))
        return converge(results)

    def _has_begun(self) -> bool:
        unmet = any(story.verdict != "Met" for story in self._observed.prerequisites)
        return self._observed.gate in ("none", "on") and not unmet

    def _prerequisites(self, before: Condition | None) -> Iterator[PrerequisiteStory]:
        asked = self._observed.prerequisites
        yield from asked
        for prerequisite in self._component.prerequisites[len(asked) :]:
            name = prerequisite_name(prerequisite)
            if asked or not self._has_begun() or before is None:
                yield PrerequisiteStory(name, "not asked")
            else:
                yield PrerequisiteStory(name, "passed", f"the component has begun: it was {before.reason}")

    def _resource(self, entry: Entry) -> ResourceStory:
        resource, observed = entry.resource, self._observed.resources[entry.identity]
        which = resource.gvk, resource.key
        outcome, reason = self._outcome(entry)
        _, halt = self._observed.processed.get(entry.identity, (None, None))
        convergence = observed.convergence
        if halt is not None:
            convergence = Judgement(str(halt.status), halt.reason)
        is_managed = entry.treatment.mode is Mode.MANAGED
        manager = field_manager(self._ctx.owner, self._component.name)
        return ResourceStory(
            identity=entry.identity,
            mode=entry.treatment.mode.value,
            is_auxiliary=entry.treatment.is_auxiliary,
            outcome=outcome,
            exists=self._client.found[which] is not None if which in self._client.found else None,
            reason=reason,
            missing_data=tuple(cell.name for cell in resource.requires if not cell.is_set) if halt is not None else (),
            guard=observed.guard,
            changes=tuple(change for change in self._changes if change.identity == entry.identity),
            convergence=convergence,
            grace=observed.grace,
            suspension=self._suspension(entry),
            contests=self._client.contests(*which, manager) if is_managed else (),
            adoption=self._observed.adoptions.get(entry.identity, ""),
            override=self._observed.overrides.get(entry.identity, ""),
        )

    def _suspension(self, entry: Entry) -> Judgement | None:
        decided = self._observed.suspensions.get(entry.identity)
        asked = self._observed.resources[entry.identity].suspension
        if decided is None or asked is not None:
            return asked
        return Judgement(str(decided.status), decided.reason)

    def _outcome(self, entry: Entry) -> tuple[Outcome, str]:
        identity, mode = entry.identity, entry.treatment.mode
        if f"{identity}: " in self._error:
            return "failed", self._error
        if identity in self._observed.left_alone:
            return "left alone", self._observed.left_alone[identity]
        if identity in self._observed.processed:
            live, halt = self._observed.processed[identity]
            if halt is not None:
                return "halts", halt.reason
            if live is None:
                return "ignored", ""
            return ("applied" if mode is Mode.MANAGED else "read"), ""
        if identity in self._observed.suspensions:
            return "suspended", ""
        was_asked = (entry.resource.gvk, entry.resource.key) in self._client.found
        if mode is Mode.ORPHAN:
            return ("released" if was_asked else "not reached"), ""
        if mode is Mode.DELETE or self._observed.gate == "off":
            return ("removed" if was_asked else "not reached"), ""
        is_at_rest = self._component.is_suspended and self._has_begun() and not self._error
        return ("left alone" if is_at_rest else "not reached"), ""
