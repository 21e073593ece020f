"""Values from Secrets: they are masked in every output, and so is every value that is computed from them."""

from __future__ import annotations

import copy
import json
import logging
import pickle
from typing import Any

import msgspec
import pytest
import yaml

from konverge.clock import SeededEntropy
from konverge_box.expressions import (
    EvaluationEnvironment,
    ExpressionError,
    Sensitive,
    compile_condition,
    compile_expression,
    compile_structure,
    has_sensitive,
    mask_sensitive,
    reveal_sensitive,
    to_sensitive,
)

WORD = "hunter2"
SCOPE: dict[str, Any] = {
    "spec": {"name": "web", "none": None},
    "secrets": {"db": to_sensitive({"password": WORD, "port": 5432})},
}


def test_whatever_shows_a_sensitive_value_shows_asterisks(caplog: pytest.LogCaptureFixture) -> None:
    value = Sensitive(WORD)
    logging.getLogger("x").warning("%s %r", value, {"a": value})
    outputs = [
        str(value), repr(value), f"{value}", f"{value!r:>9}", "-".join([value, "a"]), json.dumps({"a": value}),
        repr([value]), value[:3], value.upper(), caplog.text,
        str(copy.deepcopy({"a": value})), yaml.safe_dump(mask_sensitive({"a": value})),
    ]  # fmt: skip
    assert all("***" in each and WORD not in each for each in outputs), outputs


def test_what_is_sent_to_a_cluster_is_asked_for_or_masked_first() -> None:
    with pytest.raises(TypeError, match="Sensitive is unsupported"):
        msgspec.json.encode({"a": Sensitive(WORD)})
    assert (
        msgspec.json.encode([mask_sensitive(Sensitive(WORD)), reveal_sensitive(Sensitive(WORD))])
        == b'["***","hunter2"]'
    )


def test_only_asking_reveals() -> None:
    value = to_sensitive({"a": [WORD, 5, None]})
    assert mask_sensitive(value) == {"a": ["***", "***", "***"]}
    assert reveal_sensitive(value) == {"a": [WORD, 5, None]}
    assert Sensitive(Sensitive(WORD)).reveal() == WORD
    assert has_sensitive(value)
    assert not has_sensitive(mask_sensitive(value))


def test_sensitive_values_are_equal_as_what_they_hide() -> None:
    assert Sensitive(WORD) == Sensitive(WORD)
    assert Sensitive(WORD) != Sensitive("other")
    assert Sensitive("***") != "***"
    assert len({Sensitive(WORD), Sensitive(WORD)}) == 1


def test_a_sensitive_value_is_copied_and_not_pickled() -> None:
    value = Sensitive(WORD)
    assert copy.deepcopy(value).reveal() == WORD
    with pytest.raises(TypeError, match="cannot be pickled"):
        pickle.dumps(value)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        pytest.param("{{ secrets.db.password }}", WORD, id="itself"),
        pytest.param("a{{ secrets.db.password }}b", f"a{WORD}b", id="in text"),
        pytest.param("{{ secrets.db.password | toBase64 }}", "aHVudGVyMg==", id="encoded"),
        pytest.param("{{ secrets.db.password | len }}", 7, id="its length"),
        pytest.param("{{ secrets.db.password[0] | default('none') }}", "none", id="an item of it"),
        pytest.param("{{ secrets.db | toJSON }}", '{"password":"hunter2","port":5432}', id="in a mapping"),
        pytest.param("{{ {'a': secrets.db} | mapKeys | first }}", "a", id="a key beside it"),
        pytest.param("{{ 'y' if secrets.db.password == 'hunter2' else 'n' }}", "y", id="what was decided by it"),
        pytest.param("{% if secrets.db.password %}y{% endif %}", "y", id="a branch"),
        pytest.param("{{ secrets.db.port + 1 }}", 5433, id="a sum"),
        pytest.param("{{ 'hunter2' in [secrets.db.password] }}", True, id="a comparison in a list"),
        pytest.param("{{ not secrets.db.password }}", False, id="not"),
        pytest.param("{{ secrets.db.password | default('x') }}", WORD, id="default"),
        pytest.param("{% for c in [secrets.db.password] %}{{ c }}{% endfor %}", WORD, id="a loop"),
        pytest.param("{{ secrets.db.password | split('e') }}", ["hunt", "r2"], id="a list of its parts"),
    ],
)
def test_what_a_secret_was_looked_at_for_is_sensitive(text: str, value: Any) -> None:
    found = compile_expression(text, where="x").render(SCOPE)
    assert type(found) is Sensitive
    assert found.reveal() == value


def test_what_no_secret_was_looked_at_for_is_not() -> None:
    for text in ("{{ spec.name }}", "{{ 'a' if spec.name else secrets.db.password }}", "{{ secrets.db is defined }}"):
        assert not has_sensitive(compile_expression(text, where="x").render(SCOPE))


def test_a_structure_masks_only_the_secrets_in_it() -> None:
    declared = {"user": "{{ spec.name }}", "password": "{{ secrets.db.password }}", "both": "{{ {'a': secrets.db} }}"}
    found = compile_structure(declared, where="x").render(SCOPE)
    assert mask_sensitive(found) == {
        "user": "web",
        "password": "***",
        "both": {"a": {"password": "***", "port": "***"}},
    }
    assert reveal_sensitive(found)["both"]["a"]["password"] == WORD


@pytest.mark.parametrize(
    "text",
    [
        "{{ secrets.db.password | toInt }}",
        "{{ fromJSON(secrets.db.password) }}",
        "{{ spec[secrets.db.password] }}",
        "{{ spec.name[secrets.db.password] ~ 'x' }}",
        "{{ secrets.db.password.hunter3 }}",
        "{{ {secrets.db.password: 1}.hunter }}",
        "{{ parseQuantity(secrets.db.password) }}",
        "{{ isExpired(secrets.db.password) }}",
        "{{ require('', secrets.db.password) }}",
        "{{ semverMajor(secrets.db.password ~ 'x') }}",
        "{{ cronFromMap({secrets.db.password: 1}) }}",
        "{{ secrets.db.password + 1 }}",
        "{{ toInt([secrets.db.password] | first) }}",
        "{{ (secrets.db.password ~ 'x') | matches('(') }}",
        "{{ secrets.blob.huntress }}",
    ],
)
def test_an_error_shows_nothing_of_a_secret(text: str) -> None:
    scope = {**SCOPE, "secrets": {**SCOPE["secrets"], "blob": Sensitive({"hunter2": 1})}}
    with pytest.raises(ExpressionError) as caught:
        compile_expression(text, where="x").render(scope, environment=EvaluationEnvironment(now=None))
    assert "hunter2" not in str(caught.value)
    assert caught.value.__cause__ is None


def test_what_is_absent_in_a_secret_does_not_tell_what_is_there() -> None:
    scope = {"blob": Sensitive({"hunter2": 1})}
    assert WORD not in compile_expression("{{ blob.hunter }}", where="x").find(scope).describe_problem()


def test_random_values_are_sensitive() -> None:
    environment = EvaluationEnvironment(entropy=SeededEntropy(1))
    found = compile_expression("{{ randomAlphanumeric(20) }}", where="x").render({}, environment=environment)
    assert type(found) is Sensitive
    assert len(found.reveal()) == 20


def test_conditions_see_secrets_and_their_errors_do_not_tell_them() -> None:
    equal = compile_condition({"field": "secrets.db.password", "equals": WORD}, where="x")
    assert equal.holds(SCOPE)
    bound = compile_condition({"field": "spec.name", "greaterThan": "{{ secrets.db.password }}"}, where="x")
    with pytest.raises(ExpressionError, match="does not support the value from a Secret") as caught:
        bound.holds(SCOPE)
    assert WORD not in str(caught.value)
