"""Options and types of the runtime that author code can meet."""

from __future__ import annotations

from konverge._internal.runtime import (
    DEFAULT_TIMEOUT,
    DEFAULT_WORKERS,
    Backoff,
    BreakerOptions,
    CachedClient,
    MapToOwners,
    Predicate,
    ReconcileTimeoutError,
    ReconcileTracer,
    Reconciliation,
    current_reconciliation,
)
from konverge._internal.runtime.election import (
    LeaderElection,
    Sharding,
)

__all__ = [
    "DEFAULT_TIMEOUT",
    "DEFAULT_WORKERS",
    "Backoff",
    "BreakerOptions",
    "CachedClient",
    "LeaderElection",
    "MapToOwners",
    "Predicate",
    "ReconcileTimeoutError",
    "ReconcileTracer",
    "Reconciliation",
    "Sharding",
    "current_reconciliation",
]
