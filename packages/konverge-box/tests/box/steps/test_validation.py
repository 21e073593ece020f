"""Validation: every operator, all violations together, and their messages."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Any

import pytest

from konverge_box._internal.file import ConditionSpec, MutationRule, ValidationRule
from konverge_box._internal.file.model import TimeWindow
from konverge_box._internal.steps import Scope, build_scope
from konverge_box._internal.steps.mutation import Mutations
from konverge_box._internal.steps.validation import (
    RuleEvaluationError,
    RuleViolation,
    RuleViolations,
    Validation,
    summarize_violations,
)
from konverge_box.expressions import EvaluationEnvironment, to_sensitive

MORNING = datetime(2024, 1, 1, 9, 0, tzinfo=UTC)
ABSENT = object()


def check_spec(spec: dict[str, Any], *rules: ValidationRule) -> RuleViolations:
    environment = EvaluationEnvironment(
        now=MORNING, is_unique=lambda path, value: path == "spec.a" and value not in ("taken", "", None)
    )
    scope = Scope({"metadata": {"name": "web"}, "spec": spec, "status": {}}, environment)
    return Validation(rules, "validation").check_rules(scope)


def passes(value: Any, **operator: Any) -> bool:
    spec = {} if value is ABSENT else {"a": value}
    rule = ValidationRule(field="spec.a", **operator)
    return check_spec(spec, rule) == RuleViolations()


# Each operator with a value that it accepts and one that it does not; and whether it accepts what is absent, null,
# empty text, and a list, which is of a type that none of them is about.
OPERATORS: list[tuple[dict[str, Any], Any, Any, tuple[bool, bool, bool, bool]]] = [
    ({"equals": "x"}, "x", "y", (False, False, False, False)),
    ({"equals": 3}, "3", 4, (False, False, False, False)),
    ({"equals": ""}, "", "x", (False, True, True, False)),
    ({"not_equals": "x"}, "y", "x", (True, True, True, True)),
    ({"contains": "b"}, "abc", "ac", (False, False, False, True)),
    ({"not_contains": "b"}, "ac", "abc", (False, True, True, False)),
    ({"prefix": "a"}, "ab", "ba", (False, False, False, False)),
    ({"not_prefix": "a"}, "ba", "ab", (False, True, True, True)),
    ({"suffix": "b"}, "ab", "ba", (False, False, False, False)),
    ({"not_suffix": "b"}, "ba", "ab", (False, True, True, True)),
    ({"in_": ("a", 3)}, 3, "b", (False, False, False, False)),
    ({"in_": "a, b"}, "b", "c", (False, False, False, False)),
    ({"not_in": ("a", "b")}, "c", "a", (False, True, True, True)),
    ({"regex": "^a+$"}, "aa", "ab", (False, False, False, False)),
    ({"exists": True}, 0, "", (False, False, False, True)),
    ({"exists": False}, "", "x", (True, True, True, False)),
    ({"not_exists": True}, "", 0, (True, True, True, False)),
    ({"greater_than": 3}, 4, 3, (False, False, False, False)),
    ({"less_than": "1Gi"}, "500Mi", "1Gi", (False, True, True, False)),
    ({"min": 3}, "3", 2.9, (False, False, False, False)),
    ({"max": 3}, 3, 3.1, (False, True, True, False)),
    ({"between": (1, 3)}, 3, 0, (False, False, False, False)),
    ({"not_between": (1, 3)}, 0, 1, (False, True, True, True)),
    ({"type_of": "string"}, "x", 3, (False, False, True, False)),
    ({"type_of": "list"}, [], {}, (False, False, False, True)),
    ({"type_of": "map"}, {}, "{}", (False, False, False, False)),
    ({"type_of": "number"}, 0.5, "0.5", (False, False, False, False)),
    ({"type_of": "bool"}, False, "false", (False, False, False, False)),
    ({"type_of": "null"}, None, "null", (False, True, False, False)),
    ({"unique": True}, "free", "taken", (True, True, True, True)),
    ({}, "x", "", (False, False, False, True)),
]


def name(case: Any) -> str:
    return "-".join(f"{key}={value}" for key, value in case.items()) or "none" if isinstance(case, dict) else ""


@pytest.mark.parametrize(("operator", "good", "bad", "others"), OPERATORS, ids=name)
def test_every_operator_decides_on_what_is_there_absent_null_empty_and_of_another_type(
    operator: dict[str, Any], good: Any, bad: Any, others: tuple[bool, bool, bool, bool]
) -> None:
    assert passes(good, **operator)
    assert not passes(bad, **operator)
    assert tuple(passes(value, **operator) for value in (ABSENT, None, "", ["b"])) == others


def test_the_table_has_every_operator_of_the_file() -> None:
    comparisons = set(ValidationRule.__struct_fields__) - {"field", "message", "action", "when", "or_", "any_of"}

    assert {key for operator, *_ in OPERATORS for key in operator} == comparisons


def test_greater_than_and_less_than_are_strict_in_validation() -> None:
    assert [passes(value, greater_than=3) for value in (2, 3, 4)] == [False, False, True]
    assert [passes(value, less_than=3) for value in (2, 3, 4)] == [True, False, False]


def test_min_and_max_include_their_bound() -> None:
    assert passes(3, min=3)
    assert passes(3, max=3)


def test_in_is_asked_in_validation() -> None:
    assert not passes("tiny", in_=("small", "large"))


def test_type_of_is_asked_in_validation() -> None:
    assert not passes("3", type_of="number")


def test_validation_sees_what_mutation_made_in_the_same_pass() -> None:
    obj = {"metadata": {"name": "web"}, "spec": {"image": "web:latest"}}
    scope = build_scope(obj, EvaluationEnvironment())
    mutations = Mutations((MutationRule(field="spec.replicas", default=2),), "mutation")
    made = mutations.apply_rules(scope, obj).object

    step = Validation((ValidationRule(field="spec.replicas", min=2),), "validation")

    assert step.check_rules(build_scope(made, EvaluationEnvironment())) == RuleViolations()
    assert step.check_rules(scope) != RuleViolations()


def test_every_violation_is_told_at_once_and_warnings_apart_from_what_is_denied() -> None:
    found = check_spec(
        {"image": "web:latest", "replicas": 0},
        ValidationRule(field="spec.replicas", min=2, action="warn"),
        ValidationRule(field="spec.image", not_suffix=":latest", message="name a version, not latest"),
        ValidationRule(field="spec.host"),
        ValidationRule(field="spec.image", prefix="web"),
    )

    assert [str(each) for each in found.denied] == [
        "spec.image: name a version, not latest",
        "spec.host: expected a value, found nothing",
    ]
    assert [str(each) for each in found.warned] == ["spec.replicas: expected at least 2, found 0"]
    assert found.denied[0].where == "validation[1]"


MESSAGES: list[tuple[dict[str, Any], Any, str]] = [
    ({"equals": "x"}, "y", "expected 'x', found 'y'"),
    ({"equals": "{{ metadata.name }}"}, "y", "expected 'web', found 'y'"),
    ({"not_equals": "y"}, "y", "expected anything but 'y', found 'y'"),
    ({"contains": "x"}, "", "expected something that contains 'x', found empty text"),
    ({"in_": ("a", 3)}, None, "expected one of 'a', 3, found null"),
    ({"not_in": ("a", "b")}, "a", "expected none of 'a', 'b', found 'a'"),
    ({"regex": "^a{2}$"}, "b", "expected a match of '^a{2}$', found 'b'"),
    ({"exists": False}, "b", "expected no value, found 'b'"),
    ({"not_exists": False}, "", "expected a value, found empty text"),
    ({"between": (1, 3)}, 4, "expected a number from 1 to 3, found 4"),
    ({"not_between": (1, 3)}, 3, "expected a number that is not from 1 to 3, found 3"),
    ({"less_than": "1Gi"}, "2Gi", "expected less than '1Gi', found '2Gi'"),
    ({"type_of": "map"}, [1, 2], "expected the type 'map', found a list of 2 items"),
    ({"type_of": "string"}, True, "expected the type 'string', found true"),
    ({"unique": True}, "taken", "expected a value that no other object has, found 'taken'"),
    ({"unique": False}, "free", "expected a value that another object has, found 'free'"),
    ({"equals": "x"}, {"a": 1}, "expected 'x', found a mapping"),
    ({"equals": "x"}, ABSENT, "expected 'x', found nothing"),
    ({"equals": True}, "y" * 500, f"expected true, found '{'y' * 59}…'"),
]


@pytest.mark.parametrize(("operator", "value", "message"), MESSAGES)
def test_without_a_message_of_its_own_a_rule_says_what_was_expected_and_found(
    operator: dict[str, Any], value: Any, message: str
) -> None:
    spec = {} if value is ABSENT else {"a": value}

    assert check_spec(spec, ValidationRule(field="spec.a", **operator)).denied[0].message == message


def test_a_message_may_be_a_template() -> None:
    rule = ValidationRule(field="spec.a", max=3, message="{{ metadata.name }} has {{ spec.a }}")

    assert check_spec({"a": 4}, rule).denied[0].message == "web has 4"


@pytest.mark.parametrize("message", ["{{ spec.absent }}", "{{ spec.list }}", "{{ omit }}"])
def test_a_message_without_text_does_not_hide_the_violation(message: str) -> None:
    rule = ValidationRule(field="spec.a", max=3, message=message)

    said = check_spec({"a": 4, "list": [1]}, rule).denied[0].message

    assert said.startswith("expected at most 3, found 4 (the rule's own message cannot be evaluated: ")


def test_a_field_may_be_an_expression() -> None:
    rule = ValidationRule(field="{{ spec.min + spec.max }}", max=5)

    assert check_spec({"min": 1, "max": 2}, rule) == RuleViolations()
    assert check_spec({"min": 3, "max": 3}, rule).denied[0].message == "expected at most 5, found 6"


def test_a_field_with_dashes_or_below_what_is_no_mapping_is_looked_up() -> None:
    assert check_spec({"a-b": 1}, ValidationRule(field=".spec.a-b", equals=1)) == RuleViolations()
    assert check_spec({"a": "x"}, ValidationRule(field="spec.a.b", not_exists=True)) == RuleViolations()


def test_a_rule_applies_when_its_conditions_hold() -> None:
    prod, dev = ConditionSpec(field="spec.env", equals="prod"), ConditionSpec(field="spec.env", equals="dev")
    morning = ConditionSpec(time=TimeWindow(after="08:00", before="12:00"))
    found = check_spec(
        {"env": "prod"},
        ValidationRule(field="spec.a", when=(prod,)),
        ValidationRule(field="spec.b", when=(dev,)),
        ValidationRule(field="spec.c", or_=(dev, prod)),
        ValidationRule(field="spec.d", any_of=(dev,)),
        ValidationRule(field="spec.e", when=(morning,)),
    )

    assert [each.field for each in found.denied] == ["spec.a", "spec.c", "spec.e"]


def test_a_rule_that_time_decides_says_when() -> None:
    morning = ConditionSpec(time=TimeWindow(after="08:00", before="12:00"))
    step = Validation((ValidationRule(field="spec.a", when=(morning,)),), "validation")

    assert step.find_next_change(MORNING) == datetime(2024, 1, 1, 12, 0, tzinfo=UTC)


BROKEN: list[tuple[dict[str, Any], str]] = [
    ({"min": "{{ spec.bound }}"}, r"validation\[1\]\.min: expected a number or a quantity, found 'many'"),
    ({"regex": "{{ spec.pattern }}"}, r"validation\[1\]\.regex"),
    ({"between": ("{{ spec.list }}", 3)}, r"validation\[1\]\.between: expected a number"),
    ({"equals": "{{ spec.list }}"}, r"validation\[1\]\.equals: expected a string"),
    ({"equals": "{{ spec.absent }}"}, r"validation\[1\]\.equals.*spec\.absent is absent"),
]


@pytest.mark.parametrize(("operator", "problem"), BROKEN)
def test_a_rule_that_cannot_compare_is_an_error_and_does_not_pass(operator: dict[str, Any], problem: str) -> None:
    spec = {"a": 1, "bound": "many", "pattern": "(", "list": [1]}
    bad = ValidationRule(field="spec.a", max=0)

    broken = ValidationRule(field="spec.a", **operator)

    with pytest.raises(RuleEvaluationError, match=problem):
        check_spec(spec, ValidationRule(field="spec.a", max=5), broken, ValidationRule(field="spec.a"))
    found = check_spec(spec, bad, broken, ValidationRule(field="spec.b"))

    assert [each.field for each in found.denied] == ["spec.a", "spec.b"]
    assert re.search(problem, found.summarize_denial())


def test_a_field_whose_expression_fails_is_an_error_of_the_rule() -> None:
    with pytest.raises(RuleEvaluationError, match=r"validation\[0\]\.field"):
        check_spec({"a": "x"}, ValidationRule(field="{{ spec.a - 1 }}", min=1))


def test_all_broken_rules_are_told_at_once() -> None:
    rules = [ValidationRule(field="spec.a", min="{{ spec.a }}") for _ in range(3)]

    with pytest.raises(RuleEvaluationError) as caught:
        check_spec({"a": "x"}, *rules)

    assert [problem.where for problem in caught.value.problems] == [f"validation[{number}].min" for number in range(3)]


def test_unique_needs_somebody_who_knows_the_other_objects() -> None:
    rule = ValidationRule(field="spec.a", unique=True)
    step = Validation((rule, ValidationRule(field="spec.b")), "validation")

    assert step.unique_fields == {"spec.a"}
    with pytest.raises(RuleEvaluationError, match="unique needs the other objects"):
        step.check_rules(Scope({"spec": {"a": 1, "b": 2}}, EvaluationEnvironment()))


def test_nothing_that_comes_from_a_secret_is_in_a_message() -> None:
    secret = to_sensitive({"password": "hunter2", "limit": 3})
    rules = (
        ValidationRule(field="spec.secret.password", equals="other"),
        ValidationRule(field="spec.secret.password", equals="other", message="not {{ spec.secret.password }}"),
        ValidationRule(field="spec.a", equals="{{ spec.secret.password }}"),
        ValidationRule(field="spec.secret", equals="x"),
        ValidationRule(field="spec.a", in_=("x", "{{ spec.secret.password }}")),
    )

    found = check_spec({"secret": secret, "a": "b"}, *rules)

    assert len(found.denied) == len(rules)
    assert "hunter2" not in summarize_violations(found.denied)
    assert found.denied[1].message == "***"
    assert "found a value that comes from a Secret (not shown)" in found.denied[0].message


def test_a_rule_that_cannot_compare_with_a_secret_does_not_show_it() -> None:
    rule = ValidationRule(field="spec.a", min="{{ spec.secret }}")

    with pytest.raises(RuleEvaluationError) as caught:
        check_spec({"a": 1, "secret": to_sensitive("hunter2")}, rule)

    assert "hunter2" not in str(caught.value)


@pytest.mark.slow
def test_a_summary_of_many_long_violations_fits_into_a_condition() -> None:
    rules = [ValidationRule(field="spec.a", message="{{ spec.long }}") for _ in range(2000)]

    found = check_spec({"long": "x" * 100_000}, *rules)

    assert len(found.denied) == 2000
    assert summarize_violations(found.denied).endswith("; and 1980 more")
    assert len(summarize_violations(found.denied)) < 32_768


def test_a_summary_of_few_has_all_of_them() -> None:
    violations = [RuleViolation("spec.a", "no", "x"), RuleViolation("spec.b", "never", "y")]

    assert summarize_violations(violations) == "spec.a: no; spec.b: never"
