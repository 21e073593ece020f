"""Definitions that are none, or of which too much would come: one sentence, in bounded time."""

from __future__ import annotations

from typing import Any

import pytest

from konverge._internal.typegen import generate_custom_resource_module
from konverge.errors import ConfigurationError
from konverge.kube import Object
from tests.typegen.definitions import build_definition, build_spec_definition, build_version, load_module

HERE = "CustomResourceDefinition widgets.example.com"


def without(path: str) -> Object:
    """A definition that lacks what that path names."""
    made = build_definition(build_version())
    *steps, last = path.split(".")
    node: Any = made
    for step in steps:
        node = node[int(step)] if step.isdecimal() else node[step]
    del node[last]
    return made


def deep(levels: int) -> Object:
    schema: Object = {"type": "string"}
    for _ in range(levels):
        schema = {"type": "object", "properties": {"in": schema}}
    return schema


def endless() -> Object:
    schema: Object = {"type": "object", "properties": {}}
    schema["properties"]["again"] = schema
    return schema


def doubling(levels: int) -> Object:
    """What a few YAML aliases make: two to the power of the levels."""
    schema: Object = {"type": "object", "properties": {"a": {"type": "string"}}}
    for _ in range(levels):
        schema = {"type": "object", "properties": {"a": schema, "b": schema}}
    return schema


@pytest.mark.parametrize(
    ("made", "message"),
    [
        ({}, "CustomResourceDefinition None, field apiVersion: expected apiextensions.k8s.io/v1, found None"),
        (
            {**build_definition(), "apiVersion": "apiextensions.k8s.io/v1beta1"},
            f'{HERE}, field apiVersion: expected apiextensions.k8s.io/v1, found "apiextensions.k8s.io/v1beta1"',
        ),
        (without("spec"), f"{HERE}, field spec: expected a mapping, found None"),
        (without("spec.group"), f"{HERE}, field spec.group: expected a name, found None"),
        (without("spec.names.kind"), f"{HERE}, field spec.names.kind: expected a name, found None"),
        (without("spec.versions"), f"{HERE}, field spec.versions: expected a list, found None"),
        (without("spec.versions.0.name"), f"{HERE}, field spec.versions.[0].name: expected a name, found None"),
        (
            without("spec.versions.0.schema.openAPIV3Schema"),
            f"{HERE}, field spec.versions.[0].schema.openAPIV3Schema: expected a mapping, found None",
        ),
        (build_spec_definition("x"), f'{HERE}, version v1, field spec: expected a mapping, found "x"'),
        (
            build_spec_definition({"type": "array", "items": {"type": "text"}}),
            f"{HERE}, version v1, field spec.[].type: "
            'expected one of array, boolean, integer, number, object, string, found "text"',
        ),
        (
            build_spec_definition({"type": ["string", "null"]}),
            f"{HERE}, version v1, field spec.type: "
            "expected one of array, boolean, integer, number, object, string, found a value of type list",
        ),
        (
            build_spec_definition({"type": "object", "properties": ["a"]}),
            f"{HERE}, version v1, field spec.properties: expected a mapping, found a value of type list",
        ),
        (
            build_spec_definition({"type": "object", "properties": {True: {}}}),
            f"{HERE}, version v1, field spec: expected names of fields, found True; put it into quotes",
        ),
        (
            build_spec_definition({"type": "object", "required": "a", "properties": {"a": {}}}),
            f'{HERE}, version v1, field spec.required: expected a list of names, found "a"',
        ),
        (
            build_spec_definition({"$ref": "#/components/schemas/Widget"}),
            f"{HERE}, version v1, field spec: expected a schema that is written out, "
            'found $ref "#/components/schemas/Widget"; the API server accepts none',
        ),
        (
            build_spec_definition({"type": "object", "properties": {"a\nb": {"type": "x" * 1000}}}),
            f'{HERE}, version v1, field spec."a\\nb".type: '
            f'expected one of array, boolean, integer, number, object, string, found "{"x" * 60}" and more',
        ),
    ],
)
def test_a_mistake_is_named_with_its_place(made: Object, message: str) -> None:
    with pytest.raises(ConfigurationError) as raised:
        generate_custom_resource_module([made])

    assert str(raised.value) == message


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        (deep(70), "expected at most 64 levels of fields, found more"),
        (endless(), "expected at most 64 levels of fields, found more"),
        (doubling(40), "expected schemas that come to at most 16 MiB of Python, found more"),
    ],
    ids=["deep", "endless", "doubling"],
)
def test_what_has_no_end_is_refused(schema: Object, words: str) -> None:
    with pytest.raises(ConfigurationError, match=words):
        generate_custom_resource_module([build_spec_definition(schema)])


@pytest.mark.slow
def test_what_is_merely_large_is_not_refused() -> None:
    many = {f"field{number}": {"type": "string"} for number in range(100_000)}
    long = {"x" * 100_000: deep(50)}

    text = generate_custom_resource_module([build_spec_definition({"type": "object", "properties": {**many, **long}})])

    assert text.count(": str\n") == 100_000


@pytest.mark.slow
def test_the_names_of_classes_do_not_grow_with_the_depth() -> None:
    assert all(
        len(name) < 170
        for name in load_module(build_spec_definition({"type": "object", "properties": {"very" * 30: deep(60)}}))
    )
