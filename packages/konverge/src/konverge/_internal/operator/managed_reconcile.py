"""One reconcile of an owner with components: its parts in order, its status, and the single status write."""

from __future__ import annotations

import inspect
from datetime import timedelta
from typing import Generic, TypeVar

from konverge._internal.component import Component
from konverge._internal.operator.component_factories import ComponentFactories, ComponentsReconcile
from konverge._internal.operator.deletion_waves import add_wave_finalizer
from konverge._internal.operator.function_calls import (
    Reconciler,
    await_with_timeout,
    check_result,
    merge_results,
    name_function,
)
from konverge._internal.operator.owner_context import OwnerContext
from konverge._internal.operator.owner_status import StatusAssignments, StatusFunction
from konverge._internal.operator.status_writes import describe_refusal, write_fields_first
from konverge._internal.runtime import Result
from konverge.errors import ConflictError, InvalidError, KonvergeError, ReconcileError, StatusNotStoredError

__all__ = ["ManagedReconcile"]

T = TypeVar("T")


class ManagedReconcile(Generic[T]):
    """One reconcile of an owner of `Operator.manages`.

    Args:
        declared: The factories and functions of the owner's class.
        owner: The owner as an instance of its class.
        ctx: The context of the reconcile.
        timeout: The time limit of the reconcile.
    """

    def __init__(self, declared: ComponentFactories[T], owner: T, ctx: OwnerContext, timeout: timedelta) -> None:
        self._declared = declared
        self._owner = owner
        self._ctx = ctx
        self._timeout = timeout
        self._parts = ComponentsReconcile(declared, owner, ctx)
        self._result: Result | None = None
        self._refusal: KonvergeError | None = None

    async def run(self) -> Result | None:
        """Run the parts in order, then the status function, and write the status once.

        A part that fails does not stop the others, and a failed status function leaves the fields of the status as
        they are. The server can refuse the fields: then the rest of the status is written without them.

        Raises:
            Exception: The errors of the parts, of the status function or of the status write; conditions report them.
        """
        async with self._ctx.flushing_status(refused=self._handle_refusal):
            assignments = StatusAssignments(self._owner)
            for part in self._parts.iter_parts():
                if not isinstance(part, Component):
                    await self._call_function(part)
                elif await self._hold_owner(part):
                    try:
                        await part.reconcile(self._ctx)
                    except ReconcileError as error:  # its condition reports it already
                        self._parts.errors.append(error)
            self._parts.summarize()
            await self._stage_status(assignments)
            await self._write_fields_first()
            self._parts.raise_errors()
        if self._refusal is not None:
            raise self._refusal
        return self._result

    async def _hold_owner(self, component: Component) -> bool:
        """Add the finalizer for the waves of the component, if it has any; return False if that failed."""
        try:
            await add_wave_finalizer(self._ctx, component)
        except ConflictError:
            raise  # the owner has changed: no later write of this reconcile would succeed
        except KonvergeError as error:
            # Without the finalizer, no object may exist that is to be deleted in order.
            self._parts.collect_error(f'the finalizer for component "{component.name}"', error)
            return False
        return True

    async def _call_function(self, function: Reconciler[T]) -> None:
        name = name_function(function)
        try:
            answer = await await_with_timeout(function(self._owner, self._ctx), self._timeout, name)
            self._result = merge_results(self._result, check_result(answer, f"the function {name}"))
        except Exception as error:  # noqa: BLE001  # an author's code: the other parts continue
            self._parts.collect_error(name, error)

    async def _stage_status(self, assignments: StatusAssignments) -> None:
        try:
            if self._declared.status is not None:
                self._ctx.stage_status(await self._call_status(self._declared.status))
            assignments.check(self._ctx)
        except Exception as error:  # noqa: BLE001  # an author's code: the conditions are still written
            name = "status" if self._declared.status is None else name_function(self._declared.status)
            if self._declared.status is not None:
                self._ctx.withdraw_fields()
            self._parts.collect_error(name, error)
            self._parts.summarize()

    async def _call_status(self, function: StatusFunction[T]) -> object:
        status = self._ctx.call(function, self._owner, self._ctx)
        if not inspect.isawaitable(status):
            return status
        return await await_with_timeout(status, self._timeout, name_function(function))

    async def _write_fields_first(self) -> None:
        try:
            await write_fields_first(self._ctx, self._declared.condition_type)
        except (InvalidError, StatusNotStoredError) as error:
            if not self._handle_refusal(error):
                raise

    def _handle_refusal(self, error: KonvergeError) -> bool:
        """Withdraw the fields that the server refused, and report it in the summary; False if there are none."""
        if not self._ctx.withdraw_fields():
            return False
        self._refusal = error
        self._parts.report_problem(describe_refusal(error))
        self._parts.summarize()
        return True
