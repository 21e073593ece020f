"""What metrics, probes and the debug page read of a running operator: small read-only views, and where to get them.

Everything here is read in the event loop, at the moment of a scrape or a probe, and none of it may wait. The runtime's
own classes satisfy these protocols; so does whatever else an author puts in their place.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence, Sized
from dataclasses import dataclass
from typing import Any, Protocol

from konverge.cache import InformerStatistics
from konverge.errors import KonvergeError
from konverge.kube import GroupVersionKind, ObjectKey

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
    """One line of a key's story."""

    @property
    def time(self) -> float:
        """When, in monotonic seconds."""

    @property
    def event(self) -> str:
        """What happened."""

    @property
    def detail(self) -> str:
        """Why."""


class ObservedQueue(Protocol):
    """The keys of one controller."""

    def __len__(self) -> int:
        """How many keys wait, due or not."""

    def count_due(self) -> Mapping[int, int]:
        """How many keys wait, by priority."""

    def count_failures(self, key: ObjectKey) -> int:
        """How often in a row the key has failed."""

    def list_failing(self, limit: int) -> Sequence[tuple[ObjectKey, int, float | None]]:
        """So many keys at most that have failed: the key, its failures in a row, and not before when it runs again.

        The time is in monotonic seconds; None while it runs.
        """

    def history(self, key: ObjectKey) -> Sequence[ObservedKeyEvent]:
        """What happened to the key of late, oldest first."""


class ObservedController(Protocol):
    """One controller."""

    @property
    def name(self) -> str:
        """What it is called in logs and metrics."""

    @property
    def workers(self) -> int:
        """How many keys it works on at once."""

    @property
    def queue(self) -> ObservedQueue:
        """Its queue."""

    def list_run_seconds(self) -> Mapping[ObjectKey, float]:
        """How long each pass that is under way has taken so far."""


class ObservedInformer(Protocol):
    """One kind in memory; `konverge.cache.Informer` is one."""

    @property
    def gvk(self) -> GroupVersionKind:
        """The kind."""

    @property
    def synced(self) -> bool:
        """Whether reads are answered."""

    @property
    def age_seconds(self) -> float | None:
        """How long ago the server last proved that what is held is up to date; None before the first list."""

    @property
    def list_age_seconds(self) -> float | None:
        """How long ago the last whole list was asked for; None before the first."""

    @property
    def dropped(self) -> int:
        """How many objects exist that are not held."""

    @property
    def unconfirmed_writes(self) -> int:
        """How many own writes the watch has not shown yet."""

    @property
    def own_write_lag_seconds(self) -> float:
        """How long ago the oldest of them was answered; 0 for none."""

    @property
    def statistics(self) -> InformerStatistics:
        """What its upkeep has cost so far."""

    @property
    def last_error(self) -> KonvergeError | None:
        """Why changes do not arrive at the moment; None when they do."""

    @property
    def store(self) -> Sized:
        """What is held; only its length is read."""


class ObservedCertificate(Protocol):
    """A certificate that is read again when its files change."""

    @property
    def reads(self) -> int:
        """How often it was read."""

    @property
    def read_errors(self) -> int:
        """How often it could not be."""


class ObservedInformers(Protocol):
    """The informers of a process."""

    @property
    def running(self) -> Mapping[GroupVersionKind, ObservedInformer]:
        """Those that have been started."""


class ObservedStart(Protocol):
    """The start of a process."""

    @property
    def waiting_for(self) -> str:
        """The step that has failed and will be tried again; empty when there is none."""


class ObservedProcess(Protocol):
    """A run of an operator; `konverge.runtime.Process` is one."""

    @property
    def controllers(self) -> Mapping[GroupVersionKind, ObservedController]:
        """The controllers at work; none before the owners are listed."""

    @property
    def informers(self) -> ObservedInformers:
        """What is held in memory."""

    @property
    def is_stopping(self) -> bool:
        """Whether it has been told to stop."""

    @property
    def start(self) -> ObservedStart:
        """Its start."""


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
    """Where to read the state of a running operator; each is asked anew every time, and what is not given is left out.

    Args:
        controllers: The controllers.
        informers: The informers that have been started.
        deletion_seconds: For how long owners are being deleted that are still there, by controller.
        leases: The Leases of leader election or of shards by name, and whether this process holds each.
        tasks: The tasks that must run for as long as the operator does.
        webhooks_unready_reason: Why admission requests are not answered, empty when they are; None without webhooks.
        sections: Further sections of the debug page, by title: rows of a table, read in the event loop.
        start_waits_for: The step of the start that has failed and will be tried again; empty when there is none.
        is_started: Whether the operator has listed its owners and started its controllers (or stands by).
        is_stopping: Whether it has been told to stop.
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
        """The controllers and informers of a process; `dataclasses.replace` adds the rest."""
        return cls(
            controllers=lambda: process.controllers.values(),  # noqa: PLW0108  # what it gives later is another
            informers=lambda: process.informers.running.values(),  # noqa: PLW0108
            start_waits_for=lambda: process.start.waiting_for,
            is_started=lambda: bool(process.controllers),
            is_stopping=lambda: process.is_stopping,
        )
