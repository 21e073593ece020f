"""The declared status fields: their evaluation, their values and the resulting status."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from konverge.errors import ConfigurationError
from konverge_box._internal.file import StatusField, StatusSpec
from konverge_box._internal.steps import Scope
from konverge_box._internal.steps.status_fields import MAX_FIELD_SIZE, MAX_STATUS_SIZE, StatusFields, StatusFieldValues
from konverge_box.expressions import EvaluationEnvironment, to_sensitive
from tests.box.file.sample_boxes import find_errors, load_custom_resource

NOON = EvaluationEnvironment(now=datetime(2026, 1, 1, 12, tzinfo=UTC))


def status_fields(fields: str) -> StatusFields:
    """Compile the status fields of a box, which can read Deployments and an observation."""
    lines = "\n".join(f"    {line}" for line in fields.strip("\n").splitlines())
    steps = f"""\
cross: [{{as: db, apiVersion: v1, kind: ConfigMap, selector: {{name: db}}}}]
onReconcile:
  deployments: [{{image: "app:1"}}]
status:
  fields:
{lines}
"""
    return StatusFields(load_custom_resource(steps).status, "status")


def answer(fields: str, *, failed: bool = False, **names: Any) -> StatusFieldValues:
    scope = Scope({"metadata": {"name": "web"}, "spec": {}, "status": {}, "children": {}, "cross": {}, **names}, NOON)
    return status_fields(fields).evaluate_fields(scope, failed=failed)


def compute_status(fields: str, status: dict[str, Any], **names: Any) -> dict[str, Any]:
    result = answer(fields, status=status, **names)
    assert not result.problems
    return result.apply_to_status(status)


def test_a_field_is_put_where_its_path_leads_and_the_rest_stays() -> None:
    status = {"conditions": [{"type": "Ready"}], "database": {"port": 1}}

    found = compute_status("- {path: database.host, value: 'db-{{ metadata.name }}'}", status)

    assert found == {"conditions": [{"type": "Ready"}], "database": {"port": 1, "host": "db-web"}}
    assert status == {"conditions": [{"type": "Ready"}], "database": {"port": 1}}


def test_a_status_that_is_not_there_yet_is_made() -> None:
    assert answer("- {path: phase, value: New}").apply_to_status(None) == {"phase": "New"}


def test_a_field_without_a_type_keeps_the_type_of_its_value() -> None:
    fields = "- {path: size, value: '{{ spec.size }}'}"

    assert compute_status(fields, {}, spec={"size": 3}) == {"size": 3}


def test_a_leading_dot_is_no_field() -> None:
    assert compute_status("- {path: .phase, value: New}", {}) == {"phase": "New"}


def test_of_one_path_the_last_that_applies_wins() -> None:
    fields = """
- {path: phase, value: Small}
- {path: phase, value: Large, when: [{field: spec.replicas, greaterThan: 3}]}
- {path: phase, value: Huge, when: [{field: spec.replicas, greaterThan: 9}]}
"""
    assert compute_status(fields, {}, spec={"replicas": 1}) == {"phase": "Small"}
    assert compute_status(fields, {}, spec={"replicas": 5}) == {"phase": "Large"}
    assert compute_status(fields, {}, spec={"replicas": 50}) == {"phase": "Huge"}


def test_fields_see_the_status_from_before_the_pass() -> None:
    fields = """
- {path: phase, value: Starting, when: [{field: status.phase, notExists: true}]}
- {path: phase, value: Running, when: [{field: status.phase, equals: Starting}]}
- {path: before, value: "{{ status.phase | default('none') }}"}
"""
    first = compute_status(fields, {})
    second = compute_status(fields, first)
    third = compute_status(fields, second)

    assert [first, second, third] == [
        {"phase": "Starting", "before": "none"},
        {"phase": "Running", "before": "Starting"},
        {"phase": "Running", "before": "Running"},
    ]


@pytest.mark.parametrize(
    ("wanted", "value", "found"),
    [
        ("integer", "'{{ 1 + 2 }}'", 3),
        ("integer", "' 3 '", 3),
        ("integer", "3.0", 3),
        ("number", "'2.5'", 2.5),
        ("boolean", "'true'", True),
        ("boolean", "'{{ 1 == 2 }}'", False),
        ("string", "3", "3"),
        ("string", "true", "true"),
    ],
)
def test_a_value_is_put_into_its_type(wanted: str, value: str, found: Any) -> None:
    got = compute_status(f"- {{path: x, type: {wanted}, value: {value}}}", {})["x"]

    assert (got, type(got)) == (found, type(found))


@pytest.mark.parametrize(
    ("wanted", "value", "problem"),
    [
        ("integer", "3.5", "expected a 64-bit integer, found 3.5"),
        ("integer", "three", "expected a 64-bit integer, found 'three'"),
        ("integer", "true", "expected a 64-bit integer, found a boolean"),
        ("number", "'1,5'", "expected a number, found '1,5'"),
        ("boolean", "1", "expected true or false, found 1"),
        ("boolean", "'yes'", "expected true or false, found 'yes'"),
        ("string", "[a]", "expected text, a number or a boolean, found a list"),
    ],
)
def test_a_value_of_another_type_is_told_and_the_other_fields_are_written(
    wanted: str, value: str, problem: str
) -> None:
    result = answer(f"- {{path: x, type: {wanted}, value: {value}}}\n- {{path: y, value: 1}}")

    assert result.problems == (f"status.fields[0].value: {problem}",)
    assert result.apply_to_status({"x": "before"}) == {"x": "before", "y": 1}


def test_an_expression_without_a_value_is_told_and_the_other_fields_are_written() -> None:
    result = answer("- {path: x, value: '{{ spec.absent }}'}\n- {path: y, value: 1}")

    assert len(result.problems) == 1
    assert result.problems[0].startswith("status.fields[0].value, line 1, column 4: spec.absent is absent")
    assert result.apply_to_status({"x": "before"}) == {"x": "before", "y": 1}


def test_a_condition_that_cannot_be_asked_is_told_and_the_field_stays() -> None:
    field = "- {path: x, value: 1, clearOnFalse: true, when: [{field: '{{ 1 / spec.zero }}', equals: 1}]}"
    result = answer(field, spec={"zero": 0})

    assert len(result.problems) == 1
    assert "status.fields[0].when[0]" in result.problems[0]
    assert result.apply_to_status({"x": "before"}) == {"x": "before"}


def test_all_of_when_and_one_of_or_have_to_hold() -> None:
    field = "- {path: x, value: 1, when: [{field: spec.a}], or: [{field: spec.b}, {field: spec.c}]}"

    assert [
        compute_status(field, {}, spec=dict.fromkeys(names, "set")) == {"x": 1}
        for names in ("", "a", "b", "bc", "ab", "ac", "abc")
    ] == [False, False, False, False, True, True, True]


def test_any_of_is_another_name_for_or() -> None:
    field = "- {path: x, value: 1, anyOf: [{field: spec.b}, {field: spec.c}]}"

    assert compute_status(field, {}, spec={"c": 1}) == {"x": 1}
    assert compute_status(field, {}, spec={"a": 1}) == {}


def test_a_condition_that_does_not_hold_leaves_what_was_there() -> None:
    assert compute_status("- {path: x, value: 1, when: [{field: spec.a}]}", {"x": "before"}) == {"x": "before"}


def test_clear_on_false_takes_the_field_away_and_nothing_else() -> None:
    field = "- {path: db.host, value: 1, clearOnFalse: true, when: [{field: spec.a}]}"

    assert compute_status(field, {"db": {"host": "before", "port": 1}}) == {"db": {"port": 1}}
    assert compute_status(field, {"db": "an older file had text here"}) == {"db": "an older file had text here"}
    assert compute_status(field, {}) == {}


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_a_field_that_applies_wins_over_one_that_is_cleared_in_either_order(order: tuple[int, int]) -> None:
    fields = [
        "- {path: phase, value: Stopped, clearOnFalse: true, when: [{field: spec.stopped}]}",
        "- {path: phase, value: Running, clearOnFalse: true, when: [{field: spec.stopped, exists: false}]}",
    ]
    text = "\n".join(fields[place] for place in order)

    assert compute_status(text, {"phase": "Stopped"}) == {"phase": "Running"}
    assert compute_status(text, {"phase": "Running"}, spec={"stopped": True}) == {"phase": "Stopped"}


def test_a_field_that_fails_is_not_cleared_by_another_one_of_its_path() -> None:
    result = answer("""
- {path: x, value: 1, clearOnFalse: true, when: [{field: spec.a}]}
- {path: x, value: '{{ spec.absent }}'}
""")

    assert result.apply_to_status({"x": "before"}) == {"x": "before"}


def test_omit_takes_the_field_away_and_null_is_a_value() -> None:
    assert compute_status("- {path: x, value: '{{ omit }}'}\n- {path: y, value: null}", {"x": 1}) == {"y": None}


def test_an_inner_path_replaces_what_an_older_file_had_as_text() -> None:
    assert compute_status("- {path: db.host, value: h}", {"db": "text"}) == {"db": {"host": "h"}}


def test_after_an_error_only_fields_with_conditions_are_asked() -> None:
    fields = """
- {path: x, value: new}
- {path: y, value: new, when: [{field: metadata.name, equals: web}]}
- {path: z, value: new, or: [{field: metadata.name, equals: web}]}
"""
    result = answer(fields, failed=True)

    assert result == StatusFieldValues(((("y",), "new"), (("z",), "new")))


@pytest.mark.parametrize("step", ["children.deployment", "cross.db"])
def test_what_a_step_has_not_made_makes_no_figure(step: str) -> None:
    fields = f"""
- {{path: x, value: '{{{{ {step}.status.n | default(0) }}}}', when: [{{field: metadata.name}}]}}
- {{path: y, value: gone, clearOnFalse: true, when: [{{field: {step}.status.n, greaterThan: 0}}]}}
"""
    scope = Scope({"metadata": {"name": "web"}, "spec": {}, "status": {}}, NOON)
    status = {"x": 3, "y": "there"}

    after_error = status_fields(fields).evaluate_fields(scope, failed=True)
    otherwise = status_fields(fields).evaluate_fields(scope)

    assert after_error == StatusFieldValues()
    assert otherwise.apply_to_status(status) == status
    name = step.partition(".")[0]
    assert otherwise.problems == tuple(
        f"status.fields[{i}]: it reads {name}, which has no result in this reconcile" for i in (0, 1)
    )


def test_a_value_from_a_secret_is_refused_and_not_shown() -> None:
    fields = """
- {path: plain, value: "{{ children.deployment.token }}"}
- {path: inside, value: {a: ["{{ children.deployment.token }}"]}}
- {path: hash, value: "{{ children.deployment.token | sha256sum }}"}
- {path: typed, type: integer, value: "{{ children.deployment.token }}"}
- {path: other, value: 1}
"""
    result = answer(fields, children={"deployment": to_sensitive({"token": "hunter2"})})

    assert result.apply_to_status({}) == {"other": 1}
    assert len(result.problems) == 4
    assert "hunter2" not in repr(result)


def test_a_field_has_a_largest_size_and_all_together_too() -> None:
    result = answer("- {path: x, value: '{{ spec.text }}'}", spec={"text": "a" * MAX_FIELD_SIZE})
    assert result.values == ()
    assert "at most 32768 bytes" in result.problems[0]

    text = "a" * (MAX_FIELD_SIZE - 2)
    many = "\n".join(f"- {{path: x{i}, value: '{{{{ spec.text }}}}'}}" for i in range(9))
    result = answer(many, spec={"text": text})
    assert len(result.values) == MAX_STATUS_SIZE // MAX_FIELD_SIZE
    assert len(result.problems) == 1


def test_values_that_are_there_already_change_nothing() -> None:
    fields = "- {path: a.b, value: 1}\n- {path: c, value: [x]}\n- {path: d, value: '{{ omit }}'}"
    status = {"a": {"b": 1, "z": 2}, "c": ["x"], "conditions": []}

    assert compute_status(fields, status) == status


@pytest.mark.parametrize(
    "path", ["conditions", ".conditions", "observedGeneration", "providers", "conditions.0.status"]
)
def test_what_konverge_writes_itself_is_refused(path: str) -> None:
    errors = find_errors(f"status: {{fields: [{{path: {path}, value: 1}}]}}")
    assert len(errors) == 1
    assert errors[0].endswith("status.fields[0].path: the field is reserved for konverge; use another name")

    with pytest.raises(ConfigurationError, match=r"status\.fields\[0\]\.path: .* is reserved for konverge"):
        StatusFields(StatusSpec(fields=(StatusField(path=path, value=1),)), "status")


def test_names_are_those_of_values_and_conditions() -> None:
    fields = status_fields("- {path: x, value: '{{ children.deployment.status.n }}', when: [{field: spec.a}]}")

    assert fields.list_read_paths() == {("children", "deployment", "status", "n"), ("spec", "a")}


def test_the_next_change_is_that_of_the_first_condition_with_a_time() -> None:
    now = datetime(2026, 1, 1, 12, tzinfo=UTC)
    fields = status_fields("""
- {path: x, value: 1, when: [{time: {after: "22:00"}}]}
- {path: y, value: 1, or: [{time: {after: "20:00"}}]}
""")

    assert fields.find_next_change(now) == datetime(2026, 1, 1, 20, tzinfo=UTC)
    assert status_fields("- {path: x, value: 1}").find_next_change(now) is None
