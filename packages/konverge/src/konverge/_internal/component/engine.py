"""The engine: one reconcile of a component, in the steps of the specification ("Reconciliation Lifecycle").

    1 feature gate -> 2 prerequisites -> 3 suspension -> 4 resources in order -> 5 aggregation -> 6 condition
    -> 7 deletions

Pure functions elsewhere decide (`aggregation`, `condition_rules`, `resource_options`); this module awaits the cluster
and keeps the order. A reconcile can stop after any request: each step starts from the state of the cluster, so the next
reconcile ends in the same state (invariant 5).
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial

from konverge._internal.component.adoption import describe_obstacle, leave_if_not_ours
from konverge._internal.component.aggregation import AggregatedStatus, aggregate_suspension
from konverge._internal.component.component_spec import ComponentSpec, RegisteredResource, Unplannable
from konverge._internal.component.condition_reason import ConditionReason
from konverge._internal.component.condition_rules import build_condition, is_barrier_active, requeue_time
from konverge._internal.component.desired_object import render_desired
from konverge._internal.component.error_wrapping import join_errors, wrap_errors
from konverge._internal.component.health_evaluation import HealthEvaluation, ResourceResult
from konverge._internal.component.last_applied import extract_last_applied
from konverge._internal.component.lifecycle_calls import GUARDS, SUSPENSIONS, call_lifecycle
from konverge._internal.component.object_access import is_kind_not_served, read_object
from konverge._internal.component.object_operations import ApplyOutcome, apply_object, delete_object, release_object
from konverge._internal.component.ownership import build_field_manager
from konverge._internal.component.prerequisites import PrerequisiteStatus
from konverge._internal.component.reconcile_context import ReconcileContext
from konverge._internal.component.resource_options import OnAbsence, ResourceMode
from konverge._internal.component.value_generator import PreparedValues, prepare_values, report_values
from konverge._internal.feature import is_enabled
from konverge._internal.kube import Condition, Object
from konverge._internal.primitives.data_cells import clear_cells
from konverge._internal.primitives.resource_protocol import (
    Convergence,
    ConvergingStatus,
    GuardStatus,
    Resource,
    Suspension,
    SuspensionStatus,
)
from konverge.errors import ReconcileError, TerminalError, format_error

__all__ = ["ComponentReconcile"]


# The errors of the steps at which a resource can fail; the specification's implementation has the same texts.
_GUARD = "failed to evaluate guard for resource"
_RENDER = "failed to render resource"
_EXISTENCE = "failed to check existence of resource"
_MUTATE = "failed to mutate resource"
_COUNT = "failed to count the apply of resource"
_EXTRACT = "failed to extract data from resource"
_SUSPENSION = "failed to determine suspension status of resource"


class ComponentReconcile:
    """One reconcile of one component; `konverge.component.Component.reconcile` is the documented entry point.

    Args:
        component: The component.
        ctx: The cluster, the owner and the time.
    """

    def __init__(self, component: ComponentSpec, ctx: ReconcileContext) -> None:
        self._component = component
        self._ctx = ctx
        self._earlier = ctx.condition(component.condition_type)
        self._now = ctx.clock.now()

    async def run(self) -> Condition:
        """Run the seven steps and stage the condition.

        Raises:
            konverge.errors.ReconcileError: A step failed; the condition reports the error.
        """
        component = self._component
        if component.cells:
            clear_cells(component.cells)
        self._check_preconditions()
        # 1: the feature gate
        if not self._is_enabled():
            with self._staging_error():
                await self._delete_and_release(ResourceMode.MANAGED, ResourceMode.DELETE, why="disabled feature gate")
            return self._stage(AggregatedStatus(ConditionReason.DISABLED, "Component is disabled."))
        # 2: the prerequisites
        if component.prerequisites and is_barrier_active(self._earlier):
            waiting = await self._find_unmet_prerequisite()
            if waiting is not None:
                return self._stage(AggregatedStatus(ConditionReason.PREREQUISITE_NOT_MET, waiting))
        with self._staging_error():
            if component.is_suspended:
                # 3: suspension
                verdict = aggregate_suspension(await self._suspend_resources())
            else:
                # 4: the resources in order; 5: aggregation
                evaluation = HealthEvaluation(component, self._ctx, self._earlier, self._now)
                verdict = await evaluation.aggregate(await self._process_resources())
            # 6: the condition
            condition = self._stage(verdict)
            # 7: deletions
            await self._delete_and_release(ResourceMode.DELETE, why="resource deletion flag")
        self._ctx.request_requeue(requeue_time(condition, component.grace_period, self._now))
        return condition

    @contextmanager
    def _staging_error(self) -> Iterator[None]:
        """Stage the condition with reason ``Error`` if the block fails."""
        try:
            yield
        except ReconcileError as error:
            self._stage(AggregatedStatus(ConditionReason.ERROR, str(error)))
            raise

    def _stage(self, verdict: AggregatedStatus) -> Condition:
        # The comparison is with the owner's condition *now*: an error that overrides a condition that this reconcile
        # staged earlier changes the status only if it differs from that condition.
        condition = build_condition(
            self._component.condition_type,
            verdict,
            self._ctx.condition(self._component.condition_type),
            generation=self._ctx.owner_generation,
            now=self._now,
        )
        return self._ctx.stage(condition)

    def _check_preconditions(self) -> None:
        """Refuse a reconcile that cannot take any step.

        Raises:
            konverge.errors.ReconcileError: A precondition is not met; the condition reports it.
        """
        component = self._component
        error: ReconcileError | None = None
        if component.construction_errors:
            error = ReconcileError("; ".join(component.construction_errors))
        elif not self._ctx.owner_uid:
            error = ReconcileError(
                f"{self._ctx.owner_gvk.kind} {self._ctx.owner_key}: metadata.uid is empty, which owner references "
                "require: expected the owner as the server returned it. Read it again before the reconcile"
            )
        else:
            written = self._select_resources(ResourceMode.MANAGED, ResourceMode.DELETE, ResourceMode.ORPHAN)
            objects = {entry.identity: entry.treatment.mode is ResourceMode.MANAGED for entry in written}
            if other := self._ctx.register(component.name, component.condition_type, objects):
                error = TerminalError(f'component "{component.name}": {other}')
            elif component.has_deletion_waves and (missing := self._ctx.describe_missing_finalizer()):
                error = TerminalError(f'component "{component.name}": {missing}')
        if error is not None:
            self._stage(AggregatedStatus(ConditionReason.ERROR, str(error)))
            raise error

    def _select_resources(self, *modes: ResourceMode) -> Iterable[RegisteredResource]:
        return (entry for entry in self._component.entries if entry.treatment.mode in modes)

    # Step 1

    def _is_enabled(self) -> bool:
        """Evaluate the feature gate.

        Raises:
            konverge.errors.ReconcileError: The gate failed; the condition reports the error.
        """
        component = self._component
        try:
            return component.gate is None or self._ctx.call(is_enabled, component.gate)
        except Exception as error:
            problem = format_error(error)
            self._stage(AggregatedStatus(ConditionReason.FEATURE_GATE_ERROR, problem))
            raise ReconcileError(
                f"failed to evaluate the feature gate of component {component.name}: {problem}"
            ) from error

    # Step 2

    async def _find_unmet_prerequisite(self) -> str | None:
        for prerequisite in self._component.prerequisites:
            try:
                checked = self._ctx.call(prerequisite.check, self._ctx)
                result = await checked if inspect.isawaitable(checked) else checked
                if type(getattr(result, "status", None)) is not PrerequisiteStatus:
                    raise ReconcileError(f"prerequisite returned unrecognized status {result!r}")
                if not isinstance(result.reason, str):
                    raise ReconcileError(f"expected a reason as text, found {type(result.reason).__name__}")
            except Exception as error:
                problem = format_error(error)
                self._stage(AggregatedStatus(ConditionReason.PREREQUISITE_NOT_MET, problem))
                raise ReconcileError(
                    f"failed to check a prerequisite of component {self._component.name}: {problem}"
                ) from error
            if result.status is PrerequisiteStatus.NOT_MET:
                return result.reason
        return None

    # Step 3

    async def _suspend_resources(self) -> list[Suspension]:
        """Suspend every resource that can be suspended; a failure does not stop the others."""
        results: list[Suspension] = []
        errors: list[ReconcileError] = []
        for entry in self._select_resources(ResourceMode.MANAGED):
            if not entry.resource.is_suspendable:
                continue
            try:
                results.append(await self._suspend_resource(entry))
            except ReconcileError as error:  # the other resources are still suspended
                errors.append(error)
                continue
            if self._ctx.observer is not None:
                self._ctx.observer.on_suspended(entry.identity, results[-1])
        if errors:
            raise join_errors(errors)
        return results

    async def _suspend_resource(self, entry: RegisteredResource) -> Suspension:
        resource = entry.resource
        try:
            live = await read_object(self._ctx, resource, failed=_EXISTENCE)
        except ReconcileError as error:
            if not is_kind_not_served(error.__cause__):
                raise
            return _build_suspension(f"Resource {entry.identity} does not exist: {error.__cause__}")
        if live is None and resource.deletes_on_suspend:
            return _build_suspension(f"Resource {entry.identity} already deleted.")
        live, obstacle = await describe_obstacle(self._ctx, self._component, entry, live)
        if obstacle:
            return _build_suspension(f"Resource {entry.identity} is left alone: {obstacle}")
        if resource.deletes_on_suspend and live is not None:
            # An apply would adopt an object of another owner, only to delete it.
            reason = await leave_if_not_ours(self._ctx, self._component, entry, live)
            if reason:
                return _build_suspension(reason)
        render = partial(resource.render, suspended=True)
        if unknown := _describe_unplannable(entry) or _describe_empty_cells(resource):
            if live is None:
                return _build_suspension(f"Resource {entry.identity} was never made: {unknown}")
            manager = build_field_manager(self._ctx.owner, self._component.name)
            applied = call_lifecycle(self._ctx, _MUTATE, entry, extract_last_applied, live, manager)
            if applied is not None:
                render = partial(resource.suspend, applied)
            elif entry.unplannable is not None:
                return _build_suspension(f"Resource {entry.identity} is left alone: {unknown}")
        written = await self._apply_resource(entry, live, render)
        if written.live is None:
            return Suspension(SuspensionStatus.PENDING_SUSPENSION, written.waiting_reason)
        self._ctx.record_live(self._component.name, entry.identity, written.live)
        call_lifecycle(self._ctx, _EXTRACT, entry, resource.extract, written.live)
        suspension = call_lifecycle(
            self._ctx, _SUSPENSION, entry, resource.suspension_status, written.live, expected=SUSPENSIONS
        )
        if suspension.status is SuspensionStatus.SUSPENDED and resource.deletes_on_suspend:
            await delete_object(self._ctx, self._component, entry, message="deleted on suspension")
        return suspension

    # Step 4

    async def _process_resources(self) -> list[ResourceResult]:
        """Process the resources in registration order, up to one that halts the component."""
        processed: list[ResourceResult] = []
        for entry in self._select_resources(ResourceMode.MANAGED, ResourceMode.READ_ONLY):
            done = await self._process_resource(entry)
            halts = done is not None and done.live is None
            if self._ctx.observer is not None and (halts or not entry.is_managed_later):
                live, halt = (None, None) if done is None else (done.live, done.halt)
                self._ctx.observer.on_processed(entry.identity, live, halt)
            if done is None:
                continue
            processed.append(done)
            if done.live is None:
                break
            self._ctx.record_live(self._component.name, entry.identity, done.live)
            call_lifecycle(self._ctx, _EXTRACT, entry, entry.resource.extract, done.live)
        return processed

    async def _process_resource(self, entry: RegisteredResource) -> ResourceResult | None:
        """Apply or read one resource unless it is blocked; None for a read-only object that may be absent."""
        resource = entry.resource
        if entry.unplannable is not None:
            return self._halt_unplannable(entry, entry.unplannable)
        if empty := _describe_empty_cells(resource):
            return _build_blocked_result(entry, empty)
        guard = call_lifecycle(self._ctx, _GUARD, entry, resource.check_guard, expected=GUARDS)
        if guard.status is GuardStatus.BLOCKED:
            return _build_blocked_result(entry, guard.reason or f"{entry.identity} is blocked")
        if entry.treatment.mode is ResourceMode.MANAGED:
            live = await read_object(self._ctx, resource, failed=_EXISTENCE)
            live, obstacle = await describe_obstacle(self._ctx, self._component, entry, live)
            if obstacle:
                return _build_blocked_result(entry, obstacle)
            render: Callable[[], Object] = resource.render
            generation = resource.generation
            prepared: PreparedValues | None = None
            if generation is not None:
                prepared = await prepare_values(self._ctx, self._component, entry, generation, live)
                if prepared.render is None:
                    return _build_blocked_result(entry, prepared.waiting)
                live, render = prepared.live, prepared.render
            written = await self._apply_resource(entry, live, render)
            if written.live is None:
                return ResourceResult(entry, None, halt=Convergence(ConvergingStatus.UPDATING, written.waiting_reason))
            if generation is not None and prepared is not None:
                await report_values(self._ctx, self._component, entry, generation, prepared, written.live)
            return ResourceResult(entry, written.live, written.operation)
        live = await read_object(self._ctx, resource)
        if live is not None:
            return ResourceResult(entry, live)
        match entry.treatment.on_absence:
            case OnAbsence.BLOCK:
                return _build_blocked_result(entry, f"waiting for {entry.identity}")
            case OnAbsence.IGNORE:
                return None
            case OnAbsence.FAIL:
                raise ReconcileError(f"failed to retrieve object for resource {entry.identity}: it does not exist")

    def _halt_unplannable(self, entry: RegisteredResource, unplannable: Unplannable) -> ResourceResult:
        """Block the component with the reason, or fail with it.

        Raises:
            konverge.errors.ReconcileError: The reason is a failure.
        """
        if unplannable.is_failure:
            with wrap_errors(_RENDER, entry.identity):
                raise ReconcileError(unplannable.reason)
        key = entry.resource.key
        reason = self._ctx.secret_values.hide(unplannable.reason, public=(key.name, key.namespace))
        return _build_blocked_result(entry, reason or f"{entry.identity} is blocked")

    async def _apply_resource(
        self, entry: RegisteredResource, live: Object | None, render: Callable[[], Object]
    ) -> ApplyOutcome:
        """Render and apply one managed resource, and count the result."""
        resource, counted = entry.resource, self._ctx.apply_metrics
        try:
            desired = call_lifecycle(self._ctx, _MUTATE, entry, partial(render_desired, render))
            written = await apply_object(self._ctx, self._component, entry, desired, live)
        except ReconcileError:
            if counted is not None:
                with wrap_errors(_COUNT, entry.identity):
                    counted.record_failure(**self._build_metric_labels(resource))
            raise
        if counted is not None:
            with wrap_errors(_COUNT, entry.identity):
                counted.record_apply(**self._build_metric_labels(resource), operation=written.operation.value.lower())
        return written

    def _build_metric_labels(self, resource: Resource) -> dict[str, str]:
        return {
            "owner_kind": self._ctx.owner_gvk.kind,
            "component": self._component.name,
            "resource": resource.metrics_identifier,
            "kind": resource.gvk.kind,
        }

    # Steps 1 and 7

    async def _delete_and_release(self, *modes: ResourceMode, why: str) -> None:
        """Delete the objects in these modes and release those in mode ORPHAN; a failure does not stop the others."""
        errors: list[ReconcileError] = []
        for entry in self._select_resources(*modes):
            try:
                await delete_object(self._ctx, self._component, entry, message=f"deleted due to {why}")
            except ReconcileError as error:
                errors.append(error)
        for entry in self._select_resources(ResourceMode.ORPHAN):
            try:
                await release_object(self._ctx, entry.resource)
            except ReconcileError as error:
                errors.append(error)
        if errors:
            raise join_errors(errors)


def _build_blocked_result(entry: RegisteredResource, reason: str) -> ResourceResult:
    return ResourceResult(entry, None, halt=Convergence(ConvergingStatus.BLOCKED, reason))


def _build_suspension(reason: str) -> Suspension:
    return Suspension(SuspensionStatus.SUSPENDED, reason)


def _describe_unplannable(entry: RegisteredResource) -> str:
    """Return the reason why the desired object is not known; empty if it is."""
    if entry.unplannable is None:
        return ""
    return entry.unplannable.reason or "its desired object is not known"


def _describe_empty_cells(resource: Resource) -> str:
    """Return the data cells that a resource waits for, as a reason; empty if all of them are filled."""
    names = ", ".join(f'"{cell.name}"' for cell in resource.requires if not cell.is_set)
    return names and f"waiting for data {names}"
