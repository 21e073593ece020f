"""An instrumented component: its parts record their results while the engine reconciles it."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeVar, cast

from konverge._internal.component.component import Component
from konverge._internal.component.dry_run.read_recorder import FieldReadRecorder
from konverge._internal.component.dry_run.report import FunctionEvaluation, PrerequisiteReport, truncate_value
from konverge._internal.component.prerequisites import Prerequisite, PrerequisiteResult, PrerequisiteStatus
from konverge._internal.component.reconcile_context import ReconcileContext
from konverge._internal.feature import Gate
from konverge._internal.kube import Object
from konverge._internal.kube.secret_values import SecretValues
from konverge._internal.primitives.resource_protocol import (
    Convergence,
    Grace,
    GuardResult,
    Operation,
    Resource,
    Suspension,
)
from konverge.errors import format_error

__all__ = ["InstrumentedComponent", "InstrumentedResource"]

A = TypeVar("A", Convergence, Grace, Suspension)


class InstrumentedResource:
    """A resource that records each lifecycle result and the fields that the function read.

    Everything else is delegated to the resource.

    Args:
        resource: The resource.
        secrets: The values that are hidden in every text.
    """

    def __init__(self, resource: Resource, secrets: SecretValues) -> None:
        self._resource = resource
        self._secrets = secrets
        self.guard: FunctionEvaluation | None = None
        self.convergence: FunctionEvaluation | None = None
        self.grace: FunctionEvaluation | None = None
        self.suspension: FunctionEvaluation | None = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._resource, name)

    def check_guard(self) -> GuardResult:
        """Evaluate the guard, and record its result."""
        result = self._resource.check_guard()
        if isinstance(result, GuardResult):
            self.guard = FunctionEvaluation(str(result.status), self._redact_reason(result.reason))
        return result

    def converging_status(self, live: Object, operation: Operation) -> Convergence | None:
        """Return the converging status of the live object, and record it."""
        return self._record_evaluation(
            "convergence", lambda obj: self._resource.converging_status(obj, operation), live
        )

    def grace_status(self, live: Object) -> Grace | None:
        """Return the grade of the live object, and record it."""
        return self._record_evaluation("grace", self._resource.grace_status, live)

    def suspension_status(self, live: Object) -> Suspension:
        """Return the suspension status of the live object, and record it."""
        suspension = self._record_evaluation("suspension", self._resource.suspension_status, live)
        return cast("Suspension", suspension)  # the engine refuses any other type

    def _record_evaluation(self, what: str, function: Callable[[Object], A | None], live: Object) -> A | None:
        readings = FieldReadRecorder(is_secret=self._resource.gvk.is_secret, secrets=self._secrets)
        answer = function(readings.wrap_object(live))
        if isinstance(answer, Convergence | Grace | Suspension):
            setattr(
                self,
                what,
                FunctionEvaluation(str(answer.status), self._redact_reason(answer.reason), readings.list_reads()),
            )
        return answer

    def _redact_reason(self, reason: object) -> Any:
        """Redact a reason for the report; the engine refuses a value that is not a string."""
        key = self._resource.key
        return truncate_value(self._secrets.hide(reason, public=tuple(key)) if isinstance(reason, str) else reason)


@dataclass(slots=True)
class InstrumentedComponent:
    """A component and the records of one reconcile; the observer of its resources.

    Args:
        component: The component.
        secrets: The values that are hidden in every text.
    """

    component: Component
    secrets: SecretValues
    resources: dict[str, InstrumentedResource] = field(default_factory=dict)
    results: dict[str, tuple[Object | None, Convergence | None]] = field(default_factory=dict)
    """By identity: the live object after step 4, and the reason why it halts the component."""
    suspensions: dict[str, Suspension] = field(default_factory=dict)
    adoptions: dict[str, str] = field(default_factory=dict)
    """By identity: the report of an adoption."""
    reasons_to_leave: dict[str, str] = field(default_factory=dict)
    """By identity: the reason why an object that is marked for deletion stays."""
    overrides: dict[str, str] = field(default_factory=dict)
    gate: Literal["none", "on", "off", "Error"] = "none"
    prerequisites: list[PrerequisiteReport] = field(default_factory=list)
    """The prerequisites that were checked."""

    def on_processed(self, identity: str, live: Object | None, halt: Convergence | None) -> None:
        """Record the result of a resource."""
        self.results[identity] = live, halt

    def on_suspended(self, identity: str, suspension: Suspension) -> None:
        """Record the suspension status of a resource."""
        self.suspensions[identity] = suspension

    def on_adopted(self, identity: str, message: str) -> None:
        """Record the adoption of an object."""
        self.adoptions[identity] = message

    def on_left_alone(self, identity: str, message: str) -> None:
        """Record the reason why an object is not deleted."""
        self.reasons_to_leave[identity] = message

    def on_overridden(self, identity: str, message: str) -> None:
        """Record the fields that would be stored with other values."""
        self.overrides[identity] = message

    def build_component(self) -> Component:
        """Build the component with instrumented parts."""
        component = self.component
        entries = []
        for entry in component.entries:
            if entry.is_managed_later:  # the later registration has the report of the object
                entries.append(entry)
                continue
            resource = InstrumentedResource(entry.resource, self.secrets)
            self.resources[entry.identity] = resource
            entries.append(replace(entry, resource=cast("Resource", resource)))
        return replace(
            component,
            entries=tuple(entries),
            gate=None if component.gate is None else _InstrumentedGate(component.gate, self),
            prerequisites=tuple(
                _InstrumentedPrerequisite(prerequisite, self.prerequisites) for prerequisite in component.prerequisites
            ),
        )


class _InstrumentedGate:
    def __init__(self, gate: Gate, observed: InstrumentedComponent) -> None:
        self._gate = gate
        self._observed = observed

    def enabled(self) -> bool:
        self._observed.gate = "Error"
        enabled = self._gate.enabled()
        if isinstance(enabled, bool):  # the engine refuses any other type
            self._observed.gate = "on" if enabled else "off"
        return enabled


class _InstrumentedPrerequisite:
    def __init__(self, prerequisite: Prerequisite, reports: list[PrerequisiteReport]) -> None:
        self._prerequisite = prerequisite
        self._reports = reports

    def check(self, ctx: ReconcileContext) -> PrerequisiteResult | Awaitable[PrerequisiteResult]:
        try:
            checked = self._prerequisite.check(ctx)
        except Exception as error:
            self._append_report("Error", format_error(error))
            raise
        return self._await_result(checked) if inspect.isawaitable(checked) else self._record_result(checked)

    async def _await_result(self, pending: Awaitable[PrerequisiteResult]) -> PrerequisiteResult:
        try:
            return self._record_result(await pending)
        except Exception as error:
            self._append_report("Error", format_error(error))
            raise

    def _record_result(self, result: PrerequisiteResult) -> PrerequisiteResult:
        verdict = getattr(result, "status", None)
        if verdict in tuple(PrerequisiteStatus):
            self._append_report(
                "Met" if verdict == PrerequisiteStatus.MET else "NotMet", str(getattr(result, "reason", ""))
            )
        return result

    def _append_report(self, verdict: Literal["Met", "NotMet", "Error"], reason: str) -> None:
        self._reports.append(PrerequisiteReport(describe_prerequisite(self._prerequisite), verdict, reason))


def describe_prerequisite(prerequisite: Prerequisite) -> str:
    """Return the name of a prerequisite: the condition that it waits for, or the name of its class."""
    condition_type = getattr(prerequisite, "condition_type", "")
    return f"depends on {condition_type}" if condition_type else type(prerequisite).__name__
