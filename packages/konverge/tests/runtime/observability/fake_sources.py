"""Sources with values that a test sets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from konverge._internal.cache import InformerStatistics
from konverge._internal.runtime import KeyEvent
from konverge.errors import KonvergeError
from konverge.kube import GroupVersionKind, ObjectKey

DEPLOYMENT = GroupVersionKind("apps", "v1", "Deployment")


@dataclass
class FakeInformer:
    gvk: GroupVersionKind = DEPLOYMENT
    synced: bool = True
    age_seconds: float | None = 3.0
    list_age_seconds: float | None = 300.0
    last_error: KonvergeError | None = None
    store: list[Any] = field(default_factory=lambda: ["one", "two"])
    statistics: InformerStatistics = field(
        default_factory=lambda: InformerStatistics(lists=1, events=40, last_resource_version="1234567890123456789")
    )
    dropped: int = 5
    unconfirmed_writes: int = 2
    own_write_lag_seconds: float = 0.25


@dataclass
class FakeQueue:
    waiting: dict[int, int] = field(default_factory=dict)
    delayed: int = 0
    moments: dict[ObjectKey, tuple[KeyEvent, ...]] = field(default_factory=dict)

    def __len__(self) -> int:
        return sum(self.waiting.values()) + self.delayed

    def count_due(self) -> Mapping[int, int]:
        return self.waiting

    def count_failures(self, key: ObjectKey) -> int:
        return 3

    def list_failing(self, limit: int) -> Sequence[tuple[ObjectKey, int, float | None]]:
        return ()

    def history(self, key: ObjectKey) -> Sequence[KeyEvent]:
        return self.moments.get(key, ())


@dataclass
class FakeController:
    name: str = "webapp"
    workers: int = 10
    queue: FakeQueue = field(default_factory=FakeQueue)
    running: dict[ObjectKey, float] = field(default_factory=dict)

    def list_run_seconds(self) -> Mapping[ObjectKey, float]:
        return self.running


class BrokenController(FakeController):
    def list_run_seconds(self) -> Mapping[ObjectKey, float]:
        raise RuntimeError("password=hunter2")
