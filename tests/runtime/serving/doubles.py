"""Sources that say what a test wants."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from konverge.cache import Statistics
from konverge.errors import KonvergeError
from konverge.kube import GroupVersionKind, ObjectKey
from konverge.runtime import Moment

DEPLOYMENT = GroupVersionKind("apps", "v1", "Deployment")


@dataclass
class Informer:
    gvk: GroupVersionKind = DEPLOYMENT
    synced: bool = True
    age_seconds: float | None = 3.0
    list_age_seconds: float | None = 300.0
    problem: KonvergeError | None = None
    store: list[Any] = field(default_factory=lambda: ["one", "two"])
    statistics: Statistics = field(
        default_factory=lambda: Statistics(lists=1, events=40, last_resource_version="1234567890123456789")
    )
    dropped: int = 5
    unconfirmed_writes: int = 2
    own_write_lag_seconds: float = 0.25


@dataclass
class Queue:
    waiting: dict[int, int] = field(default_factory=dict)
    delayed: int = 0
    moments: dict[ObjectKey, tuple[Moment, ...]] = field(default_factory=dict)

    def __len__(self) -> int:
        return sum(self.waiting.values()) + self.delayed

    def depths(self) -> Mapping[int, int]:
        return self.waiting

    def failures(self, key: ObjectKey) -> int:
        return 3

    def failing(self, limit: int) -> Sequence[tuple[ObjectKey, int, float | None]]:
        return ()

    def story(self, key: ObjectKey) -> Sequence[Moment]:
        return self.moments.get(key, ())


@dataclass
class Controller:
    name: str = "webapp"
    workers: int = 10
    queue: Queue = field(default_factory=Queue)
    running: dict[ObjectKey, float] = field(default_factory=dict)

    def run_seconds(self) -> Mapping[ObjectKey, float]:
        return self.running


class BrokenController(Controller):
    def run_seconds(self) -> Mapping[ObjectKey, float]:
        raise RuntimeError("password=hunter2")
