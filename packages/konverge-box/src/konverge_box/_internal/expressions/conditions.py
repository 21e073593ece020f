"""Conditions: ``when`` (all must hold) and ``or``, also called ``anyOf`` (at least one must hold).

If both are given, both must hold. A condition tests a field, the time, or both. Times are in UTC; the result depends
only on the scope and the time of the reconcile. `find_next_change` returns the time at which the passing of time alone
changes the result, so that a reconcile can be scheduled for it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, time, timedelta
from typing import Any, Protocol

from konverge_box._internal.expressions.errors import ExpressionError, ExpressionSyntaxError
from konverge_box._internal.expressions.evaluation import DEFAULT_LIMITS, EvaluationEnvironment, EvaluationLimits
from konverge_box._internal.expressions.schedules import (
    DAYS,
    find_time_of_day,
    is_in_time_window,
    iter_cron_times,
    parse_cron,
    parse_day_of_week,
    parse_period,
    parse_time_of_day,
)
from konverge_box._internal.expressions.template import Template, compile_expression, is_expression
from konverge_box._internal.expressions.value_checks import OPERATOR_KEYS, ValueCheck, compile_check
from konverge_box._internal.expressions.values import describe_value_type, format_hint
from konverge_box._internal.expressions.wake_ups import evaluate_until_change

__all__ = [
    "CompiledCondition",
    "ConditionSet",
    "compile_condition",
    "compile_conditions",
    "compile_field",
    "find_earliest_change",
]

_NO_ENVIRONMENT = EvaluationEnvironment()
_KEYS = OPERATOR_KEYS | {"field", "negate", "time", "dayOfWeek", "cron", "duration"}
_DAY = timedelta(days=1)
_WORKING_DAYS = frozenset(range(5))
_PATH = re.compile(r"\.?([A-Za-z_][\w-]*)((?:\.[\w-]+)*)", re.ASCII)


class _TimeTest(Protocol):
    """A part of a condition that depends on the time alone."""

    def holds(self, now: datetime) -> bool:
        """Tell whether the test holds at this time."""

    def find_next_change(self, now: datetime) -> datetime:
        """Return the next time at which the result may change."""


class _TimeOfDayTest:
    def __init__(self, after: time, before: time) -> None:
        self._after = after
        self._before = before

    def holds(self, now: datetime) -> bool:
        return is_in_time_window(now, self._after, self._before)

    def find_next_change(self, now: datetime) -> datetime:
        return min(find_time_of_day(now, each) for each in (self._after, self._before))


class _DayOfWeekTest:
    def __init__(self, days: frozenset[int]) -> None:
        self._days = days

    def holds(self, now: datetime) -> bool:
        return now.astimezone(UTC).weekday() in self._days

    def find_next_change(self, now: datetime) -> datetime:
        return _compute_midnight(now) + _DAY


class _CronTest:
    def __init__(self, schedule: str, duration: timedelta) -> None:
        self._schedule = schedule
        self._duration = duration

    def holds(self, now: datetime) -> bool:
        return now - next(iter_cron_times(self._schedule, now, backwards=True)) < self._duration

    def find_next_change(self, now: datetime) -> datetime:
        end = next(iter_cron_times(self._schedule, now, backwards=True)) + self._duration
        begin = next(iter_cron_times(self._schedule, now))
        return min(begin, end) if end > now else begin


class CompiledCondition:
    """One condition; created by `compile_condition`."""

    __slots__ = ("_check", "_field", "_negates", "_path", "_reads_time", "_times", "where")

    def __init__(
        self,
        where: str,
        field: Template | None,
        path: str,
        check: ValueCheck | None,
        times: tuple[_TimeTest, ...],
        negates: bool,
    ) -> None:
        self.where: str = where
        self._field = field
        self._path = path
        self._check = check
        self._times = times
        self._negates = negates
        needs = frozenset[str]().union(*(part.list_needs() for part in (field, check) if part is not None))
        # Random values must not be generated twice.
        self._reads_time = "time" in needs and "randomness" not in needs

    def list_read_paths(self) -> frozenset[tuple[str, ...]]:
        """Return the paths that it may read."""
        paths = frozenset[tuple[str, ...]]()
        for part in (self._field, self._check):
            paths |= part.list_read_paths() if part is not None else frozenset()
        return paths

    def holds(
        self,
        scope: Mapping[str, Any],
        *,
        environment: EvaluationEnvironment = _NO_ENVIRONMENT,
        limits: EvaluationLimits = DEFAULT_LIMITS,
    ) -> bool:
        """Tell whether the condition holds.

        A field that is absent, or whose parent is, counts as empty. Every other failure of an expression raises an
        error and does not count as an unmet condition, because an unmet condition may delete an object.

        Raises:
            ExpressionError: An expression failed, or the condition needs the time and has none.
        """
        if self._reads_time:
            return evaluate_until_change(
                lambda each: self._is_met(scope, each, limits) is not self._negates, environment
            )
        return self._is_met(scope, environment, limits) is not self._negates

    def find_next_change(self, now: datetime) -> datetime | None:
        """Return the time at which the tests of time may change the result; None if there are none.

        An evaluation itself adds the changes of functions of time to `EvaluationEnvironment.wake_ups`.
        """
        return min((part.find_next_change(now) for part in self._times), default=None)

    def _is_met(self, scope: Mapping[str, Any], environment: EvaluationEnvironment, limits: EvaluationLimits) -> bool:
        if self._times:
            now = environment.now
            if now is None:
                raise ExpressionError(self.where, 0, 0, "the condition needs the time, which is not available here")
            if not all(part.holds(now) for part in self._times):
                return False
        if self._field is None or self._check is None:
            return True
        value = self._field.find(scope, environment=environment, limits=limits)
        return self._check.holds(value, scope, path=self._path, environment=environment, limits=limits)


class ConditionSet:
    """All conditions of one entry; created by `compile_conditions`.

    Args:
        when: The conditions that must all hold.
        any_of: The alternative conditions; at least one must hold, if there are any.
    """

    __slots__ = ("any_of", "when")

    def __init__(self, when: tuple[CompiledCondition, ...] = (), any_of: tuple[CompiledCondition, ...] = ()) -> None:
        self.when: tuple[CompiledCondition, ...] = when
        self.any_of: tuple[CompiledCondition, ...] = any_of

    def list_read_paths(self) -> frozenset[tuple[str, ...]]:
        """Return the paths that the conditions may read."""
        return frozenset[tuple[str, ...]]().union(*(each.list_read_paths() for each in (*self.when, *self.any_of)))

    def holds(
        self,
        scope: Mapping[str, Any],
        *,
        environment: EvaluationEnvironment = _NO_ENVIRONMENT,
        limits: EvaluationLimits = DEFAULT_LIMITS,
    ) -> bool:
        """Tell whether the conditions hold; an empty set always does.

        Raises:
            ExpressionError: An expression failed.
        """
        if not all(each.holds(scope, environment=environment, limits=limits) for each in self.when):
            return False
        return not self.any_of or any(each.holds(scope, environment=environment, limits=limits) for each in self.any_of)

    def find_next_change(self, now: datetime) -> datetime | None:
        """Return the time at which the result may change without other changes; None if it is independent of time."""
        return find_earliest_change((*self.when, *self.any_of), now)


class _TimeDependentPart(Protocol):
    """A value whose result may depend on the time."""

    def find_next_change(self, now: datetime) -> datetime | None:
        """Return the time at which the result may change without other changes; None if it is independent of time."""


def find_earliest_change(parts: Iterable[_TimeDependentPart], now: datetime) -> datetime | None:
    """Return the earliest time at which one of the parts may change; None if all are independent of time."""
    moments = [each.find_next_change(now) for each in parts]
    return min((moment for moment in moments if moment is not None), default=None)


def compile_conditions(declared: Mapping[str, Any], *, where: str) -> ConditionSet:
    """Compile ``when`` and ``or`` (or ``anyOf``) of a mapping; its other keys are ignored.

    Raises:
        ExpressionSyntaxError: A condition is invalid.
    """
    if "or" in declared and "anyOf" in declared:
        raise ExpressionSyntaxError(where, 0, 0, "expected one of or and anyOf, which are the same list; found both")
    any_of = "anyOf" if "anyOf" in declared else "or"
    return ConditionSet(_compile_list(declared, "when", where), _compile_list(declared, any_of, where))


def compile_condition(declared: Any, *, where: str) -> CompiledCondition:
    """Compile one condition.

    Raises:
        ExpressionSyntaxError: The condition is invalid; every part without an expression is checked now.
    """
    if not isinstance(declared, Mapping):
        raise ExpressionSyntaxError(
            where, 0, 0, f"expected a mapping with field and an operator, found {describe_value_type(declared)}"
        )
    for key in declared:
        if key not in _KEYS:
            raise ExpressionSyntaxError(
                where, 0, 0, f"unknown field {key!s:.60} of a condition{format_hint(str(key)[:60], _KEYS)}"
            )
    negates = declared.get("negate", False)
    if not isinstance(negates, bool):
        raise ExpressionSyntaxError(
            f"{where}.negate", 0, 0, f"expected true or false, found {describe_value_type(negates)}"
        )
    times = _compile_times(declared, where)
    operators = sorted(OPERATOR_KEYS & declared.keys())
    if "field" not in declared:
        if operators:
            raise ExpressionSyntaxError(where, 0, 0, f"expected field together with {operators[0]}")
        if not times:
            raise ExpressionSyntaxError(where, 0, 0, "expected field, time, dayOfWeek or cron")
        return CompiledCondition(where, None, "", None, times, negates)
    field = declared["field"]
    template = compile_field(field, where=f"{where}.field")
    return CompiledCondition(where, template, field, compile_check(declared, where=where), times, negates)


def compile_field(field: Any, *, where: str) -> Template:
    """Compile the field of a condition or a rule: a path (``spec.host``, dashes allowed) or an expression.

    Raises:
        ExpressionSyntaxError: The field is neither.
    """
    if not isinstance(field, str) or not field.strip():
        raise ExpressionSyntaxError(
            where, 0, 0, f"expected a path such as spec.host, found {describe_value_type(field)}"
        )
    if is_expression(field):
        return compile_expression(field, where=where)
    path = _PATH.fullmatch(field.strip())
    if path is None:
        return compile_expression(f"{{{{ {field} }}}}", where=where)
    keys = path[2].split(".")[1:]
    inside = "".join(f"[{key}]" if key.isdecimal() and len(key) < 10 else f"[{key!r}]" for key in keys)
    if "-" in path[1]:
        raise ExpressionSyntaxError(where, 0, 0, f"expected a path that starts with a name, found {path[1][:60]!r}")
    return compile_expression(f"{{{{ {path[1]}{inside} }}}}", where=where)


def _compile_list(declared: Mapping[str, Any], key: str, where: str) -> tuple[CompiledCondition, ...]:
    conditions = declared.get(key)
    if conditions is None:
        return ()
    if not isinstance(conditions, list):
        raise ExpressionSyntaxError(
            f"{where}.{key}", 0, 0, f"expected a list of conditions, found {describe_value_type(conditions)}"
        )
    return tuple(compile_condition(each, where=f"{where}.{key}[{number}]") for number, each in enumerate(conditions))


def _compile_times(declared: Mapping[str, Any], where: str) -> tuple[_TimeTest, ...]:
    tests: list[_TimeTest] = []
    for key, make in (("time", _compile_time_of_day), ("dayOfWeek", _compile_day_of_week), ("cron", _compile_cron)):
        if key in declared:
            try:
                tests.append(make(declared))
            except ValueError as error:
                raise ExpressionSyntaxError(f"{where}.{key}", 0, 0, str(error)) from None
    if "duration" in declared and "cron" not in declared:
        raise ExpressionSyntaxError(where, 0, 0, "expected cron together with duration")
    return tuple(tests)


def _compile_time_of_day(declared: Mapping[str, Any]) -> _TimeTest:
    window = _check_keys(declared["time"], ("after", "before"))
    after, before = (parse_time_of_day(window[key]) if key in window else time(0) for key in ("after", "before"))
    if after == before:
        raise ValueError("expected different times for after and before, found the same time twice")
    return _TimeOfDayTest(after, before)


def _compile_day_of_week(declared: Mapping[str, Any]) -> _TimeTest:
    written = declared["dayOfWeek"]
    if isinstance(written, str) and written in ("weekday", "weekend"):
        written = {written: True}
    elif isinstance(written, str | list):
        written = {"in": written}
    allowed = _check_keys(written, ("weekday", "weekend", "in", "notIn"))
    days = frozenset(range(len(DAYS)))
    for key, value in allowed.items():
        if key in ("weekday", "weekend"):
            if not isinstance(value, bool):
                raise ValueError(f"expected true or false for {key}, found {describe_value_type(value)}")
            days &= _WORKING_DAYS if (key == "weekday") is value else days - _WORKING_DAYS
        else:
            named = value.split(",") if isinstance(value, str) else value
            if not isinstance(named, list):
                raise ValueError(f"expected days for {key}, found {describe_value_type(named)}")
            numbers = frozenset(parse_day_of_week(each) for each in named)
            days &= numbers if key == "in" else days - numbers
    if not days:
        raise ValueError("expected at least one allowed day, found rules that exclude every day")
    return _DayOfWeekTest(days)


def _compile_cron(declared: Mapping[str, Any]) -> _TimeTest:
    schedule, duration = declared["cron"], declared.get("duration", "60s")
    for value in (schedule, duration):
        if not isinstance(value, str):
            raise ValueError(f"expected a string, found {describe_value_type(value)}")
    parse_cron(schedule)
    period = parse_period(duration)
    if not period:
        raise ValueError("expected a duration longer than 0")
    return _CronTest(schedule, period)


def _check_keys(value: Any, keys: tuple[str, ...]) -> Mapping[str, Any]:
    if not isinstance(value, Mapping) or not value:
        raise ValueError(f"expected a mapping with {' or '.join(keys)}, found {describe_value_type(value)}")
    for key in value:
        if key not in keys:
            raise ValueError(f"expected {' or '.join(keys)}, found {str(key)[:60]}")
    return value


def _compute_midnight(now: datetime) -> datetime:
    return datetime.combine(now.astimezone(UTC).date(), time(0), tzinfo=UTC)
