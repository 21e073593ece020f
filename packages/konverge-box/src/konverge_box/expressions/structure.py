"""Mappings and lists with expressions somewhere in them, as manifests have them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from konverge_box.expressions.errors import ExpressionError, ExpressionSyntaxError
from konverge_box.expressions.evaluation import DEFAULT_LIMITS, EvaluationEnvironment, EvaluationLimits
from konverge_box.expressions.template import Template, compile_expression, is_expression
from konverge_box.expressions.values import OMIT, describe_value_type

__all__ = ["Structure", "compile_structure"]

_NO_ENVIRONMENT = EvaluationEnvironment()
_MAX_DEPTH = 100

Fill: TypeAlias = Callable[[Mapping[str, Any], EvaluationEnvironment, EvaluationLimits], Any]


class Structure:
    """A value whose expressions are compiled; made by `compile_structure`."""

    __slots__ = ("_fill", "_templates")

    def __init__(self, fill: Fill, templates: tuple[Template, ...]) -> None:
        self._fill = fill
        self._templates = templates

    def list_read_paths(self) -> frozenset[tuple[str, ...]]:
        """The paths that its expressions may read."""
        return frozenset[tuple[str, ...]]().union(*(template.list_read_paths() for template in self._templates))

    def list_needs(self) -> frozenset[str]:
        """What functions in it need: ``time``, ``randomness``."""
        return frozenset[str]().union(*(template.list_needs() for template in self._templates))

    def render(
        self,
        scope: Mapping[str, Any],
        *,
        environment: EvaluationEnvironment = _NO_ENVIRONMENT,
        limits: EvaluationLimits = DEFAULT_LIMITS,
    ) -> Any:
        """Come to the value; it shares nothing with the scope.

        Fields and items whose expression answers ``omit`` are left out. Each expression has the limits to itself.

        Raises:
            ExpressionError: An expression has no value, or one for a key is no text.
        """
        return self._fill(scope, environment, limits)


def compile_structure(value: Any, *, where: str) -> Structure:
    """Compile all texts in a value, keys too.

    Args:
        value: JSON: mappings, lists, texts, numbers, booleans, null.
        where: Its path, for messages; those of what is in it are made from it.

    Raises:
        ExpressionSyntaxError: An expression cannot be compiled, or the value nests too deeply.
    """
    templates: list[Template] = []
    return Structure(_compile_value(value, where, templates, 0), tuple(templates))


def _compile_value(value: Any, where: str, templates: list[Template], depth: int) -> Fill:
    if depth > _MAX_DEPTH:
        raise ExpressionSyntaxError(where, 0, 0, f"nests deeper than {_MAX_DEPTH} levels")
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
                    where, 0, 0, f"expected text for the key {written}, found {describe_value_type(key)}"
                )
            found = item(scope, environment, limits)
            if found is not OMIT:
                filled[key] = found
        return filled

    return fill
