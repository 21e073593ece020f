"""The names, labels and buckets of all exported metrics, as tables.

The first table is controller-runtime's (``pkg/internal/controller/metrics``, ``pkg/internal/metrics/workqueue.go``,
``pkg/metrics``, ``pkg/webhook/internal/metrics``, ``pkg/certwatcher/metrics`` as of August 2026): existing dashboards
and alerts use these names, so konverge must not change them. The second table is konverge's own.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate, repeat
from operator import mul
from typing import Literal

__all__ = ["EXCEEDED", "MetricFamily"]

EXCEEDED = "exceeded_cardinality_limit"
"""Label value of all series beyond the limit, named as in controller-runtime."""

# client_golang multiplies by ten each time, including rounding errors, which are part of the label ``le``.
_NANOSECONDS_TO_MINUTES = tuple(accumulate(repeat(10.0, 11), mul, initial=10e-9))
_RECONCILE = (
    *(0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0),
    *(1.25, 1.5, 1.75, 2.0, 2.5, 3.0, 3.5, 4.0, 4.5, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0),
    *(15.0, 20.0, 25.0, 30.0, 40.0, 50.0, 60.0),
)
_REQUEST_SECONDS = (0.005, 0.025, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0, 60.0)
_REQUEST_BYTES = (64.0, 256.0, 512.0, 1024.0, *(4.0**power for power in range(6, 13)))
_PAUSES = (0.0001, 0.0005, 0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)
_FEW = (0.0, 1.0, 2.0, 3.0, 5.0, 8.0, 13.0, 21.0, 34.0, 55.0, 100.0)


@dataclass(frozen=True, slots=True)
class MetricFamily:
    """One metric with all its series.

    Args:
        name: The exposed name; a counter's ends with ``_total``.
        kind: The type of the metric.
        help: Its meaning.
        labels: The label names, in the order of their values.
        bounds: A histogram's upper bounds, without the infinite one.
    """

    name: str
    kind: Literal["counter", "gauge", "histogram"]
    help: str
    labels: tuple[str, ...] = ()
    bounds: tuple[float, ...] = ()


# Metrics with controller-runtime's names.

_CONTROLLER = ("controller",)
_QUEUE = ("name", "controller")

RECONCILE_TOTAL = MetricFamily(
    "controller_runtime_reconcile_total", "counter", "Reconciles by result", ("controller", "result")
)
RECONCILE_ERRORS = MetricFamily(
    "controller_runtime_reconcile_errors_total", "counter", "Reconciles that failed", _CONTROLLER
)
TERMINAL_ERRORS = MetricFamily(
    "controller_runtime_terminal_reconcile_errors_total",
    "counter",
    "Reconciles that failed and are not retried before a change",
    _CONTROLLER,
)
RECONCILE_PANICS = MetricFamily(
    "controller_runtime_reconcile_panics_total",
    "counter",
    "Always 0: an exception of a reconcile function is an error, whatever its class",
    _CONTROLLER,
)
RECONCILE_TIMEOUTS = MetricFamily(
    "controller_runtime_reconcile_timeouts_total",
    "counter",
    "Reconciles that were cancelled because they exceeded their time limit",
    _CONTROLLER,
)
RECONCILE_SECONDS = MetricFamily(
    "controller_runtime_reconcile_time_seconds",
    "histogram",
    "Duration of reconciles in seconds",
    _CONTROLLER,
    _RECONCILE,
)
MAX_CONCURRENT = MetricFamily(
    "controller_runtime_max_concurrent_reconciles", "gauge", "Maximum number of concurrent reconciles", _CONTROLLER
)
ACTIVE_WORKERS = MetricFamily("controller_runtime_active_workers", "gauge", "Number of running reconciles", _CONTROLLER)

DEPTH = MetricFamily("workqueue_depth", "gauge", "Due keys that wait for a worker, by priority", (*_QUEUE, "priority"))
ADDS = MetricFamily("workqueue_adds_total", "counter", "Keys added to the queue", _QUEUE)
QUEUE_SECONDS = MetricFamily(
    "workqueue_queue_duration_seconds",
    "histogram",
    "Time that due keys waited for a worker in seconds",
    _QUEUE,
    _NANOSECONDS_TO_MINUTES,
)
WORK_SECONDS = MetricFamily(
    "workqueue_work_duration_seconds",
    "histogram",
    "Time of processing keys in seconds",
    _QUEUE,
    _NANOSECONDS_TO_MINUTES,
)
UNFINISHED_SECONDS = MetricFamily(
    "workqueue_unfinished_work_seconds", "gauge", "Seconds since the start of all running keys", _QUEUE
)
LONGEST_SECONDS = MetricFamily(
    "workqueue_longest_running_processor_seconds",
    "gauge",
    "Seconds since the start of the longest running key",
    _QUEUE,
)
RETRIES = MetricFamily(
    "workqueue_retries_total",
    "counter",
    "Keys requeued for later: after a failure, or because their reconcile requested it",
    _QUEUE,
)

_VERB_HOST = ("verb", "host")
REQUESTS = MetricFamily(
    "rest_client_requests_total", "counter", "Requests to the API server", ("code", "method", "host")
)
REQUEST_SECONDS = MetricFamily(
    "rest_client_request_duration_seconds", "histogram", "Duration of requests in seconds", _VERB_HOST, _REQUEST_SECONDS
)
REQUEST_BYTES = MetricFamily(
    "rest_client_request_size_bytes", "histogram", "Size of request bodies in bytes", _VERB_HOST, _REQUEST_BYTES
)
RESPONSE_BYTES = MetricFamily(
    "rest_client_response_size_bytes", "histogram", "Size of response bodies in bytes", _VERB_HOST, _REQUEST_BYTES
)
REQUEST_RETRIES = MetricFamily(
    "rest_client_request_retries_total",
    "counter",
    "Requests that were retried, by the result of the previous attempt",
    ("code", *_VERB_HOST),
)

LEADER = MetricFamily(
    "leader_election_master_status", "gauge", "1 while this process holds the Lease, 0 while it stands by", ("name",)
)
CERTIFICATE_READS = MetricFamily(
    "certwatcher_read_certificate_total", "counter", "Number of successful reads of certificates"
)
CERTIFICATE_ERRORS = MetricFamily(
    "certwatcher_read_certificate_errors_total", "counter", "Number of failed reads of certificates"
)

WEBHOOK_SECONDS = MetricFamily(
    "controller_runtime_webhook_latency_seconds",
    "histogram",
    "Duration of admission requests in seconds",
    ("webhook",),
    _NANOSECONDS_TO_MINUTES,
)
WEBHOOK_REQUESTS = MetricFamily(
    "controller_runtime_webhook_requests_total",
    "counter",
    "Admission requests by HTTP status",
    ("webhook", "code"),
)
WEBHOOK_IN_FLIGHT = MetricFamily(
    "controller_runtime_webhook_requests_in_flight", "gauge", "Running admission requests", ("webhook",)
)

# Metrics with konverge's own names.

BUILD = MetricFamily("konverge_build_info", "gauge", "Always 1; the label is the version of konverge", ("version",))

WEBHOOK_REFUSED = MetricFamily(
    "konverge_webhook_refused_requests_total",
    "counter",
    "Webhook requests that were refused before any handler ran",
    ("reason",),
)
DELAYED = MetricFamily("konverge_queue_delayed", "gauge", "Keys that wait for a later time", _QUEUE)
EVENT_TO_RECONCILE = MetricFamily(
    "konverge_event_to_reconcile_seconds",
    "histogram",
    "Time from the first change that triggered a reconcile to its start in seconds",
    _CONTROLLER,
    _NANOSECONDS_TO_MINUTES,
)
RECONCILE_REQUESTS = MetricFamily(
    "konverge_reconcile_requests", "histogram", "Requests to the API server in one reconcile", _CONTROLLER, _FEW
)
RECONCILE_WRITES = MetricFamily(
    "konverge_reconcile_writes",
    "histogram",
    "Write requests in one reconcile",
    _CONTROLLER,
    _FEW,
)
RECONCILE_NOOPS = MetricFamily(
    "konverge_reconcile_noop_total", "counter", "Reconciles without a write request", _CONTROLLER
)
BREAKER = MetricFamily(
    "konverge_breaker_opened_total",
    "counter",
    "Times the breaker slowed down an object that never became steady",
    _CONTROLLER,
)

_APPLIED = ("controller", "owner_kind", "component", "resource", "kind")
APPLIES = MetricFamily(
    "konverge_resource_apply_total",
    "counter",
    "Resources in their desired state; operation none: they matched, and no request was sent",
    (*_APPLIED, "operation"),
)
APPLY_ERRORS = MetricFamily(
    "konverge_resource_apply_errors_total",
    "counter",
    "Resources whose desired state could not be applied",
    _APPLIED,
)

DELETIONS = MetricFamily(
    "konverge_deleting_owners", "gauge", "Owners that are being deleted and still exist", _CONTROLLER
)
OLDEST_DELETION = MetricFamily(
    "konverge_oldest_deletion_seconds",
    "gauge",
    "Seconds since the oldest deletion timestamp of an existing owner; 0 for none",
    _CONTROLLER,
)

CONDITIONS = MetricFamily(
    "konverge_conditions",
    "gauge",
    "Owners by the state of each of their conditions",
    ("kind", "condition", "status", "reason"),
)
OWNER_CONDITION = MetricFamily(
    "konverge_controller_condition",
    "gauge",
    "One owner's condition: the time of its last transition, in Unix seconds",
    ("controller", "kind", "name", "namespace", "condition", "status", "reason", "id"),
)
CONDITIONS_LEFT_OUT = MetricFamily(
    "konverge_conditions_left_out_total", "counter", "Conditions not counted because of the limit on owners"
)

_KIND = ("group", "version", "kind")
INFORMER_SYNCED = MetricFamily("konverge_informer_synced", "gauge", "1 if the cache of the kind is synced", _KIND)
INFORMER_AGE = MetricFamily(
    "konverge_informer_age_seconds",
    "gauge",
    "Seconds since the server last confirmed that the cache is up to date",
    _KIND,
)
INFORMER_OBJECTS = MetricFamily("konverge_informer_objects", "gauge", "Number of cached objects", _KIND)
INFORMER_DROPPED = MetricFamily(
    "konverge_informer_dropped_objects", "gauge", "Number of existing objects that are not cached", _KIND
)
INFORMER_UNCONFIRMED = MetricFamily(
    "konverge_informer_unconfirmed_writes", "gauge", "Own writes that the watch has not shown yet", _KIND
)
INFORMER_WRITE_LAG = MetricFamily(
    "konverge_informer_own_write_lag_seconds",
    "gauge",
    "Age of the oldest unconfirmed own write in seconds; 0 for none",
    _KIND,
)
INFORMER_LISTS = MetricFamily("konverge_informer_lists_total", "counter", "Number of full lists", _KIND)
INFORMER_LIST_SECONDS = MetricFamily(
    "konverge_informer_list_seconds_total", "counter", "Seconds spent on full lists", _KIND
)
INFORMER_ITEMS = MetricFamily(
    "konverge_informer_items_listed_total", "counter", "Number of objects in full lists", _KIND
)
INFORMER_LISTED = MetricFamily(
    "konverge_informer_since_list_seconds", "gauge", "Seconds since the last full list was requested", _KIND
)
INFORMER_WATCHES = MetricFamily("konverge_informer_watches_total", "counter", "Number of watches opened", _KIND)
INFORMER_SHORT_WATCHES = MetricFamily(
    "konverge_informer_short_watches_total", "counter", "Watches that ended at once without an event", _KIND
)
INFORMER_WATCH_SECONDS = MetricFamily(
    "konverge_informer_watch_seconds_total", "counter", "Seconds for which watches were open", _KIND
)
INFORMER_EVENTS = MetricFamily("konverge_informer_events_total", "counter", "Number of watch events", _KIND)
INFORMER_STALE_EVENTS = MetricFamily(
    "konverge_informer_stale_events_total", "counter", "Watch events older than the cached object", _KIND
)
INFORMER_LEFT_OUT = MetricFamily(
    "konverge_informer_left_out_total", "counter", "Objects that could not be decoded or transformed", _KIND
)
INFORMER_REVISION = MetricFamily(
    "konverge_informer_last_resource_version",
    "gauge",
    "Resource version up to which the cache is complete; the last 15 digits",
    _KIND,
)

LOOP_LAG = MetricFamily(
    "konverge_event_loop_lag_seconds", "histogram", "Lag of the event loop for a timer in seconds", (), _PAUSES
)
GC_PAUSE = MetricFamily(
    "konverge_gc_pause_seconds",
    "histogram",
    "Duration of garbage collector pauses in seconds",
    ("generation",),
    _PAUSES,
)
TASKS = MetricFamily("konverge_tasks", "gauge", "Number of tasks in the event loop")
