"""What becomes of the schemas of CustomResourceDefinitions."""

from __future__ import annotations

import ast
import subprocess
from pathlib import Path
from typing import Any, Literal, Required, get_args, get_origin, is_typeddict

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from konverge._internal.typegen import generate_custom_resource_module
from konverge.kube import Object
from konverge.types import meta_v1
from tests.typegen.definitions import build_definition, build_spec_definition, build_version, load_module

STRING: Object = {"type": "string"}


def objects(required: tuple[str, ...] = (), /, **properties: Any) -> Object:
    return {"type": "object", "properties": properties, "required": list(required)}


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        (STRING, str),
        ({"type": "string", "format": "date-time"}, str),
        ({"type": "integer", "format": "int64"}, int),
        ({"type": "number"}, float),
        ({"type": "boolean"}, bool),
        ({"type": "boolean", "nullable": True}, bool | None),
        ({"type": "array", "items": STRING}, list[str]),
        ({"type": "array"}, list[Any]),
        ({"type": "object"}, dict[str, Any]),
        ({"type": "object", "additionalProperties": {"type": "integer"}}, dict[str, int]),
        ({"type": "object", "additionalProperties": True}, dict[str, Any]),
        ({"type": "string", "enum": ["b", "a", "b"]}, Literal["b", "a"]),
        ({"type": "string", "enum": ["a"], "nullable": True}, Literal["a", None]),
        ({"type": "integer", "enum": [1, 2]}, Literal[1, 2]),
        ({"type": "boolean", "enum": [True]}, Literal[True]),
        ({"type": "number", "enum": [1.5]}, float),
        ({"x-kubernetes-int-or-string": True, "anyOf": [{"type": "integer"}, STRING]}, int | str),
        ({"type": "object", "x-kubernetes-embedded-resource": True, "properties": {"a": STRING}}, dict[str, Any]),
        ({"type": "object", "x-kubernetes-preserve-unknown-fields": True, "properties": {"a": STRING}}, dict[str, Any]),
        ({"type": "object", "properties": {"": STRING, "a": STRING}}, dict[str, Any]),
        ({"x-kubernetes-preserve-unknown-fields": True}, Any),
        ({"x-kubernetes-preserve-unknown-fields": True, "nullable": True}, Any),
    ],
    ids=str,
)
def test_the_type_of_a_field(schema: Object, expected: Any) -> None:
    assert load_module(build_spec_definition(schema))["Widget"].__annotations__["spec"] == expected


def test_a_kind_has_its_identity_and_the_server_s_metadata() -> None:
    schema = objects(metadata={"type": "object", "properties": {"name": STRING}}, apiVersion=STRING, kind=STRING)

    kind = load_module(build_definition(build_version(schema=schema)))["Widget"]

    assert kind.__annotations__ == {
        "apiVersion": Literal["example.com/v1"],
        "kind": Literal["Widget"],
        "metadata": meta_v1.ObjectMeta,
    }
    assert kind.__required_keys__ == frozenset()


def test_what_is_required_and_has_no_default_must_be_said() -> None:
    mode = {**STRING, "default": "on"}
    schema = objects(("size", "mode", "absent"), size={"type": "integer"}, mode=mode, other=STRING)

    names = load_module(build_spec_definition(schema, required=["spec"]))

    assert names["Widget"].__required_keys__ == {"spec"}
    assert names["WidgetSpec"].__required_keys__ == {"size"}


def test_classes_are_called_by_their_path() -> None:
    item = objects(name=STRING)
    schema = objects(
        **{"dns-names": {"type": "array", "items": item}}, byHost={"type": "object", "additionalProperties": item}
    )

    names = load_module(build_spec_definition(schema))

    assert [name for name, found in names.items() if is_typeddict(found)] == [
        "WidgetSpecByHostValue",
        "WidgetSpecDnsNamesItem",
        "WidgetSpec",
        "Widget",
    ]


@pytest.mark.parametrize(
    ("definitions", "expected"),
    [
        (
            [build_definition(*(build_version(name) for name in ("v1alpha1", "v2", "v10", "v11beta2", "old")))],
            {"Widget": "v10", "WidgetV2": "v2", "WidgetV11beta2": "v11beta2", "WidgetV1alpha1": "v1alpha1",
             "WidgetOld": "old"},
        ),
        ([build_definition(build_version("v1"), build_version("v2", served=False))], {"Widget": "v1"}),
        ([build_definition(build_version("v1")), build_definition(build_version("v1"))], {"Widget": "v1"}),
        (
            [
                build_definition(build_version("v1"), group="a.example.com"),
                build_definition(build_version("v2"), group="b.example.com"),
            ],
            {"AWidget": "v1", "BWidget": "v2"},
        ),
        ([build_definition(build_version("v1"), kind="Any")], {"Any2": "v1"}),
        ([build_definition(build_version("v1"), kind="None")], {"None2": "v1"}),
        ([build_definition(build_version("v1"), kind="3D print\n")], {"Kind3DPrint": "v1"}),
        ([build_definition(build_version("v1"), kind="\N{SNOWMAN}")], {"Kind": "v1"}),
    ],
)  # fmt: skip
def test_the_name_of_a_kind(definitions: list[Object], expected: dict[str, str]) -> None:
    kinds = {name: found for name, found in load_module(*definitions).items() if is_typeddict(found)}

    versions = {name: get_args(found.__annotations__["apiVersion"])[0] for name, found in kinds.items()}
    assert {name: version.rpartition("/")[2] for name, version in versions.items()} == expected


def test_a_kind_keeps_its_name_from_the_inside_of_another() -> None:
    inner = build_spec_definition(objects(size=STRING))
    names = load_module(inner, build_definition(build_version(schema=objects(status=STRING)), kind="WidgetSpec"))

    assert set(names["WidgetSpec"].__annotations__) == {"apiVersion", "kind", "metadata", "status"}
    assert names["Widget"].__annotations__["spec"] is names["WidgetSpec2"]


def test_a_kind_of_any_fields_is_a_mapping() -> None:
    open_ended = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}

    assert load_module(build_definition(build_version(schema=open_ended)))["Widget"] == dict[str, Any]


def test_equal_definitions_give_equal_text_in_any_order() -> None:
    first, second = (
        build_definition(build_version(), kind="A"),
        build_definition(build_version(), build_version("v2"), kind="B"),
    )
    turned = objects(b=STRING, a=STRING), objects(a=STRING, b=STRING)

    assert generate_custom_resource_module([first, second]) == generate_custom_resource_module([second, first])
    assert generate_custom_resource_module([build_spec_definition(turned[0])]) == generate_custom_resource_module(
        [build_spec_definition(turned[1])]
    )


HOSTILE = [
    "class", "None", "dict", "str", "Any", "Required", "__private", "self", "x-name", "$ref", " ", "a.b", "1",
    'quote"', "quote'", "both\"'", "new\nline", "back\\slash", "\\", "\u2028", "\ufb01", "\ud800", "\x00", "é",
    '"""', "')\nimport os\n('", '": str}, total=False)\nimport os #', "{0}", "%s", "#", "Widget", "WidgetSpec",
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("checker", ["mypy", "pyright"])
def test_type_checkers_take_every_name(checker: str, type_checkers: dict[str, list[str]], tmp_path: Path) -> None:
    list_of_maps = {"type": "array", "items": {"type": "object"}}
    # A checker that takes a field for what its name means elsewhere does so in the fields behind it.
    pairs = {name: objects(("zz",), **{name: STRING, "zz": list_of_maps}) for name in HOSTILE}
    schema = objects(tuple(HOSTILE), **pairs, enum={**STRING, "enum": HOSTILE})
    (tmp_path / "hostile.py").write_text(generate_custom_resource_module([build_spec_definition(schema)]))

    command = [*type_checkers[checker], "hostile.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=100)

    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("name", HOSTILE)
def test_a_field_alone_has_its_name(name: str) -> None:
    assert list(load_module(build_spec_definition(objects(**{name: STRING})))["WidgetSpec"].__annotations__) == [name]


names = st.one_of(st.sampled_from(HOSTILE), st.text(min_size=1, max_size=12))
leaves = st.sampled_from([STRING, {"type": "integer"}, {"x-kubernetes-int-or-string": True}]) | st.lists(
    names, min_size=1, max_size=4, unique=True
).map(lambda values: {"type": "string", "enum": values})


def _above(below: st.SearchStrategy[Object]) -> st.SearchStrategy[Object]:
    properties = st.dictionaries(names, below, min_size=1, max_size=4)
    return st.one_of(
        st.tuples(properties, st.lists(names, max_size=3)).map(
            lambda made: {"type": "object", "properties": made[0], "required": [*made[1], *list(made[0])[:1]]}
        ),
        below.map(lambda items: {"type": "array", "items": items}),
        below.map(lambda values: {"type": "object", "additionalProperties": values}),
    )


schemas = st.recursive(leaves, _above, max_leaves=12)


def meaning(schema: Object) -> Any:
    """What a schema allows, in the form of `describe_type`."""
    match schema:
        case {"properties": dict() as properties, "required": list() as required}:
            return {name: (name in required, meaning(below)) for name, below in properties.items()}
        case {"items": items}:
            return list, meaning(items)
        case {"additionalProperties": values}:
            return dict, meaning(values)
        case {"enum": list() as values}:
            return Literal, tuple(values)
    return {"string": str, "integer": int, None: int | str}[schema.get("type")]


def describe_type(annotation: Any) -> Any:
    """What a type allows at run time."""
    origin, inside = get_origin(annotation), get_args(annotation)
    if is_typeddict(annotation):
        return {
            name: (name in annotation.__required_keys__, describe_type(field))
            for name, field in annotation.__annotations__.items()
        }
    if origin is Required:
        return describe_type(inside[0])
    if origin in (list, dict):
        return origin, describe_type(inside[-1])
    return (Literal, inside) if origin is Literal else annotation


@pytest.mark.slow
@settings(max_examples=300, deadline=None)
@given(schemas, names)
def test_whatever_it_is_called_it_means_the_same_and_nothing_of_it_is_run(schema: Object, kind: str) -> None:
    made = build_spec_definition(schema)
    made["spec"]["names"]["kind"] = kind

    text = generate_custom_resource_module([made])

    assert text.isascii()
    assert {ast.unparse(node.func) for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Call)} <= {"TypedDict"}
    (found,) = (
        each for each in load_module(made).values() if is_typeddict(each) and "apiVersion" in each.__annotations__
    )
    assert describe_type(found)["spec"] == (False, meaning(schema))
