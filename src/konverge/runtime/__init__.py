"""What turns changes in a cluster into passes over owners, and keeps a process of such passes alive.

In come watch events (through `konverge.cache`); out come calls of a reconcile function, each with the owner as it was
read and a client that reads from shared caches. Kept here: per key one pass at a time, and an event during it means
exactly one more (invariant 3); a pass sees its own writes (2); a settled system sends no requests (1).
"""

from konverge.runtime.cached_client import CachedClient
from konverge.runtime.controller import DEFAULT_TIMEOUT, DEFAULT_WORKERS, Controller, FailedPassError, Result
from konverge.runtime.owners import OwnerKind
from konverge.runtime.passes import Pass, PassFilter, current_pass
from konverge.runtime.process import Process
from konverge.runtime.queue import Backoff, Moment, Queue

__all__ = [
    "DEFAULT_TIMEOUT",
    "DEFAULT_WORKERS",
    "Backoff",
    "CachedClient",
    "Controller",
    "FailedPassError",
    "Moment",
    "OwnerKind",
    "Pass",
    "PassFilter",
    "Process",
    "Queue",
    "Result",
    "current_pass",
]
