"""Conditions: their results, the errors at load time, and the times at which time alone changes them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from konverge_box.expressions import (
    Absent,
    EvaluationEnvironment,
    ExpressionError,
    ExpressionSyntaxError,
    compile_check,
    compile_condition,
    compile_conditions,
)

SCOPE: dict[str, Any] = {
    "spec": {
        "env": "prod",
        "host": "web.example.com",
        "replicas": 3,
        "ratio": 0.5,
        "memory": "2Gi",
        "off": False,
        "null": None,
        "blank": "",
        "list": ["a", "b"],
        "nothing": [],
        "map": {"key": 1},
        "zero": 0,
        "my-key": "dashed",
        "limit": "5",
        "word": "many",
        "pattern": "^web",
        "broken": "(",
    },
    "metadata": {"labels": {"app.kubernetes.io/name": "x"}},
}

FIELD_CASES: list[tuple[dict[str, Any], bool]] = [
    ({"field": "spec.env", "equals": "prod"}, True),
    ({"field": "spec.env", "value": "prod"}, True),
    ({"field": "spec.env", "operator": "equals", "value": "dev"}, False),
    ({"field": ".spec.env", "equals": "prod"}, True),
    ({"field": "{{ spec.env | toUpper }}", "equals": "PROD"}, True),
    ({"field": "spec.env", "equals": "{{ spec.env }}"}, True),
    ({"field": "spec.my-key", "equals": "dashed"}, True),
    ({"field": "metadata.labels['app.kubernetes.io/name']", "equals": "x"}, True),
    ({"field": "spec.list.1", "equals": "b"}, True),
    ({"field": "spec.replicas", "equals": "3"}, True),
    ({"field": "spec.replicas", "equals": 3}, True),
    ({"field": "spec.off", "equals": False}, True),
    ({"field": "spec.off", "equals": "false"}, True),
    ({"field": "spec.none", "equals": ""}, True),
    ({"field": "spec.null", "equals": ""}, True),
    ({"field": "spec.none", "equals": None}, True),
    ({"field": "spec.env", "equals": ""}, False),
    ({"field": "spec.list", "equals": "a"}, False),
    ({"field": "spec.env", "notEquals": "dev"}, True),
    ({"field": "spec.a.b.c", "notEquals": "dev"}, True),
    ({"field": "spec.host", "contains": "example"}, True),
    ({"field": "spec.list", "contains": "a"}, True),
    ({"field": "spec.list", "contains": "c"}, False),
    ({"field": "spec.map", "contains": "key"}, True),
    ({"field": "spec.none", "contains": "a"}, False),
    ({"field": "spec.none", "notContains": "a"}, True),
    ({"field": "spec.host", "prefix": "web."}, True),
    ({"field": "spec.host", "notPrefix": "web."}, False),
    ({"field": "spec.host", "suffix": ".com"}, True),
    ({"field": "spec.host", "notSuffix": ".org"}, True),
    ({"field": "spec.host", "regex": r"\.example\."}, True),
    ({"field": "spec.host", "regex": "^example"}, False),
    ({"field": "spec.host", "regex": "{{ spec.pattern }}"}, True),
    ({"field": "spec.list", "regex": ".*"}, False),
    ({"field": "spec.env"}, True),
    ({"field": "spec.none"}, False),
    ({"field": "spec.env", "exists": True}, True),
    ({"field": "spec.off", "exists": True}, True),
    ({"field": "spec.zero", "exists": True}, True),
    ({"field": "spec.blank", "exists": True}, False),
    ({"field": "spec.null", "exists": True}, False),
    ({"field": "spec.nothing", "exists": True}, False),
    ({"field": "spec.env", "exists": False}, False),
    ({"field": "spec.none", "exists": False}, True),
    ({"field": "spec.none.below", "notExists": True}, True),
    ({"field": "spec.env", "notExists": True}, False),
    ({"field": "spec.none", "operator": "notExists"}, True),
    ({"field": "spec.replicas", "greaterThan": 2}, True),
    ({"field": "spec.replicas", "greaterThan": 3}, False),
    ({"field": "spec.replicas", "operator": "gt", "value": "2"}, True),
    ({"field": "spec.replicas", "lessThan": 3}, False),
    ({"field": "spec.ratio", "lessThan": "0.6"}, True),
    ({"field": "spec.replicas", "min": 3}, True),
    ({"field": "spec.replicas", "greaterThanOrEqual": 4}, False),
    ({"field": "spec.replicas", "max": 3}, True),
    ({"field": "spec.replicas", "lessThanOrEqual": 2}, False),
    ({"field": "spec.memory", "greaterThan": "1500Mi"}, True),
    ({"field": "spec.replicas", "lessThan": "{{ spec.limit }}"}, True),
    ({"field": "spec.none", "lessThan": 1}, True),
    ({"field": "spec.null", "greaterThan": -1}, True),
    ({"field": "spec.word", "lessThan": 1}, False),
    ({"field": "spec.off", "lessThan": 1}, False),
    ({"field": "spec.replicas", "between": "3,5"}, True),
    ({"field": "spec.replicas", "between": [1, 3]}, True),
    ({"field": "spec.replicas", "between": "4, 5"}, False),
    ({"field": "spec.replicas", "notBetween": "4,5"}, True),
    ({"field": "spec.env", "in": "dev, prod"}, True),
    ({"field": "spec.env", "in": ["dev", "test"]}, False),
    ({"field": "spec.none", "in": "a,,b"}, True),
    ({"field": "spec.replicas", "in": [3, 5]}, True),
    ({"field": "spec.env", "notIn": "dev,test"}, True),
    ({"field": "spec.map", "typeOf": "map"}, True),
    ({"field": "spec.map", "typeMap": True}, True),
    ({"field": "spec.list", "typeList": True}, True),
    ({"field": "spec.env", "typeString": True}, True),
    ({"field": "spec.replicas", "typeNumber": True}, True),
    ({"field": "spec.off", "typeBool": True}, True),
    ({"field": "spec.off", "typeNumber": True}, False),
    ({"field": "spec.null", "typeNull": True}, True),
    ({"field": "spec.none", "typeNull": True}, False),
    ({"field": "spec.env", "typeString": False}, False),
    ({"field": "spec.env", "equals": "prod", "negate": True}, False),
    ({"field": "spec.env", "notEquals": "prod", "negate": True}, True),
]


@pytest.mark.parametrize(("declared", "expected"), FIELD_CASES, ids=[str(case) for case, _ in FIELD_CASES])
def test_a_condition_looks_at_a_field(declared: dict[str, Any], expected: bool) -> None:
    condition = compile_condition(declared, where="when[0]")
    assert condition.holds(SCOPE) is expected
    assert condition.find_next_change(datetime(2026, 1, 1, tzinfo=UTC)) is None


@pytest.mark.parametrize(
    ("declared", "message"),
    [
        (
            {"field": "spec.a", "regex": "(a"},
            "when[0].regex: expected a regular expression (RE2), found an invalid one",
        ),
        ({"field": "spec.a", "regex": 5}, "when[0].regex: expected a regular expression (RE2), found a number"),
        (
            {"field": "spec.a", "greaterThan": "many"},
            "when[0].greaterThan: expected a number or a quantity, found 'many'",
        ),
        (
            {"field": "spec.a", "operator": "gt", "value": True},
            "when[0].value: expected a number or a quantity, found true",
        ),
        ({"field": "spec.a", "operator": "gt"}, "when[0]: expected value together with the operator gt"),
        ({"field": "spec.a", "between": "5"}, "when[0].between: expected two numbers such as '1,10', found '5'"),
        ({"field": "spec.a", "between": "5,1"}, "when[0].between: expected the smaller number first, found '5,1'"),
        ({"field": "spec.a", "between": "a,b"}, "when[0].between: expected a number or a quantity, found 'a'"),
        ({"field": "spec.a", "equals": []}, "when[0].equals: expected a string, a number or a boolean, found a list"),
        ({"field": "spec.a", "in": {}}, "when[0].in: expected a string, a number or a boolean, found a mapping"),
        (
            {"field": "spec.a", "typeOf": "numbr"},
            "when[0].typeOf: expected one of map, list, string, number, bool, null",
        ),
        ({"field": "spec.a", "exists": "yes"}, "when[0].exists: expected true or false, found 'yes'"),
        (
            {"field": "spec.a", "operator": "equal", "value": 1},
            "expected an operator, found 'equal' (did you mean equals?)",
        ),
        ({"field": "spec.a", "operator": []}, "when[0].operator: expected an operator, found []"),
        ({"field": "spec.a", "equals": 1, "min": 2}, "when[0]: expected one operator, found equals and min"),
        ({"field": "spec.a", "equals": 1, "value": 2}, "when[0]: expected one operator, found equals and value"),
        ({"field": "spec.a", "equls": 1}, "when[0]: unknown field equls of a condition (did you mean equals?)"),
        ({"field": "spec.a", "negate": "yes"}, "when[0].negate: expected true or false, found a string"),
        ({"field": "{{ a b }}"}, "when[0].field, line 1, column 6: expected token"),
        ({"field": 5}, "when[0].field: expected a path such as spec.host, found a number"),
        ({"field": ""}, "when[0].field: expected a path such as spec.host"),
        ({"field": "spec.a", "equals": "{{ 2 ** 3 }}"}, "when[0].equals, line 1, column 4: expected a value"),
        ({"equals": 1}, "when[0]: expected field together with equals"),
        ({}, "when[0]: expected field, time, dayOfWeek or cron"),
        ("spec.a", "when[0]: expected a mapping with field and an operator, found a string"),
        ({"time": {"after": "25:00"}}, "when[0].time: expected a time of day such as 22:00, found '25:00'"),
        ({"time": {"from": "22:00"}}, "when[0].time: expected after or before, found from"),
        ({"time": {}}, "when[0].time: expected a mapping with after or before"),
        (
            {"time": {"after": "08:00", "before": "08:00"}},
            "when[0].time: expected different times for after and before",
        ),
        (
            {"dayOfWeek": "Funday"},
            "when[0].dayOfWeek: expected a day of the week such as Monday or Mon, found 'Funday'",
        ),
        (
            {"dayOfWeek": {"weekday": True, "weekend": True}},
            "when[0].dayOfWeek: expected at least one allowed day",
        ),
        ({"cron": "* * * *"}, "when[0].cron: expected a cron schedule of five fields"),
        ({"cron": "0 0 31 2 *"}, "when[0].cron: expected a cron schedule of five fields"),
        ({"cron": 5}, "when[0].cron: expected a string, found a number"),
        ({"cron": "0 0 * * *", "duration": "soon"}, "when[0].cron: expected a duration such as 90s"),
        ({"cron": "0 0 * * *", "duration": "0"}, "when[0].cron: expected a duration longer than 0"),
        ({"field": "spec.a", "duration": "5m"}, "when[0]: expected cron together with duration"),
    ],
)
def test_what_cannot_be_a_condition_is_refused_when_it_is_loaded(declared: Any, message: str) -> None:
    with pytest.raises(ExpressionSyntaxError) as caught:
        compile_condition(declared, where="when[0]")
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("declared", "message"),
    [
        ({"field": "spec.env", "equals": "{{ spec.none }}"}, "when[0].equals, line 1, column 4: spec.none is absent"),
        ({"field": "{{ spec.env | toInt }}", "equals": 1}, "toInt: expected an integer, found 'prod'"),
        ({"field": "spec.env", "regex": "{{ spec.broken }}"}, "when[0].regex: expected a regular expression (RE2)"),
        ({"field": "spec.env", "lessThan": "{{ spec.word }}"}, "when[0].lessThan: expected a number or a quantity"),
        ({"field": "spec.env", "unique": True}, "when[0].unique: unique needs the other objects"),
        ({"dayOfWeek": "Mon"}, "when[0]: the condition needs the time, which is not available here"),
    ],
)
def test_a_condition_that_cannot_be_told_is_an_error_and_not_false(declared: dict[str, Any], message: str) -> None:
    condition = compile_condition(declared, where="when[0]")
    with pytest.raises(ExpressionError) as caught:
        condition.holds(SCOPE)
    assert message in str(caught.value)


# 2026-11-22 is a Sunday.
TIME_CASES: list[tuple[dict[str, Any], str, bool, str]] = [
    ({"time": {"after": "08:00", "before": "18:00"}}, "2026-11-22T08:00:00", True, "2026-11-22T18:00:00"),
    ({"time": {"after": "08:00", "before": "18:00"}}, "2026-11-22T18:00:00", False, "2026-11-23T08:00:00"),
    ({"time": {"after": "22:00", "before": "06:00"}}, "2026-11-22T23:00:00", True, "2026-11-23T06:00:00"),
    ({"time": {"after": "22:00", "before": "06:00"}}, "2026-11-22T05:59:59", True, "2026-11-22T06:00:00"),
    ({"time": {"after": "22:00", "before": "06:00"}}, "2026-11-22T06:00:00", False, "2026-11-22T22:00:00"),
    ({"time": {"after": "22:00"}}, "2026-11-22T23:59:59", True, "2026-11-23T00:00:00"),
    ({"time": {"before": "06:00"}}, "2026-11-22T00:00:00", True, "2026-11-22T06:00:00"),
    ({"dayOfWeek": "weekend"}, "2026-11-22T23:59:59", True, "2026-11-23T00:00:00"),
    ({"dayOfWeek": {"weekday": True}}, "2026-11-23T00:00:00", True, "2026-11-24T00:00:00"),
    ({"dayOfWeek": {"weekend": False}}, "2026-11-22T12:00:00", False, "2026-11-23T00:00:00"),
    ({"dayOfWeek": {"in": ["Sunday", "mon"]}}, "2026-11-22T12:00:00", True, "2026-11-23T00:00:00"),
    ({"dayOfWeek": {"notIn": "Sat, Sun"}}, "2026-11-22T12:00:00", False, "2026-11-23T00:00:00"),
    ({"dayOfWeek": ["Sun"]}, "2026-11-22T12:00:00", True, "2026-11-23T00:00:00"),
    ({"cron": "0 22 * * *", "duration": "8h"}, "2026-11-22T05:00:00", True, "2026-11-22T06:00:00"),
    ({"cron": "0 22 * * *", "duration": "8h"}, "2026-11-22T06:00:00", False, "2026-11-22T22:00:00"),
    ({"cron": "0 22 * * *"}, "2026-11-22T22:00:00", True, "2026-11-22T22:01:00"),
    ({"cron": "0 22 * * *"}, "2026-11-22T22:01:00", False, "2026-11-23T22:00:00"),
    ({"cron": "0 22 * * *", "negate": True}, "2026-11-22T22:00:30", False, "2026-11-22T22:01:00"),
    ({"cron": "@daily", "dayOfWeek": "Sun", "duration": "1h"}, "2026-11-22T00:30:00", True, "2026-11-22T01:00:00"),
    ({"cron": "@daily", "dayOfWeek": "Mon", "duration": "1h"}, "2026-11-22T00:30:00", False, "2026-11-22T01:00:00"),
    ({"field": "spec.env", "equals": "x", "dayOfWeek": "Sun"}, "2026-11-22T12:00:00", False, "2026-11-23T00:00:00"),
]


@pytest.mark.parametrize(("declared", "now", "expected", "change"), TIME_CASES)
def test_a_condition_looks_at_the_time_in_utc(declared: dict[str, Any], now: str, expected: bool, change: str) -> None:
    condition = compile_condition(declared, where="x")
    moment = datetime.fromisoformat(now).replace(tzinfo=UTC)
    for zone in (UTC, timezone(timedelta(hours=9))):
        assert condition.holds(SCOPE, environment=EvaluationEnvironment(now=moment.astimezone(zone))) is expected
        assert condition.find_next_change(moment.astimezone(zone)) == datetime.fromisoformat(change).replace(tzinfo=UTC)


@given(
    st.sampled_from([case[0] for case in TIME_CASES[:16]]),
    st.integers(0, 5_000_000).map(lambda minutes: datetime(2020, 1, 1, tzinfo=UTC) + timedelta(minutes=minutes)),
    st.floats(0, 0.999999),
)
def test_nothing_changes_before_the_next_change(declared: dict[str, Any], now: datetime, part: float) -> None:
    condition = compile_condition(declared, where="x")
    change = condition.find_next_change(now)
    assert change is not None
    between = now + (change - now) * part
    assert change > now
    assert condition.holds({}, environment=EvaluationEnvironment(now=between)) is condition.holds(
        {}, environment=EvaluationEnvironment(now=now)
    )


A, B, NOT = {"field": "spec.env"}, {"field": "spec.host"}, {"field": "spec.none"}


@pytest.mark.parametrize(
    ("declared", "expected"),
    [
        ({}, True),
        ({"when": None, "or": []}, True),
        ({"when": [A, B]}, True),
        ({"when": [A, NOT]}, False),
        ({"or": [NOT, B]}, True),
        ({"or": [NOT]}, False),
        ({"anyOf": [NOT, A]}, True),
        ({"when": [A], "or": [NOT]}, False),
        ({"when": [NOT], "or": [A]}, False),
        ({"when": [A], "or": [NOT, B], "name": "of another step"}, True),
    ],
)
def test_all_of_when_and_one_of_or(declared: dict[str, Any], expected: bool) -> None:
    assert compile_conditions(declared, where="x").holds(SCOPE) is expected


def test_conditions_tell_what_they_read_and_when_they_change() -> None:
    declared = {"when": [A, {"cron": "@daily"}], "anyOf": [{"field": "spec.x", "equals": "{{ cross.db.y }}"}]}
    conditions = compile_conditions(declared, where="x")
    assert conditions.list_read_paths() == {("spec", "env"), ("spec", "x"), ("cross", "db", "y")}
    assert conditions.find_next_change(datetime(2026, 1, 1, 12, tzinfo=UTC)) == datetime(2026, 1, 2, tzinfo=UTC)


@pytest.mark.parametrize(
    ("declared", "message"),
    [
        ({"or": [A], "anyOf": [A]}, "box: expected one of or and anyOf"),
        ({"when": A}, "box.when: expected a list of conditions, found a mapping"),
        ({"anyOf": [A, {}]}, "box.anyOf[1]: expected field"),
    ],
)
def test_a_mistake_among_conditions_has_its_place(declared: dict[str, Any], message: str) -> None:
    with pytest.raises(ExpressionSyntaxError) as caught:
        compile_conditions(declared, where="box")
    assert message in str(caught.value)


def test_in_validation_absence_is_right_only_where_a_value_must_not_be() -> None:
    absent = Absent("spec.a", "spec.a", None)
    declared: dict[str, Any] = {
        "equals": "", "notEquals": "a", "contains": "a", "notContains": "a", "prefix": "a", "notPrefix": "a",
        "suffix": "a",
        "notSuffix": "a", "regex": ".*", "exists": True, "notExists": True, "min": 0, "max": 0, "lessThan": 5,
        "greaterThan": -1, "between": "0,1", "notBetween": "5,6", "in": "a,", "notIn": "a", "typeNull": True,
    }  # fmt: skip
    checks = {key: compile_check({key: value}, where="x") for key, value in declared.items()}
    assert {key for key, check in checks.items() if check.accepts(absent, {})} == {"notEquals", "notExists"}
    assert checks["lessThan"].accepts(3, {})
    assert not checks["typeNull"].accepts("a", {})


def test_who_knows_the_other_objects_tells_what_is_unique() -> None:
    taken = {("spec.host", "web.example.com"), ("spec.none", None)}
    environment = EvaluationEnvironment(is_unique=lambda path, value: (path, value) not in taken)
    fields = ["spec.host", "spec.none", "spec.env"]
    conditions = [compile_condition({"field": field, "unique": True}, where="x") for field in fields]
    assert [each.holds(SCOPE, environment=environment) for each in conditions] == [False, False, True]
