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
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from konverge.component import writing
from konverge.component.aggregation import Verdict, converge, grade, suspend
from konverge.component.condition import is_barrier_active, staged, wake_up, with_grace
from konverge.component.failure import failing, joined
from konverge.component.options import Mode, OnAbsence
from konverge.component.prerequisites import PrerequisiteStatus
from konverge.component.status import Status
from konverge.errors import ReconcileError
from konverge.feature import is_enabled
from konverge.kube import Condition, Object
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
)

if TYPE_CHECKING:
    from konverge.component.component import Component, Entry
    from konverge.component.context import ReconcileContext

__all__ = ["reconcile"]

_log = logging.getLogger("konverge.component")


async def reconcile(component: Component, ctx: ReconcileContext) -> Condition:
    """Run one pass; `Component.reconcile` is the documented way in."""
    return await _Pass(component, ctx).run()


@dataclass(frozen=True, slots=True)
class _Processed:
    """What step 4 leaves of a resource: the object that lives in the cluster, or the reason why it is blocked."""

    entry: Entry
    live: Object | None
    operation: Operation
    blocked_reason: str = ""


class _Pass:
    def __init__(self, component: Component, ctx: ReconcileContext) -> None:
        self._component = component
        self._ctx = ctx
        self._earlier = ctx.condition(component.condition_type)
        self._now = ctx.clock.now()

    async def run(self) -> Condition:
        component = self._component
        try:
            enabled = is_enabled(component.gate)
        except Exception as error:
            self._stage(Verdict(Status.FEATURE_GATE_ERROR, str(error)))
            raise ReconcileError(
                f"failed to evaluate the feature gate of component {component.name}: {error}"
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
                asked = prerequisite.check(self._ctx)
                result = await asked if inspect.isawaitable(asked) else asked
                if getattr(result, "status", None) not in tuple(PrerequisiteStatus):
                    raise ReconcileError(f"prerequisite returned unrecognized status {result!r}")
            except Exception as error:
                self._stage(Verdict(Status.PREREQUISITE_NOT_MET, str(error)))
                raise ReconcileError(
                    f"failed to check a prerequisite of component {self._component.name}: {error}"
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
        if errors:
            raise joined(errors)
        return self._stage(suspend(results))

    async def _suspend_one(self, entry: Entry) -> Suspension:
        resource = entry.resource
        if resource.deletes_on_suspend and await writing.read(self._ctx, resource) is None:
            return Suspension(SuspensionStatus.SUSPENDED, f"Resource {entry.identity} already deleted.")
        live, _ = await writing.apply(self._ctx, self._component.name, resource, suspended=True)
        with failing("failed to extract data from resource", entry.identity):
            resource.extract(live)
        with failing("failed to determine suspension status of resource", entry.identity):
            suspension = resource.suspension_status(live)
            _expect(resource, suspension, Suspension, SuspensionStatus)
        if suspension.status is SuspensionStatus.SUSPENDED and resource.deletes_on_suspend:
            await writing.delete(self._ctx, resource, told="deleted on suspension")
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
        """Process the resources in registration order; a blocked one is the last."""
        processed: list[_Processed] = []
        for entry in self._in_mode(Mode.MANAGED, Mode.READ_ONLY):
            resource = entry.resource
            with failing("failed to evaluate guard for resource", entry.identity):
                guard = resource.check_guard()
                _expect(resource, guard, GuardResult, GuardStatus)
            if guard.status is GuardStatus.BLOCKED:
                reason = guard.reason or f"{entry.identity} is blocked"
                processed.append(_Processed(entry, None, Operation.NONE, reason))
                break
            live: Object | None
            if entry.treatment.mode is Mode.READ_ONLY:
                live, operation = await writing.read(self._ctx, resource), Operation.NONE
                if live is None:
                    match entry.treatment.on_absence:
                        case OnAbsence.BLOCK:
                            processed.append(_Processed(entry, None, operation, f"waiting for {entry.identity}"))
                            break
                        case OnAbsence.IGNORE:
                            continue
                        case OnAbsence.FAIL:
                            raise ReconcileError(
                                f"failed to retrieve object for resource {entry.identity}: it does not exist"
                            )
            else:
                live, operation = await writing.apply(self._ctx, self._component.name, resource)
            with failing("failed to extract data from resource", entry.identity):
                resource.extract(live)
            processed.append(_Processed(entry, live, operation))
        return processed

    def _results(self, processed: Iterable[_Processed]) -> list[Convergence]:
        results = []
        for done in processed:
            if done.live is None:
                results.append(Convergence(ConvergingStatus.BLOCKED, done.blocked_reason))
                continue
            # Asked for auxiliary resources too, so that a handler that is broken shows wherever it is used.
            with failing("failed to determine converging status of resource", done.entry.identity):
                result = done.entry.resource.converging_status(done.live, done.operation)
                if result is not None:
                    _expect(done.entry.resource, result, Convergence, ConvergingStatus)
            if result is not None and not done.entry.treatment.is_auxiliary:
                results.append(result)
        return results

    def _graded(self, processed: Iterable[_Processed]) -> Verdict | None:
        grades = []
        for done in processed:
            if done.live is None:
                grades.append(Grace(GraceStatus.DOWN, done.blocked_reason))
                continue
            if done.entry.treatment.is_auxiliary:
                continue
            with failing("failed to determine grace status of resource", done.entry.identity):
                found = done.entry.resource.grace_status(done.live)
                if found is not None:
                    _expect(done.entry.resource, found, Grace, GraceStatus)
            if found is not None:
                grades.append(found)
                self._warn_of_inconsistency(done, found)
        return grade(grades)

    def _warn_of_inconsistency(self, done: _Processed, found: Grace) -> None:
        if found.status is not GraceStatus.HEALTHY or not done.entry.treatment.warns_of_grace_inconsistency:
            return
        assert done.live is not None
        converging = done.entry.resource.converging_status(done.live, done.operation)
        if converging is not None and not converging.status.is_ready:
            _log.info(
                "grace inconsistency: the grace handler is content with a resource that has not converged",
                extra={
                    "component": self._component.name,
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
                await writing.delete(self._ctx, entry.resource, told=f"deleted due to {why}")
            except ReconcileError as error:
                errors.append(error)
        for entry in self._in_mode(Mode.ORPHAN):
            try:
                await writing.release(self._ctx, entry.resource)
            except ReconcileError as error:
                errors.append(error)
        if errors:
            raise joined(errors)


def _expect(resource: Resource, answer: object, kind: type, statuses: type[StrEnum]) -> None:
    """Refuse an answer that is no status: it must never count as ready or suspended."""
    status = getattr(answer, "status", None)
    if not isinstance(answer, kind) or (type(status) is not statuses and status not in tuple(statuses)):
        # What is no status may be a part of the object.
        found = f"a {type(answer).__name__}" if resource.gvk.is_secret else repr(answer)
        raise ReconcileError(f"expected a {kind.__name__} with a {statuses.__name__}, found {found}")
