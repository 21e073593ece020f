"""Mappings and lists that contain expressions, as in manifests."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from konverge_box._internal.expressions.errors import ExpressionError, ExpressionSyntaxError
from konverge_box._internal.expressions.evaluation import DEFAULT_LIMITS, EvaluationEnvironment, EvaluationLimits
from konverge_box._internal.expressions.template import Template, compile_expression, is_expression
from konverge_box._internal.expressions.values import OMIT, describe_value_type

__all__ = ["Structure", "compile_structure"]

_NO_ENVIRONMENT = EvaluationEnvironment()
_MAX_DEPTH = 100

Fill: TypeAlias = Callable[[Mapping[str, Any], EvaluationEnvironment, EvaluationLimits], Any]


class Structure:
    """A value with compiled expressions; created by `compile_structure`."""

    __slots__ = ("_fill", "_templates")

    def __init__(self, fill: Fill, templates: tuple[Template, ...]) -> None:
        self._fill = fill
        self._templates = templates

    def list_read_paths(self) -> frozenset[tuple[str, ...]]:
        """Return the paths that its expressions may read."""
        return frozenset[tuple[str, ...]]().union(*(template.list_read_paths() for template in self._templates))

    def list_needs(self) -> frozenset[str]:
        """Return the inputs that its functions need: ``time``, ``randomness``."""
        return frozenset[str]().union(*(template.list_needs() for template in self._templates))

    def render(
        self,
        scope: Mapping[str, Any],
        *,
        environment: EvaluationEnvironment = _NO_ENVIRONMENT,
        limits: EvaluationLimits = DEFAULT_LIMITS,
    ) -> Any:
        """Compute the value; it shares nothing with the scope.

        Fields and items whose expression returns ``omit`` are left out. Each expression has its own limits.

        Raises:
            ExpressionError: An expression has no value, or a key is not a string.
        """
        return self._fill(scope, environment, limits)


def compile_structure(value: Any, *, where: str) -> Structure:
    """Compile all strings in a value, keys included.

    Args:
        value: A JSON value: mappings, lists, strings, numbers, booleans, null.
        where: The path of the value for messages; paths of inner values extend it.

    Raises:
        ExpressionSyntaxError: An expression does not compile, or the value is nested too deeply.
    """
    templates: list[Template] = []
    return Structure(_compile_value(value, where, templates, 0), tuple(templates))


def _compile_value(value: Any, where: str, templates: list[Template], depth: int) -> Fill:
    if depth > _MAX_DEPTH:
        raise ExpressionSyntaxError(where, 0, 0, f"nested deeper than {_MAX_DEPTH} levels")
    if isinstance(value, str) and is_expression(value):
        template = compile_expression(value, where=where)
        templates.append(template)
        return lambda scope, environment, limits: template.render(scope, environment=environment, limits=limits)
    if isinstance(value, Mapping):
        return _compile_mapping(value, where, templates, depth)
    if isinstance(value, list | tuple):
        fills = [_compile_value(item, f"{where}[{number}]", templates, depth + 1) for number, item in enumerate(value)]

        def fill(scope: Mapping[str, Any], environment: EvaluationEnvironment, limits: EvaluationLimits) -> list[Any]:
            items = [each(scope, environment, limits) for each in fills]
            return [item for item in items if item is not OMIT]

        return fill
    return lambda scope, environment, limits: value


def _compile_mapping(value: Mapping[Any, Any], where: str, templates: list[Template], depth: int) -> Fill:
    fields = [
        (
            _compile_value(key, where, templates, depth),
            _compile_value(item, f"{where}.{key}", templates, depth + 1),
            key,
        )
        for key, item in value.items()
    ]

    def fill(scope: Mapping[str, Any], environment: EvaluationEnvironment, limits: EvaluationLimits) -> dict[Any, Any]:
        filled: dict[Any, Any] = {}
        for name, item, written in fields:
            key = name(scope, environment, limits)
            if key is OMIT:
                continue
            if key != written and type(key) is not str:
                raise ExpressionError(
                    where, 0, 0, f"expected a string for the key {written}, found {describe_value_type(key)}"
                )
            rendered = item(scope, environment, limits)
            if rendered is not OMIT:
                filled[key] = rendered
        return filled

    return fill
