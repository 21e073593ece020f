"""One reconcile of one custom resource of a box: the steps in their order, then the single write of the status."""

from __future__ import annotations

import logging
from typing import Protocol

from konverge._internal.component.remedies import Remedies
from konverge._internal.message_text import shorten
from konverge._internal.operator import Result
from konverge._internal.operator.deletion_reconciler import build_deletion_condition
from konverge.errors import KonvergeError, format_error
from konverge_box._internal.expressions import ExpressionError
from konverge_box._internal.file.model import RESERVED_STATUS
from konverge_box._internal.runtime.box_conditions import (
    MAX_MESSAGE_LENGTH,
    READY,
    build_denied_condition,
    build_dependency_condition,
    build_failed_condition,
    build_ready_condition,
)
from konverge_box._internal.runtime.pause import PAUSED, list_own_reports
from konverge_box._internal.runtime.reconcile_state import ReconcileInputs, ReconcileState
from konverge_box._internal.runtime.step_order import (
    STEP_ORDER,
    DeniedError,
    PipelineStep,
    report_kept_object,
    report_once,
)
from konverge_box._internal.steps import StepError
from konverge_box._internal.steps.deletion import remove_leftovers

__all__ = ["BoxReconciler", "StepObserver"]

_log = logging.getLogger("konverge.box")

_MAX_NOTE_LENGTH = 500
_REMEDIES = Remedies(
    second_controller="set adopt: false to wait until it is gone",
    other_namespace="Remove the namespace from the resource",
    immutable="Give the resource another name, or keep the old value",
    two_components="Declare it in one group",
)
"""The advice of the engine's errors in the words of the box file."""


class StepObserver(Protocol):
    """An observer of the steps of a reconcile. It changes nothing."""

    def on_step(self, step: str, seconds: float, state: ReconcileState) -> None:
        """Note the end of a step, also after an error.

        Args:
            step: The name of the step.
            seconds: The duration of the step.
            state: The state after the step.
        """


class BoxReconciler:
    """One reconcile of one object.

    Args:
        inputs: The inputs of the reconcile.
        observer: Receives each step that has ended; None observes nothing.

    Attributes:
        state: The state that the steps build up.
    """

    def __init__(self, inputs: ReconcileInputs, observer: StepObserver | None = None) -> None:
        self._inputs = inputs
        self._observer = observer
        inputs.ctx.remedies = _REMEDIES
        self.state = ReconcileState.start(inputs)

    async def reconcile(self) -> Result | None:
        """Run all steps and then write the status once, also after an error.

        A cancelled reconcile writes no status: the next one does.

        Raises:
            DeniedError: The object breaks rules, and the file requests a retry.
            Exception: The error of the first step that failed.
        """
        inputs, state = self._inputs, self.state
        ctx, pipeline = inputs.ctx, inputs.pipeline
        async with ctx.flushing_status(refused=self._remove_status_fields):
            if self._is_paused():
                self._request_timed_requeues()
                return Result(requeue_after=pipeline.resync)
            for step in STEP_ORDER:
                if state.failure is None or step.always:
                    await self._run_step(step)
            self._request_timed_requeues()
            self._set_ready_condition()
            if isinstance(state.failure, DeniedError) and not pipeline.retries_denied:
                return None
            if state.failure is not None:
                raise state.failure
        # Spread the reconciles of objects that were created at the same moment.
        resync = pipeline.resync * inputs.entropy.uniform(0.9, 1.1)
        after = resync if state.requeue_after is None else min(resync, state.requeue_after)
        return Result(requeue_after=after)

    async def report_waiting(self, problem: str) -> None:
        """Report that another custom resource of the box must be ready first; run no step."""
        ctx = self._inputs.ctx
        async with ctx.flushing_status():
            ctx.stage(build_dependency_condition(ctx.owner, problem))

    async def finalize(self) -> Result | None:
        """Do one step of the deletion; return None when the box has cleaned up after the object.

        Ready reports what the deletion waits for. It is only staged: the caller writes the status.

        Raises:
            Exception: A part of the deletion failed.
        """
        inputs, state = self._inputs, self.state
        ctx, pipeline = inputs.ctx, inputs.pipeline
        if self._is_paused():
            self._request_timed_requeues()
            condition = ctx.condition(PAUSED)
            waiting = f"it is paused. {condition.message if condition is not None else ''}"
            ctx.stage(build_deletion_condition(ctx, READY, waiting))
            return Result(requeue_after=pipeline.resync)
        if state.failure is not None:
            raise state.failure  # whether it is paused is unknown
        progress = await pipeline.deletion.run_step(state.scope, ctx.owner, ctx.cluster, inputs.now)
        for message in progress.kept:
            report_kept_object(ctx, message)
        for message in progress.skipped:
            _log.warning("%s %s: %s", pipeline.name, ctx.owner_key, message)
            report_once(ctx, "JobSkipped", message)
        if not progress.done:
            ctx.stage(build_deletion_condition(ctx, READY, progress.waiting_for[:MAX_MESSAGE_LENGTH]))
            return Result(requeue_after=progress.requeue_after or pipeline.resync)
        dispatched = await pipeline.providers.delete(state.scope, ctx.owner, ctx.cluster, ctx.cluster)
        if dispatched.problems:
            raise StepError(f"{pipeline.where}.providers", "; ".join(map(str, dispatched.problems)))
        if dispatched.pending_deletions:
            waiting = shorten(f"providers: {'; '.join(dispatched.pending_deletions)}", MAX_MESSAGE_LENGTH)
            ctx.stage(build_deletion_condition(ctx, READY, waiting))
            return Result(requeue_after=dispatched.requeue_after or pipeline.resync)
        leftovers = await pipeline.groups.find_leftovers(ctx.owner, ctx.cluster)
        await remove_leftovers(leftovers, ctx.owner, ctx.cluster, pipeline.where)
        return None

    def _is_paused(self) -> bool:
        """Tell whether the custom resource is paused, and report it; an invalid condition counts as the first error."""
        state, ctx = self.state, self._inputs.ctx
        try:
            condition = self._inputs.pipeline.pause.find_pause(state.scope, ctx.owner)
        except ExpressionError as error:
            state.failure = error
            return False
        if condition is not None:
            ctx.stage(condition)
            state.is_paused = True
        ctx.retire_conditions(*list_own_reports(ctx.owner))
        return state.is_paused

    def _request_timed_requeues(self) -> None:
        ctx = self._inputs.ctx
        ctx.request_requeue(self._inputs.pipeline.find_next_change(self._inputs.now))
        wake_ups = self.state.scope.environment.wake_ups
        ctx.request_requeue(wake_ups.earliest if wake_ups is not None else None)

    def _set_ready_condition(self) -> None:
        state, ctx = self.state, self._inputs.ctx
        match state.failure:
            case None:
                notes = [note[:_MAX_NOTE_LENGTH] for note in state.notes]
                ctx.stage(build_ready_condition(ctx.owner, state.results.list_parts(ctx.owner), notes))
            case DeniedError(violations=violations):
                ctx.stage(build_denied_condition(ctx.owner, violations))
            case failure:
                parts = state.results.list_parts(ctx.owner)
                ctx.stage(build_failed_condition(ctx.owner, format_error(failure), parts))

    def _remove_status_fields(self, error: KonvergeError) -> bool:
        """Remove the declared fields from a status that the schema rejects; return whether that changes the status.

        Otherwise no condition would reach the cluster. The error does not name one field reliably, so all declared
        fields keep the values that they have in the cluster.
        """
        state, ctx = self.state, self._inputs.ctx
        without_fields, with_fields = state.results.status_without_fields, ctx.owner.get("status")
        if without_fields is None or not isinstance(with_fields, dict):
            return False
        own = {name: with_fields[name] for name in RESERVED_STATUS if name in with_fields}
        rest = {name: value for name, value in without_fields.items() if name not in RESERVED_STATUS}
        ctx.owner["status"] = {**rest, **own}
        if ctx.owner["status"] == with_fields:
            return False
        state.notes.append(f"no field of status is written: {format_error(error)}")
        _log.warning("%s %s: %s", self._inputs.pipeline.name, ctx.owner_key, state.notes[-1])
        self._set_ready_condition()
        return True

    async def _run_step(self, step: PipelineStep) -> None:
        state, ctx = self.state, self._inputs.ctx
        started = ctx.clock.monotonic()
        try:
            await step.run(self._inputs, state)
        except Exception as error:  # noqa: BLE001  # the status reports every error
            if state.failure is None:
                state.failure = error
            else:
                problem = f"{step.name}: {format_error(error)}"
                state.notes.append(problem)
                _log.warning("%s %s: %s", self._inputs.pipeline.name, ctx.owner_key, problem)
        if self._observer is not None:
            self._observer.on_step(step.name, ctx.clock.monotonic() - started, state)
