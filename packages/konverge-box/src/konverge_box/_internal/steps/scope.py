"""The data that expressions of a step can read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from konverge._internal.kube import Object
from konverge_box._internal.expressions import ConditionSet, EvaluationEnvironment, Structure, Template

__all__ = ["Scope", "build_scope"]


@dataclass(frozen=True, slots=True)
class Scope:
    """Names with their values, and the time and randomness of the reconcile. A scope never changes.

    Args:
        names: The values by name, for example of ``spec`` and ``cross``.
        environment: The environment, which is the same for all steps of a reconcile.
    """

    names: Mapping[str, Any]
    environment: EvaluationEnvironment

    def with_names(self, /, **names: Any) -> Scope:
        """Return a scope that also has these names."""
        return Scope({**self.names, **names}, self.environment)

    def render(self, compiled: Template | Structure) -> Any:
        """Evaluate a template or a structure.

        Raises:
            konverge_box.expressions.ExpressionError: It has no value.
        """
        return compiled.render(self.names, environment=self.environment)

    def find(self, template: Template) -> Any:
        """Evaluate a template; return a `konverge_box.expressions.Absent` for an absent value.

        Raises:
            konverge_box.expressions.ExpressionError: The expression fails for another reason.
        """
        return template.find(self.names, environment=self.environment)

    def holds(self, conditions: ConditionSet) -> bool:
        """Tell whether the conditions hold.

        Raises:
            konverge_box.expressions.ExpressionError: A condition cannot be evaluated.
        """
        return conditions.holds(self.names, environment=self.environment)


def build_scope(obj: Object, environment: EvaluationEnvironment) -> Scope:
    """Return the scope before any step: ``apiVersion``, ``kind``, ``metadata``, ``spec``, ``status`` of the object."""
    names = {name: obj.get(name, {}) for name in ("apiVersion", "kind", "metadata", "spec", "status")}
    return Scope(names, environment)
