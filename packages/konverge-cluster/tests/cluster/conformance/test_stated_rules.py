"""CEL rules of a definition. The embedded cluster needs an extra package for them."""

from __future__ import annotations

from typing import Any

import pytest

from konverge.errors import InvalidError
from konverge.kube import Object
from konverge_cluster.testing import Cluster
from tests.cluster.conformance.widgets import Widgets

pytestmark = pytest.mark.anyio


def text(*rules: Object) -> Object:
    return {"type": "string", "maxLength": 20, "x-kubernetes-validations": list(rules)}


SPEC: Object = {
    "type": "object",
    "x-kubernetes-validations": [
        {"rule": "!has(self.low) || self.low <= self.high"},
        {"rule": "!has(self.mood) || self.mood != 'bad'", "message": "must not be in a bad mood"},
        {
            "rule": "!has(self.count) || self.count < 5",
            "messageExpression": "self.count > 6 ? 'far too many' : 'too many'",
            "reason": "FieldValueForbidden",
            "fieldPath": ".count",
        },
    ],
    "properties": {
        "size": {"type": "integer"},
        "low": {"type": "integer"},
        "high": {"type": "integer"},
        "mood": {"type": "string", "maxLength": 20},
        "count": {"type": "integer", "minimum": 0, "maximum": 100},
        "fixed": text({"rule": "self == oldSelf", "message": "stays"}),
        "once": text({"rule": "!oldSelf.hasValue() || oldSelf.value() == self", "optionalOldSelf": True}),
        "ratio": {"type": "number", "x-kubernetes-validations": [{"rule": "self < 2.0"}]},
        "when": {
            "type": "string",
            "format": "date-time",
            "x-kubernetes-validations": [{"rule": "self < timestamp('2030-01-01T00:00:00Z')"}],
        },
        "upper": text({"rule": "self.upperAscii() == self"}),
        "parts": {
            "type": "array",
            "maxItems": 5,
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["name"],
            "items": {
                "type": "object",
                "required": ["name"],
                "properties": {
                    "name": {"type": "string", "maxLength": 10},
                    "level": {"type": "integer", "x-kubernetes-validations": [{"rule": "self >= oldSelf"}]},
                },
            },
        },
        "names": {
            "type": "array",
            "maxItems": 5,
            "items": {
                "type": "string",
                "maxLength": 5,
                "x-kubernetes-validations": [{"rule": "self.startsWith('a')"}],
            },
        },
        "by-name": {
            "type": "object",
            "maxProperties": 5,
            "additionalProperties": {
                "type": "string",
                "maxLength": 5,
                "x-kubernetes-validations": [{"rule": "size(self) < 3"}],
            },
        },
    },
}


@pytest.fixture
async def ruled(cluster: Cluster) -> Widgets:
    """Return served Widgets with rules, installed once for all tests."""
    if cluster.name == "embedded":
        pytest.importorskip("cel")
    kind = Widgets(cluster, "rules.konverge.test")
    schema = {"type": "object", "properties": {"spec": SPEC}}
    await cluster.install(kind.definition(schema={"openAPIV3Schema": schema}, subresources={}))
    return kind


async def mistakes(cluster: Cluster, obj: Object) -> list[tuple[str, str, str]]:
    with pytest.raises(InvalidError) as refused:
        await cluster.client.create(obj)
    return [(cause.field, cause.reason, cause.message.rpartition(": ")[2]) for cause in refused.value.causes]


@pytest.mark.parametrize(
    ("spec", "found"),
    [
        ({"low": 2, "high": 1}, ("spec", "Invalid value: failed rule: !has(self.low) || self.low <= self.high")),
        ({"mood": "bad"}, ("spec", "Invalid value: must not be in a bad mood")),
        ({"count": 7}, ("spec.count", "Forbidden: far too many")),
        ({"ratio": 3}, ("spec.ratio", "Invalid value: 3: failed rule: self < 2.0")),
        (
            {"when": "2031-01-01T00:00:00Z"},
            (
                "spec.when",
                "Invalid value: \"2031-01-01T00:00:00Z\": failed rule: self < timestamp('2030-01-01T00:00:00Z')",
            ),
        ),
        ({"upper": "x"}, ("spec.upper", 'Invalid value: "x": failed rule: self.upperAscii() == self')),
        ({"names": ["a", "b"]}, ("spec.names[1]", "Invalid value: \"b\": failed rule: self.startsWith('a')")),
        ({"by-name": {"x": "long"}}, ("spec.by-name[x]", 'Invalid value: "long": failed rule: size(self) < 3')),
    ],
)
async def test_a_rule_that_does_not_hold_refuses_the_object(
    ruled: Widgets, cluster: Cluster, spec: Object, found: tuple[str, str]
) -> None:
    with pytest.raises(InvalidError) as refused:
        await cluster.client.create(ruled.new(**spec))

    assert [(cause.field, cause.message) for cause in refused.value.causes] == [found]


async def test_rules_that_hold_let_the_object_pass(ruled: Widgets, cluster: Cluster) -> None:
    spec: dict[str, Any] = {"low": 1, "high": 2, "mood": "good", "count": 4, "ratio": 1, "fixed": "a", "once": "b"}

    assert (await cluster.client.create(ruled.new(**spec)))["spec"] == {"size": 1, **spec}


@pytest.mark.parametrize(
    ("change", "field"),
    [({"fixed": "b"}, "spec.fixed"), ({"once": "b"}, "spec.once"), ({"parts": [{"name": "x", "level": 4}]}, "parts")],
)
async def test_a_rule_may_compare_with_what_was_before(
    ruled: Widgets, cluster: Cluster, change: Object, field: str
) -> None:
    created = await cluster.client.create(ruled.new(fixed="a", once="a", parts=[{"name": "x", "level": 5}]))

    with pytest.raises(InvalidError) as refused:
        await cluster.client.update({**created, "spec": {**created["spec"], **change}})

    (cause,) = refused.value.causes
    assert field in cause.field


async def test_an_item_that_is_new_has_no_before(ruled: Widgets, cluster: Cluster) -> None:
    created = await cluster.client.create(ruled.new(parts=[{"name": "x", "level": 5}]))

    updated = await cluster.client.update({**created, "spec": {"size": 1, "parts": [{"name": "y", "level": 1}]}})

    assert updated["spec"]["parts"] == [{"name": "y", "level": 1}]


async def test_rules_are_not_asked_about_an_object_of_the_wrong_types(ruled: Widgets, cluster: Cluster) -> None:
    found = await mistakes(cluster, ruled.new(low=2, high="x", mood="bad"))

    assert [(field, reason) for field, reason, _ in found] == [
        ("spec.high", "FieldValueTypeInvalid"),
        ("<nil>", "FieldValueInvalid"),
    ]
    assert found[1][2] == (
        "some validation rules were not checked because the object was invalid; "
        "correct the existing errors to complete validation"
    )
