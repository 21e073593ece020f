"""Components: the objects of one feature, applied in order and reported as one condition on the owner.

The input is the owner and the resources that an author registered with `ComponentBuilder`. The output is server-side
applies of objects that differ, deletes, and one staged condition. `ReconcileContext.flush_status` writes the owner's
status once. The engine uses a cluster only through the protocol `ComponentClient` with five verbs. Therefore it runs in
konverge's runtime, in a kopf handler and in a script.

Invariants: a steady component sends no request (1); the next reconcile completes one that stopped anywhere (5); a
reconcile writes the status at most once (4).
"""

from konverge._internal.component.applied_cache import AppliedCache
from konverge._internal.component.builder import ComponentBuilder
from konverge._internal.component.client_protocol import ApplyResult, ComponentClient
from konverge._internal.component.component import Component
from konverge._internal.component.component_spec import Unplannable
from konverge._internal.component.condition_reason import ConditionReason
from konverge._internal.component.data_flow import DataEdge
from konverge._internal.component.diagnosis import Diagnosis
from konverge._internal.component.owner_condition import aggregate, summarize_conditions
from konverge._internal.component.prerequisites import Prerequisite, PrerequisiteResult, PrerequisiteStatus
from konverge._internal.component.reconcile_context import ComponentRunner, ReconcileContext
from konverge._internal.component.reporting import ApplyMetrics, ConditionMetrics, EventRecorder
from konverge._internal.component.time_limit import TimeLimit, call_with_limit
from konverge._internal.component.wave_deletion import DeletionWaveReport, delete_in_waves, list_waves

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
    "DataEdge",
    "DeletionWaveReport",
    "Diagnosis",
    "EventRecorder",
    "Prerequisite",
    "PrerequisiteResult",
    "PrerequisiteStatus",
    "ReconcileContext",
    "TimeLimit",
    "Unplannable",
    "aggregate",
    "call_with_limit",
    "delete_in_waves",
    "list_waves",
    "summarize_conditions",
]
