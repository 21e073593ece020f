"""What an expression does when it is evaluated: look something up, compare, call, put into text, go through a list."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from konverge_box.expressions.evaluation import Evaluation, EvaluationError
from konverge_box.expressions.functions.function import Function
from konverge_box.expressions.sensitive import Sensitive
from konverge_box.expressions.values import Absent, are_equal, describe_value_type, format_scalar, is_number

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
"""One node of an expression: comes to its value."""

_MISSING = object()
_MAX_KEY_LENGTH = 60


class TextBuffer:
    """A text that grows."""

    __slots__ = ("parts", "size")

    def __init__(self) -> None:
        self.parts: list[str] = []
        self.size = 0

    def add(self, run: Evaluation, part: str, at: int) -> None:
        """Append a part.

        Raises:
            Failure: It would be too large.
        """
        self.size += len(part)
        if self.size > run.limits.size:
            raise run.build_size_error(at)
        self.parts.append(part)


def format_child_path(path: str, key: str | int) -> str:
    """A path and one more key, as messages show it."""
    return f"{path}.{key}" if isinstance(key, str) and key.isidentifier() else f"{path}[{format_key(key)}]"


def format_key(key: str | int) -> str:
    """A key as messages show it, not too long."""
    return repr(key if isinstance(key, int) or len(key) <= _MAX_KEY_LENGTH else f"{key[:_MAX_KEY_LENGTH]}…")


def build_path_lookup(keys: list[str | int], at: int) -> Evaluator:
    """Look a path up in the scope."""
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
    shown = str(keys[0])
    for key in keys[1:]:
        shown = format_child_path(shown, key)
    return shown


def build_child_lookup(start: Evaluator, name: str, keys: list[str | int], at: int) -> Evaluator:
    """Look a path up in a value."""

    def walk(run: Evaluation) -> Any:
        value, shown = start(run), name
        for key in keys:
            shown = format_child_path(shown, key)
            value = get_child(run, value, key, shown, at)
        return value

    return walk


def get_child(run: Evaluation, value: Any, key: str | int, shown: str, at: int) -> Any:
    """What a mapping or a list has there; nothing else has anything."""
    if type(value) is Sensitive:
        found = get_child(run, run.unwrap_value(value, at), key, shown, at)
        # Its keys are as secret as its values.
        return Absent(shown, shown, None) if type(found) is Absent else found
    if isinstance(value, Mapping):
        found = value.get(key, _MISSING)
        return Absent(shown, shown, value) if found is _MISSING else found
    if isinstance(value, list) and type(key) is int:
        return value[key] if -len(value) <= key < len(value) else Absent(shown, shown, value)
    if type(value) is Absent:
        return Absent(shown, value.missing, value.parent)
    return Absent(shown, shown, value)


def list_iterations(
    run: Evaluation, found: Any, names: list[str], test: Evaluator | None, at: int
) -> list[dict[str, Any]]:
    """What a loop's names stand for, turn by turn; of a mapping its sorted keys."""
    items = found if isinstance(found, list) else run.unwrap_value(found, at)
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
    """The text of a value that is put into text."""
    if type(value) is str:
        return value
    try:
        return format_scalar(run.unwrap_value(value, at))
    except ValueError as error:
        raise EvaluationError(at, str(error)) from None


def compare(run: Evaluation, sign: str, left: Any, right: Any, at: int) -> bool:
    """Tell whether a comparison holds; `sign` is one of Jinja2's names for them.

    Raises:
        Failure: The two cannot be compared.
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
                at, f"expected text, a list or a mapping behind in, found {describe_value_type(right)}"
            )
        return is_in is (sign == "in")
    is_comparable = (is_number(left) and is_number(right)) or (isinstance(left, str) and isinstance(right, str))
    if not is_comparable:
        raise EvaluationError(
            at,
            f"expected two numbers or two texts to compare, found {describe_value_type(left)} and "
            f"{describe_value_type(right)}",
        )
    return bool(_COMPARISONS[sign](left, right))


def call_function(function: Function, steps: list[Evaluator], at: int) -> Evaluator:
    """The call of a function with arguments that these steps come to."""
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
            return run.check_result(call(*arguments), at)
        except (ValueError, OverflowError) as error:
            raise EvaluationError(at, f"{function.name}: {error}", shows=True) from None

    return apply


def _get_input(run: Evaluation, function: Function, at: int) -> Any:
    found = run.environment.now if function.needs == "time" else run.environment.entropy
    if found is None:
        raise EvaluationError(at, f"{function.name} needs {function.needs}, which there is none of here")
    if function.needs == "randomness":
        # What is drawn is meant for a Secret.
        run.is_tainted = True
    return found


_COMPARISONS: dict[str, Callable[[Any, Any], Any]] = {
    "lt": operator.lt,
    "lteq": operator.le,
    "gt": operator.gt,
    "gteq": operator.ge,
}


def divide(left: float, right: float) -> float:
    """The quotient; of two integers an integer if nothing is left over."""
    if isinstance(left, int) and isinstance(right, int) and left % right == 0:
        return left // right
    return left / right
