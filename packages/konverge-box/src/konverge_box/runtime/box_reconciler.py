"""One pass over one custom resource of a box: the steps in their order, then the one write of the status."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

from konverge.clock import Entropy
from konverge.errors import InvalidError, format_error
from konverge.mutation import copy_json
from konverge.operator import OwnerContext, Result
from konverge.operator.deletion_reconciler import build_deletion_condition
from konverge_box.calls import Caller
from konverge_box.expressions import EvaluationEnvironment
from konverge_box.file.model import RESERVED_STATUS
from konverge_box.runtime.box_conditions import (
    MAX_MESSAGE_LENGTH,
    READY,
    build_denied_condition,
    build_dependency_condition,
    build_failed_condition,
    build_ready_condition,
)
from konverge_box.runtime.pipeline import Pipeline
from konverge_box.runtime.step_order import STEP_ORDER, DeniedError, PipelineStep, ReconcileState, report_kept_object
from konverge_box.steps import StepError, build_scope
from konverge_box.steps.deletion import remove_leftovers

__all__ = ["BoxReconciler"]

_log = logging.getLogger("konverge.box")

_MAX_NOTE_LENGTH = 500


class BoxReconciler:
    """The passes over one object, with the pipeline as it is when they begin.

    Args:
        pipeline: The steps.
        ctx: The context of the pass.
        caller: Makes external calls.
        entropy: The randomness.
        is_unique: Tells whether no other object has a value in a field.
        foreign_conditions: Types of conditions of this object that are known to be somebody else's; it grows.
        on_step: Is told how many seconds each step took.
    """

    def __init__(
        self,
        pipeline: Pipeline,
        ctx: OwnerContext,
        *,
        caller: Caller,
        entropy: Entropy,
        is_unique: Callable[[str, Any], bool],
        foreign_conditions: set[str],
        on_step: Callable[[str, float], None] = lambda step, seconds: None,
    ) -> None:
        self._pipeline = pipeline
        self._ctx = ctx
        self._stepped = on_step
        now = ctx.clock.now()
        self._entropy = entropy
        # What steps see stays as it was read, while conditions are staged on the owner.
        read = copy_json(ctx.owner)
        scope = build_scope(read, EvaluationEnvironment(now=now, entropy=entropy, is_unique=is_unique))
        self.state = ReconcileState(pipeline, ctx, scope, read, caller, now, foreign_conditions)

    async def reconcile(self) -> Result | None:
        """Run all steps, and write the status once, last, also after an error.

        Cancelled, it writes no status: the next pass does.

        Raises:
            DeniedError: The object breaks rules, and is to be tried again.
            Exception: What the first step that failed has failed with.
        """
        state, ctx, pipeline = self.state, self._ctx, self._pipeline
        async with ctx.flushing_status(refused=self._remove_status_fields):
            for step in STEP_ORDER:
                if state.failure is None or step.always:
                    await self._run_step(step)
            ctx.request_requeue(pipeline.find_next_change(state.now))
            self._set_ready_condition()
            if isinstance(state.failure, DeniedError) and not pipeline.retries_denied:
                return None
            if state.failure is not None:
                raise state.failure
        # Not all at the same moment, also those that began so.
        resync = pipeline.resync * self._entropy.uniform(0.9, 1.1)
        after = resync if state.requeue_after is None else min(resync, state.requeue_after)
        return Result(requeue_after=after)

    async def report_waiting(self, problem: str) -> None:
        """Only report that another custom resource of the box has to come first."""
        async with self._ctx.flushing_status():
            self._ctx.stage(build_dependency_condition(self._ctx.owner, problem))

    async def finalize(self) -> Result | None:
        """Do one step of the deletion; None when nothing is left of the object outside of itself.

        What it waits for is staged in Ready; who runs the pass writes the status.

        Raises:
            Exception: What could not be done.
        """
        state, ctx, pipeline = self.state, self._ctx, self._pipeline
        deleted = await pipeline.deletion.run_step(state.scope, ctx.owner, ctx.cluster, state.now)
        for told in deleted.kept:
            report_kept_object(ctx, told)
        if not deleted.done:
            ctx.stage(build_deletion_condition(ctx, READY, deleted.waiting_for[:MAX_MESSAGE_LENGTH]))
            return Result(requeue_after=deleted.requeue_after or pipeline.resync)
        dispatched = await pipeline.providers.delete(state.scope, ctx.owner, ctx.cluster, ctx.cluster)
        if dispatched.problems:
            raise StepError(f"{pipeline.where}.providers", "; ".join(map(str, dispatched.problems)))
        found = await pipeline.groups.find_leftovers(ctx.owner, ctx.cluster)
        await remove_leftovers(found, ctx.owner, ctx.cluster, pipeline.where)
        return None

    def _set_ready_condition(self) -> None:
        state, ctx = self.state, self._ctx
        match state.failure:
            case None:
                ctx.stage(
                    build_ready_condition(ctx.owner, state.parts, [note[:_MAX_NOTE_LENGTH] for note in state.notes])
                )
            case DeniedError(violations=violations):
                ctx.stage(build_denied_condition(ctx.owner, violations))
            case failure:
                ctx.stage(build_failed_condition(ctx.owner, format_error(failure)))

    def _remove_status_fields(self, error: InvalidError) -> bool:
        """Take the file's fields out of a status that the schema refuses: without them, nobody would hear of anything.

        What cannot be told apart is which field it is; so all of them stay as they are in the cluster.
        """
        state, ctx = self.state, self._ctx
        with_fields = ctx.owner.get("status")
        if state.status_without_fields is None or not isinstance(with_fields, dict):
            return False
        own = {name: with_fields[name] for name in RESERVED_STATUS if name in with_fields}
        rest = {name: value for name, value in state.status_without_fields.items() if name not in RESERVED_STATUS}
        ctx.owner["status"] = {**rest, **own}
        if ctx.owner["status"] == with_fields:
            return False
        state.notes.append(f"no field of status is written: {format_error(error)}")
        _log.warning("%s %s: %s", self._pipeline.name, ctx.owner_key, state.notes[-1])
        self._set_ready_condition()
        return True

    async def _run_step(self, step: PipelineStep) -> None:
        state, clock = self.state, self._ctx.clock
        started = clock.monotonic()
        try:
            await step.run(state)
        except Exception as error:  # noqa: BLE001  # whatever it is, the status is to say so
            if state.failure is None:
                state.failure = error
            else:
                state.notes.append(f"{step.name}: {format_error(error)}")
                _log.warning("%s %s: %s: %s", self._pipeline.name, self._ctx.owner_key, step.name, format_error(error))
        self._stepped(step.name, clock.monotonic() - started)
