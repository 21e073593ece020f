"""A component that takes note of what its parts answer, while the engine runs it as it runs any other."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeVar, cast

from konverge.component.component import Component
from konverge.component.dry_run.read_recorder import FieldReadRecorder
from konverge.component.dry_run.report import FunctionEvaluation, PrerequisiteReport, truncate_value
from konverge.component.prerequisites import Prerequisite, PrerequisiteResult, PrerequisiteStatus
from konverge.component.reconcile_context import ReconcileContext
from konverge.errors import format_error
from konverge.feature import Gate
from konverge.kube import Object
from konverge.kube.secret_values import SecretValues
from konverge.primitives.resource_protocol import (
    Convergence,
    Grace,
    GuardResult,
    Operation,
    Resource,
    Suspension,
)

__all__ = ["InstrumentedComponent", "InstrumentedResource"]

A = TypeVar("A", Convergence, Grace, Suspension)


class InstrumentedResource:
    """A resource, with a note of each lifecycle answer and of the fields that it came from.

    Everything else is the resource's own.

    Args:
        resource: The resource.
        secrets: What is not shown, wherever it is.
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
        """Ask the guard."""
        result = self._resource.check_guard()
        if isinstance(result, GuardResult):
            self.guard = FunctionEvaluation(str(result.status), self._redact_reason(result.reason))
        return result

    def converging_status(self, live: Object, operation: Operation) -> Convergence | None:
        """Judge the live object."""
        return self._record_evaluation(
            "convergence", lambda obj: self._resource.converging_status(obj, operation), live
        )

    def grace_status(self, live: Object) -> Grace | None:
        """Grade the live object."""
        return self._record_evaluation("grace", self._resource.grace_status, live)

    def suspension_status(self, live: Object) -> Suspension:
        """How far the live object is suspended."""
        found = self._record_evaluation("suspension", self._resource.suspension_status, live)
        return cast("Suspension", found)  # the engine refuses what is none

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
        """A reason as it is told; what is no text, the engine refuses."""
        key = self._resource.key
        return truncate_value(self._secrets.hide(reason, public=tuple(key)) if isinstance(reason, str) else reason)


@dataclass(slots=True)
class InstrumentedComponent:
    """A component and the notes of one pass over it.

    Args:
        component: The component.
        secrets: What is not shown, wherever it is.
    """

    component: Component
    secrets: SecretValues
    resources: dict[str, InstrumentedResource] = field(default_factory=dict)
    results: dict[str, tuple[Object | None, Convergence | None]] = field(default_factory=dict)
    """By identity: the live object that step 4 left, and why it halts the component."""
    suspensions: dict[str, Suspension] = field(default_factory=dict)
    adoptions: dict[str, str] = field(default_factory=dict)
    """By identity: whose an object is that would be taken over."""
    reasons_to_leave: dict[str, str] = field(default_factory=dict)
    """By identity: why an object that is to be deleted stays."""
    overrides: dict[str, str] = field(default_factory=dict)
    gate: Literal["none", "on", "off", "Error"] = "none"
    prerequisites: list[PrerequisiteReport] = field(default_factory=list)
    """Those that were asked."""

    def build_component(self) -> Component:
        """The component whose parts take note."""
        component = self.component
        entries = []
        for entry in component.entries:
            resource = InstrumentedResource(entry.resource, self.secrets)
            self.resources[entry.identity] = resource
            entries.append(replace(entry, resource=cast("Resource", resource)))
        return replace(
            component,
            entries=tuple(entries),
            gate=None if component.gate is None else _InstrumentedGate(component.gate, self),
            prerequisites=tuple(
                _InstrumentedPrerequisite(each, self.prerequisites) for each in component.prerequisites
            ),
        )


class _InstrumentedGate:
    def __init__(self, gate: Gate, observed: InstrumentedComponent) -> None:
        self._gate = gate
        self._observed = observed

    def enabled(self) -> bool:
        self._observed.gate = "Error"
        enabled = self._gate.enabled()
        if isinstance(enabled, bool):  # the engine refuses what is none
            self._observed.gate = "on" if enabled else "off"
        return enabled


class _InstrumentedPrerequisite:
    def __init__(self, prerequisite: Prerequisite, stories: list[PrerequisiteReport]) -> None:
        self._prerequisite = prerequisite
        self._reports = stories

    def check(self, ctx: ReconcileContext) -> PrerequisiteResult | Awaitable[PrerequisiteResult]:
        try:
            asked = self._prerequisite.check(ctx)
        except Exception as error:
            self._append_report("Error", format_error(error))
            raise
        return self._await_result(asked) if inspect.isawaitable(asked) else self._record_result(asked)

    async def _await_result(self, asked: Awaitable[PrerequisiteResult]) -> PrerequisiteResult:
        try:
            return self._record_result(await asked)
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
    """What to call it: the condition that it waits for, or the name of its class."""
    condition_type = getattr(prerequisite, "condition_type", "")
    return f"depends on {condition_type}" if condition_type else type(prerequisite).__name__
