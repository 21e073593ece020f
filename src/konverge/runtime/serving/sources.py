"""What metrics, probes and the debug page read of a running operator: small read-only views, and where to get them.

Everything here is read in the event loop, at the moment of a scrape or a probe, and none of it may wait. The runtime's
own classes satisfy these protocols; so does whatever else an author puts in their place.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from konverge.errors import KonvergeError
from konverge.kube import GroupVersionKind, ObjectKey

__all__ = [
    "ObservedController",
    "ObservedInformer",
    "ObservedLease",
    "ObservedMoment",
    "ObservedQueue",
    "Sources",
]


class ObservedMoment(Protocol):
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

    def depths(self) -> Mapping[int, int]:
        """How many keys wait, by priority."""

    def failures(self, key: ObjectKey) -> int:
        """How often in a row the key has failed."""

    def story(self, key: ObjectKey) -> Sequence[ObservedMoment]:
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

    def run_seconds(self) -> Mapping[ObjectKey, float]:
        """How long each pass that is under way has taken so far."""


class ObservedInformer(Protocol):
    """One collection in memory.

    What else it counts (`konverge.runtime.serving.readings` has the names) is exported when it is there.
    """

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
    def problem(self) -> KonvergeError | None:
        """Why changes do not arrive at the moment; None when they do."""

    @property
    def store(self) -> Collection[Any]:
        """What is held; only its length is read."""


class ObservedLease(Protocol):
    """One Lease that this process takes part in."""

    @property
    def name(self) -> str:
        """The Lease's name."""

    @property
    def is_leader(self) -> bool:
        """Whether this process holds it."""

    @property
    def holder(self) -> str:
        """Who holds it as far as is known; empty for nobody."""


def _none() -> tuple[()]:
    return ()


def _is_so() -> bool:
    return True


def _is_not_so() -> bool:
    return False


@dataclass(frozen=True, slots=True)
class Sources:
    """Where to read the state of a running operator; each is asked anew every time, and what is not given is left out.

    Args:
        controllers: The controllers.
        informers: The informers that have been started.
        leases: The Leases of leader election or of shards.
        tasks: The tasks that must run for as long as the operator does: controllers, the informers' set.
        webhooks_listen: Whether admission requests are taken; None without webhooks.
        is_started: Whether the operator has listed its owners and started its controllers (or stands by).
        is_stopping: Whether it has been told to stop.
    """

    controllers: Callable[[], Iterable[ObservedController]] = _none
    informers: Callable[[], Iterable[ObservedInformer]] = _none
    leases: Callable[[], Iterable[ObservedLease]] = _none
    tasks: Callable[[], Iterable[asyncio.Task[Any]]] = _none
    webhooks_listen: Callable[[], bool] | None = None
    is_started: Callable[[], bool] = _is_so
    is_stopping: Callable[[], bool] = _is_not_so
