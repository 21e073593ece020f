"""Running a simulation, step by step."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from konverge.errors import KonvergeError, format_error
from konverge.kube import Object
from konverge_box.expressions.schedules import parse_period
from konverge_box.providers import ProviderPool
from konverge_box.simulation.expectations import find_object_failures, find_operation_failures
from konverge_box.simulation.simulated_box import SimulatedBox, SimulatedCluster, start_simulated_box
from konverge_box.simulation.simulation_loader import LoadedSimulation
from konverge_box.simulation.simulation_model import Expectations, SimulationStep
from konverge_box.simulation.step_report import StepReport

__all__ = ["simulate"]

_MAX_REAL_ADVANCE_SECONDS = 10.0
_POLL_SECONDS = 0.1
_SETTLING_PASSES = 10
_SETTLE_SECONDS = 1.1
"""Of simulated time, before a pass that is to write nothing: what shows the time is written in each second."""


async def simulate(
    loaded: LoadedSimulation,
    cluster: SimulatedCluster,
    *,
    pool: ProviderPool | None = None,
    tell: Callable[[StepReport], None] = lambda report: None,
) -> list[StepReport]:
    """Run a simulation.

    All steps are run, also after one whose expectations do not hold. Cancelled, it stops the operator.

    Args:
        loaded: The simulation.
        cluster: Where it runs.
        pool: The providers; those of installed packages when not given.
        tell: Hears of each step when it has ended.

    Raises:
        konverge.errors.KonvergeError: The box cannot be run in the cluster, or what is given is refused.
    """
    spec = loaded.simulation.spec
    reports: list[StepReport] = []
    async with start_simulated_box(loaded.box, cluster, loaded.given, spec.answers, pool=pool) as stage:
        for step, objects in zip(spec.steps, loaded.applied, strict=True):
            report = await _run_step(loaded, stage, step, objects)
            reports.append(report)
            tell(report)
    return reports


async def _run_step(
    loaded: LoadedSimulation, stage: SimulatedBox, step: SimulationStep, objects: tuple[Object, ...]
) -> StepReport:
    cluster = stage.cluster
    seconds = 0.0 if step.advance is None else parse_period(step.advance).total_seconds()
    if not cluster.is_embedded:
        if step.only == "embedded":
            return StepReport(name=step.name, skipped="it is for the embedded cluster only")
        if seconds > _MAX_REAL_ADVANCE_SECONDS:
            return StepReport(name=step.name, skipped=f"nobody waits for {step.advance} of real time")
    started, before, failed = cluster.clock.monotonic(), len(stage.operations), stage.failed_reconciles
    failures: list[str] = []
    try:
        stage.answers.update(step.answers)
        for obj in objects:
            await stage.apply(obj)
        for patch in step.patch:
            await stage.patch(loaded.find_gvk(patch), patch.name, patch.namespace, patch.merge)
        for named in step.delete:
            await stage.delete(loaded.find_gvk(named), named.name, named.namespace)
        if seconds:
            await cluster.clock.sleep(seconds)
        if step.expect is None:
            await _wait_until_steady(stage)
        else:
            failures = await _await_expectations(loaded, stage, step.expect, before, failed)
    except KonvergeError as error:
        failures = [f"the step cannot be done: {format_error(error)}"]
    return StepReport(
        name=step.name,
        operations=tuple(stage.operations[before:]),
        conditions=tuple(await stage.describe_ready_conditions()),
        failures=tuple(failures),
        errors=tuple(stage.list_last_errors()) if stage.failed_reconciles > failed else (),
        seconds=cluster.clock.monotonic() - started,
    )


async def _wait_until_steady(stage: SimulatedBox) -> None:
    """Passes until one writes nothing, so that the next step begins where this one has ended."""
    for _ in range(_SETTLING_PASSES):
        if not await stage.reconcile_all():
            return
        await stage.cluster.clock.sleep(_POLL_SECONDS)


async def _await_expectations(
    loaded: LoadedSimulation, stage: SimulatedBox, expect: Expectations, before: int, failed: int
) -> list[str]:
    """The expectations that still do not hold when their time is over."""
    failures: list[str] = []
    try:
        async with asyncio.timeout(parse_period(expect.within).total_seconds()):
            while True:
                await stage.wait_until_idle()
                found = await _find_failures(loaded, stage, expect, before, failed)
                if not found:
                    # What holds only until the next pass does not hold.
                    if stage.cluster.is_embedded:
                        await stage.cluster.clock.sleep(_SETTLE_SECONDS)
                        await stage.wait_until_idle()
                    written = await stage.reconcile_all()
                    found = await _find_failures(loaded, stage, expect, before, failed)
                    if expect.steady and written:
                        shown = ", ".join(f"{each.verb} {each.object_name}" for each in written[:5])
                        found = [*found, f"expected a pass that writes nothing, found one that {shown}"]
                if not found:
                    return []
                failures = found  # of a whole round, if the time is over in the middle of the next
                await stage.cluster.clock.sleep(_POLL_SECONDS)
    except TimeoutError:
        return failures or [f"nothing can be said after {expect.within}: the operator does not come to rest"]


async def _find_failures(
    loaded: LoadedSimulation, stage: SimulatedBox, expect: Expectations, before: int, failed: int
) -> list[str]:
    failures: list[str] = []
    for each in expect.objects:
        failures += find_object_failures(each, await stage.find(loaded.find_gvk(each), each.name, each.namespace))
    for named in expect.absent:
        if await stage.find(loaded.find_gvk(named), named.name, named.namespace) is not None:
            failures.append(f"{named.kind}/{named.name}: expected to be absent, it is there")
    failures += find_operation_failures(expect, stage.operations[before:], stage.owner_kinds)
    if expect.no_errors and stage.failed_reconciles > failed:
        failures += [f"expected no errors, found: {error}" for error in stage.list_last_errors()]
    return failures
