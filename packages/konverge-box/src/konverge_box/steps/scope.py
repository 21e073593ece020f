"""What expressions of a step may read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from konverge.kube import Object
from konverge_box.expressions import ConditionSet, EvaluationEnvironment, Structure, Template

__all__ = ["Scope", "build_scope"]


@dataclass(frozen=True, slots=True)
class Scope:
    """Names with their values, and the time and randomness of the pass. It is never changed.

    Args:
        names: For example ``spec``, ``cross``.
        environment: The same for all steps of a pass.
    """

    names: Mapping[str, Any]
    environment: EvaluationEnvironment

    def with_names(self, **names: Any) -> Scope:
        """One that knows these names too."""
        return Scope({**self.names, **names}, self.environment)

    def render(self, compiled: Template | Structure) -> Any:
        """The value.

        Raises:
            konverge_box.expressions.ExpressionError: There is none.
        """
        return compiled.render(self.names, environment=self.environment)

    def find(self, template: Template) -> Any:
        """The value, or an `konverge_box.expressions.Absent`.

        Raises:
            konverge_box.expressions.ExpressionError: The expression fails for another reason.
        """
        return template.find(self.names, environment=self.environment)

    def holds(self, conditions: ConditionSet) -> bool:
        """Tell whether they hold.

        Raises:
            konverge_box.expressions.ExpressionError: One of them cannot be asked.
        """
        return conditions.holds(self.names, environment=self.environment)


def build_scope(obj: Object, environment: EvaluationEnvironment) -> Scope:
    """The scope of a custom resource before any step: ``apiVersion``, ``kind``, ``metadata``, ``spec``, ``status``."""
    names = {name: obj.get(name, {}) for name in ("apiVersion", "kind", "metadata", "spec", "status")}
    return Scope(names, environment)
