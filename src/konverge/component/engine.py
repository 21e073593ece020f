"""The engine: one pass of a component, step by step as the specification orders them ("Reconciliation Lifecycle").

    1 feature gate -> 2 prerequisites -> 3 suspension -> 4 resources in order -> 5 aggregation -> 6 condition
    -> 7 deletions

What is decided is decided by pure functions elsewhere (`aggregation`, `condition`, `options`); this module awaits the
cluster and keeps the order. It may stop after any request: each step starts from what the cluster holds, so the next
pass ends in the same state (invariant 5).
"""

from __future__ import annotations

import inspect
import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from typing import TypeVar

from konverge.component import writing
from konverge.component.aggregation import Verdict, converge, grade, suspend
from konverge.component.composition import Composition, Entry
from konverge.component.condition import is_barrier_active, staged, wake_up, with_grace
from konverge.component.context import ReconcileContext
from konverge.component.failure import failing, joined
from konverge.component.last_applied import last_applied
from konverge.component.options import Mode, OnAbsence
from konverge.component.ownership import field_manager
from konverge.component.prerequisites import PrerequisiteStatus
from konverge.component.rendering import rendered
from konverge.component.status import Status
from konverge.errors import ReconcileError, TerminalError, describe
from konverge.feature import is_enabled
from konverge.kube import Condition, Object
from konverge.primitives.data import cleared
from konverge.primitives.lifecycle import (
    Convergence,
    ConvergingStatus,
    Grace,
    GraceStatus,
    GuardResult,
    GuardStatus,
    Operation,
    Resource,
    Suspension,
    SuspensionStatus,
    handles_secret,
)

__all__ = ["reconcile"]

T = TypeVar("T")

_log = logging.getLogger("konverge.component")


# The steps at which a resource can fail, in the words of the specification's implementation.
_GUARD = "failed to evaluate guard for resource"
_EXISTENCE = "failed to check existence of resource"
_MUTATE = "failed to mutate resource"
_COUNT = "failed to count the apply of resource"
_EXTRACT = "failed to extract data from resource"
_CONVERGING = "failed to determine converging status of resource"
_GRACE = "failed to determine grace status of resource"
_SUSPENSION = "failed to determine suspension status of resource"


async def reconcile(component: Composition, ctx: ReconcileContext) -> Condition:
    """Run one pass; `Component.reconcile` is the documented way in."""
    return await _Pass(component, ctx).run()


@dataclass(frozen=True, slots=True)
class _Processed:
    """What step 4 leaves of a resource: the object that lives in the cluster, or why it halts the component."""

    entry: Entry
    live: Object | None
    operation: Operation = Operation.NONE
    halt: Convergence | None = None


class _Pass:
    def __init__(self, component: Composition, ctx: ReconcileContext) -> None:
        self._component = component
        self._ctx = ctx
        self._earlier = ctx.condition(component.condition_type)
        self._now = ctx.clock.now()

    async def run(self) -> Condition:
        component = self._component
        if component.cells:
            cleared(component.cells)
        self._check()
        try:
            enabled = component.gate is None or self._ctx.call(is_enabled, component.gate)
        except Exception as error:
            told = describe(error)
            self._stage(Verdict(Status.FEATURE_GATE_ERROR, told))
            raise ReconcileError(
                f"failed to evaluate the feature gate of component {component.name}: {told}"
            ) from error
        if not enabled:
            return await self._disable()
        if component.prerequisites and is_barrier_active(self._earlier):
            waiting = await self._unmet_prerequisite()
            if waiting is not None:
                return self._stage(Verdict(Status.PREREQUISITE_NOT_MET, waiting))
        try:
            condition = await (self._suspend() if component.is_suspended else self._converge())
            await self._remove_marked()
        except ReconcileError as error:
            self._stage(Verdict(Status.ERROR, str(error)))
            raise
        self._ctx.request_wake(wake_up(condition, component.grace_period, self._now))
        return condition

    def _stage(self, verdict: Verdict) -> Condition:
        # Compared with what stands on the owner *now*: an error that overrides a condition staged earlier in this pass
        # changes the status only if it differs from that one.
        condition = staged(
            self._component.condition_type,
            verdict,
            self._ctx.condition(self._component.condition_type),
            generation=self._ctx.owner_generation,
            now=self._now,
        )
        return self._ctx.stage(condition)

    def _check(self) -> None:
        """Refuse a pass in which no step can be taken.

        Raises:
            konverge.errors.ReconcileError: It is one; the condition says why.
        """
        component = self._component
        error: ReconcileError | None = None
        if component.failures:
            error = ReconcileError("; ".join(component.failures))
        elif not self._ctx.owner_uid:
            error = ReconcileError(
                f"{self._ctx.owner_gvk.kind} {self._ctx.owner_key} has no metadata.uid, by which its objects know it: "
                "expected the owner as it was read from the server. Read it again before the pass"
            )
        else:
            written = self._in_mode(Mode.MANAGED, Mode.DELETE, Mode.ORPHAN)
            objects = {entry.identity: entry.treatment.mode is Mode.MANAGED for entry in written}
            if other := self._ctx.register(component.name, component.condition_type, objects):
                error = TerminalError(f'component "{component.name}": {other}')
        if error is not None:
            self._stage(Verdict(Status.ERROR, str(error)))
            raise error

    def _in_mode(self, *modes: Mode) -> Iterable[Entry]:
        return (entry for entry in self._component.entries if entry.treatment.mode in modes)

    # Step 1

    async def _disable(self) -> Condition:
        try:
            await self._finish(Mode.MANAGED, Mode.DELETE, why="disabled feature gate")
        except ReconcileError as error:
            self._stage(Verdict(Status.ERROR, str(error)))
            raise
        return self._stage(Verdict(Status.DISABLED, "Component is disabled."))

    # Step 2

    async def _unmet_prerequisite(self) -> str | None:
        for prerequisite in self._component.prerequisites:
            try:
                asked = self._ctx.call(prerequisite.check, self._ctx)
                result = await asked if inspect.isawaitable(asked) else asked
                if type(getattr(result, "status", None)) is not PrerequisiteStatus:
                    raise ReconcileError(f"prerequisite returned unrecognized status {result!r}")
                if not isinstance(result.reason, str):
                    raise ReconcileError(f"expected a reason as text, found {type(result.reason).__name__}")
            except Exception as error:
                told = describe(error)
                self._stage(Verdict(Status.PREREQUISITE_NOT_MET, told))
                raise ReconcileError(
                    f"failed to check a prerequisite of component {self._component.name}: {told}"
                ) from error
            if result.status is PrerequisiteStatus.NOT_MET:
                return result.reason
        return None

    # Step 3

    async def _suspend(self) -> Condition:
        results: list[Suspension] = []
        errors: list[ReconcileError] = []
        for entry in self._in_mode(Mode.MANAGED):
            if not entry.resource.is_suspendable:
                continue
            try:
                results.append(await self._suspend_one(entry))
            except ReconcileError as error:  # the others are still suspended
                errors.append(error)
                continue
            if self._ctx.observer is not None:
                self._ctx.observer.suspended(entry.identity, results[-1])
        if errors:
            raise joined(errors)
        return self._stage(suspend(results))

    async def _suspend_one(self, entry: Entry) -> Suspension:
        resource = entry.resource
        try:
            live = await writing.read(self._ctx, resource, failed=_EXISTENCE)
        except ReconcileError as error:
            if not writing.is_not_served(error.__cause__):
                raise
            return _suspended(f"Resource {entry.identity} does not exist: {error.__cause__}")
        if live is None and resource.deletes_on_suspend:
            return _suspended(f"Resource {entry.identity} already deleted.")
        live, obstacle = await writing.describe_obstacle(self._ctx, self._component, entry, live)
        if obstacle:
            return _suspended(f"Resource {entry.identity} is left alone: {obstacle}")
        if resource.deletes_on_suspend and live is not None:
            # Applied first, what is not ours would be adopted, only to be deleted.
            told = await writing.leave_if_not_ours(self._ctx, self._component, entry, live)
            if told:
                return _suspended(told)
        render = partial(resource.desired, suspended=True)
        if empty := _empty_cells(resource):
            if live is None:
                return _suspended(f"Resource {entry.identity} was never made: {empty}")
            manager = field_manager(self._ctx.owner, self._component.name)
            applied = self._ask(_MUTATE, entry, last_applied, live, manager)
            if applied is not None:
                render = partial(resource.suspend, applied)
        written = await self._apply(entry, live, render)
        if written.live is None:
            return Suspension(SuspensionStatus.PENDING_SUSPENSION, written.waiting)
        self._ask(_EXTRACT, entry, resource.extract, written.live)
        suspension = self._ask(_SUSPENSION, entry, resource.suspension_status, written.live, expected=_SUSPENSIONS)
        if suspension.status is SuspensionStatus.SUSPENDED and resource.deletes_on_suspend:
            await writing.delete(self._ctx, self._component, entry, told="deleted on suspension")
        return suspension

    # Steps 4 to 6

    async def _converge(self) -> Condition:
        processed = await self._processed()
        verdict = with_grace(
            converge(self._results(processed)),
            self._earlier,
            period=self._component.grace_period,
            now=self._now,
            graded=lambda: self._graded(processed),
        )
        return self._stage(verdict)

    async def _processed(self) -> list[_Processed]:
        """Process the resources in registration order; one that halts the component is the last."""
        processed: list[_Processed] = []
        for entry in self._in_mode(Mode.MANAGED, Mode.READ_ONLY):
            done = await self._process(entry)
            if self._ctx.observer is not None:
                live, halt = (None, None) if done is None else (done.live, done.halt)
                self._ctx.observer.processed(entry.identity, live, halt)
            if done is None:
                continue
            processed.append(done)
            if done.live is None:
                break
            self._ask(_EXTRACT, entry, entry.resource.extract, done.live)
        return processed

    async def _process(self, entry: Entry) -> _Processed | None:
        """Apply or read one resource, if nothing blocks it; None for one that is absent and may be."""
        resource = entry.resource
        if empty := _empty_cells(resource):
            return _blocked(entry, empty)
        guard = self._ask(_GUARD, entry, resource.check_guard, expected=_GUARDS)
        if guard.status is GuardStatus.BLOCKED:
            return _blocked(entry, guard.reason or f"{entry.identity} is blocked")
        if entry.treatment.mode is Mode.MANAGED:
            live = await writing.read(self._ctx, resource, failed=_EXISTENCE)
            live, obstacle = await writing.describe_obstacle(self._ctx, self._component, entry, live)
            if obstacle:
                return _blocked(entry, obstacle)
            written = await self._apply(entry, live, resource.desired)
            if written.live is None:
                return _Processed(entry, None, halt=Convergence(ConvergingStatus.UPDATING, written.waiting))
            return _Processed(entry, written.live, written.operation)
        live = await writing.read(self._ctx, resource)
        if live is not None:
            return _Processed(entry, live)
        match entry.treatment.on_absence:
            case OnAbsence.BLOCK:
                return _blocked(entry, f"waiting for {entry.identity}")
            case OnAbsence.IGNORE:
                return None
            case OnAbsence.FAIL:
                raise ReconcileError(f"failed to retrieve object for resource {entry.identity}: it does not exist")

    async def _apply(self, entry: Entry, live: Object | None, render: Callable[[], Object]) -> writing.Written:
        """Render and apply one managed resource, and count what came of it."""
        resource, counted = entry.resource, self._ctx.applies
        try:
            desired = self._ask(_MUTATE, entry, partial(rendered, render))
            written = await writing.apply(self._ctx, self._component, entry, desired, live)
        except ReconcileError:
            if counted is not None:
                with failing(_COUNT, entry.identity):
                    counted.failed(**self._counted_as(resource))
            raise
        if counted is not None:
            with failing(_COUNT, entry.identity):
                counted.applied(**self._counted_as(resource), operation=written.operation.value.lower())
        return written

    def _counted_as(self, resource: Resource) -> dict[str, str]:
        return {
            "owner_kind": self._ctx.owner_gvk.kind,
            "component": self._component.name,
            "resource": resource.metrics_identifier,
            "kind": resource.gvk.kind,
        }

    def _ask(
        self, failed: str, entry: Entry, function: Callable[..., T], *args: object, expected: _Expected | None = None
    ) -> T:
        """Call what may be the author's code, and refuse an answer of the wrong type."""
        with failing(failed, entry.identity):
            answer = self._ctx.call(function, *args)
            if expected is not None:
                expected.check(answer, entry.resource)
                answer = self._ctx.without_secret_values(answer, entry.resource.key)
            return answer

    def _results(self, processed: Iterable[_Processed]) -> list[Convergence]:
        results = []
        for done in processed:
            if done.halt is not None:
                results.append(done.halt)
                continue
            # Asked for auxiliary resources too, so that a handler that is broken shows wherever it is used.
            result = self._converging_status(done)
            if result is not None and not done.entry.treatment.is_auxiliary:
                results.append(result)
        return results

    def _converging_status(self, done: _Processed) -> Convergence | None:
        asked = done.entry.resource.converging_status
        return self._ask(_CONVERGING, done.entry, asked, done.live, done.operation, expected=_CONVERGENCES)

    def _graded(self, processed: Iterable[_Processed]) -> Verdict | None:
        grades = []
        for done in processed:
            if done.halt is not None:
                grades.append(Grace(GraceStatus.DOWN, done.halt.reason))
                continue
            if done.entry.treatment.is_auxiliary:
                continue
            found = self._ask(_GRACE, done.entry, done.entry.resource.grace_status, done.live, expected=_GRADES)
            if found is not None:
                grades.append(found)
                self._warn_of_inconsistency(done, found)
        return grade(grades)

    def _warn_of_inconsistency(self, done: _Processed, found: Grace) -> None:
        if found.status is not GraceStatus.HEALTHY or not done.entry.treatment.warns_of_grace_inconsistency:
            return
        converging = self._converging_status(done)
        if converging is not None and not converging.status.is_ready:
            _log.info(
                "grace inconsistency: the grace handler is content with a resource that has not converged",
                extra=self._component.log_fields
                | {
                    "resource": done.entry.identity,
                    "converging_status": converging.status.value,
                    "grace_status": found.status.value,
                },
            )

    # Step 7

    async def _remove_marked(self) -> None:
        await self._finish(Mode.DELETE, why="resource deletion flag")

    async def _finish(self, *modes: Mode, why: str) -> None:
        """Delete what is in these modes and release what is to be orphaned; every one is tried."""
        errors: list[ReconcileError] = []
        for entry in self._in_mode(*modes):
            try:
                await writing.delete(self._ctx, self._component, entry, told=f"deleted due to {why}")
            except ReconcileError as error:
                errors.append(error)
        for entry in self._in_mode(Mode.ORPHAN):
            try:
                await writing.release(self._ctx, entry.resource)
            except ReconcileError as error:
                errors.append(error)
        if errors:
            raise joined(errors)


def _blocked(entry: Entry, reason: str) -> _Processed:
    return _Processed(entry, None, halt=Convergence(ConvergingStatus.BLOCKED, reason))


def _suspended(reason: str) -> Suspension:
    return Suspension(SuspensionStatus.SUSPENDED, reason)


def _empty_cells(resource: Resource) -> str:
    """What a resource waits for when a data cell that it requires is empty, else nothing."""
    names = ", ".join(f'"{cell.name}"' for cell in resource.requires if not cell.is_set)
    return names and f"waiting for data {names}"


@dataclass(frozen=True, slots=True)
class _Expected:
    """What a lifecycle function is to answer. What is no status must never count as ready or suspended."""

    kind: type
    statuses: type[StrEnum]
    may_be_none: bool = False

    def check(self, answer: object, resource: Resource) -> None:
        if answer is None and self.may_be_none:
            return
        # By type: a text that is spelled like a status equals it, and is not it where the engine asks for "Blocked".
        if not isinstance(answer, self.kind) or type(getattr(answer, "status", None)) is not self.statuses:
            # What is no status may be a part of the object.
            found = f"a {type(answer).__name__}" if handles_secret(resource) else repr(answer)
            raise ReconcileError(f"expected a {self.kind.__name__} with a {self.statuses.__name__}, found {found}")
        # An exception, for one: ``blocked(error)`` reads well and is no text.
        reason: object = getattr(answer, "reason", None)
        if not isinstance(reason, str):
            raise ReconcileError(
                f"expected a {self.kind.__name__} with a reason as text, found {type(reason).__name__}"
            )


_GUARDS = _Expected(GuardResult, GuardStatus)
_CONVERGENCES = _Expected(Convergence, ConvergingStatus, may_be_none=True)
_GRADES = _Expected(Grace, GraceStatus, may_be_none=True)
_SUSPENSIONS = _Expected(Suspension, SuspensionStatus)
