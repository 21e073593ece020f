"""Observability of an operator: metrics, probes, and a debug page.

The input is the events of controllers, clients, elections and webhooks (`Metrics` makes their observers), and the state
that can be read of them at any time (`RuntimeSources`). The output is ``/metrics`` with the names of controller-runtime
and of konverge; ``/livez``, ``/healthz`` and ``/readyz`` (synced *and* fresh); and ``/debug/`` behind authentication.
`ObservabilityServers` starts and stops all servers together. A source, a check or a scrape that fails costs its own
line, never an endpoint.

Counting happens in the event loop and takes a fraction of a microsecond; a thread writes the text of a scrape. No label
contains the name of an object, and no output contains the value of a Secret.
"""

from konverge._internal.runtime.observability.authentication import (
    AccessDecision,
    Authenticator,
    ClusterAuthorization,
    TokenFileAuthenticator,
)
from konverge._internal.runtime.observability.condition_metrics import ConditionCounts
from konverge._internal.runtime.observability.metrics import Metrics
from konverge._internal.runtime.observability.probes import DEFAULT_FRESHNESS, HealthCheck
from konverge._internal.runtime.observability.reconcile_metrics import BreakerOpening, ControllerMetrics, RequestMetrics
from konverge._internal.runtime.observability.servers import ObservabilityOptions, ObservabilityServers
from konverge._internal.runtime.observability.sources import (
    ObservedCertificate,
    ObservedController,
    ObservedInformer,
    ObservedInformers,
    ObservedKeyEvent,
    ObservedProcess,
    ObservedQueue,
    RuntimeSources,
)
from konverge._internal.runtime.observability.webhook_metrics import ResourceMetrics, WebhookMetrics

__all__ = [
    "DEFAULT_FRESHNESS",
    "AccessDecision",
    "Authenticator",
    "BreakerOpening",
    "ClusterAuthorization",
    "ConditionCounts",
    "ControllerMetrics",
    "HealthCheck",
    "Metrics",
    "ObservabilityOptions",
    "ObservabilityServers",
    "ObservedCertificate",
    "ObservedController",
    "ObservedInformer",
    "ObservedInformers",
    "ObservedKeyEvent",
    "ObservedProcess",
    "ObservedQueue",
    "RequestMetrics",
    "ResourceMetrics",
    "RuntimeSources",
    "TokenFileAuthenticator",
    "WebhookMetrics",
]
