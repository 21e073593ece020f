"""The last step: the fields of the status that the file declares, from what all other steps have made.

Each field is a question of its own: one that fails is told of and keeps what it had, the others are written. All of
them see the status as it was before the pass, so that a phase can follow from the phase before it. Nothing is written
here: the answer is values, and the status that they come to.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum
from typing import Any, Final

import msgspec

from konverge.errors import ConfigurationError
from konverge.kube import Object
from konverge.mutation import copy_json
from konverge_box.expressions import (
    OMIT,
    ConditionSet,
    ExpressionError,
    Structure,
    compile_structure,
    find_earliest_change,
    has_sensitive,
)
from konverge_box.file import StatusField, StatusSpec
from konverge_box.file.model import RESERVED_STATUS
from konverge_box.steps.entry_conditions import compile_entry_conditions
from konverge_box.steps.errors import StepError
from konverge_box.steps.object_paths import Keys, remove_value, split_path
from konverge_box.steps.scope import Scope
from konverge_box.steps.type_casts import cast_value

__all__ = ["CLEARED", "MAX_FIELD_SIZE", "MAX_STATUS_SIZE", "ClearedValue", "StatusFieldValues", "StatusFields"]

MAX_FIELD_SIZE = 32 << 10
"""Bytes of JSON that one field may have."""

MAX_STATUS_SIZE = 256 << 10
"""Bytes of JSON that all fields of a pass may have together: an object has 1.5 MiB at most, and its status is copied to
everyone who watches it."""

_STEPS = frozenset({"cross", "external", "providers", "children"})


class ClearedValue(Enum):
    """The type of `CLEARED`, so that type checkers can tell it apart."""

    CLEARED = "cleared"

    def __repr__(self) -> str:
        return "cleared"


CLEARED: Final = ClearedValue.CLEARED
"""The field is not to be there."""


@dataclass(frozen=True, slots=True)
class StatusFieldValues:
    """What the fields of a pass come to.

    Args:
        values: Paths below the status, with their values or `CLEARED`, in the order in which they are to be put.
        problems: What went wrong with which field; no secret is in it.
    """

    values: tuple[tuple[tuple[str, ...], Any], ...] = ()
    problems: tuple[str, ...] = ()

    def apply_to_status(self, status: Mapping[str, Any] | None) -> Object:
        """The status with the values in it; equal to what it was when they are there already.

        Args:
            status: As it is, conditions and all; it is not changed. None where there is none.
        """
        found: Object = copy_json(dict(status or {}))
        for path, value in self.values:
            if value is CLEARED:
                found = remove_value(found, path)
            else:
                _set_value(found, path, copy_json(value))
        return found


@dataclass(frozen=True, slots=True)
class _CompiledField:
    """One declared field, compiled."""

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
        """The steps whose results it reads and which have none in this pass."""
        return sorted({name[0] for name in self.names if name and name[0] in _STEPS and name[0] not in scope.names})


@dataclass(slots=True)
class _FieldValues:
    """What is found while the fields are asked, in their order."""

    values: list[tuple[Keys, Any]] = field(default_factory=list)
    cleared: list[Keys] = field(default_factory=list)
    failed: set[Keys] = field(default_factory=set)
    problems: list[str] = field(default_factory=list)
    size: int = 0

    def build_result(self) -> StatusFieldValues:
        # Clearing comes first, whatever the order in the file: a phase that does not hold must not take away the one
        # that does. A field that could not be asked keeps what it had.
        kept = self.failed
        cleared = [(path, CLEARED) for path in dict.fromkeys(self.cleared) if path not in kept]
        return StatusFieldValues((*cleared, *self.values), tuple(self.problems))


class StatusFields:
    """The declared fields of one custom resource's status, compiled.

    Args:
        declared: The ``status`` of a loaded file.
        where: Its path in the file, for example ``spec.crds.web.status``.

    Raises:
        konverge.errors.ConfigurationError: A field is one that the pass itself writes, or cannot be compiled.
    """

    def __init__(self, declared: StatusSpec, where: str) -> None:
        self._fields = tuple(_compile_field(each, f"{where}.fields[{i}]") for i, each in enumerate(declared.fields))

    def list_read_paths(self) -> frozenset[tuple[str, ...]]:
        """The paths that values and conditions may read."""
        return frozenset[tuple[str, ...]]().union(*(each.names for each in self._fields))

    def find_next_change(self, now: datetime) -> datetime | None:
        """When a field may be otherwise although nothing else is; None if time does not matter."""
        return find_earliest_change((each.conditions for each in self._fields), now)

    def evaluate_fields(self, scope: Scope, *, failed: bool = False) -> StatusFieldValues:
        """Ask each field for its value.

        A field that reads a step's results when the scope has none is not asked: what was not made is not known, and
        ``default(0)`` would make a figure of it. It is a problem unless the pass has failed anyhow.

        Args:
            scope: Everything that the pass has made; its ``status`` is the one from before the pass.
            failed: An earlier step failed: only fields with conditions are asked, since those can tell.
        """
        answers = _FieldValues()
        for each in self._fields:
            if failed and not each.is_conditional:
                continue
            if unmade := each.list_missing_steps(scope):
                answers.failed.add(each.path)
                if not failed:
                    answers.problems.append(f"{each.where}: there is no {unmade[0]} in this pass, which it reads")
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
        raise ConfigurationError(f"{where}.path: {path[0]} is written by konverge; name the field something else")
    value = compile_structure(declared.value, where=f"{where}.value")
    conditions = compile_entry_conditions(declared, where)
    return _CompiledField(
        declared, where, path, value, conditions, value.list_read_paths() | conditions.list_read_paths()
    )


def _evaluate_field(each: _CompiledField, scope: Scope, answers: _FieldValues) -> None:
    """Add what one field comes to.

    Raises:
        konverge_box.expressions.ExpressionError: It has no value.
        StepError: It has one that cannot be in a status.
    """
    if not scope.holds(each.conditions):
        if each.declared.clear_on_false:
            answers.cleared.append(each.path)
        return
    where = f"{each.where}.value"
    value = scope.render(each.value)
    if value is not OMIT and has_sensitive(value):
        raise StepError(where, "it comes from a Secret, which a status would show to everyone who may read the object")
    if each.declared.type is not None:
        value = cast_value(value, each.declared.type, where)
    if value is OMIT:
        answers.values.append((each.path, CLEARED))
        return
    size = len(msgspec.json.encode(value))
    if size > MAX_FIELD_SIZE:
        raise StepError(where, f"expected at most {MAX_FIELD_SIZE} bytes of JSON in a field of a status, found {size}")
    if answers.size + size > MAX_STATUS_SIZE:
        raise StepError(where, f"left out: all fields have at most {MAX_STATUS_SIZE} bytes of JSON together")
    answers.size += size
    answers.values.append((each.path, value))


def _set_value(status: Object, path: Keys, value: Any) -> None:
    """Set a value. What is no mapping on the way is of an older file, or of an earlier field: the last wins."""
    below = status
    for step in path[:-1]:
        found = below.get(step)
        if not isinstance(found, dict):
            found = below[step] = {}
        below = found
    below[path[-1]] = value
