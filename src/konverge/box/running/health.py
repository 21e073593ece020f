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

__all__ = ["BoxHealth", "CustomResourceHealth", "PassResult", "Wanted"]

Wanted: TypeAlias = Literal["started", "healthy"]
"""What a custom resource waits for of another one."""

_LONGEST_ERROR = 500


class PassResult(StrEnum):
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
        unseen: The owners that were there at the beginning and have had no pass; None before the beginning.
        failures: How many passes have failed in a row.
        last_error: What the last failure was, kept after it is over.
        last_error_at: When that was.
        passes: How many passes ended in which way.
        waiting: The owners whose passes wait for another custom resource.
    """

    failure_threshold: int
    unseen: set[ObjectKey] | None = None
    failures: int = 0
    last_error: str = ""
    last_error_at: datetime | None = None
    passes: Counter[PassResult] = field(default_factory=Counter)
    waiting: set[ObjectKey] = field(default_factory=set)

    @property
    def is_started(self) -> bool:
        """Tell whether every owner that was there at the beginning has had a pass."""
        return self.unseen is not None and not self.unseen

    @property
    def is_degraded(self) -> bool:
        """Tell whether too many passes have failed in a row."""
        return self.failures >= self.failure_threshold

    @property
    def is_healthy(self) -> bool:
        """Tell whether it has started and is not degraded."""
        return self.is_started and not self.is_degraded

    def is_as(self, wanted: Wanted) -> bool:
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
        self.of = {name: CustomResourceHealth(threshold) for name, threshold in thresholds.items()}
        """By name."""
        self._depends_on = dict(depends_on)

    def change(self, depends_on: Mapping[str, Mapping[str, Wanted]], thresholds: Mapping[str, int]) -> None:
        """The file says otherwise from now on; what has happened stays."""
        self._depends_on = dict(depends_on)
        for name, threshold in thresholds.items():
            self.of[name].failure_threshold = threshold

    @property
    def has_begun(self) -> bool:
        """Tell whether it is known which owners there were at the beginning."""
        return all(health.unseen is not None for health in self.of.values())

    def begin(self, owners: Mapping[str, Iterable[ObjectKey]]) -> None:
        """These owners are there at the beginning."""
        for name, health in self.of.items():
            if health.unseen is None:
                health.unseen = set(owners.get(name, ()))

    def sift(self, name: str, existing: Iterable[ObjectKey]) -> None:
        """Wait for no owner that is gone."""
        unseen = self.of[name].unseen
        if unseen:
            unseen.intersection_update(existing)

    def unmet(self, name: str) -> tuple[str, Wanted] | None:
        """The first other custom resource that this one has to wait for, and what for; None when it may go on."""
        for other, wanted in self._depends_on.get(name, {}).items():
            if not self.of[other].is_as(wanted):
                return other, wanted
        return None

    def waits(self, name: str, key: ObjectKey) -> None:
        """A pass over this owner did nothing but wait."""
        self.of[name].passes[PassResult.WAITING] += 1
        self.of[name].waiting.add(key)

    def passed(self, name: str, key: ObjectKey, result: PassResult, *, error: str = "", at: datetime) -> None:
        """A pass over this owner has ended.

        Args:
            name: The custom resource.
            key: The owner.
            result: How it ended. What is denied is the owner's mistake, and says nothing about the box.
            error: What it failed with; nothing secret is in it.
            at: When.
        """
        health = self.of[name]
        health.passes[result] += 1
        health.waiting.discard(key)
        if health.unseen:
            health.unseen.discard(key)
        if result is PassResult.ERROR:
            health.failures += 1
            health.last_error, health.last_error_at = error[:_LONGEST_ERROR], at
        else:
            health.failures = 0

    def freed(self) -> dict[str, set[ObjectKey]]:
        """The owners that have waited and need not any more, by custom resource; each is told once."""
        found: dict[str, set[ObjectKey]] = {}
        for name, health in self.of.items():
            if health.waiting and self.unmet(name) is None:
                found[name], health.waiting = health.waiting, set()
        return found

    def told(self, name: str, wanted: Wanted) -> str:
        """Why a custom resource is not as somebody wants it."""
        health = self.of[name]
        if not health.is_started:
            return f"waits until {name} is {wanted}: {len(health.unseen or ())} of its objects have had no pass yet"
        row = f"{health.failures} passes in a row have failed"
        return f"waits until {name} is {wanted}: {row}, the last with: {health.last_error}"
