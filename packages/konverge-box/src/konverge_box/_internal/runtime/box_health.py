"""The health of the custom resources of a box (started, healthy, degraded) and their dependencies. Pure.

A custom resource has *started* when every owner that existed at the beginning was reconciled, with any result. It is
*degraded* after `failureThreshold` failures in a row, of any owners. It is *healthy* when it has started and is not
degraded. One success ends the row of failures and the degradation.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Literal, TypeAlias

from konverge._internal.kube import ObjectKey

__all__ = ["BoxHealth", "BoxReconcileResult", "CustomResourceHealth", "Wanted"]

Wanted: TypeAlias = Literal["started", "healthy"]
"""The state of another custom resource that a custom resource waits for."""

_MAX_ERROR_LENGTH = 500


class BoxReconcileResult(StrEnum):
    """The result of one reconcile."""

    SUCCESS = "success"
    DENIED = "denied"
    PAUSED = "paused"
    WAITING = "waiting"
    ERROR = "error"


@dataclass(slots=True)
class CustomResourceHealth:
    """The health of one custom resource of a box.

    Args:
        failure_threshold: The number of failures in a row after which it is degraded.
        pending: The owners of the beginning that were not reconciled yet; None before the beginning.
        failures: The number of reconciles in a row that have failed.
        last_error: The error of the last failure. It is kept after a success.
        last_error_at: The time of the last failure.
        results: The number of reconciles by result.
        waiting: The owners that wait for another custom resource.
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
        """Tell whether every owner of the beginning was reconciled."""
        return self.pending is not None and not self.pending

    @property
    def is_degraded(self) -> bool:
        """Tell whether too many reconciles in a row have failed."""
        return self.failures >= self.failure_threshold

    @property
    def is_healthy(self) -> bool:
        """Tell whether it has started and is not degraded."""
        return self.is_started and not self.is_degraded

    def has_state(self, wanted: Wanted) -> bool:
        """Tell whether it has the state that another custom resource waits for."""
        return self.is_healthy if wanted == "healthy" else self.is_started

    @property
    def state(self) -> str:
        """The state in one word: degraded, healthy or pending."""
        if self.is_degraded:
            return "degraded"
        return "healthy" if self.is_started else "pending"


class BoxHealth:
    """The health of all custom resources of a box.

    Args:
        depends_on: The dependencies of each custom resource: the names of others and the state that each must have.
        thresholds: The number of failures in a row after which each custom resource is degraded, by name.
    """

    def __init__(self, depends_on: Mapping[str, Mapping[str, Wanted]], thresholds: Mapping[str, int]) -> None:
        self.resources = {name: CustomResourceHealth(threshold) for name, threshold in thresholds.items()}
        """The health of each custom resource, by name."""
        self._depends_on = dict(depends_on)

    def configure(self, depends_on: Mapping[str, Mapping[str, Wanted]], thresholds: Mapping[str, int]) -> None:
        """Use the settings of a changed file; keep the recorded results."""
        self._depends_on = dict(depends_on)
        for name, threshold in thresholds.items():
            self.resources[name].failure_threshold = threshold

    @property
    def has_started(self) -> bool:
        """Tell whether the owners of the beginning are known."""
        return all(health.pending is not None for health in self.resources.values())

    def start(self, owners: Mapping[str, Iterable[ObjectKey]]) -> None:
        """Record the owners that exist at the beginning."""
        for name, health in self.resources.items():
            if health.pending is None:
                health.pending = set(owners.get(name, ()))

    def remove_missing(self, name: str, existing: Iterable[ObjectKey]) -> None:
        """Stop waiting for owners that no longer exist."""
        pending = self.resources[name].pending
        if pending:
            pending.intersection_update(existing)

    def find_unmet(self, name: str) -> tuple[str, Wanted] | None:
        """Return the first unmet dependency and the state that it must have; None when nothing is left to wait for."""
        for other, wanted in self._depends_on.get(name, {}).items():
            if not self.resources[other].has_state(wanted):
                return other, wanted
        return None

    def record_waiting(self, name: str, key: ObjectKey) -> None:
        """Record that a reconcile of this owner only waited."""
        self.resources[name].results[BoxReconcileResult.WAITING] += 1
        self.resources[name].waiting.add(key)

    def record_reconcile(
        self, name: str, key: ObjectKey, result: BoxReconcileResult, *, error: str = "", at: datetime
    ) -> None:
        """Record the end of a reconcile of this owner.

        Args:
            name: The custom resource.
            key: The owner.
            result: The result. A denied owner is invalid input, not a failure of the box. A paused one counts as
                reconciled, and ends no row of failures.
            error: The error of a failure, without secret values.
            at: The time of the end.
        """
        health = self.resources[name]
        health.results[result] += 1
        health.waiting.discard(key)
        if health.pending:
            health.pending.discard(key)
        if result is BoxReconcileResult.ERROR:
            health.failures += 1
            health.last_error, health.last_error_at = error[:_MAX_ERROR_LENGTH], at
        elif result is not BoxReconcileResult.PAUSED:
            health.failures = 0

    def take_unblocked(self) -> dict[str, set[ObjectKey]]:
        """Return the owners whose dependencies are met now, by custom resource, and forget that they waited."""
        unblocked: dict[str, set[ObjectKey]] = {}
        for name, health in self.resources.items():
            if health.waiting and self.find_unmet(name) is None:
                unblocked[name], health.waiting = health.waiting, set()
        return unblocked

    def describe_unmet(self, name: str, wanted: Wanted) -> str:
        """Describe why a custom resource does not have the state that another one waits for."""
        health = self.resources[name]
        if not health.is_started:
            return f"waits until {name} is {wanted}: {len(health.pending or ())} of its objects were not reconciled yet"
        failures = f"{health.failures} reconciles in a row have failed"
        return f"waits until {name} is {wanted}: {failures}, the last with: {health.last_error}"
