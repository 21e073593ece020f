"""Step 1: the canonical spec, made from the object as it was read.

All expressions see that object, never what another one has made, so their order means nothing. What is made is for
this pass: it is never written to the cluster.
"""

from __future__ import annotations

from typing import Any

from konverge.kube import Object
from konverge_box.expressions import OMIT, Absent, Structure, compile_structure
from konverge_box.file import NormalizeSpec
from konverge_box.file.model import ValueType
from konverge_box.steps.object_paths import Keys, get_value, remove_value, split_path, with_value
from konverge_box.steps.scope import Scope
from konverge_box.steps.type_casts import cast_value

__all__ = ["Normalization"]


class Normalization:
    """``normalize``, compiled.

    Args:
        declared: What the file says.
        where: Its path in the file, for example ``spec.crds.website.normalize``.

    Raises:
        konverge.errors.KonvergeError: What loading would have refused.
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
        # A field after those that it is in, so that neither takes the other away, however the file orders them.
        self._fields = sorted([*made, *typed], key=lambda field: len(field.keys))

    def normalize_object(self, scope: Scope, obj: Object) -> Object:
        """The object with its canonical spec.

        A field whose value is ``omit``, or with a type null or blank, is left out.

        Args:
            scope: What expressions see: the object as it was read.
            obj: That object; it is not changed, and the new one shares with it what stays.

        Raises:
            StepError: A value is not of its type, or something on the way to a field is no mapping.
            konverge_box.expressions.ExpressionError: An expression has no value.
        """
        made = [(field, field.compute_value(scope, obj)) for field in self._fields]
        for field, value in made:
            obj = remove_value(obj, field.keys) if value is OMIT else with_value(obj, field.keys, value, field.where)
        return obj


class _NormalizedField:
    """A field, and where its value is from: what the file says, or without that the object."""

    def __init__(self, path: str, declared: Structure | None, kind: ValueType | None, where: str) -> None:
        self.where = f"{where}.{'types' if declared is None else 'spec'}.{path}"
        self.keys: Keys = ("spec", *split_path(path))
        self._declared = declared
        self._kind: ValueType | None = kind

    def compute_value(self, scope: Scope, obj: Object) -> Any:
        """The value in its type; `OMIT` to leave the field out."""
        found = get_value(obj, self.keys) if self._declared is None else scope.render(self._declared)
        if isinstance(found, Absent):
            return OMIT
        return found if self._kind is None else cast_value(found, self._kind, self.where)
