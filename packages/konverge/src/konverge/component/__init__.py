"""Components: a feature's objects, applied in order and reported as one condition on the owner.

In go the owner and the resources that an author registered with `ComponentBuilder`; out come server-side applies of
what differs, deletes of what is to go, and one staged condition. `ReconcileContext.flush_status` writes the owner's
status once. The engine needs a cluster only through the `Client` protocol of five verbs, so it runs in our runtime, in
a kopf handler and in a script alike.

Kept here: a settled component sends no request (invariant 1), a pass that stops anywhere is completed by the next one
(5), status is written at most once a pass (4).
"""

from konverge.component.applied_cache import AppliedCache
from konverge.component.builder import ComponentBuilder
from konverge.component.client_protocol import ApplyResult, ComponentClient
from konverge.component.component import Component, ReconcileObserver
from konverge.component.component_spec import Unplannable
from konverge.component.condition_reason import ConditionReason
from konverge.component.data_flow import DataEdge
from konverge.component.owner_condition import aggregate, summarize_conditions
from konverge.component.prerequisites import Prerequisite, PrerequisiteResult, PrerequisiteStatus
from konverge.component.reconcile_context import ReconcileContext
from konverge.component.reporting import ApplyMetrics, ConditionMetrics, EventRecorder
from konverge.component.time_limit import TimeLimit, call_with_limit

__all__ = [
    "AppliedCache",
    "ApplyMetrics",
    "ApplyResult",
    "Component",
    "ComponentBuilder",
    "ComponentClient",
    "ConditionMetrics",
    "ConditionReason",
    "DataEdge",
    "EventRecorder",
    "Prerequisite",
    "PrerequisiteResult",
    "PrerequisiteStatus",
    "ReconcileContext",
    "ReconcileObserver",
    "TimeLimit",
    "Unplannable",
    "aggregate",
    "call_with_limit",
    "summarize_conditions",
]
