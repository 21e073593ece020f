"""Operations of an evaluation: lookups, comparisons, calls, conversion to strings, and loops."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from konverge._internal.message_text import quote
from konverge_box._internal.expressions.evaluation import Evaluation, EvaluationError
from konverge_box._internal.expressions.functions.function import Function
from konverge_box._internal.expressions.sensitive import Sensitive
from konverge_box._internal.expressions.values import Absent, are_equal, describe_value_type, format_scalar, is_number

__all__ = [
    "Evaluator",
    "TextBuffer",
    "build_child_lookup",
    "build_path_lookup",
    "call_function",
    "compare",
    "divide",
    "format_child_path",
    "format_key",
    "get_child",
    "list_iterations",
    "to_text",
]

Evaluator: TypeAlias = Callable[[Evaluation], Any]
"""One compiled node of an expression: computes its value."""

_MISSING = object()
_MAX_KEY_LENGTH = 60


class TextBuffer:
    """A string under construction with a size limit."""

    __slots__ = ("parts", "size")

    def __init__(self) -> None:
        self.parts: list[str] = []
        self.size = 0

    def add(self, run: Evaluation, part: str, at: int) -> None:
        """Append a part.

        Raises:
            EvaluationError: The string would exceed the limit.
        """
        self.size += len(part)
        if self.size > run.limits.size:
            raise run.build_size_error(at)
        self.parts.append(part)


def format_child_path(path: str, key: str | int) -> str:
    """Return a path with one more key in the form of messages."""
    return f"{path}.{key}" if isinstance(key, str) and key.isidentifier() else f"{path}[{format_key(key)}]"


def format_key(key: str | int) -> str:
    """Return a key in the form of messages, shortened."""
    return repr(key) if isinstance(key, int) else quote(key, _MAX_KEY_LENGTH)


def build_path_lookup(keys: list[str | int], at: int) -> Evaluator:
    """Build the lookup of a path in the scope."""
    root, rest = str(keys[0]), keys[1:]

    def read(run: Evaluation) -> Any:
        value = run.scope.get(root, _MISSING)
        if value is _MISSING:
            return Absent(format_keys(keys), root, run.scope)
        for number, key in enumerate(rest):
            if type(value) is dict:
                found = value.get(key, _MISSING)
                if found is _MISSING:
                    return Absent(format_keys(keys), format_keys(keys[: number + 2]), value)
                value = found
            else:
                value = get_child(run, value, key, format_keys(keys[: number + 2]), at)
                if type(value) is Absent:
                    value.path = format_keys(keys)
                    return value
        return value

    return read


def format_keys(keys: list[str | int]) -> str:
    path = str(keys[0])
    for key in keys[1:]:
        path = format_child_path(path, key)
    return path


def build_child_lookup(start: Evaluator, name: str, keys: list[str | int], at: int) -> Evaluator:
    """Build the lookup of keys in a value."""

    def walk(run: Evaluation) -> Any:
        value, path = start(run), name
        for key in keys:
            path = format_child_path(path, key)
            value = get_child(run, value, key, path, at)
        return value

    return walk


def get_child(run: Evaluation, value: Any, key: str | int, path: str, at: int) -> Any:
    """Return the value under a key of a mapping or at an index of a list; other values have none."""
    if type(value) is Sensitive:
        found = get_child(run, run.unwrap_value(value, at), key, path, at)
        # The keys are as secret as the values.
        return Absent(path, path, None) if type(found) is Absent else found
    if isinstance(value, Mapping):
        found = value.get(key, _MISSING)
        return Absent(path, path, value) if found is _MISSING else found
    if isinstance(value, list) and type(key) is int:
        return value[key] if -len(value) <= key < len(value) else Absent(path, path, value)
    if type(value) is Absent:
        return Absent(path, value.missing, value.parent)
    return Absent(path, path, value)


def list_iterations(
    run: Evaluation, value: Any, names: list[str], test: Evaluator | None, at: int
) -> list[dict[str, Any]]:
    """Return the values of a loop's names for each iteration; a mapping is iterated by its sorted keys."""
    items = value if isinstance(value, list) else run.unwrap_value(value, at)
    if isinstance(items, Mapping):
        items = sorted(items, key=str)
    if not isinstance(items, list):
        raise EvaluationError(at, f"expected a list or a mapping to loop over, found {describe_value_type(items)}")
    turns: list[dict[str, Any]] = []
    outside = run.locals
    for item in items:
        run.consume_step(at)
        parts = [item]
        if len(names) > 1:
            parts = run.unwrap_value(item, at)
            if not isinstance(parts, list) or len(parts) != len(names):
                raise EvaluationError(
                    at, f"expected lists of {len(names)} items to loop over, found {describe_value_type(parts)}"
                )
        turn = dict(zip(names, parts, strict=True))
        if test is not None:
            run.locals = {**outside, **turn}
            if not run.unwrap_value(test(run), at):
                continue
        turns.append(turn)
    run.locals = outside
    return turns


def to_text(run: Evaluation, value: Any, at: int) -> str:
    """Convert a value to a string for insertion into a string."""
    if type(value) is str:
        return value
    try:
        return format_scalar(run.unwrap_value(value, at))
    except ValueError as error:
        raise EvaluationError(at, str(error)) from None


def compare(run: Evaluation, sign: str, left: Any, right: Any, at: int) -> bool:
    """Tell whether a comparison holds; `sign` is Jinja2's name of the operator.

    Raises:
        EvaluationError: The two values cannot be compared.
    """
    run.consume_step(at, len(right) if isinstance(right, str) else 0)
    if sign in ("eq", "ne"):
        return are_equal(left, right) is (sign == "eq")
    if sign in ("in", "notin"):
        if isinstance(right, list):
            is_in = any(are_equal(left, item) for item in right)
        elif isinstance(right, str | Mapping) and isinstance(left, str):
            is_in = left in right
        else:
            raise EvaluationError(
                at, f"expected a string, a list or a mapping after in, found {describe_value_type(right)}"
            )
        return is_in is (sign == "in")
    is_comparable = (is_number(left) and is_number(right)) or (isinstance(left, str) and isinstance(right, str))
    if not is_comparable:
        raise EvaluationError(
            at,
            f"expected two numbers or two strings to compare, found {describe_value_type(left)} and "
            f"{describe_value_type(right)}",
        )
    return bool(_COMPARISONS[sign](left, right))


def call_function(function: Function, steps: list[Evaluator], at: int) -> Evaluator:
    """Build the call of a function with the arguments that these steps compute."""
    call, needs = function.call, function.needs
    base, weight = function.cost
    parameters = [function.get_parameter(number) for number in range(len(steps))]

    def apply(run: Evaluation) -> Any:
        run.consume_step(at, base)
        arguments: list[Any] = [] if not needs else [_get_input(run, function, at)]
        for number, step in enumerate(steps):
            value = step(run)
            kind = parameters[number].kind
            if not (kind.takes_absent and type(value) is Absent):
                value = run.unwrap_value(value, at)
            if not kind.fits(value):
                raise EvaluationError(at, function.find_argument_problem(number, value))
            if type(value) is str:
                run.consume_step(at, len(value) * weight)
            arguments.append(value)
        try:
            result = call(*arguments)
            if function.next_change is not None and run.environment.function_changes is not None:
                run.environment.function_changes.add(function.next_change(*arguments))
            return run.check_result(result, at)
        except (ValueError, OverflowError) as error:
            raise EvaluationError(at, f"{function.name}: {error}", shows=True) from None

    return apply


def _get_input(run: Evaluation, function: Function, at: int) -> Any:
    value = run.environment.now if function.needs == "time" else run.environment.entropy
    if value is None:
        raise EvaluationError(at, f"{function.name} needs {function.needs}, which is not available here")
    if function.needs == "randomness":
        # Random values are meant for Secrets.
        run.is_tainted = True
    return value


_COMPARISONS: dict[str, Callable[[Any, Any], Any]] = {
    "lt": operator.lt,
    "lteq": operator.le,
    "gt": operator.gt,
    "gteq": operator.ge,
}


def divide(left: float, right: float) -> float:
    """Divide; two integers give an integer if there is no remainder."""
    if isinstance(left, int) and isinstance(right, int) and left % right == 0:
        return left // right
    return left / right
