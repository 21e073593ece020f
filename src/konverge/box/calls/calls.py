"""The calls of one custom resource: which of them wait for which, and what becomes of their answers."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from graphlib import CycleError, TopologicalSorter
from typing import Any

from konverge.box.calls.answers import Answer, result_of
from konverge.box.calls.call import Call
from konverge.box.calls.caller import Caller
from konverge.box.calls.failures import CallError, CallFailure
from konverge.box.expressions import ExpressionError
from konverge.box.file import ExternalCall
from konverge.box.steps import Reader, Scope
from konverge.errors import ConfigurationError
from konverge.network import Networks

__all__ = ["Calls"]

_AT_ONCE = 16


@dataclass(frozen=True, slots=True)
class _Ended:
    """What became of one call.

    Args:
        result: What expressions see of it.
        problem: Why the pass cannot go on; empty if it can.
    """

    result: dict[str, Any]
    problem: str = ""


class Calls:
    """The step ``external``, compiled once for a custom resource.

    Args:
        declared: The entries, in the order of the file.
        where: The step's path in the file, for example ``spec.crds.website.external``.
        allowed_networks: ``allowedNetworks`` of the box.

    Raises:
        ConfigurationError: One of them cannot be made, or needs an extra that is not installed.
    """

    def __init__(self, declared: Sequence[ExternalCall], where: str, allowed_networks: Iterable[str] = ()) -> None:
        networks = Networks(allowed_networks)
        self._where = where
        self._calls = tuple(Call(each, f"{where}[{index}]", networks) for index, each in enumerate(declared))
        self._waves = _waves(self._calls, where)

    @property
    def waves(self) -> tuple[tuple[str, ...], ...]:
        """The names of the calls that are made at once, one such set after the other."""
        return tuple(tuple(call.name for call in wave) for wave in self._waves)

    def next_change(self, now: datetime) -> datetime | None:
        """When a condition of theirs may be otherwise although nothing else is."""
        return min((moment for call in self._calls if (moment := call.next_change(now)) is not None), default=None)

    async def answer(self, scope: Scope, caller: Caller, *, reader: Reader, namespace: str) -> dict[str, Any]:
        """Make the calls whose conditions hold, each as soon as those that it reads have answered.

        Args:
            scope: What the steps before have made.
            caller: Makes them.
            reader: For the Secrets of their credentials.
            namespace: That of the custom resource as the cluster has it; empty for one of the cluster.

        Returns:
            The results by name, for `scope.plus(external=…)`.

        Raises:
            CallError: A call failed and has no ``continueOnError``, or an expression has no value. The others of its
                wave have ended then.
        """
        results = {call.name: result_of(call.protocol, None) for call in self._calls}
        for wave in self._waves:
            ended = await self._made(wave, scope.plus(external=dict(results)), caller, reader, namespace)
            results.update({call.name: each.result for call, each in zip(wave, ended, strict=True)})
            problems = [each.problem for each in ended if each.problem]
            if problems:
                raise CallError(self._where, "; ".join(problems), results)
        return results

    async def _made(
        self, wave: Sequence[Call], scope: Scope, caller: Caller, reader: Reader, namespace: str
    ) -> list[_Ended]:
        free = asyncio.Semaphore(_AT_ONCE)

        async def made(call: Call) -> _Ended:
            async with free:
                return await _ended(call, scope, caller, reader, namespace)

        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(made(call)) for call in wave]
        return [task.result() for task in tasks]


async def _ended(call: Call, scope: Scope, caller: Caller, reader: Reader, namespace: str) -> _Ended:
    try:
        if not call.is_on(scope):
            return _Ended(result_of(call.protocol, None))
        request = await call.request(scope, reader, namespace, caller.environment)
    except ExpressionError as error:
        # Also with continueOnError: a mistake in the file is not something that passes.
        return _Ended(result_of(call.protocol, Answer(error=str(error))), str(error))
    except CallFailure as failure:
        answer = Answer(error=failure.problem)
    else:
        answer = await caller.answer(request)
    is_fatal = bool(answer.error) and not call.continues_on_error
    return _Ended(result_of(call.protocol, answer), f"{call.name}: {answer.error}" if is_fatal else "")


def _waves(calls: Sequence[Call], where: str) -> tuple[tuple[Call, ...], ...]:
    by_name = {call.name: call for call in calls}
    graph: dict[str, set[str]] = {}
    for call in calls:
        waits = _read(call.names(), graph)
        graph[call.name] = {name for name in waits if name in by_name}
    sorter = TopologicalSorter(graph)
    try:
        sorter.prepare()
    except CycleError as error:
        raise ConfigurationError(f"{where}: these calls read each other: {' -> '.join(error.args[1])}") from None
    waves: list[tuple[Call, ...]] = []
    while ready := sorter.get_ready():
        waves.append(tuple(call for call in calls if call.name in ready))
        sorter.done(*ready)
    return tuple(waves)


def _read(names: frozenset[tuple[str, ...]], before: Mapping[str, Any]) -> set[str]:
    """The calls that are read; who reads ``external`` as a whole reads all that stand before."""
    found: set[str] = set()
    for name in names:
        if name[0] == "external":
            found |= {name[1]} if len(name) > 1 else set(before)
    return found
