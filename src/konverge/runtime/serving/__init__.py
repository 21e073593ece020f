"""How an operator is watched from outside: metrics, probes, and a page to debug it by.

In comes what controllers, clients, elections and webhooks tell as they work (`Metrics` makes the observers), and what
can be read of them at any time (`Sources`); out go ``/metrics`` with controller-runtime's names and ours, ``/livez``,
``/healthz`` and ``/readyz`` (synced *and* fresh), and behind authentication ``/debug/``. `Serving` starts and stops all
of it as one. A source, a check or a scrape that fails costs its own line, never an endpoint.

Counting happens in the event loop and takes a fraction of a microsecond; the text of a scrape is written in a thread.
No label holds the name of an object, and nothing shows the value of a Secret.
"""

from konverge.runtime.serving.authentication import Authenticator, ClusterAuthorization, Decision, TokenFile
from konverge.runtime.serving.metrics import Metrics
from konverge.runtime.serving.observed_conditions import ConditionCounts
from konverge.runtime.serving.observed_passes import BreakerOpening, ControllerMetrics, RequestMetrics
from konverge.runtime.serving.observed_servers import ResourceMetrics, WebhookMetrics
from konverge.runtime.serving.probes import DEFAULT_FRESHNESS, Check
from konverge.runtime.serving.serving import Serving, ServingOptions
from konverge.runtime.serving.sources import (
    ObservedCertificate,
    ObservedController,
    ObservedInformer,
    ObservedInformers,
    ObservedMoment,
    ObservedProcess,
    ObservedQueue,
    Sources,
)

__all__ = [
    "DEFAULT_FRESHNESS",
    "Authenticator",
    "BreakerOpening",
    "Check",
    "ClusterAuthorization",
    "ConditionCounts",
    "ControllerMetrics",
    "Decision",
    "Metrics",
    "ObservedCertificate",
    "ObservedController",
    "ObservedInformer",
    "ObservedInformers",
    "ObservedMoment",
    "ObservedProcess",
    "ObservedQueue",
    "RequestMetrics",
    "ResourceMetrics",
    "Serving",
    "ServingOptions",
    "Sources",
    "TokenFile",
    "WebhookMetrics",
]
