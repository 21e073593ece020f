"""A typo in a rule is found when the class is declared, as far as that can be known without a server."""

from __future__ import annotations

import pytest

from konverge._internal.crd.cel_validation import validate_expression

SCHEMA = {
    "type": "object",
    "properties": {
        "minReplicas": {"type": "integer"},
        "routes": {"type": "array", "items": {"type": "object", "properties": {"host": {"type": "string"}}}},
        "inner": {"type": "object", "properties": {"name": {"type": "string"}}},
        "labels": {"type": "object", "additionalProperties": {"type": "string"}},
        "values": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
        "namespace": {"type": "string"},
    },
}


def mistakes(expression: str) -> list[str]:
    return list(validate_expression(expression, SCHEMA))


@pytest.mark.parametrize(
    "expression",
    [
        "self.minReplicas <= 3",
        "self == oldSelf",
        "has(self.inner) && self.inner.name.startsWith('a')",
        "self.routes.all(route, route.host != 'self.nothing')",
        "self.labels.anything == 'x' && self.values.deep.er == 1",
        "self.?inner.?name.orValue('') == ''",
        "oldSelf.optMap(old, old.minReplicas).orValue(1) > 0",
        "self.__namespace__ == 'x'",
        "self.foo__dash__bar == 'x'",
        'self.inner.name == "it\'s self.nothing"',
        "self.routes[?0].hasValue()",
        "self.inner.name.size() > 1",
    ],
)
def test_what_is_right_is_left_alone(expression: str) -> None:
    assert mistakes(expression) == []


@pytest.mark.parametrize(
    ("expression", "unknown", "known"),
    [
        (
            "self.minReplica <= 3",
            "minReplica",
            "minReplicas, routes, inner, labels, values, namespace",
        ),
        ("has(oldSelf.inner.nam)", "nam", "name"),
        ("self.?inner.?nam.hasValue()", "nam", "name"),
    ],
)
def test_a_field_that_is_not_declared_is_named_with_those_that_are(expression: str, unknown: str, known: str) -> None:
    assert mistakes(expression) == [
        f"rule {expression!r}: expected a declared field (one of {known}), found {unknown!r}"
    ]


@pytest.mark.parametrize("expression", ["self.minReplicas <= ", "self.minReplicas = 3", "self.routes.all(x x > 0)"])
def test_wrong_syntax_is_found_where_the_parser_is_installed(expression: str) -> None:
    pytest.importorskip("cel")

    (mistake,) = mistakes(expression)

    assert mistake.startswith(f"rule {expression!r}: expected a CEL expression: ")
