"""Components outside of an operator: the builder, the component, its conditions and prerequisites."""

from __future__ import annotations

from konverge._internal.component import (
    AppliedCache,
    ApplyMetrics,
    ApplyResult,
    Component,
    ComponentBuilder,
    ComponentClient,
    ComponentRunner,
    ConditionMetrics,
    ConditionReason,
    Diagnosis,
    EventRecorder,
    Prerequisite,
    PrerequisiteResult,
    PrerequisiteStatus,
    ReconcileContext,
    TimeLimit,
    Unplannable,
    aggregate,
    delete_in_waves,
    summarize_conditions,
)

__all__ = [
    "AppliedCache",
    "ApplyMetrics",
    "ApplyResult",
    "Component",
    "ComponentBuilder",
    "ComponentClient",
    "ComponentRunner",
    "ConditionMetrics",
    "ConditionReason",
    "Diagnosis",
    "EventRecorder",
    "Prerequisite",
    "PrerequisiteResult",
    "PrerequisiteStatus",
    "ReconcileContext",
    "TimeLimit",
    "Unplannable",
    "aggregate",
    "delete_in_waves",
    "summarize_conditions",
]
