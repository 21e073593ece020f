"""Step 2: defaults and overrides, rule after rule. Each rule sees the results of the earlier rules.

The result is only for this reconcile, whose later steps see it. It is never written to the cluster.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from msgspec import UNSET

from konverge._internal.kube import Object
from konverge_box._internal.expressions import (
    OMIT,
    Absent,
    Template,
    compile_expression,
    compile_structure,
    find_earliest_change,
    is_expression,
)
from konverge_box._internal.expressions.functions.choices import is_empty
from konverge_box._internal.expressions.values import are_equal
from konverge_box._internal.file import MutationRule
from konverge_box._internal.file.model import ValueType
from konverge_box._internal.steps.entry_conditions import compile_entry_conditions
from konverge_box._internal.steps.errors import StepError
from konverge_box._internal.steps.object_paths import Keys, get_value, remove_value, split_path, with_value
from konverge_box._internal.steps.scope import Scope
from konverge_box._internal.steps.type_casts import cast_value

__all__ = ["MutationChange", "MutationResult", "Mutations"]

_MAPS_OF_TEXTS = (("metadata", "labels"), ("metadata", "annotations"))
_MAX_PATH_LENGTH = 500
_EXPECTED = "expected a field of spec, or one of metadata.labels or metadata.annotations"


@dataclass(frozen=True, slots=True)
class MutationChange:
    """The change of one rule.

    Args:
        field: The path of the field.
        before: The old value; an `Absent` without one.
        after: The new value, which can be sensitive; an `Absent` if the field was removed.
        where: The rule, as a path in the file.
    """

    field: str
    before: Any
    after: Any
    where: str


@dataclass(frozen=True, slots=True)
class MutationResult:
    """The object after all rules, and their changes in order."""

    object: Object
    changes: tuple[MutationChange, ...]


class Mutations:
    """The compiled ``mutation`` rules.

    Args:
        declared: The rules.
        where: Their path in the file, for example ``spec.crds.website.mutation``.

    Raises:
        konverge.errors.KonvergeError: A rule is invalid. Loading the file reports that earlier.
    """

    def __init__(self, declared: tuple[MutationRule, ...], where: str) -> None:
        self._rules = [_CompiledMutation(rule, f"{where}[{number}]") for number, rule in enumerate(declared)]

    def apply_rules(self, scope: Scope, obj: Object) -> MutationResult:
        """Return the object with its defaults and overrides.

        A default applies to a field that is absent, null or empty (empty text, an empty list or an empty mapping). An
        override applies to any field. ``omit`` as an override removes the field; as a default it changes nothing.

        Args:
            scope: The scope of the first rule. Later rules see the ``spec`` and ``metadata`` of the changed object.
            obj: The object, which is not changed. The result shares its unchanged parts.

        Raises:
            StepError: A value does not have its type, an expression for a field returns a field that must not be set,
                or a parent of a field is not a mapping.
            konverge_box.expressions.ExpressionError: An expression has no value.
        """
        scope = _update_scope(scope, obj)
        changes: list[MutationChange] = []
        for rule in self._rules:
            if not scope.holds(rule.conditions):
                continue
            changed, change = rule.apply_rule(scope, obj)
            if change is not None:
                obj = changed
                changes.append(change)
                scope = _update_scope(scope, obj)
        return MutationResult(obj, tuple(changes))

    def find_next_change(self, now: datetime) -> datetime | None:
        """Return the next time at which the conditions of a rule can change by themselves; None without one."""
        return find_earliest_change((rule.conditions for rule in self._rules), now)


class _CompiledMutation:
    def __init__(self, declared: MutationRule, where: str) -> None:
        self.where = where
        self.conditions = compile_entry_conditions(declared, where)
        self._is_override = declared.override is not UNSET
        part = "override" if self._is_override else "default"
        self._value = compile_structure(getattr(declared, part), where=f"{where}.{part}")
        self._kind: ValueType | None = declared.type
        self._keys: Keys | Template
        if is_expression(declared.field):
            self._keys = compile_expression(declared.field, where=f"{where}.field")
        else:
            self._keys = self._check_settable(declared.field)

    def apply_rule(self, scope: Scope, obj: Object) -> tuple[Object, MutationChange | None]:
        keys = self._keys if isinstance(self._keys, tuple) else self._check_settable(scope.render(self._keys))
        before = get_value(obj, keys)
        if not self._is_override and not is_empty(before):
            return obj, None
        value = scope.render(self._value)
        # The values of labels and annotations are text.
        kind: ValueType | None = "string" if keys[0] == "metadata" else self._kind
        if kind is not None:
            value = cast_value(value, kind, self.where)
        field = ".".join(keys)
        if value is OMIT:
            if not self._is_override or isinstance(before, Absent):
                return obj, None
            return remove_value(obj, keys), MutationChange(field, before, Absent(field, field, None), self.where)
        if not isinstance(before, Absent) and are_equal(before, value):
            return obj, None
        return with_value(obj, keys, value, self.where), MutationChange(field, before, value, self.where)

    def _check_settable(self, path: Any) -> Keys:
        try:
            # The length is limited because each key can add a level to the object.
            keys = split_path(path if type(path) is str and len(path) <= _MAX_PATH_LENGTH else "")
        except ValueError as error:
            raise StepError(f"{self.where}.field", str(error)) from None
        is_in_spec = keys[0] == "spec" and len(keys) > 1
        if not is_in_spec and not (keys[:2] in _MAPS_OF_TEXTS and len(keys) == 3):
            raise StepError(f"{self.where}.field", f"{_EXPECTED}, found {'.'.join(keys)}")
        return keys


def _update_scope(scope: Scope, obj: Object) -> Scope:
    return scope.with_names(**{name: obj.get(name, {}) for name in ("metadata", "spec")})
