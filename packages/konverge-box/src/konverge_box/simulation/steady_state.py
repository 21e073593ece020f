"""A box without a simulation file: objects are applied, and passes are run until one writes nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import timedelta

from konverge.kube import Object
from konverge_box.calls.scripted_answers import ScriptedAnswer
from konverge_box.file import OperatorBox
from konverge_box.simulation.simulated_box import SimulatedCluster, start_simulated_box
from konverge_box.simulation.step_report import StepReport

__all__ = ["reconcile_until_steady"]

_BETWEEN = timedelta(seconds=5)
"""Simulated time in which the cluster's controllers do their part."""


async def reconcile_until_steady(
    box: OperatorBox,
    objects: Iterable[Object],
    cluster: SimulatedCluster,
    *,
    cycles: int = 10,
    given: Iterable[Object] = (),
    answers: Mapping[str, ScriptedAnswer] | None = None,
    tell: Callable[[StepReport], None] = lambda report: None,
) -> bool:
    """Apply custom resources, and have passes over them until one writes nothing.

    Args:
        box: The box.
        objects: The custom resources.
        cluster: Where it runs.
        cycles: So many passes at most.
        given: What is in the cluster before.
        answers: What external calls are answered, by name.
        tell: Hears of each cycle.

    Returns:
        Whether the last pass wrote nothing, and none failed in it.

    Raises:
        konverge.errors.KonvergeError: The cluster refuses something, or the operator ends.
    """
    async with start_simulated_box(box, cluster, given, answers or {}) as stage:
        for number in range(1, cycles + 1):
            before, failed = len(stage.operations), stage.failed_reconciles
            if number == 1:
                for obj in objects:
                    await stage.apply(obj)
                await stage.wait_until_idle()
            else:
                await stage.reconcile_all()
            if cluster.is_embedded:
                await cluster.clock.sleep(_BETWEEN.total_seconds())
            await stage.wait_until_idle()
            has_failed = stage.failed_reconciles > failed
            done = tuple(stage.operations[before:])
            tell(
                StepReport(
                    name=f"cycle {number}",
                    operations=done,
                    conditions=tuple(await stage.describe_ready_conditions()),
                    errors=tuple(stage.list_last_errors()) if has_failed else (),
                )
            )
            if not done and number > 1:
                return not has_failed
    return False
