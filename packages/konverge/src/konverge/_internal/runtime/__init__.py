"""The runtime: turns changes in a cluster into reconciles of owners, and runs the process of an operator.

The input is watch events (through `konverge.cache`). The output is calls of a reconcile function, each with the owner
as it was read and a client that reads from shared caches. The runtime keeps three invariants: one key has one
reconcile at a time, and an event during it causes exactly one more (invariant 3); a reconcile reads its own writes (2);
a steady system sends no requests (1).
"""

from konverge._internal.backoff import Backoff
from konverge._internal.runtime.breaker import BreakerOptions
from konverge._internal.runtime.cached_client import CachedClient
from konverge._internal.runtime.changes import Change, MapToOwners, Predicate, generation_changed, labels_changed
from konverge._internal.runtime.controller import (
    DEFAULT_TIMEOUT,
    DEFAULT_WORKERS,
    Controller,
    PartialFailureError,
    Result,
)
from konverge._internal.runtime.controller_observer import ControllerObserver, ReconcileOutcome, ReconcileTracer
from konverge._internal.runtime.event_router import WatchedKind
from konverge._internal.runtime.owner_assignment import OwnerAssignment, build_assignment
from konverge._internal.runtime.owner_reconciler import Finalizer, OwnerKind
from konverge._internal.runtime.owner_tasks import OwnerTask
from konverge._internal.runtime.process import Process, Service
from konverge._internal.runtime.queue import KeyEvent, Queue
from konverge._internal.runtime.reconcile_failures import ReconcileTimeoutError
from konverge._internal.runtime.reconciliation import Reconciliation, ReconciliationFilter, current_reconciliation

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
    "OwnerTask",
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
