"""Execution of a simulation, step by step."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from konverge._internal.kube import Object
from konverge.errors import KonvergeError, format_error
from konverge_box._internal.expressions.schedules import parse_period
from konverge_box._internal.providers import ProviderPool
from konverge_box._internal.simulation.expectations import find_object_failures, find_operation_failures
from konverge_box._internal.simulation.simulated_box import SimulatedBox, SimulatedCluster, start_simulated_box
from konverge_box._internal.simulation.simulation_loader import LoadedSimulation
from konverge_box._internal.simulation.simulation_model import Expectations, SimulationStep
from konverge_box._internal.simulation.step_report import StepReport

__all__ = ["simulate"]

_MAX_REAL_ADVANCE_SECONDS = 10.0
_POLL_SECONDS = 0.1
_MAX_SETTLING_RECONCILES = 10
_SETTLE_SECONDS = 1.1
"""Simulated time before a reconcile that must write nothing: values with the current time change every second."""


async def simulate(
    loaded: LoadedSimulation,
    cluster: SimulatedCluster,
    *,
    pool: ProviderPool | None = None,
    on_report: Callable[[StepReport], None] = lambda report: None,
) -> list[StepReport]:
    """Run a simulation.

    All steps run, also after a step with unmet expectations. Cancellation stops the operator.

    Args:
        loaded: The simulation.
        cluster: The cluster in which it runs.
        pool: The providers (default: those of installed packages).
        on_report: Callback for the report of each step.

    Raises:
        konverge.errors.KonvergeError: The box cannot run in the cluster, or the cluster rejects an initial object.
    """
    spec = loaded.simulation.spec
    reports: list[StepReport] = []
    later = [obj for objects in loaded.applied for obj in objects]
    async with start_simulated_box(
        loaded.box, cluster, loaded.given, spec.answers, pool=pool, later=later
    ) as simulated:
        for step, objects in zip(spec.steps, loaded.applied, strict=True):
            report = await _run_step(loaded, simulated, step, objects)
            reports.append(report)
            on_report(report)
    return reports


async def _run_step(
    loaded: LoadedSimulation, simulated: SimulatedBox, step: SimulationStep, objects: tuple[Object, ...]
) -> StepReport:
    cluster = simulated.cluster
    seconds = 0.0 if step.advance is None else parse_period(step.advance).total_seconds()
    if not cluster.is_embedded:
        if step.only == "embedded":
            return StepReport(name=step.name, skipped="it requires the embedded cluster")
        if seconds > _MAX_REAL_ADVANCE_SECONDS:
            return StepReport(name=step.name, skipped=f"an advance of {step.advance} takes too long in real time")
    started, before, failed = cluster.clock.monotonic(), len(simulated.operations), simulated.failed_reconciles
    failures: list[str] = []
    try:
        simulated.answers.update(step.answers)
        for obj in objects:
            await simulated.apply(obj)
        for patch in step.patch:
            await simulated.patch(loaded.find_gvk(patch), patch.name, patch.namespace, patch.merge)
        for named in step.delete:
            await simulated.delete(loaded.find_gvk(named), named.name, named.namespace)
        if seconds:
            await cluster.clock.sleep(seconds)
        if step.expect is None:
            await _wait_until_steady(simulated)
        else:
            failures = await _await_expectations(loaded, simulated, step.expect, before, failed)
    except KonvergeError as error:
        failures = [f"the step failed: {format_error(error)}"]
    return StepReport(
        name=step.name,
        operations=tuple(simulated.operations[before:]),
        conditions=tuple(await simulated.describe_ready_conditions()),
        failures=tuple(failures),
        errors=tuple(simulated.list_last_errors()) if simulated.failed_reconciles > failed else (),
        seconds=cluster.clock.monotonic() - started,
    )


async def _wait_until_steady(simulated: SimulatedBox) -> None:
    """Reconcile until nothing is written, so that the next step starts from the final state of this one."""
    for _ in range(_MAX_SETTLING_RECONCILES):
        if not await simulated.reconcile_all():
            return
        await simulated.cluster.clock.sleep(_POLL_SECONDS)


async def _await_expectations(
    loaded: LoadedSimulation, simulated: SimulatedBox, expect: Expectations, before: int, failed: int
) -> list[str]:
    """Return the expectations that are not met when their time is over."""
    failures: list[str] = []
    try:
        async with asyncio.timeout(parse_period(expect.within).total_seconds()):
            while True:
                await simulated.wait_until_idle()
                unmet = await _find_failures(loaded, simulated, expect, before, failed)
                if not unmet:
                    # An expectation that holds only until the next reconcile counts as unmet.
                    if simulated.cluster.is_embedded:
                        await simulated.cluster.clock.sleep(_SETTLE_SECONDS)
                        await simulated.wait_until_idle()
                    written = await simulated.reconcile_all()
                    unmet = await _find_failures(loaded, simulated, expect, before, failed)
                    if expect.steady and written:
                        changes = ", ".join(f"{each.verb} {each.object_name}" for each in written[:5])
                        unmet = [*unmet, f"expected a reconcile without writes, found: {changes}"]
                if not unmet:
                    return []
                failures = unmet  # of the last complete round, in case the next one is interrupted
                await simulated.cluster.clock.sleep(_POLL_SECONDS)
    except TimeoutError:
        return failures or [f"expected the operator to be idle within {expect.within}, found further reconciles"]


async def _find_failures(
    loaded: LoadedSimulation, simulated: SimulatedBox, expect: Expectations, before: int, failed: int
) -> list[str]:
    failures: list[str] = []
    for each in expect.objects:
        failures += find_object_failures(each, await simulated.find(loaded.find_gvk(each), each.name, each.namespace))
    for named in expect.absent:
        if await simulated.find(loaded.find_gvk(named), named.name, named.namespace) is not None:
            failures.append(f"{named.kind}/{named.name}: expected no object, found one")
    failures += find_operation_failures(expect, simulated.operations[before:], simulated.owner_kinds)
    if expect.no_errors and simulated.failed_reconciles > failed:
        failures += [f"expected no errors, found: {error}" for error in simulated.list_last_errors()]
    return failures
