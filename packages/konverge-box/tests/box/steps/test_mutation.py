"""Mutation: defaults and overrides, in the order of the rules."""

from __future__ import annotations

import copy
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from konverge.kube import Object
from konverge_box._internal.file import ConditionSpec, MutationRule
from konverge_box._internal.file.model import TimeWindow
from konverge_box._internal.steps import StepError, build_scope
from konverge_box._internal.steps.mutation import MutationResult, Mutations
from konverge_box.expressions import Absent, EvaluationEnvironment

NIGHT = datetime(2024, 1, 1, 23, 0, tzinfo=UTC)


def mutate_object(spec: Any, *rules: MutationRule, metadata: dict[str, Any] | None = None) -> MutationResult:
    obj: Object = {"metadata": metadata or {"name": "web"}, "spec": spec}
    before = copy.deepcopy(obj)
    found = Mutations(rules, "mutation").apply_rules(build_scope(obj, EvaluationEnvironment(now=NIGHT)), obj)
    assert obj == before
    return found


def default(field: str, value: Any, **more: Any) -> MutationRule:
    return MutationRule(field=field, default=value, **more)


def override(field: str, value: Any, **more: Any) -> MutationRule:
    return MutationRule(field=field, override=value, **more)


@pytest.mark.parametrize("spec", [{}, {"a": None}, {"a": ""}, {"a": []}, {"a": {}}], ids=str)
def test_a_default_is_for_what_is_absent_null_or_empty(spec: dict[str, Any]) -> None:
    assert mutate_object(spec, default("spec.a", 1)).object["spec"] == {"a": 1}


@pytest.mark.parametrize("value", [0, False, "x", " ", [0], {"b": None}], ids=repr)
def test_a_default_leaves_every_other_value_alone(value: Any) -> None:
    found = mutate_object({"a": value}, default("spec.a", 1))

    assert found.object["spec"] == {"a": value}
    assert found.changes == ()


@pytest.mark.parametrize("spec", [{}, {"a": None}, {"a": ""}, {"a": 0}, {"a": {"b": 1}}], ids=str)
def test_an_override_is_for_any_value(spec: dict[str, Any]) -> None:
    assert mutate_object(spec, override("spec.a", 1)).object["spec"] == {"a": 1}


def test_an_override_wins_over_a_default_of_the_same_rule() -> None:
    both = MutationRule(field="spec.a", default=1, override=2)

    assert mutate_object({}, both).object["spec"] == {"a": 2}


def test_a_number_without_a_type_stays_a_number() -> None:
    found = mutate_object({}, default("spec.replicas", 3), default("spec.copy", "{{ spec.replicas }}"))

    assert found.object["spec"] == {"replicas": 3, "copy": 3}


def test_a_value_is_put_into_the_type_of_its_rule() -> None:
    found = mutate_object({"raw": "3"}, override("spec.a", "{{ spec.raw }}", type="integer"))

    assert found.object["spec"]["a"] == 3


def test_a_value_that_is_not_of_the_type_of_its_rule_is_an_error() -> None:
    with pytest.raises(StepError, match=r"mutation\[0\]: expected a 64-bit integer, found 'x'"):
        mutate_object({}, override("spec.a", "x", type="integer"))


def test_what_is_empty_in_its_type_leaves_an_override_out_and_changes_nothing_as_a_default() -> None:
    found = mutate_object({"a": 1}, override("spec.a", "", type="integer"), default("spec.b", "{{ omit }}"))

    assert found.object["spec"] == {}
    assert [(change.field, change.before) for change in found.changes] == [("spec.a", 1)]
    assert isinstance(found.changes[0].after, Absent)


def test_a_rule_sees_what_the_rules_before_it_made_and_nothing_of_later_ones() -> None:
    found = mutate_object(
        {},
        default("spec.early", "{{ spec.a | default('none') }}"),
        default("spec.a", 1),
        override("spec.a", "{{ spec.a + 1 }}"),
        default("spec.b", "{{ spec.a }}", when=(ConditionSpec(field="spec.a", equals=2),)),
        default("spec.c", 1, when=(ConditionSpec(field="spec.a", equals=1),)),
    )

    assert found.object["spec"] == {"early": "none", "a": 2, "b": 2}


def test_a_rule_applies_when_its_conditions_hold() -> None:
    prod, dev = ConditionSpec(field="spec.env", equals="prod"), ConditionSpec(field="spec.env", equals="dev")
    found = mutate_object(
        {"env": "prod"},
        default("spec.a", 1, when=(prod,)),
        default("spec.b", 1, when=(dev,)),
        default("spec.c", 1, or_=(dev, prod)),
        default("spec.d", 1, any_of=(dev, prod)),
        default("spec.e", 1, when=(prod,), or_=(dev,)),
    )

    assert found.object["spec"] == {"env": "prod", "a": 1, "c": 1, "d": 1}


def test_a_rule_that_time_decides_says_when() -> None:
    night = ConditionSpec(time=TimeWindow(after="22:00", before="06:00"))
    step = Mutations((default("spec.a", 1, when=(night,)), default("spec.b", 1)), "mutation")

    assert step.find_next_change(NIGHT) == datetime(2024, 1, 2, 6, 0, tzinfo=UTC)
    assert Mutations((default("spec.b", 1),), "mutation").find_next_change(NIGHT) is None


def test_a_window_over_midnight_holds_on_both_sides_of_it() -> None:
    night = ConditionSpec(time=TimeWindow(after="22:00", before="06:00"))

    assert mutate_object({}, default("spec.a", 1, when=(night,))).object["spec"] == {"a": 1}


def test_the_field_may_be_an_expression() -> None:
    rule = default("spec.limits.{{ spec.tier }}", 3)

    assert mutate_object({"tier": "gold"}, rule).object["spec"]["limits"] == {"gold": 3}


@pytest.mark.parametrize(
    ("tier", "problem"),
    [
        ("a b", "expected a path of field names"),
        ("../../x", "expected a path of field names"),
        ("", "expected a path of field names"),
        ("a." * 300 + "a", "expected a path of field names"),
    ],
)
def test_an_expression_for_the_field_that_gives_no_path_is_an_error(tier: str, problem: str) -> None:
    with pytest.raises(StepError, match=rf"mutation\[0\]\.field: {problem}"):
        mutate_object({"tier": tier}, default("spec.{{ spec.tier }}", 1))


@pytest.mark.parametrize(
    "field", ["status.phase", "metadata.name", "metadata.labels", "spec", "metadata.uid.a", "kind"]
)
def test_a_field_outside_of_spec_labels_and_annotations_cannot_be_set(field: str) -> None:
    with pytest.raises(StepError, match=r"expected a field of spec, or one of metadata\.labels"):
        mutate_object({"field": field}, override("{{ spec.field }}", 1))


def test_labels_and_annotations_can_be_set_and_are_texts() -> None:
    found = mutate_object(
        {"key": "metadata.labels.app.kubernetes.io/name"},
        default("metadata.labels.size", 3),
        default("{{ spec.key }}", "web"),
        override("metadata.annotations.a", True),
        default("spec.size", "{{ metadata.labels.size }}"),
    )

    assert found.object["metadata"]["labels"] == {"size": "3", "app.kubernetes.io/name": "web"}
    assert found.object["metadata"]["annotations"] == {"a": "true"}
    assert found.object["spec"]["size"] == "3"


def test_something_on_the_way_that_is_no_mapping_is_an_error() -> None:
    with pytest.raises(StepError, match=r"mutation\[0\]: spec\.a\.b cannot be set: expected a mapping at spec\.a"):
        mutate_object({"a": [1]}, default("spec.a.b", 1))


def test_it_reports_what_it_changed_in_order_and_not_what_was_so_already() -> None:
    found = mutate_object(
        {"a": 1, "b": 2}, override("spec.b", 3), override("spec.a", 1), default("spec.c", 4), override("spec.b", "3")
    )

    changes = [(change.field, change.before, change.after, change.where) for change in found.changes]
    assert [each for each in changes if each[0] == "spec.b"] == [
        ("spec.b", 2, 3, "mutation[0]"),
        ("spec.b", 3, "3", "mutation[3]"),
    ]
    assert [change.field for change in found.changes] == ["spec.b", "spec.c", "spec.b"]
    assert isinstance(found.changes[1].before, Absent)


VALUES: st.SearchStrategy[Any] = st.sampled_from([None, "", 0, 1, "x", [], {}, {"a": 1}])
FIELDS = st.sampled_from(["spec.a", "spec.b.c", "spec.b.d", "spec.e"])
RULES = st.builds(default, FIELDS, VALUES) | st.builds(override, FIELDS, VALUES)


@given(spec=st.dictionaries(st.sampled_from(["a", "e"]), VALUES), rules=st.lists(RULES, max_size=5))
def test_what_was_mutated_is_not_mutated_again(spec: dict[str, Any], rules: list[MutationRule]) -> None:
    once = mutate_object(spec, *rules)
    again = mutate_object(once.object["spec"], *rules)

    assert again.object["spec"] == once.object["spec"]
