from __future__ import annotations

import pytest

from konverge._internal.apply import (
    ABSENT,
    Schema,
    build_custom_resource_schema,
    find_builtin_schema,
    list_builtin_kinds,
)
from konverge.kube import GroupVersionKind
from tests.apply.widgets import WIDGET_SCHEMA

DEPLOYMENT = GroupVersionKind("apps", "v1", "Deployment")


def at(schema: Schema | None, *names: str) -> Schema:
    """Return the schema at a path of fields; ``*`` stands for the items of a list."""
    for name in names:
        assert schema is not None
        schema = schema.items if name == "*" else schema.find_child(name)
    assert schema is not None
    return schema


@pytest.mark.parametrize("gvk", list_builtin_kinds(), ids=str)
def test_every_builtin_kind_has_identity_and_typed_fields(gvk: GroupVersionKind) -> None:
    schema = find_builtin_schema(gvk)
    assert at(schema, "metadata", "labels").type == "object"
    assert at(schema, "metadata", "finalizers").list_type == "set"
    assert at(schema, "metadata", "ownerReferences").list_map_keys == ("uid",)
    assert at(schema, "kind").type == "string"


def test_kinds_of_each_group_are_known() -> None:
    versions = {gvk.api_version for gvk in list_builtin_kinds()}
    assert versions >= {
        "v1",
        "apps/v1",
        "batch/v1",
        "networking.k8s.io/v1",
        "policy/v1",
        "rbac.authorization.k8s.io/v1",
        "autoscaling/v2",
        "discovery.k8s.io/v1",
        "coordination.k8s.io/v1",
        "events.k8s.io/v1",
        "storage.k8s.io/v1",
        "apiextensions.k8s.io/v1",
    }


def test_an_unknown_kind_has_no_schema() -> None:
    assert find_builtin_schema(GroupVersionKind("demo.test", "v1", "Widget")) is None
    assert find_builtin_schema(GroupVersionKind("apps", "v1", "Widget")) is None


def test_lists_say_how_they_merge() -> None:
    pod = at(find_builtin_schema(DEPLOYMENT), "spec", "template", "spec")
    assert (at(pod, "containers").list_type, at(pod, "containers").list_map_keys) == ("map", ("name",))
    assert at(pod, "containers", "*", "ports").list_map_keys == ("containerPort", "protocol")
    assert at(pod, "containers", "*", "ports", "*", "protocol").default == "TCP"
    assert at(pod, "containers", "*", "args").list_type == "atomic"
    assert at(find_builtin_schema(DEPLOYMENT), "spec", "selector").map_atomic


def test_lists_say_how_a_strategic_patch_merges_them() -> None:
    spec = at(find_builtin_schema(DEPLOYMENT), "spec")
    mounts = at(spec, "template", "spec", "containers", "*", "volumeMounts")
    assert mounts.patch_merge_key == "mountPath"
    assert mounts.patch_strategy == {"merge"}
    assert at(spec, "strategy").patch_strategy == {"retainKeys"}
    assert at(spec, "template", "spec", "volumes").patch_strategy == {"merge", "retainKeys"}
    assert at(spec, "template", "spec", "tolerations").patch_strategy == frozenset()


def test_special_values_are_told_apart() -> None:
    schema = at(find_builtin_schema(DEPLOYMENT), "spec")
    assert at(schema, "template", "spec", "containers", "*", "resources", "limits", "cpu").quantity
    assert at(schema, "strategy", "rollingUpdate", "maxSurge").int_or_string
    assert at(schema, "replicas").format == "int32"
    assert schema.required == {"selector", "template"}


def test_types_say_what_becomes_of_zeros() -> None:
    spec = at(find_builtin_schema(DEPLOYMENT), "spec")
    assert "replicas" in spec.keeps_zero
    assert "paused" not in spec.keeps_zero
    assert spec.always_written == {"selector": None, "strategy": {}, "template": {}}


def test_definitions_may_refer_to_themselves() -> None:
    schema = at(find_builtin_schema(GroupVersionKind("apiextensions.k8s.io", "v1", "CustomResourceDefinition")), "spec")
    schema = at(schema, "versions", "*", "schema", "openAPIV3Schema")
    assert at(schema, "properties", "a", "properties", "b", "not").find_child("type") is not None


def test_a_reference_shares_one_schema_each_time() -> None:
    assert find_builtin_schema(DEPLOYMENT) is find_builtin_schema(DEPLOYMENT)


def test_a_default_beside_a_reference_counts() -> None:
    assert at(find_builtin_schema(DEPLOYMENT), "spec").default == {}
    assert at(find_builtin_schema(DEPLOYMENT), "spec", "selector").default is ABSENT


def test_custom_resources_have_the_servers_metadata() -> None:
    schema = build_custom_resource_schema({"type": "object", "properties": {"metadata": {"type": "object"}}})
    assert at(schema, "metadata", "ownerReferences").list_type == "map"
    assert at(schema, "apiVersion").type == "string"
    assert schema.find_child("spec") is None


def test_a_custom_resource_without_schema_may_hold_anything() -> None:
    assert at(build_custom_resource_schema(None), "spec", "a", "b").preserve_unknown


def test_embedded_objects_have_metadata_too() -> None:
    template = at(build_custom_resource_schema(WIDGET_SCHEMA), "spec", "template")
    assert at(template, "metadata", "labels", "a").type == "string"
    assert template.embedded_resource


def test_unknown_fields_are_kept_below_a_node_that_says_so() -> None:
    inner = {"type": "object", "properties": {"known": {"type": "object", "properties": {"a": {"type": "string"}}}}}
    kept = Schema({**inner, "x-kubernetes-preserve-unknown-fields": True})
    assert at(kept, "known").find_child("unknown") is not None
    assert at(Schema(inner), "known").find_child("unknown") is None


def test_every_constraint_of_a_structural_schema_is_kept() -> None:
    schema = Schema(
        {
            "type": "string",
            "enum": ["a", "b"],
            "pattern": "^[ab]$",
            "minLength": 1,
            "maxLength": 2,
            "minimum": 1,
            "maximum": 2,
            "exclusiveMinimum": True,
            "exclusiveMaximum": True,
            "multipleOf": 2,
            "minItems": 1,
            "maxItems": 2,
            "uniqueItems": True,
            "minProperties": 1,
            "maxProperties": 2,
            "nullable": True,
            "x-kubernetes-validations": [{"rule": "true"}],
            "anyOf": [{"type": "string"}],
            "oneOf": [{"type": "string"}],
            "allOf": [{"minLength": 1}],
            "not": {"pattern": "c"},
        }
    )
    assert (schema.enum, schema.pattern, schema.nullable, schema.unique_items) == (("a", "b"), "^[ab]$", True, True)
    assert (schema.min_length, schema.max_length, schema.minimum, schema.maximum) == (1, 2, 1, 2)
    assert (schema.exclusive_minimum, schema.exclusive_maximum, schema.multiple_of) == (True, True, 2)
    assert (schema.min_items, schema.max_items, schema.min_properties, schema.max_properties) == (1, 2, 1, 2)
    assert schema.validations == ({"rule": "true"},)
    assert [len(branch) for branch in (schema.any_of, schema.one_of, schema.all_of)] == [1, 1, 1]
    assert schema.negated is not None
    assert schema.negated.pattern == "c"
