"""Normalize: the canonical spec, from the object as it was read."""

from __future__ import annotations

import copy
import itertools
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from konverge.clock import SeededEntropy
from konverge.kube import Object
from konverge_box._internal.file import NormalizeSpec
from konverge_box._internal.file.model import ValueType
from konverge_box._internal.steps import StepError, build_scope
from konverge_box._internal.steps.normalization import Normalization
from konverge_box.expressions import EvaluationEnvironment, ExpressionError, Sensitive

ENVIRONMENT = EvaluationEnvironment(entropy=SeededEntropy())


def normalize_spec(obj_spec: Any, spec: dict[str, Any], **types: ValueType) -> Any:
    obj: Object = {"metadata": {"name": "web"}, "spec": obj_spec}
    step = Normalization(NormalizeSpec(spec=spec, types=types), "normalize")
    return step.normalize_object(build_scope(obj, ENVIRONMENT), obj)["spec"]


def test_without_a_declaration_the_object_stays_what_it_is() -> None:
    assert normalize_spec({"size": "3"}, {}) == {"size": "3"}


def test_expressions_see_the_object_as_it_was_read_and_not_each_others_results() -> None:
    made = {"a": "{{ spec.b }}", "b": "{{ spec.a }}", "sum": "{{ spec.a + spec.b }}"}

    for order in itertools.permutations(made):
        found = normalize_spec({"a": 1, "b": 2}, {path: made[path] for path in order})

        assert found == {"a": 2, "b": 1, "sum": 3}


def test_a_result_that_no_field_had_is_seen_by_no_other_expression() -> None:
    with pytest.raises(ExpressionError, match=r"normalize\.spec\.b.*spec\.a is absent"):
        normalize_spec({}, {"a": "made", "b": "{{ spec.a }}"})


def test_an_expression_that_stands_alone_keeps_its_type_and_text_stays_text() -> None:
    made = {"number": "{{ spec.number }}", "list": "{{ spec.list }}", "text": "{{ spec.text }}", "mixed": "v{{ 1 }}"}

    found = normalize_spec({"number": 2, "list": [1], "text": "2"}, made)

    assert found == {"number": 2, "list": [1], "text": "2", "mixed": "v1"}


def test_expressions_within_mappings_and_lists_are_rendered() -> None:
    found = normalize_spec({"a": 1}, {"made": {"deep": ["{{ spec.a }}", "{{ omit }}"], "gone": "{{ omit }}"}})

    assert found["made"] == {"deep": [1]}


def test_a_field_that_is_omitted_is_left_out_even_if_the_object_had_it() -> None:
    assert normalize_spec({"a": 1, "b": 2}, {"a": "{{ omit }}", "absent": "{{ omit }}"}) == {"b": 2}


def test_without_a_type_empty_text_and_null_are_values() -> None:
    assert normalize_spec({}, {"empty": "", "null": None}) == {"empty": "", "null": None}


TYPED: list[tuple[ValueType, Any, Any]] = [
    ("integer", "3", 3),
    ("integer", " -3 ", -3),
    ("integer", "+3", 3),
    ("integer", 3, 3),
    ("integer", 3.0, 3),
    ("integer", str(2**63 - 1), 2**63 - 1),
    ("number", "0.5", 0.5),
    ("number", "1e3", 1000.0),
    ("number", "7", 7),
    ("number", 7, 7),
    ("boolean", "true", True),
    ("boolean", "False", False),
    ("boolean", True, True),
    ("string", "text ", "text "),
    ("string", 3, "3"),
    ("string", True, "true"),
    ("string", 0.5, "0.5"),
]


@pytest.mark.parametrize(("kind", "value", "expected"), TYPED)
def test_a_value_is_put_into_its_declared_type(kind: ValueType, value: Any, expected: Any) -> None:
    found = normalize_spec({"raw": value}, {"made": "{{ spec.raw }}"}, made=kind)["made"]

    assert (found, type(found)) == (expected, type(expected))


@pytest.mark.parametrize("kind", ["string", "integer", "number", "boolean"])
@pytest.mark.parametrize("value", ["", "  ", None])
def test_a_typed_field_of_blank_text_or_null_is_left_out(kind: ValueType, value: Any) -> None:
    assert normalize_spec({"made": value, "raw": value}, {"made": "{{ spec.raw }}"}, made=kind) == {"raw": value}


REFUSED: list[tuple[ValueType, Any, str]] = [
    ("integer", "3.0", "expected a 64-bit integer, found '3.0'"),
    ("integer", "3 replicas", "found '3 replicas'"),
    ("integer", "1_000", "found '1_000'"),
    ("integer", "٣", "expected a 64-bit integer"),
    ("integer", 0.5, "found 0.5"),
    ("integer", str(2**63), "expected a 64-bit integer"),
    ("integer", True, "found a boolean"),
    ("integer", [1], "found a list"),
    ("number", "many", "expected a number, found 'many'"),
    ("number", "nan", "found 'nan'"),
    ("number", "1e999", "expected a number"),
    ("number", False, "found a boolean"),
    ("boolean", "yes", "expected true or false, found 'yes'"),
    ("boolean", 1, "found 1"),
    ("string", {"a": 1}, "expected text, a number or a boolean, found a mapping"),
]


@pytest.mark.parametrize(("kind", "value", "problem"), REFUSED)
def test_a_value_of_another_type_is_an_error_with_the_field_and_what_was_expected_and_found(
    kind: ValueType, value: Any, problem: str
) -> None:
    with pytest.raises(StepError) as caught:
        normalize_spec({"raw": value}, {"made": "{{ spec.raw }}"}, made=kind)

    assert str(caught.value).startswith("normalize.spec.made: ")
    assert problem in str(caught.value)


def test_no_error_about_a_type_shows_a_value_that_was_drawn() -> None:
    with pytest.raises(StepError, match=r"\(not shown\)"):
        normalize_spec({}, {"made": "{{ randomHex(8) }}x"}, made="integer")


def test_a_sensitive_value_stays_sensitive_in_its_type() -> None:
    found = normalize_spec({}, {"made": "{{ randomHex(8) }}"}, made="string")["made"]

    assert isinstance(found, Sensitive)
    assert len(found.reveal()) == 8


def test_a_type_without_an_expression_is_for_the_value_that_the_object_has() -> None:
    assert normalize_spec({"a": "3", "b": ""}, {}, a="integer", b="integer", c="integer") == {"a": 3}


def test_mappings_on_the_way_to_a_field_are_made() -> None:
    found = normalize_spec({"a": {"kept": 1}, "null": None}, {"a.b.c": 1, "null.x": 2})

    assert found == {"a": {"kept": 1, "b": {"c": 1}}, "null": {"x": 2}}


@pytest.mark.parametrize(("value", "kind"), [("text", "a string"), ([{}], "a list"), (3, "a number"), ("", "a string")])
def test_something_on_the_way_that_is_no_mapping_is_an_error(value: Any, kind: str) -> None:
    with pytest.raises(StepError, match=rf"a\.b\.c: .* expected a mapping at spec\.a, found {kind}"):
        normalize_spec({"a": value}, {"a.b.c": 1})


def test_a_field_and_the_one_it_is_in_do_not_take_each_other_away() -> None:
    made = {"a.b": 1, "a": {"c": 2}}

    assert normalize_spec({}, made) == normalize_spec({}, dict(reversed(made.items()))) == {"a": {"b": 1, "c": 2}}


def test_an_object_without_a_spec_gets_one() -> None:
    obj: Object = {"metadata": {"name": "web"}}
    step = Normalization(NormalizeSpec(spec={"name": "{{ metadata.name }}"}), "normalize")

    assert step.normalize_object(build_scope(obj, ENVIRONMENT), obj)["spec"] == {"name": "web"}


NAMES = st.sampled_from(["a", "b", "c"])
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.sampled_from(["", "x", "{{ omit }}", "{{ spec.a }}"]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(NAMES, inner, max_size=2),
    max_leaves=4,
)


@pytest.mark.slow
@given(
    spec=st.dictionaries(NAMES, VALUES, max_size=3),
    made=st.dictionaries(st.lists(NAMES, min_size=1, max_size=3).map(".".join), VALUES, max_size=4),
    data=st.data(),
)
def test_the_object_that_was_given_is_never_changed_and_the_order_of_fields_means_nothing(
    spec: dict[str, Any], made: dict[str, Any], data: st.DataObject
) -> None:
    before = copy.deepcopy(spec)
    shuffled = dict(data.draw(st.permutations(list(made.items()))))

    found = [outcome(spec, made), outcome(spec, shuffled)]

    assert spec == before
    assert found[0] == found[1]


def outcome(spec: dict[str, Any], made: dict[str, Any]) -> Any:
    try:
        return normalize_spec(spec, made)
    except (StepError, ExpressionError):
        return "refused"
