"""The runner of dry runs: reconciles of components that read from the server and write nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from typing import NamedTuple

from konverge._internal.component.aggregation import AggregatedStatus, aggregate_convergence
from konverge._internal.component.component import Component
from konverge._internal.component.component_spec import RegisteredResource
from konverge._internal.component.condition_rules import requeue_time
from konverge._internal.component.diagnosis import Diagnosis, is_examined
from konverge._internal.component.dry_run.dry_run_client import DryRunClient, DryRunServer
from konverge._internal.component.dry_run.explanation import Explanation
from konverge._internal.component.dry_run.instrumentation import InstrumentedComponent, describe_prerequisite
from konverge._internal.component.dry_run.report import (
    ConditionReport,
    DryRunReport,
    FunctionEvaluation,
    ObjectChange,
    PrerequisiteReport,
    ResourceOutcome,
    ResourceReport,
)
from konverge._internal.component.engine import ComponentReconcile
from konverge._internal.component.ownership import build_field_manager
from konverge._internal.component.reconcile_context import ReconcileContext
from konverge._internal.component.resource_options import ResourceMode
from konverge._internal.component.time_limit import TimeLimit
from konverge._internal.kube import Condition, Object
from konverge._internal.mutation import copy_json
from konverge._internal.primitives.resource_protocol import READY, Convergence, ConvergingStatus
from konverge.clock import Clock, SystemClock
from konverge.errors import ReconcileError

__all__ = ["DryRun", "dry_run_component"]


async def dry_run_component(
    component: Component,
    client: DryRunServer,
    owner: Object,
    *,
    clock: Clock | None = None,
    adopt: bool = True,
    diagnosis: Diagnosis | None = None,
) -> DryRunReport:
    """Return the writes and the condition of a reconcile of the component now, with reasons; nothing is written.

    Args:
        component: The component.
        client: The cluster; it gets reads, and applies with dry run.
        owner: The custom resource as the server has it; it is not modified.
        clock: The time (default: the system clock).
        adopt: The default for resources without the option `konverge.options.adopt`.
        diagnosis: The examination of objects that are not ready; None examines nothing.

    Raises:
        asyncio.CancelledError: The dry run was cancelled; there is nothing to undo.
    """
    dry_run = DryRun(client, owner, clock=clock, adopt=adopt, diagnosis=diagnosis)
    with suppress(ReconcileError):  # the report has the error
        await component.reconcile(dry_run.create_context())
    return dry_run.reports[-1]


class DryRun:
    """A dry run of any number of components of one owner; each one reads the predicted writes of the earlier ones.

    `reconcile` is the runner of its contexts.

    Args:
        client: The cluster; it gets reads, and applies with dry run.
        owner: The custom resource as the server has it; it is not modified.
        clock: The time (default: the system clock).
        time_limit: The time limit of each author function; None is without a limit.
        adopt: The default for resources without the option `konverge.options.adopt`.
        diagnosis: The examination of objects that are not ready; None examines nothing.

    Attributes:
        client: The client for reconciles.
        owner: A copy of the owner, on which reconciles stage conditions.
        reports: The report of each reconcile of a component, in order.
    """

    def __init__(
        self,
        client: DryRunServer,
        owner: Object,
        *,
        clock: Clock | None = None,
        time_limit: TimeLimit | None = None,
        adopt: bool = True,
        diagnosis: Diagnosis | None = None,
    ) -> None:
        self.client: DryRunClient = DryRunClient(client)
        self.owner: Object = copy_json(owner)
        self.reports: list[DryRunReport] = []
        self._clock = clock or SystemClock()
        self._time_limit = time_limit
        self._adopt = adopt
        self._diagnosis = diagnosis
        self._takeovers: Mapping[str, tuple[str, ...]] | None = None
        self._one_at_a_time = asyncio.Lock()

    def create_context(self) -> ReconcileContext:
        """Create the context of a reconcile."""
        return ReconcileContext(
            client=self.client,
            owner=self.owner,
            clock=self._clock,
            time_limit=self._time_limit,
            runner=self.reconcile,
            adopt=self._adopt,
            diagnosis=self._diagnosis,
        )

    async def reconcile(self, component: Component, ctx: ReconcileContext) -> Condition:
        """Reconcile a component and record the report.

        Raises:
            konverge.errors.ReconcileError: A step failed; the report has the error.
        """
        async with self._one_at_a_time:
            ctx.observer = observed = InstrumentedComponent(component, self.client.secret_values)
            before, requeue_before, start = (
                ctx.condition(component.condition_type),
                ctx.requeue_at,
                len(self.client.changes),
            )
            failure: ReconcileError | None = None
            try:
                await ComponentReconcile(observed.build_component(), ctx).run()
            except ReconcileError as error:
                failure = error
            after = ctx.condition(component.condition_type)
            assert after is not None, "every reconcile stages the component's condition"
            now = ctx.clock.now()
            wakes_at = ctx.requeue_at
            if wakes_at == requeue_before:  # an earlier request of another component can hide this one
                wakes_at = None if failure is not None else requeue_time(after, component.grace_period, now)
            found = _Findings(await self._examine(observed), await self._list_takeovers())
            ended = _FinishedRun(self.client, observed, ctx, failure, self.client.changes[start:], found)
            self.reports.append(ended.build_report(before, after, wakes_at, now))
            if failure is not None:
                raise failure
            return after

    async def _list_takeovers(self) -> Mapping[str, tuple[str, ...]]:
        """Return the writers from which earlier reconciles took fields over; read once for all components."""
        if self._takeovers is None:
            self._takeovers = {} if self._diagnosis is None else await self._diagnosis.list_takeovers(self.owner)
        return self._takeovers

    async def _examine(self, observed: InstrumentedComponent) -> dict[str, tuple[str, ...]]:
        """Return the causes of the objects that are not ready, by identity, also before they are late."""
        causes: dict[str, tuple[str, ...]] = {}
        for identity, resource in observed.resources.items():
            live, _ = observed.results.get(identity, (None, None))
            judged = resource.convergence
            if self._diagnosis is None or live is None or judged is None or judged.status in READY:
                continue
            if is_examined(resource.gvk):
                found = await self._diagnosis.examine(live, reports_refusal=True)
                public = tuple(resource.key)
                causes[identity] = tuple(self.client.secret_values.hide(cause, public=public) for cause in found)
        return causes


class _Findings(NamedTuple):
    """What the objects and events beside the component show, by the identity of its resources."""

    causes: Mapping[str, tuple[str, ...]]
    takeovers: Mapping[str, tuple[str, ...]]


class _FinishedRun:
    """A finished reconcile and its records."""

    def __init__(
        self,
        client: DryRunClient,
        observed: InstrumentedComponent,
        ctx: ReconcileContext,
        failure: ReconcileError | None,
        changes: Sequence[ObjectChange],
        found: _Findings,
    ) -> None:
        self._client = client
        self._found = found
        self._observed = observed
        self._component = observed.component
        self._ctx = ctx
        self._error = "" if failure is None else str(failure)
        self._changes = tuple(changes)

    def build_report(
        self, before: Condition | None, after: Condition, wakes_at: datetime | None, now: datetime
    ) -> DryRunReport:
        component = self._component
        self._evaluate_grades()
        resources = tuple(self._build_resource_report(entry) for entry in component.entries)
        prerequisites = tuple(self._iter_prerequisite_reports(before))
        outlook = Explanation(component, before, after, self._aggregate(), resources, prerequisites, now, self._error)
        return DryRunReport(
            component=component.name,
            condition_type=component.condition_type,
            before=ConditionReport.of(before),
            after=ConditionReport.of(after),
            gate=self._observed.gate,
            prerequisites=prerequisites,
            is_suspended=component.is_suspended,
            resources=resources,
            changes=self._changes,
            rule=outlook.describe_rule(),
            next=tuple(outlook.describe_next(wakes_at)),
            grace_ends=outlook.grace_ends,
            wakes_at=wakes_at,
            error=self._error,
        )

    def _evaluate_grades(self) -> None:
        """Grade the resources also before the end of the grace period, to report the expected grade."""
        if not self._component.grace_period:
            return
        for identity, (live, _) in self._observed.results.items():
            resource = self._observed.resources[identity]
            judged = resource.convergence
            if live is None or resource.grace is not None or judged is None or judged.status in READY:
                continue
            with suppress(Exception):  # an author's code; the reconcile that grades reports the error
                self._ctx.call(resource.grace_status, live)

    def _aggregate(self) -> AggregatedStatus | None:
        if self._error or self._component.is_suspended or not self._has_begun():
            return None
        results = []
        for entry in self._component.entries:
            if entry.is_managed_later:
                continue
            live, halt = self._observed.results.get(entry.identity, (None, None))
            judged = self._observed.resources[entry.identity].convergence
            if halt is not None:
                results.append(halt)
            elif live is not None and judged is not None and not entry.treatment.is_auxiliary:
                results.append(Convergence(ConvergingStatus(judged.status), judged.reason))
        return aggregate_convergence(results)

    def _has_begun(self) -> bool:
        unmet = any(report.verdict != "Met" for report in self._observed.prerequisites)
        return self._observed.gate in ("none", "on") and not unmet

    def _iter_prerequisite_reports(self, before: Condition | None) -> Iterator[PrerequisiteReport]:
        asked = self._observed.prerequisites
        yield from asked
        for prerequisite in self._component.prerequisites[len(asked) :]:
            name = describe_prerequisite(prerequisite)
            if asked or not self._has_begun() or before is None:
                yield PrerequisiteReport(name, "not asked")
            else:
                yield PrerequisiteReport(name, "passed", f"the component has begun: it was {before.reason}")

    def _build_read_report(self, entry: RegisteredResource) -> ResourceReport:
        """Build the report of a registration that only reads an object, which a later one manages."""
        read = self._client.objects.get((entry.resource.gvk, entry.resource.key))
        outcome: ResourceOutcome = "ignored" if read is None else "read"
        if (entry.resource.gvk, entry.resource.key) not in self._client.objects:
            outcome = "not reached"
        return ResourceReport(
            identity=entry.identity,
            mode=entry.treatment.mode.value,
            is_auxiliary=True,
            outcome=outcome,
            exists=None if outcome == "not reached" else read is not None,
        )

    def _build_resource_report(self, entry: RegisteredResource) -> ResourceReport:
        if entry.is_managed_later:
            return self._build_read_report(entry)
        resource, observed = entry.resource, self._observed.resources[entry.identity]
        which = resource.gvk, resource.key
        outcome, reason = self._determine_outcome(entry)
        _, halt = self._observed.results.get(entry.identity, (None, None))
        convergence = observed.convergence
        if halt is not None:
            convergence = FunctionEvaluation(str(halt.status), halt.reason)
        is_managed = entry.treatment.mode is ResourceMode.MANAGED
        manager = build_field_manager(self._ctx.owner, self._component.name)
        return ResourceReport(
            identity=entry.identity,
            mode=entry.treatment.mode.value,
            is_auxiliary=entry.treatment.is_auxiliary,
            outcome=outcome,
            exists=self._client.objects[which] is not None if which in self._client.objects else None,
            reason=reason,
            missing_data=tuple(cell.name for cell in resource.requires if not cell.is_set) if halt is not None else (),
            guard=observed.guard,
            changes=tuple(change for change in self._changes if change.identity == entry.identity),
            convergence=convergence,
            grace=observed.grace,
            suspension=self._find_suspension(entry),
            contests=self._client.find_ownership_conflicts(*which, manager) if is_managed else (),
            adoption=self._observed.adoptions.get(entry.identity, ""),
            override=self._observed.overrides.get(entry.identity, ""),
            causes=self._found.causes.get(entry.identity, ()),
            takeovers=self._found.takeovers.get(entry.identity, ()) if is_managed else (),
        )

    def _find_suspension(self, entry: RegisteredResource) -> FunctionEvaluation | None:
        decided = self._observed.suspensions.get(entry.identity)
        asked = self._observed.resources[entry.identity].suspension
        if decided is None or asked is not None:
            return asked
        return FunctionEvaluation(str(decided.status), decided.reason)

    def _determine_outcome(self, entry: RegisteredResource) -> tuple[ResourceOutcome, str]:
        identity, mode = entry.identity, entry.treatment.mode
        if f"{identity}: " in self._error:
            return "failed", self._error
        if identity in self._observed.reasons_to_leave:
            return "left alone", self._observed.reasons_to_leave[identity]
        if identity in self._observed.results:
            live, halt = self._observed.results[identity]
            if halt is not None:
                return "halts", halt.reason
            if live is None:
                return "ignored", ""
            return ("applied" if mode is ResourceMode.MANAGED else "read"), ""
        if identity in self._observed.suspensions:
            return "suspended", ""
        was_asked = (entry.resource.gvk, entry.resource.key) in self._client.objects
        if mode is ResourceMode.ORPHAN:
            return ("released" if was_asked else "not reached"), ""
        if mode is ResourceMode.DELETE or self._observed.gate == "off":
            return ("removed" if was_asked else "not reached"), ""
        is_at_rest = self._component.is_suspended and self._has_begun() and not self._error
        return ("left alone" if is_at_rest else "not reached"), ""
