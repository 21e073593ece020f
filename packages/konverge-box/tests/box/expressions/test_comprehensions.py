"""Comprehensions, and functions with an expression for each item."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from konverge_box.expressions import (
    OMIT,
    ExpressionError,
    ExpressionSyntaxError,
    Sensitive,
    compile_expression,
    has_sensitive,
    reveal_sensitive,
    to_sensitive,
)

SCOPE: dict[str, Any] = {
    "spec": {
        "members": [
            {"name": "ada", "active": True, "environments": ["dev", "prod"], "port": 80},
            {"name": "bob", "active": False, "environments": ["dev"], "port": 81},
            {"name": "eve", "active": True, "environments": []},
        ],
        "labels": {"b": "2", "a": "1"},
        "numbers": [3, 1, 2],
    },
    "secret": to_sensitive({"one": "pass", "two": "word"}),
}


def compute(text: str) -> Any:
    return compile_expression(f"{{{{ {text} }}}}", where="here").render(SCOPE)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[m.name for m in spec.members]", ["ada", "bob", "eve"]),
        ("[m.name for m in spec.members if m.active]", ["ada", "eve"]),
        ("[n for n in spec.numbers if n > 1 if n < 3]", [2]),
        ("[m.name for m in .spec.members if .spec.labels.a == '1']", ["ada", "bob", "eve"]),
        ("[m.name ~ e for m in spec.members for e in m.environments]", ["adadev", "adaprod", "bobdev"]),
        ("[[e for e in m.environments] for m in spec.members]", [["dev", "prod"], ["dev"], []]),
        ("[k ~ v for k, v in mapItems(spec.labels)]", ["a1", "b2"]),
        ("[k for k in spec.labels]", ["a", "b"]),
        ("[(1 if n > 1 else 0) for n in spec.numbers]", [1, 0, 1]),
        ("[n if n > 1 else omit for n in spec.numbers]", [3, 2]),
        ("[m.port | default(0) for m in spec.members]", [80, 81, 0]),
        ("{m.name: m.active for m in spec.members}", {"ada": True, "bob": False, "eve": True}),
        ("{m.name: m.port | default(omit) for m in spec.members}", {"ada": 80, "bob": 81}),
        ("{m.name ~ '.' ~ e: 1 for m in spec.members for e in m.environments if e == 'dev'}",
         {"ada.dev": 1, "bob.dev": 1}),
        ("[m.environments for m in spec.members] | flatten", ["dev", "prod", "dev"]),
        ("flatten([1, [2, [3, [4]]]])", [1, 2, [3, [4]]]),
        ("flatten([1, [2, [3, [4]]]], 3)", [1, 2, 3, 4]),
        ("map(spec.members, m, m.name)", ["ada", "bob", "eve"]),
        ("spec.members | filter(m, m.active) | map(m, m.name)", ["ada", "eve"]),
        ("map(mapItems(spec.labels), key, value, key ~ '=' ~ value) | join(',')", "a=1,b=2"),
        ("filter(mapItems(spec.labels), key, value, value == '2')", [["b", "2"]]),
        ("any(spec.members, m, m.name == 'bob')", True),
        ("all(spec.members, m, m.active)", False),
        ("[any([], x, true), all([], x, false)]", [False, True]),
        ("any(spec.members, m, m.port > 79)", True),  # the rest, without a port, is not evaluated
        ("[n for n in spec.numbers] == spec.numbers", True),
        ("[]", []),
        ("{}", {}),
        ("[1, 2,]", [1, 2]),
    ],
)  # fmt: skip
def test_a_loop_inside_an_expression_computes_a_list_a_mapping_or_a_decision(text: str, expected: Any) -> None:
    assert compute(text) == expected


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("[m.prt for m in spec.members]", "m.prt is absent (did you mean port?)"),
        ("{m.active ~ '': 1 for m in spec.members}", "expected different keys: 'true' occurs twice"),
        ("{n: 1 for n in spec.numbers}", "expected a string for a key, found a number"),
        ("[x for x in 3]", "expected a list or a mapping to loop over, found a number"),
        ("[x for x in spec.none]", "spec.none is absent"),
        ("[a for a, b in spec.numbers]", "expected lists of 2 items to loop over, found a number"),
        ("map(3, x, x)", "expected a list or a mapping to loop over, found a number"),
        ("flatten([], 0)", "flatten: expected a depth from 1 to 10, found 0"),
    ],
)
def test_data_that_a_loop_cannot_use_is_an_error(text: str, problem: str) -> None:
    with pytest.raises(ExpressionError) as caught:
        compute(text)

    assert problem in str(caught.value)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("[x for x in y", "expected ']'"),
        ("[x, y for x in z]", "expected token ','"),
        ("[x for 3 in y]", "can't assign to"),
        ("[x for x.y in z]", "found"),
        ("{x for x in y}", "expected token ':'"),
        ("(x for x in y)", "expected token"),
        ("[x for x in y if z else w]", "found"),
        ("map(spec.members, m)", "map(items, name, expression): expected at least 3 arguments, found 2"),
        ("map(spec.members, 'm', m)", "expected a name for the items of the list, found a value"),
        ("filter(spec.members)", "filter(items, name, expression)"),
        ("[x for " + "x in [1] for " * 200 + "x in [1]]", "nested"),
        ("[" * 40 + "]" * 40, "nested deeper"),
    ],
)
def test_a_loop_of_another_form_is_refused_when_the_file_is_loaded(text: str, problem: str) -> None:
    with pytest.raises(ExpressionSyntaxError) as caught:
        compile_expression(f"{{{{ {text} }}}}", where="here")

    assert problem in str(caught.value)


def test_the_names_of_a_loop_are_no_names_of_the_scope() -> None:
    template = compile_expression("{{ [m.name ~ spec.x for m in spec.members] }}{{ m.name }}", where="here")

    assert template.list_read_paths() == {("spec", "members"), ("spec", "x"), ("m", "name")}


def test_a_name_of_a_loop_hides_the_one_outside_only_in_the_loop() -> None:
    assert compute("[[n for n in [n]] for n in [1, 2]]") == [[1], [2]]


def test_values_of_a_secret_pass_through_a_loop_as_what_they_are() -> None:
    passed = compute("[secret.one, 'open'] | map(x, x)")
    read = compute("[x ~ '!' for x in [secret.one]]")

    assert isinstance(passed[0], Sensitive)
    assert passed[1] == "open"
    assert has_sensitive(read)
    assert reveal_sensitive(read) == ["pass!"]
    assert "pass" not in json.dumps(read)


def test_the_key_that_occurs_twice_is_not_shown_if_it_is_from_a_secret() -> None:
    with pytest.raises(ExpressionError) as caught:
        compute("{x: 1 for x in [secret.one, secret.one]}")

    assert "pass" not in str(caught.value)


@given(st.lists(st.integers(-5, 5), max_size=8), st.lists(st.integers(-5, 5), max_size=8))
def test_comprehensions_are_those_of_python(ones: list[int], others: list[int]) -> None:
    scope = {"ones": ones, "others": others}
    text = "{{ [a * b for a in ones if a > 0 for b in others if b != a] }}"

    found = compile_expression(text, where="here").render(scope)

    assert found == [a * b for a in ones if a > 0 for b in others if b != a]


def test_omit_is_still_the_whole_result() -> None:
    assert compute("omit") is OMIT
