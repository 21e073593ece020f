"""What turns changes in a cluster into passes over owners, and keeps a process of such passes alive.

In come watch events (through `konverge.cache`); out come calls of a reconcile function, each with the owner as it was
read and a client that reads from shared caches. Kept here: per key one pass at a time, and an event during it means
exactly one more (invariant 3); a pass sees its own writes (2); a settled system sends no requests (1).
"""

from konverge.client.retries import Backoff
from konverge.runtime.breaker import BreakerOptions
from konverge.runtime.cached_client import CachedClient
from konverge.runtime.changes import Change, MapToOwners, Predicate, generation_changed, labels_changed
from konverge.runtime.controller import (
    DEFAULT_TIMEOUT,
    DEFAULT_WORKERS,
    Controller,
    PartialFailureError,
    ReconcileTimeoutError,
    Result,
)
from konverge.runtime.controller_observer import ControllerObserver, ReconcileOutcome, ReconcileTracer
from konverge.runtime.event_router import WatchedKind
from konverge.runtime.owner_assignment import OwnerAssignment, build_assignment
from konverge.runtime.owner_reconciler import Finalizer, OwnerKind
from konverge.runtime.process import Process, Service
from konverge.runtime.queue import KeyEvent, Queue
from konverge.runtime.reconciliation import Reconciliation, ReconciliationFilter, current_reconciliation

__all__ = [
    "DEFAULT_TIMEOUT",
    "DEFAULT_WORKERS",
    "Backoff",
    "BreakerOptions",
    "CachedClient",
    "Change",
    "Controller",
    "ControllerObserver",
    "Finalizer",
    "KeyEvent",
    "MapToOwners",
    "OwnerAssignment",
    "OwnerKind",
    "PartialFailureError",
    "Predicate",
    "Process",
    "Queue",
    "ReconcileOutcome",
    "ReconcileTimeoutError",
    "ReconcileTracer",
    "Reconciliation",
    "ReconciliationFilter",
    "Result",
    "Service",
    "WatchedKind",
    "build_assignment",
    "current_reconciliation",
    "generation_changed",
    "labels_changed",
]
