"""The state of a running operator for metrics, probes and the debug page: small read-only ports, and their sources.

Everything here is read in the event loop, at a scrape or a probe, and must not wait. The runtime's own classes
implement these protocols; an author's replacements may too.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence, Sized
from dataclasses import dataclass
from typing import Any, Protocol

from konverge._internal.cache import InformerStatistics
from konverge._internal.kube import GroupVersionKind, ObjectKey
from konverge.errors import KonvergeError

__all__ = [
    "ObservedCertificate",
    "ObservedController",
    "ObservedInformer",
    "ObservedInformers",
    "ObservedKeyEvent",
    "ObservedProcess",
    "ObservedQueue",
    "RuntimeSources",
]


class ObservedKeyEvent(Protocol):
    """One entry in the history of a key."""

    @property
    def time(self) -> float:
        """The time of the event in monotonic seconds."""

    @property
    def event(self) -> str:
        """The name of the event."""

    @property
    def detail(self) -> str:
        """The cause of the event."""


class ObservedQueue(Protocol):
    """The queue of one controller."""

    def __len__(self) -> int:
        """Return the number of waiting keys, due or not."""

    def count_due(self) -> Mapping[int, int]:
        """Return the number of due keys, by priority."""

    def count_failures(self, key: ObjectKey) -> int:
        """Return the number of consecutive failures of the key."""

    def list_failing(self, limit: int) -> Sequence[tuple[ObjectKey, int, float | None]]:
        """Return failed keys up to the limit: the key, its consecutive failures, and the earliest time of its next run.

        The time is in monotonic seconds; None for a running key.
        """

    def history(self, key: ObjectKey) -> Sequence[ObservedKeyEvent]:
        """Return the recent events of the key, oldest first."""


class ObservedController(Protocol):
    """One controller, as observability reads it."""

    @property
    def name(self) -> str:
        """The name in logs and metrics."""

    @property
    def workers(self) -> int:
        """The number of keys that are reconciled concurrently."""

    @property
    def queue(self) -> ObservedQueue:
        """The queue of the controller's keys."""

    def list_run_seconds(self) -> Mapping[ObjectKey, float]:
        """Return the seconds since the start of each running reconcile, by key."""


class ObservedInformer(Protocol):
    """One cached kind; `konverge.cache.Informer` implements it."""

    @property
    def gvk(self) -> GroupVersionKind:
        """The kind that is cached."""

    @property
    def synced(self) -> bool:
        """True if the cache is complete and reads are possible."""

    @property
    def age_seconds(self) -> float | None:
        """Seconds since the server last confirmed that the cache is up to date; None before the first list."""

    @property
    def list_age_seconds(self) -> float | None:
        """Seconds since the last full list was requested; None before the first."""

    @property
    def dropped(self) -> int:
        """Number of existing objects that are not cached."""

    @property
    def unconfirmed_writes(self) -> int:
        """Number of own writes that the watch has not shown yet."""

    @property
    def own_write_lag_seconds(self) -> float:
        """Seconds since the response to the oldest of them; 0 for none."""

    @property
    def statistics(self) -> InformerStatistics:
        """The cost of the informer so far."""

    @property
    def last_error(self) -> KonvergeError | None:
        """The reason why changes do not arrive at the moment; None when they do."""

    @property
    def store(self) -> Sized:
        """The cached objects; only their number is read."""


class ObservedCertificate(Protocol):
    """A certificate that is read again when its files change."""

    @property
    def reads(self) -> int:
        """Number of successful reads of the files."""

    @property
    def read_errors(self) -> int:
        """Number of failed reads of the files."""


class ObservedInformers(Protocol):
    """The informers of a process."""

    @property
    def running(self) -> Mapping[GroupVersionKind, ObservedInformer]:
        """The informers that have been started, by kind."""


class ObservedStart(Protocol):
    """The start of a process."""

    @property
    def waiting_for(self) -> str:
        """The failed step that will be retried; empty for none."""


class ObservedProcess(Protocol):
    """A run of an operator; `konverge.runtime.Process` implements it."""

    @property
    def controllers(self) -> Mapping[GroupVersionKind, ObservedController]:
        """The running controllers by kind; empty before the owners are listed."""

    @property
    def informers(self) -> ObservedInformers:
        """The informers with the cached objects."""

    @property
    def is_stopping(self) -> bool:
        """True after the process began to stop."""

    @property
    def start(self) -> ObservedStart:
        """The state of the start."""


def _return_nothing() -> tuple[()]:
    return ()


def _return_no_deletions() -> Mapping[str, Collection[float]]:
    return {}


def _return_no_leases() -> Mapping[str, bool]:
    return {}


def _return_no_sections() -> Mapping[str, Callable[[], list[dict[str, Any]]]]:
    return {}


def _return_true() -> bool:
    return True


def _return_false() -> bool:
    return False


@dataclass(frozen=True, slots=True)
class RuntimeSources:
    """Sources of the state of a running operator. Each is called anew every time; a missing source has no output.

    Args:
        controllers: The controllers.
        informers: The informers that have been started.
        deletion_seconds: Seconds since the deletion timestamp of each existing owner, by controller.
        leases: The Leases of leader election or of shards by name, and whether this process holds each.
        tasks: The tasks that must run for the life of the operator.
        webhooks_unready_reason: The reason why admission requests are not served, empty when they are; None without
            webhooks.
        sections: Additional sections of the debug page, by title: rows of a table, read in the event loop.
        start_waits_for: The failed step of the start that will be retried; empty for none.
        is_started: Whether the operator has listed its owners and started its controllers (or stands by).
        is_stopping: Whether the operator is stopping.
    """

    controllers: Callable[[], Iterable[ObservedController]] = _return_nothing
    informers: Callable[[], Iterable[ObservedInformer]] = _return_nothing
    deletion_seconds: Callable[[], Mapping[str, Collection[float]]] = _return_no_deletions
    leases: Callable[[], Mapping[str, bool]] = _return_no_leases
    tasks: Callable[[], Iterable[asyncio.Task[Any]]] = _return_nothing
    webhooks_unready_reason: Callable[[], str] | None = None
    sections: Callable[[], Mapping[str, Callable[[], list[dict[str, Any]]]]] = _return_no_sections
    start_waits_for: Callable[[], str] = str
    is_started: Callable[[], bool] = _return_true
    is_stopping: Callable[[], bool] = _return_false

    @classmethod
    def from_process(cls, process: ObservedProcess) -> RuntimeSources:
        """Return the sources of a process; `dataclasses.replace` adds the rest."""
        return cls(
            controllers=lambda: process.controllers.values(),  # noqa: PLW0108  # a later access returns another mapping
            informers=lambda: process.informers.running.values(),  # noqa: PLW0108
            start_waits_for=lambda: process.start.waiting_for,
            is_started=lambda: bool(process.controllers),
            is_stopping=lambda: process.is_stopping,
        )
