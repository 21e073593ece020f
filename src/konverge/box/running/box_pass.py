"""One pass over one custom resource of a box: the steps in their order, then the one write of the status."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

from konverge.box.calls import Caller
from konverge.box.expressions import Environment
from konverge.box.file.model import RESERVED_STATUS
from konverge.box.running.conditions import LONGEST_MESSAGE, READY, denied, dependency_not_ready, failed, ready
from konverge.box.running.order import ORDER, DeniedError, PassState, Step, tell_what_is_spared
from konverge.box.running.pipeline import Pipeline
from konverge.box.steps import StepError, scope_of
from konverge.box.steps.deletion import remove_leftovers
from konverge.clock import Entropy
from konverge.errors import InvalidError, describe
from konverge.mutation import json_copy
from konverge.operator import OwnerContext, Result
from konverge.operator.finalizing import deletion_condition

__all__ = ["BoxPass"]

_log = logging.getLogger("konverge.box")

_LONGEST_NOTE = 500


class BoxPass:
    """The passes over one object, with the pipeline as it is when they begin.

    Args:
        pipeline: The steps.
        ctx: The context of the pass.
        caller: Makes external calls.
        entropy: The randomness.
        is_unique: Tells whether no other object has a value in a field.
        strangers: Types of conditions of this object that are known to be somebody else's; it grows.
        stepped: Is told how many seconds each step took.
    """

    def __init__(
        self,
        pipeline: Pipeline,
        ctx: OwnerContext,
        *,
        caller: Caller,
        entropy: Entropy,
        is_unique: Callable[[str, Any], bool],
        strangers: set[str],
        stepped: Callable[[str, float], None] = lambda step, seconds: None,
    ) -> None:
        self._pipeline = pipeline
        self._ctx = ctx
        self._stepped = stepped
        now = ctx.clock.now()
        self._entropy = entropy
        # What steps see stays as it was read, while conditions are staged on the owner.
        read = json_copy(ctx.owner)
        scope = scope_of(read, Environment(now=now, entropy=entropy, is_unique=is_unique))
        self.state = PassState(pipeline, ctx, scope, read, caller, now, strangers)

    async def reconcile(self) -> Result | None:
        """Run all steps, and write the status once, last, also after an error.

        Cancelled, it writes no status: the next pass does.

        Raises:
            DeniedError: The object breaks rules, and is to be tried again.
            Exception: What the first step that failed has failed with.
        """
        state, ctx, pipeline = self.state, self._ctx, self._pipeline
        async with ctx.flushing_status(refused=self._without_fields):
            for step in ORDER:
                if state.failure is None or step.always:
                    await self._run(step)
            ctx.request_wake(pipeline.next_change(state.now))
            self._stage_ready()
            if isinstance(state.failure, DeniedError) and not pipeline.retries_denied:
                return None
            if state.failure is not None:
                raise state.failure
        # Not all at the same moment, also those that began so.
        resync = pipeline.resync * self._entropy.uniform(0.9, 1.1)
        after = resync if state.again_after is None else min(resync, state.again_after)
        return Result(requeue_after=after)

    async def wait(self, problem: str) -> None:
        """Only report that another custom resource of the box has to come first."""
        async with self._ctx.flushing_status():
            self._ctx.stage(dependency_not_ready(self._ctx.owner, problem))

    async def finalize(self) -> Result | None:
        """Do one step of the deletion; None when nothing is left of the object outside of itself.

        What it waits for is staged in Ready; who runs the pass writes the status.

        Raises:
            Exception: What could not be done.
        """
        state, ctx, pipeline = self.state, self._ctx, self._pipeline
        deleted = await pipeline.deletion.step(state.scope, ctx.owner, ctx.cluster, state.now)
        for told in deleted.spared:
            tell_what_is_spared(ctx, told)
        if not deleted.done:
            ctx.stage(deletion_condition(ctx, READY, deleted.waiting[:LONGEST_MESSAGE]))
            return Result(requeue_after=deleted.again_after or pipeline.resync)
        dispatched = await pipeline.providers.delete(state.scope, ctx.owner, ctx.cluster, ctx.cluster)
        if dispatched.problems:
            raise StepError(f"{pipeline.where}.providers", "; ".join(map(str, dispatched.problems)))
        found = await pipeline.groups.leftovers(ctx.owner, ctx.cluster)
        await remove_leftovers(found, ctx.owner, ctx.cluster, pipeline.where)
        return None

    def _stage_ready(self) -> None:
        state, ctx = self.state, self._ctx
        match state.failure:
            case None:
                ctx.stage(ready(ctx.owner, state.parts, [note[:_LONGEST_NOTE] for note in state.notes]))
            case DeniedError(violations=violations):
                ctx.stage(denied(ctx.owner, violations))
            case failure:
                ctx.stage(failed(ctx.owner, describe(failure)))

    def _without_fields(self, error: InvalidError) -> bool:
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
        state.notes.append(f"no field of status is written: {describe(error)}")
        _log.warning("%s %s: %s", self._pipeline.name, ctx.owner_key, state.notes[-1])
        self._stage_ready()
        return True

    async def _run(self, step: Step) -> None:
        state, clock = self.state, self._ctx.clock
        started = clock.monotonic()
        try:
            await step.run(state)
        except Exception as error:  # noqa: BLE001  # whatever it is, the status is to say so
            if state.failure is None:
                state.failure = error
            else:
                state.notes.append(f"{step.name}: {describe(error)}")
                _log.warning("%s %s: %s: %s", self._pipeline.name, self._ctx.owner_key, step.name, describe(error))
        self._stepped(step.name, clock.monotonic() - started)
