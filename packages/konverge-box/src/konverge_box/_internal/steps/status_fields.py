"""The last step: the declared status fields, from the results of all other steps.

Each field is evaluated separately: a field that fails is reported and keeps its value, the others are written. All
see the status as it was before the reconcile, so that a phase can depend on the previous phase. This module writes
nothing: it returns the values, and the status that contains them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum
from typing import Any, Final

import msgspec

from konverge._internal.kube import Object
from konverge._internal.mutation import copy_json
from konverge.errors import ConfigurationError
from konverge_box._internal.expressions import (
    OMIT,
    ConditionSet,
    ExpressionError,
    Structure,
    compile_structure,
    find_earliest_change,
    has_sensitive,
)
from konverge_box._internal.file import StatusField, StatusSpec
from konverge_box._internal.file.model import RESERVED_STATUS
from konverge_box._internal.steps.entry_conditions import compile_entry_conditions
from konverge_box._internal.steps.errors import StepError
from konverge_box._internal.steps.object_paths import Keys, remove_value, split_path
from konverge_box._internal.steps.scope import Scope
from konverge_box._internal.steps.type_casts import cast_value

__all__ = ["CLEARED", "MAX_FIELD_SIZE", "MAX_STATUS_SIZE", "ClearedValue", "StatusFieldValues", "StatusFields"]

MAX_FIELD_SIZE = 32 << 10
"""Maximum size of one field in bytes of JSON."""

MAX_STATUS_SIZE = 256 << 10
"""Maximum size of all fields together in bytes of JSON. The limit of an object is 1.5 MiB, and every watch of the
object receives its status."""

_STEPS = frozenset({"cross", "external", "providers", "children"})


class ClearedValue(Enum):
    """The type of `CLEARED`, which type checkers can distinguish from other values."""

    CLEARED = "cleared"

    def __repr__(self) -> str:
        return "cleared"


CLEARED: Final = ClearedValue.CLEARED
"""The marker of a field that must be removed."""


@dataclass(frozen=True, slots=True)
class StatusFieldValues:
    """The values of the status fields in one reconcile.

    Args:
        values: Paths below the status, with their values or `CLEARED`, in the order in which they are applied.
        problems: The errors of fields, without secret values.
    """

    values: tuple[tuple[tuple[str, ...], Any], ...] = ()
    problems: tuple[str, ...] = ()

    def apply_to_status(self, status: Mapping[str, Any] | None) -> Object:
        """Return the status with the values; it is equal to the old one when it has them already.

        Args:
            status: The current status, including conditions, which is not changed; None without one.
        """
        updated: Object = copy_json(dict(status or {}))
        for path, value in self.values:
            if value is CLEARED:
                updated = remove_value(updated, path)
            else:
                _set_value(updated, path, copy_json(value))
        return updated


@dataclass(frozen=True, slots=True)
class _CompiledField:
    """One compiled field of the status."""

    declared: StatusField
    where: str
    path: Keys
    value: Structure
    conditions: ConditionSet
    names: frozenset[tuple[str, ...]]

    @property
    def is_conditional(self) -> bool:
        return bool(self.declared.when or self.declared.alternatives)

    def list_missing_steps(self, scope: Scope) -> list[str]:
        """Return the steps whose results it reads but that have none in this reconcile."""
        return sorted({name[0] for name in self.names if name and name[0] in _STEPS and name[0] not in scope.names})


@dataclass(slots=True)
class _FieldValues:
    """The values that accumulate while the fields are evaluated in order."""

    values: list[tuple[Keys, Any]] = field(default_factory=list)
    cleared: list[Keys] = field(default_factory=list)
    failed: set[Keys] = field(default_factory=set)
    problems: list[str] = field(default_factory=list)
    size: int = 0

    def build_result(self) -> StatusFieldValues:
        # Clearing comes first, independent of the order in the file: a phase whose conditions do not hold must not
        # clear the one whose conditions hold. A field that could not be evaluated keeps its value.
        kept = self.failed
        cleared = [(path, CLEARED) for path in dict.fromkeys(self.cleared) if path not in kept]
        return StatusFieldValues((*cleared, *self.values), tuple(self.problems))


class StatusFields:
    """The compiled status fields of one custom resource.

    Args:
        declared: The ``status`` of a loaded file.
        where: Its path in the file, for example ``spec.crds.web.status``.

    Raises:
        konverge.errors.ConfigurationError: A field is reserved, or cannot be compiled.
    """

    def __init__(self, declared: StatusSpec, where: str) -> None:
        self._fields = tuple(_compile_field(each, f"{where}.fields[{i}]") for i, each in enumerate(declared.fields))

    def list_read_paths(self) -> frozenset[tuple[str, ...]]:
        """Return the paths that values and conditions can read."""
        return frozenset[tuple[str, ...]]().union(*(each.names for each in self._fields))

    def find_next_change(self, now: datetime) -> datetime | None:
        """Return the next time at which the conditions of a field can change by themselves; None without one."""
        return find_earliest_change((each.conditions for each in self._fields), now)

    def evaluate_fields(self, scope: Scope, *, failed: bool = False) -> StatusFieldValues:
        """Evaluate each field.

        A field that reads the results of a step that did not run is not evaluated: the results are unknown, and
        ``default(0)`` would invent a value. That is a problem, unless the reconcile has failed anyway.

        Args:
            scope: The results of the reconcile. Its ``status`` is the one from before the reconcile.
            failed: An earlier step failed. Only fields with conditions are evaluated, since those can detect it.
        """
        answers = _FieldValues()
        for each in self._fields:
            if failed and not each.is_conditional:
                continue
            if missing := each.list_missing_steps(scope):
                answers.failed.add(each.path)
                if not failed:
                    answers.problems.append(
                        f"{each.where}: it reads {missing[0]}, which has no result in this reconcile"
                    )
                continue
            try:
                _evaluate_field(each, scope, answers)
            except (ExpressionError, StepError) as error:
                answers.failed.add(each.path)
                answers.problems.append(str(error))
        return answers.build_result()


def _compile_field(declared: StatusField, where: str) -> _CompiledField:
    path = split_path(declared.path)
    if path[0] in RESERVED_STATUS:
        raise ConfigurationError(f"{where}.path: {path[0]} is reserved for konverge; give the field another name")
    value = compile_structure(declared.value, where=f"{where}.value")
    conditions = compile_entry_conditions(declared, where)
    return _CompiledField(
        declared, where, path, value, conditions, value.list_read_paths() | conditions.list_read_paths()
    )


def _evaluate_field(each: _CompiledField, scope: Scope, answers: _FieldValues) -> None:
    """Evaluate one field and add its value to the answers.

    Raises:
        konverge_box.expressions.ExpressionError: The field has no value.
        StepError: The value cannot be written to a status.
    """
    if not scope.holds(each.conditions):
        if each.declared.clear_on_false:
            answers.cleared.append(each.path)
        return
    where = f"{each.where}.value"
    value = scope.render(each.value)
    if value is not OMIT and has_sensitive(value):
        raise StepError(where, "expected no value from a Secret: every client that may read the object sees the status")
    if each.declared.type is not None:
        value = cast_value(value, each.declared.type, where)
    if value is OMIT:
        answers.values.append((each.path, CLEARED))
        return
    size = len(msgspec.json.encode(value))
    if size > MAX_FIELD_SIZE:
        raise StepError(where, f"expected at most {MAX_FIELD_SIZE} bytes of JSON in a status field, found {size}")
    if answers.size + size > MAX_STATUS_SIZE:
        raise StepError(
            where,
            f"not written: expected at most {MAX_STATUS_SIZE} bytes of JSON in all status fields together, found more",
        )
    answers.size += size
    answers.values.append((each.path, value))


def _set_value(status: Object, path: Keys, value: Any) -> None:
    """Set a value. A parent that is not a mapping comes from an older file or another field, and is replaced."""
    parent = status
    for step in path[:-1]:
        child = parent.get(step)
        if not isinstance(child, dict):
            child = parent[step] = {}
        parent = child
    parent[path[-1]] = value
