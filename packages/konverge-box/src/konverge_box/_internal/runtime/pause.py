"""The pause of one custom resource, by an annotation or conditions of the file, and the request for a dry run. Pure.

A paused custom resource is left as it is, and so is everything that belongs to it: nothing is applied, called or
deleted. Its condition ``Paused`` reports this; the other conditions keep what they said before.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum
from typing import Any

from konverge._internal.component.condition_rules import read_generation
from konverge._internal.kube import Condition, Object, find_condition
from konverge_box._internal.expressions import ConditionSet, compile_condition
from konverge_box._internal.file import ConditionSpec
from konverge_box._internal.steps import Scope
from konverge_box._internal.steps.wait_conditions import describe_condition

__all__ = [
    "DRY_RUN",
    "DRY_RUN_ANNOTATION",
    "PAUSED",
    "PAUSED_ANNOTATION",
    "DryRunReason",
    "Pause",
    "is_annotated",
    "list_own_reports",
]

PAUSED = "Paused"
"""The type of the condition of a paused custom resource. It exists only while the custom resource is paused."""

PAUSED_ANNOTATION = "konverge.dev/paused"
"""Annotation of a custom resource, for users: any text but ``false`` pauses it."""

DRY_RUN_ANNOTATION = "konverge.dev/dry-run"
"""Annotation of a custom resource, for users: with any text but ``false``, reconciles only report their effects."""

DRY_RUN = "DryRun"
"""The type of the condition that reports a dry run. It exists only while the annotation is set."""

_BY_ANNOTATION = "PausedByAnnotation"
_BY_FIELD = "PausedByField"


class DryRunReason(StrEnum):
    """The reasons of the condition ``DryRun``."""

    NOTHING = "NothingToChange"
    CHANGES = "WouldChange"
    FAILURE = "WouldFail"


_REASONS = {PAUSED: (_BY_ANNOTATION, _BY_FIELD), DRY_RUN: tuple(DryRunReason)}


class Pause:
    """The compiled ``pause`` of one custom resource of the file.

    Args:
        declared: The conditions; it is paused while all of them hold. Without any, only the annotation pauses it.
        where: Their path in the file.
    """

    def __init__(self, declared: tuple[ConditionSpec, ...], where: str) -> None:
        compiled = tuple(
            compile_condition(each.to_mapping(), where=f"{where}[{index}]") for index, each in enumerate(declared)
        )
        self._conditions = ConditionSet(compiled)
        self._words = " and ".join(map(describe_condition, declared))

    def find_pause(self, scope: Scope, owner: Object) -> Condition | None:
        """Return the condition of a paused custom resource; None if it is not paused.

        Raises:
            konverge_box.expressions.ExpressionError: A condition cannot be evaluated.
        """
        generation = read_generation(owner)
        if is_annotated(owner, PAUSED_ANNOTATION):
            why = f"Nothing is changed while the annotation {PAUSED_ANNOTATION} is set"
            return Condition(PAUSED, "True", _BY_ANNOTATION, why, generation)
        if self._conditions.when and scope.holds(self._conditions):
            return Condition(PAUSED, "True", _BY_FIELD, f"Nothing is changed while {self._words}", generation)
        return None

    def find_next_change(self, now: datetime) -> datetime | None:
        """Return the next time at which the pause can begin or end by itself; None without such a time."""
        return self._conditions.find_next_change(now)


def is_annotated(owner: Mapping[str, Any], annotation: str) -> bool:
    """Tell whether a user has set an annotation to another text than ``false``."""
    text = (owner["metadata"].get("annotations") or {}).get(annotation)
    return isinstance(text, str) and text.strip().lower() not in ("", "false")


def list_own_reports(owner: Object) -> list[str]:
    """Return the types of the conditions of this module that a box has written; other operators use the same names."""
    found = {kind: find_condition(owner, kind) for kind in _REASONS}
    return [kind for kind, each in found.items() if each is not None and each.reason in _REASONS[kind]]
