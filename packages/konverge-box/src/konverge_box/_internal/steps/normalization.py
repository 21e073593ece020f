"""Step 1: the canonical spec, computed from the object as it was read.

All expressions see that object, never the result of another expression, so their order does not matter. The result is
only for this reconcile: it is never written to the cluster.
"""

from __future__ import annotations

from typing import Any

from konverge._internal.kube import Object
from konverge_box._internal.expressions import OMIT, Absent, Structure, compile_structure
from konverge_box._internal.file import NormalizeSpec
from konverge_box._internal.file.model import ValueType
from konverge_box._internal.steps.object_paths import Keys, get_value, remove_value, split_path, with_value
from konverge_box._internal.steps.scope import Scope
from konverge_box._internal.steps.type_casts import cast_value

__all__ = ["Normalization"]


class Normalization:
    """The compiled ``normalize`` step.

    Args:
        declared: The declaration in the file.
        where: Its path in the file, for example ``spec.crds.website.normalize``.

    Raises:
        konverge.errors.KonvergeError: The declaration is invalid. Loading the file reports that earlier.
    """

    def __init__(self, declared: NormalizeSpec, where: str) -> None:
        made = [
            _NormalizedField(
                path, compile_structure(value, where=f"{where}.spec.{path}"), declared.types.get(path), where
            )
            for path, value in declared.spec.items()
        ]
        typed = [
            _NormalizedField(path, None, kind, where)
            for path, kind in declared.types.items()
            if path not in declared.spec
        ]
        # A field follows its parents, so that neither removes the other, independent of the order in the file.
        self._fields = sorted([*made, *typed], key=lambda field: len(field.keys))

    def normalize_object(self, scope: Scope, obj: Object) -> Object:
        """Return the object with its canonical spec.

        A field whose value is ``omit`` is removed. A field with a type is also removed if its value is null or blank.

        Args:
            scope: The scope of the object as it was read.
            obj: The object, which is not changed. The result shares its unchanged parts.

        Raises:
            StepError: A value does not have its type, or a parent of a field is not a mapping.
            konverge_box.expressions.ExpressionError: An expression has no value.
        """
        made = [(field, field.compute_value(scope, obj)) for field in self._fields]
        for field, value in made:
            obj = remove_value(obj, field.keys) if value is OMIT else with_value(obj, field.keys, value, field.where)
        return obj


class _NormalizedField:
    """A field of the canonical spec. Its value comes from the file, or else from the object."""

    def __init__(self, path: str, declared: Structure | None, kind: ValueType | None, where: str) -> None:
        self.where = f"{where}.{'types' if declared is None else 'spec'}.{path}"
        self.keys: Keys = ("spec", *split_path(path))
        self._declared = declared
        self._kind: ValueType | None = kind

    def compute_value(self, scope: Scope, obj: Object) -> Any:
        """Return the value in its type; `OMIT` removes the field."""
        value = get_value(obj, self.keys) if self._declared is None else scope.render(self._declared)
        if isinstance(value, Absent):
            return OMIT
        return value if self._kind is None else cast_value(value, self._kind, self.where)
