"""The runtime: turns changes in a cluster into reconciles of owners, and runs the process of an operator.

The input is watch events (through `konverge.cache`). The output is calls of a reconcile function, each with the owner
as it was read and a client that reads from shared caches. The runtime keeps three invariants: one key has one
reconcile at a time, and an event during it causes exactly one more (invariant 3); a reconcile reads its own writes (2);
a steady system sends no requests (1).
"""

from konverge.backoff import Backoff
from konverge.runtime.breaker import BreakerOptions
from konverge.runtime.cached_client import CachedClient
from konverge.runtime.changes import Change, MapToOwners, Predicate, generation_changed, labels_changed
from konverge.runtime.controller import (
    DEFAULT_TIMEOUT,
    DEFAULT_WORKERS,
    Controller,
    PartialFailureError,
    Result,
)
from konverge.runtime.controller_observer import ControllerObserver, ReconcileOutcome, ReconcileTracer
from konverge.runtime.event_router import WatchedKind
from konverge.runtime.owner_assignment import OwnerAssignment, build_assignment
from konverge.runtime.owner_reconciler import Finalizer, OwnerKind
from konverge.runtime.process import Process, Service
from konverge.runtime.queue import KeyEvent, Queue
from konverge.runtime.reconcile_failures import ReconcileTimeoutError
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
