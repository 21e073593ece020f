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
    FailedPassError,
    PassTimeoutError,
    Result,
)
from konverge.runtime.observing import ControllerObserver, Outcome, PassTracer
from konverge.runtime.owners import Finalizer, OwnerKind
from konverge.runtime.passes import Pass, PassFilter, current_pass
from konverge.runtime.process import Process, Service
from konverge.runtime.queue import Moment, Queue
from konverge.runtime.routing import WatchedKind
from konverge.runtime.tenure import Tenure, tenure_of

__all__ = [
    "DEFAULT_TIMEOUT",
    "DEFAULT_WORKERS",
    "Backoff",
    "BreakerOptions",
    "CachedClient",
    "Change",
    "Controller",
    "ControllerObserver",
    "FailedPassError",
    "Finalizer",
    "MapToOwners",
    "Moment",
    "Outcome",
    "OwnerKind",
    "Pass",
    "PassFilter",
    "PassTimeoutError",
    "PassTracer",
    "Predicate",
    "Process",
    "Queue",
    "Result",
    "Service",
    "Tenure",
    "WatchedKind",
    "current_pass",
    "generation_changed",
    "labels_changed",
    "tenure_of",
]
