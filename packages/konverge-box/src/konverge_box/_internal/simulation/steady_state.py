"""A run of a box without a simulation file: objects are applied and reconciled until nothing is written."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import timedelta

from konverge._internal.kube import Object
from konverge_box._internal.calls.scripted_answers import ScriptedAnswer
from konverge_box._internal.file import OperatorBox
from konverge_box._internal.simulation.simulated_box import SimulatedCluster, start_simulated_box
from konverge_box._internal.simulation.step_report import StepReport

__all__ = ["reconcile_until_steady"]

_BETWEEN = timedelta(seconds=5)
"""Simulated time between reconciles, in which the cluster's controllers react."""


async def reconcile_until_steady(
    box: OperatorBox,
    objects: Iterable[Object],
    cluster: SimulatedCluster,
    *,
    cycles: int = 10,
    given: Iterable[Object] = (),
    answers: Mapping[str, ScriptedAnswer] | None = None,
    on_report: Callable[[StepReport], None] = lambda report: None,
) -> bool:
    """Apply custom resources, and reconcile them until nothing is written.

    Args:
        box: The box.
        objects: The custom resources.
        cluster: The cluster in which it runs.
        cycles: The maximum number of reconciles of all custom resources.
        given: The initial objects.
        answers: The responses to external calls, by name.
        on_report: Callback for the report of each cycle.

    Returns:
        Whether the last cycle wrote nothing and had no error.

    Raises:
        konverge.errors.KonvergeError: The cluster rejects an object, or the operator stops.
    """
    async with start_simulated_box(box, cluster, given, answers or {}) as simulated:
        for number in range(1, cycles + 1):
            before, failed = len(simulated.operations), simulated.failed_reconciles
            if number == 1:
                for obj in objects:
                    await simulated.apply(obj)
                await simulated.wait_until_idle()
            else:
                await simulated.reconcile_all()
            if cluster.is_embedded:
                await cluster.clock.sleep(_BETWEEN.total_seconds())
            await simulated.wait_until_idle()
            has_failed = simulated.failed_reconciles > failed
            done = tuple(simulated.operations[before:])
            on_report(
                StepReport(
                    name=f"cycle {number}",
                    operations=done,
                    conditions=tuple(await simulated.describe_ready_conditions()),
                    errors=tuple(simulated.list_last_errors()) if has_failed else (),
                )
            )
            if not done and number > 1:
                return not has_failed
    return False
