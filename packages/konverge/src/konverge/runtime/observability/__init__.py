"""How an operator is watched from outside: metrics, probes, and a page to debug it by.

In comes what controllers, clients, elections and webhooks tell as they work (`Metrics` makes the observers), and what
can be read of them at any time (`Sources`); out go ``/metrics`` with controller-runtime's names and ours, ``/livez``,
``/healthz`` and ``/readyz`` (synced *and* fresh), and behind authentication ``/debug/``. `Serving` starts and stops all
of it as one. A source, a check or a scrape that fails costs its own line, never an endpoint.

Counting happens in the event loop and takes a fraction of a microsecond; the text of a scrape is written in a thread.
No label holds the name of an object, and nothing shows the value of a Secret.
"""

from konverge.runtime.observability.authentication import (
    AccessDecision,
    Authenticator,
    ClusterAuthorization,
    TokenFileAuthenticator,
)
from konverge.runtime.observability.condition_metrics import ConditionCounts
from konverge.runtime.observability.metrics import Metrics
from konverge.runtime.observability.probes import DEFAULT_FRESHNESS, HealthCheck
from konverge.runtime.observability.reconcile_metrics import BreakerOpening, ControllerMetrics, RequestMetrics
from konverge.runtime.observability.servers import ObservabilityOptions, ObservabilityServers
from konverge.runtime.observability.sources import (
    ObservedCertificate,
    ObservedController,
    ObservedInformer,
    ObservedInformers,
    ObservedKeyEvent,
    ObservedProcess,
    ObservedQueue,
    RuntimeSources,
)
from konverge.runtime.observability.webhook_metrics import ResourceMetrics, WebhookMetrics

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
