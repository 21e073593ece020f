"""How the custom resources of a box do: started, healthy, degraded; and who waits for whom. Pure.

A custom resource has *started* when every owner that was there at the beginning has had a pass, however it ended. It is
*degraded* after so many failures in a row, of whichever owners, and *healthy* when it has started and is not. One
success ends both the row and the degradation.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Literal, TypeAlias

from konverge.kube import ObjectKey

__all__ = ["BoxHealth", "BoxReconcileResult", "CustomResourceHealth", "Wanted"]

Wanted: TypeAlias = Literal["started", "healthy"]
"""What a custom resource waits for of another one."""

_MAX_ERROR_LENGTH = 500


class BoxReconcileResult(StrEnum):
    """How a pass ended."""

    SUCCESS = "success"
    DENIED = "denied"
    WAITING = "waiting"
    ERROR = "error"


@dataclass(slots=True)
class CustomResourceHealth:
    """One custom resource of a box.

    Args:
        failure_threshold: After so many failures in a row it is degraded.
        pending: The owners that were there at the beginning and have had no pass; None before the beginning.
        failures: How many passes have failed in a row.
        last_error: What the last failure was, kept after it is over.
        last_error_at: When that was.
        results: How many passes ended in which way.
        waiting: The owners whose passes wait for another custom resource.
    """

    failure_threshold: int
    pending: set[ObjectKey] | None = None
    failures: int = 0
    last_error: str = ""
    last_error_at: datetime | None = None
    results: Counter[BoxReconcileResult] = field(default_factory=Counter)
    waiting: set[ObjectKey] = field(default_factory=set)

    @property
    def is_started(self) -> bool:
        """Tell whether every owner that was there at the beginning has had a pass."""
        return self.pending is not None and not self.pending

    @property
    def is_degraded(self) -> bool:
        """Tell whether too many passes have failed in a row."""
        return self.failures >= self.failure_threshold

    @property
    def is_healthy(self) -> bool:
        """Tell whether it has started and is not degraded."""
        return self.is_started and not self.is_degraded

    def has_state(self, wanted: Wanted) -> bool:
        """Tell whether it is as somebody wants it."""
        return self.is_healthy if wanted == "healthy" else self.is_started

    @property
    def state(self) -> str:
        """In one word."""
        if self.is_degraded:
            return "degraded"
        return "healthy" if self.is_started else "pending"


class BoxHealth:
    """All custom resources of a box.

    Args:
        depends_on: By the name of each: what it waits for of which others.
        thresholds: By the same names: after how many failures in a row each is degraded.
    """

    def __init__(self, depends_on: Mapping[str, Mapping[str, Wanted]], thresholds: Mapping[str, int]) -> None:
        self.resources = {name: CustomResourceHealth(threshold) for name, threshold in thresholds.items()}
        """By name."""
        self._depends_on = dict(depends_on)

    def configure(self, depends_on: Mapping[str, Mapping[str, Wanted]], thresholds: Mapping[str, int]) -> None:
        """The file says otherwise from now on; what has happened stays."""
        self._depends_on = dict(depends_on)
        for name, threshold in thresholds.items():
            self.resources[name].failure_threshold = threshold

    @property
    def has_started(self) -> bool:
        """Tell whether it is known which owners there were at the beginning."""
        return all(health.pending is not None for health in self.resources.values())

    def start(self, owners: Mapping[str, Iterable[ObjectKey]]) -> None:
        """These owners are there at the beginning."""
        for name, health in self.resources.items():
            if health.pending is None:
                health.pending = set(owners.get(name, ()))

    def remove_missing(self, name: str, existing: Iterable[ObjectKey]) -> None:
        """Wait for no owner that is gone."""
        unseen = self.resources[name].pending
        if unseen:
            unseen.intersection_update(existing)

    def find_unmet(self, name: str) -> tuple[str, Wanted] | None:
        """The first other custom resource that this one has to wait for, and what for; None when it may go on."""
        for other, wanted in self._depends_on.get(name, {}).items():
            if not self.resources[other].has_state(wanted):
                return other, wanted
        return None

    def record_waiting(self, name: str, key: ObjectKey) -> None:
        """A pass over this owner did nothing but wait."""
        self.resources[name].results[BoxReconcileResult.WAITING] += 1
        self.resources[name].waiting.add(key)

    def record_reconcile(
        self, name: str, key: ObjectKey, result: BoxReconcileResult, *, error: str = "", at: datetime
    ) -> None:
        """A pass over this owner has ended.

        Args:
            name: The custom resource.
            key: The owner.
            result: How it ended. What is denied is the owner's mistake, and says nothing about the box.
            error: What it failed with; nothing secret is in it.
            at: When.
        """
        health = self.resources[name]
        health.results[result] += 1
        health.waiting.discard(key)
        if health.pending:
            health.pending.discard(key)
        if result is BoxReconcileResult.ERROR:
            health.failures += 1
            health.last_error, health.last_error_at = error[:_MAX_ERROR_LENGTH], at
        else:
            health.failures = 0

    def take_unblocked(self) -> dict[str, set[ObjectKey]]:
        """The owners that have waited and need not any more, by custom resource; each is told once."""
        found: dict[str, set[ObjectKey]] = {}
        for name, health in self.resources.items():
            if health.waiting and self.find_unmet(name) is None:
                found[name], health.waiting = health.waiting, set()
        return found

    def describe_unmet(self, name: str, wanted: Wanted) -> str:
        """Why a custom resource is not as somebody wants it."""
        health = self.resources[name]
        if not health.is_started:
            return f"waits until {name} is {wanted}: {len(health.pending or ())} of its objects have had no pass yet"
        row = f"{health.failures} passes in a row have failed"
        return f"waits until {name} is {wanted}: {row}, the last with: {health.last_error}"
