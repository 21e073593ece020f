"""The calls of one custom resource: their order and their results."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from graphlib import CycleError, TopologicalSorter
from typing import Any

from konverge.errors import ConfigurationError
from konverge_box._internal.calls.call_errors import CallAttemptError, CallError
from konverge_box._internal.calls.call_result import CallResult, build_external_result
from konverge_box._internal.calls.caller import Caller
from konverge_box._internal.calls.compiled_call import CompiledCall
from konverge_box._internal.expressions import ExpressionError
from konverge_box._internal.file import ExternalCall
from konverge_box._internal.steps import ObjectReader, Scope
from konverge_resolution._internal.network import AllowedNetworks

__all__ = ["ExternalCalls"]

_MAX_CONCURRENT = 16


@dataclass(frozen=True, slots=True)
class _CallOutcome:
    """The outcome of one call.

    Args:
        result: Its value in expressions.
        problem: The error that fails the step; empty without one.
    """

    result: dict[str, Any]
    problem: str = ""


class ExternalCalls:
    """The compiled step ``external`` of a custom resource.

    Args:
        declared: The entries, in the order of the file.
        where: The step's path in the file, for example ``spec.crds.website.external``.
        allowed_networks: ``allowedNetworks`` of the box.

    Raises:
        ConfigurationError: An entry is invalid, or requires an extra that is not installed.
    """

    def __init__(self, declared: Sequence[ExternalCall], where: str, allowed_networks: Iterable[str] = ()) -> None:
        networks = AllowedNetworks(allowed_networks)
        self._where = where
        self._calls = tuple(CompiledCall(each, f"{where}[{index}]", networks) for index, each in enumerate(declared))
        self._batches = _group_into_batches(self._calls, where)

    @property
    def batches(self) -> tuple[tuple[str, ...], ...]:
        """The names of the calls that are sent concurrently, batch after batch."""
        return tuple(tuple(call.name for call in batch) for batch in self._batches)

    def find_next_change(self, now: datetime) -> datetime | None:
        """Return the next time at which the conditions of a call can change by themselves; None without one."""
        return min((moment for call in self._calls if (moment := call.find_next_change(now)) is not None), default=None)

    async def run_calls(self, scope: Scope, caller: Caller, *, reader: ObjectReader, namespace: str) -> dict[str, Any]:
        """Send the calls whose conditions hold, each after the calls whose results it reads.

        Args:
            scope: The scope with the results of earlier steps.
            caller: Sends the calls.
            reader: Reads the Secrets of their credentials.
            namespace: The namespace of the custom resource in the cluster; empty for a cluster-scoped one.

        Returns:
            The results by name, for `scope.with_names(external=…)`.

        Raises:
            CallError: A call without ``continueOnError`` failed, or an expression has no value. The other calls of its
                batch have ended.
        """
        results = {call.name: build_external_result(call.protocol, None) for call in self._calls}
        for batch in self._batches:
            ended = await self._run_batch(batch, scope.with_names(external=dict(results)), caller, reader, namespace)
            results.update({call.name: each.result for call, each in zip(batch, ended, strict=True)})
            problems = [each.problem for each in ended if each.problem]
            if problems:
                raise CallError(self._where, "; ".join(problems), results)
        return results

    async def _run_batch(
        self, batch: Sequence[CompiledCall], scope: Scope, caller: Caller, reader: ObjectReader, namespace: str
    ) -> list[_CallOutcome]:
        free = asyncio.Semaphore(_MAX_CONCURRENT)

        async def run_call(call: CompiledCall) -> _CallOutcome:
            async with free:
                return await _run_call(call, scope, caller, reader, namespace)

        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(run_call(call)) for call in batch]
        return [task.result() for task in tasks]


async def _run_call(
    call: CompiledCall, scope: Scope, caller: Caller, reader: ObjectReader, namespace: str
) -> _CallOutcome:
    try:
        if not call.is_enabled(scope):
            return _CallOutcome(build_external_result(call.protocol, None))
        request = await call.build_request(scope, reader, namespace, caller.environment)
    except ExpressionError as error:
        # Also with continueOnError: an error in the file does not disappear by itself.
        return _CallOutcome(build_external_result(call.protocol, CallResult(error=str(error))), str(error))
    except CallAttemptError as failure:
        answer = CallResult(error=failure.problem)
    else:
        answer = await caller.call(request)
    is_fatal = bool(answer.error) and not call.continues_on_error
    return _CallOutcome(
        build_external_result(call.protocol, answer), f"{call.name}: {answer.error}" if is_fatal else ""
    )


def _group_into_batches(calls: Sequence[CompiledCall], where: str) -> tuple[tuple[CompiledCall, ...], ...]:
    by_name = {call.name: call for call in calls}
    graph: dict[str, set[str]] = {}
    for call in calls:
        waits = _find_read_calls(call.list_read_paths(), graph)
        graph[call.name] = {name for name in waits if name in by_name}
    sorter = TopologicalSorter(graph)
    try:
        sorter.prepare()
    except CycleError as error:
        raise ConfigurationError(f"{where}: these calls read each other: {' -> '.join(error.args[1])}") from None
    batches: list[tuple[CompiledCall, ...]] = []
    while ready := sorter.get_ready():
        batches.append(tuple(call for call in calls if call.name in ready))
        sorter.done(*ready)
    return tuple(batches)


def _find_read_calls(names: frozenset[tuple[str, ...]], before: Mapping[str, Any]) -> set[str]:
    """Return the calls whose results are read. An expression that reads ``external`` reads all earlier calls."""
    calls: set[str] = set()
    for name in names:
        if name[0] == "external":
            calls |= {name[1]} if len(name) > 1 else set(before)
    return calls
