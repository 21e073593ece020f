"""A box without a simulation file: objects are applied, and passes are run until one writes nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import timedelta

from konverge.box.calls.known_answers import KnownAnswer
from konverge.box.file import OperatorBox
from konverge.box.simulation.report import StepReport
from konverge.box.simulation.stage import SimulatedCluster, on_stage
from konverge.kube import Object

__all__ = ["run_cycles"]

_BETWEEN = timedelta(seconds=5)
"""Simulated time in which the cluster's controllers do their part."""


async def run_cycles(
    box: OperatorBox,
    objects: Iterable[Object],
    cluster: SimulatedCluster,
    *,
    cycles: int = 10,
    given: Iterable[Object] = (),
    answers: Mapping[str, KnownAnswer] | None = None,
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
    async with on_stage(box, cluster, given, answers or {}) as stage:
        for number in range(1, cycles + 1):
            before, failed = len(stage.operations), stage.failed_passes
            if number == 1:
                for obj in objects:
                    await stage.apply(obj)
                await stage.rest()
            else:
                await stage.another_pass()
            if cluster.is_embedded:
                await cluster.clock.sleep(_BETWEEN.total_seconds())
            await stage.rest()
            has_failed = stage.failed_passes > failed
            done = tuple(stage.operations[before:])
            tell(
                StepReport(
                    name=f"cycle {number}",
                    operations=done,
                    conditions=tuple(await stage.conditions()),
                    errors=tuple(stage.last_errors()) if has_failed else (),
                )
            )
            if not done and number > 1:
                return not has_failed
    return False
