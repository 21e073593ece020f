"""What an expression does when it is evaluated: look something up, compare, call, put into text, go through a list."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from konverge.box.expressions.functions.function import Function
from konverge.box.expressions.run import Failure, Run
from konverge.box.expressions.sensitive import Sensitive
from konverge.box.expressions.values import Absent, is_number, kind_of, same, text_of

__all__ = [
    "Step",
    "Text",
    "called",
    "child_of",
    "compared",
    "divided",
    "joined",
    "read_path",
    "shown_key",
    "turns_of",
    "walk_path",
    "worded",
]

Step: TypeAlias = Callable[[Run], Any]
"""One node of an expression: comes to its value."""

_NOWHERE = object()
_SHOWN_KEY = 60


class Text:
    """A text that grows."""

    __slots__ = ("parts", "size")

    def __init__(self) -> None:
        self.parts: list[str] = []
        self.size = 0

    def add(self, run: Run, part: str, at: int) -> None:
        """Append a part.

        Raises:
            Failure: It would be too large.
        """
        self.size += len(part)
        if self.size > run.limits.size:
            raise run.too_large(at)
        self.parts.append(part)


def joined(path: str, key: str | int) -> str:
    """A path and one more key, as messages show it."""
    return f"{path}.{key}" if isinstance(key, str) and key.isidentifier() else f"{path}[{shown_key(key)}]"


def shown_key(key: str | int) -> str:
    """A key as messages show it, not too long."""
    return repr(key if isinstance(key, int) or len(key) <= _SHOWN_KEY else f"{key[:_SHOWN_KEY]}…")


def read_path(keys: list[str | int], at: int) -> Step:
    """Look a path up in the scope."""
    root, rest = str(keys[0]), keys[1:]

    def read(run: Run) -> Any:
        value = run.scope.get(root, _NOWHERE)
        if value is _NOWHERE:
            return Absent(path_text(keys), root, run.scope)
        for number, key in enumerate(rest):
            if type(value) is dict:
                found = value.get(key, _NOWHERE)
                if found is _NOWHERE:
                    return Absent(path_text(keys), path_text(keys[: number + 2]), value)
                value = found
            else:
                value = child_of(run, value, key, path_text(keys[: number + 2]), at)
                if type(value) is Absent:
                    value.path = path_text(keys)
                    return value
        return value

    return read


def path_text(keys: list[str | int]) -> str:
    shown = str(keys[0])
    for key in keys[1:]:
        shown = joined(shown, key)
    return shown


def walk_path(start: Step, name: str, keys: list[str | int], at: int) -> Step:
    """Look a path up in a value."""

    def walk(run: Run) -> Any:
        value, shown = start(run), name
        for key in keys:
            shown = joined(shown, key)
            value = child_of(run, value, key, shown, at)
        return value

    return walk


def child_of(run: Run, value: Any, key: str | int, shown: str, at: int) -> Any:
    """What a mapping or a list has there; nothing else has anything."""
    if type(value) is Sensitive:
        found = child_of(run, run.seen(value, at), key, shown, at)
        # Its keys are as secret as its values.
        return Absent(shown, shown, None) if type(found) is Absent else found
    if isinstance(value, Mapping):
        found = value.get(key, _NOWHERE)
        return Absent(shown, shown, value) if found is _NOWHERE else found
    if isinstance(value, list) and type(key) is int:
        return value[key] if -len(value) <= key < len(value) else Absent(shown, shown, value)
    if type(value) is Absent:
        return Absent(shown, value.missing, value.parent)
    return Absent(shown, shown, value)


def turns_of(run: Run, found: Any, names: list[str], test: Step | None, at: int) -> list[dict[str, Any]]:
    """What a loop's names stand for, turn by turn; of a mapping its sorted keys."""
    items = found if isinstance(found, list) else run.seen(found, at)
    if isinstance(items, Mapping):
        items = sorted(items, key=str)
    if not isinstance(items, list):
        raise Failure(at, f"expected a list or a mapping to loop over, found {kind_of(items)}")
    turns: list[dict[str, Any]] = []
    outside = run.locals
    for item in items:
        run.spend(at)
        parts = [item]
        if len(names) > 1:
            parts = run.seen(item, at)
            if not isinstance(parts, list) or len(parts) != len(names):
                raise Failure(at, f"expected lists of {len(names)} items to loop over, found {kind_of(parts)}")
        turn = dict(zip(names, parts, strict=True))
        if test is not None:
            run.locals = {**outside, **turn}
            if not run.seen(test(run), at):
                continue
        turns.append(turn)
    run.locals = outside
    return turns


def worded(run: Run, value: Any, at: int) -> str:
    """The text of a value that is put into text."""
    if type(value) is str:
        return value
    try:
        return text_of(run.seen(value, at))
    except ValueError as error:
        raise Failure(at, str(error)) from None


def compared(run: Run, sign: str, left: Any, right: Any, at: int) -> bool:
    """Tell whether a comparison holds; `sign` is one of Jinja2's names for them.

    Raises:
        Failure: The two cannot be compared.
    """
    run.spend(at, len(right) if isinstance(right, str) else 0)
    if sign in ("eq", "ne"):
        return same(left, right) is (sign == "eq")
    if sign in ("in", "notin"):
        if isinstance(right, list):
            is_in = any(same(left, item) for item in right)
        elif isinstance(right, str | Mapping) and isinstance(left, str):
            is_in = left in right
        else:
            raise Failure(at, f"expected text, a list or a mapping behind in, found {kind_of(right)}")
        return is_in is (sign == "in")
    is_comparable = (is_number(left) and is_number(right)) or (isinstance(left, str) and isinstance(right, str))
    if not is_comparable:
        raise Failure(at, f"expected two numbers or two texts to compare, found {kind_of(left)} and {kind_of(right)}")
    return bool(_COMPARISONS[sign](left, right))


def called(function: Function, steps: list[Step], at: int) -> Step:
    """The call of a function with arguments that these steps come to."""
    call, needs = function.call, function.needs
    base, weight = function.cost
    parameters = [function.parameter(number) for number in range(len(steps))]

    def apply(run: Run) -> Any:
        run.spend(at, base)
        arguments: list[Any] = [] if not needs else [_needed(run, function, at)]
        for number, step in enumerate(steps):
            value = step(run)
            kind = parameters[number].kind
            if not (kind.takes_absent and type(value) is Absent):
                value = run.seen(value, at)
            if not kind.fits(value):
                raise Failure(at, function.argument_problem(number, value))
            if type(value) is str:
                run.spend(at, len(value) * weight)
            arguments.append(value)
        try:
            return run.made(call(*arguments), at)
        except (ValueError, OverflowError) as error:
            raise Failure(at, f"{function.name}: {error}", shows=True) from None

    return apply


def _needed(run: Run, function: Function, at: int) -> Any:
    found = run.environment.now if function.needs == "time" else run.environment.entropy
    if found is None:
        raise Failure(at, f"{function.name} needs {function.needs}, which there is none of here")
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


def divided(left: float, right: float) -> float:
    """The quotient; of two integers an integer if nothing is left over."""
    if isinstance(left, int) and isinstance(right, int) and left % right == 0:
        return left // right
    return left / right
