"""Custom resources: served, validated, pruned and defaulted according to their definition, and deleted with it."""

from __future__ import annotations

import json

import pytest

from konverge.errors import BadRequestError, InvalidError, KindNotServedError
from konverge.kube import Object, ObjectKey
from konverge_cluster.testing import Cluster
from tests.cluster.conformance.objects import CUSTOM_RESOURCE_DEFINITION
from tests.cluster.conformance.widgets import Widgets

pytestmark = pytest.mark.anyio


async def refusal(cluster: Cluster, obj: Object) -> list[tuple[str, str]]:
    """Return (field, reason) of each validation error of the server, sorted."""
    with pytest.raises(InvalidError) as refused:
        await cluster.client.create(obj)
    return sorted((cause.field, cause.reason) for cause in refused.value.causes)


# The definition


async def test_a_definition_is_accepted_established_and_served(cluster: Cluster) -> None:
    kind = Widgets(cluster, f"{cluster.namespace}.konverge.test")
    created = await cluster.client.create(kind.definition())
    key = ObjectKey.of(created)

    await cluster.eventually(kind.is_served)

    definition = await cluster.client.get(CUSTOM_RESOURCE_DEFINITION, key)
    conditions = {condition["type"]: condition["status"] for condition in definition["status"]["conditions"]}
    assert conditions["NamesAccepted"] == "True"
    assert conditions["Established"] == "True"
    assert definition["status"]["storedVersions"] == ["v1"]
    assert definition["status"]["acceptedNames"]["plural"] == "widgets"
    await cluster.client.delete(CUSTOM_RESOURCE_DEFINITION, key)


async def test_discovery_tells_how_the_kind_is_served(widgets: Widgets, cluster: Cluster) -> None:
    mapping = await cluster.client.mapping(widgets.gvk)

    assert mapping.plural == "widgets"
    assert mapping.singular == "widget"
    assert mapping.short_names == ("wd",)
    assert mapping.namespaced
    assert mapping.subresources == {"status"}
    assert mapping.verbs >= {"create", "delete", "get", "list", "patch", "update", "watch"}


async def test_a_definition_gets_its_defaults(cluster: Cluster) -> None:
    kind = Widgets(cluster, f"{cluster.namespace}.konverge.test")

    created = await cluster.client.create(kind.definition())

    assert created["spec"]["names"]["listKind"] == "WidgetList"
    assert created["spec"]["conversion"] == {"strategy": "None"}
    await cluster.client.delete(CUSTOM_RESOURCE_DEFINITION, ObjectKey.of(created))


async def test_a_definition_must_be_named_after_plural_and_group(cluster: Cluster) -> None:
    definition = Widgets(cluster, f"{cluster.namespace}.konverge.test").definition()
    definition["metadata"]["name"] = "gadgets.konverge.test"

    assert ("metadata.name", "FieldValueInvalid") in await refusal(cluster, definition)


async def test_a_definition_needs_a_schema(cluster: Cluster) -> None:
    definition = Widgets(cluster, f"{cluster.namespace}.konverge.test").definition(schema=None)

    assert ("spec.versions[0].schema.openAPIV3Schema", "FieldValueRequired") in await refusal(cluster, definition)


async def test_a_schema_must_be_structural(cluster: Cluster) -> None:
    kind = Widgets(cluster, f"{cluster.namespace}.konverge.test")
    schema = {"type": "object", "properties": {"spec": {"type": "object", "properties": {"size": {}}}}}
    definition = kind.definition(schema={"openAPIV3Schema": schema})

    # With one version, or the same schema in all versions, the server names this path.
    field = "spec.validation.openAPIV3Schema.properties[spec].properties[size].type"
    assert (field, "FieldValueRequired") in await refusal(cluster, definition)


SIZE = "spec.validation.openAPIV3Schema.properties[spec].properties[size]"
AT_LEAST_ONE = {"type": "integer", "minimum": 1}
BROKEN_DEFAULTS: dict[str, tuple[Object, list[tuple[str, str, str]]]] = {
    "a limit": (
        AT_LEAST_ONE | {"default": 0},
        [(".default", "FieldValueInvalid", "Invalid value: 0:  in body should be greater than or equal to 1")],
    ),
    "an enumeration": (
        {"type": "string", "enum": ["a", "b"], "default": "c"},
        [(".default", "FieldValueNotSupported", 'Unsupported value: "c": supported values: "a", "b"')],
    ),
    "a pattern": (
        {"type": "string", "pattern": "^[a-z]+$", "default": "A"},
        [(".default", "FieldValueInvalid", "Invalid value: \"A\":  in body should match '^[a-z]+$'")],
    ),
    "a length": (
        {"type": "string", "maxLength": 1, "default": "abc"},
        [(".default", "FieldValueTooLong", "Too long: may not be more than 1 byte")],
    ),
    "a number of items": (
        {"type": "array", "maxItems": 1, "items": {"type": "integer"}, "default": [1, 2]},
        [(".default", "FieldValueTooMany", "Too many: 2: must have at most 1 item")],
    ),
    "the type": (
        {"type": "string", "default": 1},
        [(".default", "FieldValueTypeInvalid", 'Invalid value: "integer":  in body must be of type string: "integer"')],
    ),
    "the format": (
        {"type": "string", "format": "date-time", "default": "tomorrow"},
        [
            (
                ".default",
                "FieldValueTypeInvalid",
                'Invalid value: "tomorrow":  in body must be of type date-time: "tomorrow"',
            )
        ],
    ),
    "a required field, although that has a default": (
        {"type": "object", "required": ["a"], "properties": {"a": {"type": "string", "default": "x"}}, "default": {}},
        [(".default.a", "FieldValueRequired", "Required value")],
    ),
    "the fields that there are": (
        {"type": "object", "properties": {"a": {"type": "string"}}, "default": {"b": 1}},
        [(".default", "FieldValueInvalid", 'Invalid value: {"b":1}: must not have unknown fields')],
    ),
    "a limit of a field, there and here": (
        {"type": "object", "properties": {"a": AT_LEAST_ONE | {"default": 0}}, "default": {"a": 0}},
        [
            (".default.a", "FieldValueInvalid", "Invalid value: 0: a in body should be greater than or equal to 1"),
            (
                ".properties[a].default",
                "FieldValueInvalid",
                "Invalid value: 0:  in body should be greater than or equal to 1",
            ),
        ],
    ),
    "a rule": (
        {"type": "integer", "x-kubernetes-validations": [{"rule": "self > 0", "message": "positive"}], "default": 0},
        [(".default", "FieldValueInvalid", "Invalid value: 0: positive")],
    ),
    "a rule that tells a field": (
        {
            "type": "object",
            "properties": {"a": {"type": "integer"}},
            "x-kubernetes-validations": [{"rule": "self.a > 0", "message": "positive", "fieldPath": ".a"}],
            "default": {"a": 0},
        },
        [(".default.a", "FieldValueInvalid", "Invalid value: positive")],
    ),
}


@pytest.mark.parametrize("breaks", BROKEN_DEFAULTS)
async def test_a_default_must_keep_its_own_constraints(breaks: str, cluster: Cluster) -> None:
    schema, expected = BROKEN_DEFAULTS[breaks]
    kind = Widgets(cluster, f"{cluster.namespace}.konverge.test")
    spec = {"type": "object", "properties": {"size": schema}}
    definition = kind.definition(schema={"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}})

    with pytest.raises(InvalidError) as refused:
        await cluster.client.create(definition)

    found = [(cause.field.removeprefix(SIZE), cause.reason, cause.message) for cause in refused.value.causes]
    assert sorted(found) == expected


@pytest.mark.parametrize(
    "schema",
    [
        AT_LEAST_ONE | {"default": 1},
        {"type": "string", "default": None},
        # The server does not check this, although no object without the field can be stored then.
        {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}, "default": ["a", "a"]},
        {"type": "integer", "x-kubernetes-validations": [{"rule": "self == oldSelf"}], "default": 0},
        {"type": "object", "additionalProperties": AT_LEAST_ONE | {"default": 0}},
    ],
)
async def test_a_default_that_the_server_has_nothing_against_is_accepted(schema: Object, cluster: Cluster) -> None:
    kind = Widgets(cluster, f"{cluster.namespace}.konverge.test")
    spec = {"type": "object", "properties": {"size": schema}}

    created = await cluster.client.create(
        kind.definition(schema={"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}})
    )

    await cluster.client.delete(CUSTOM_RESOURCE_DEFINITION, ObjectKey.of(created))


async def test_instances_go_with_their_definition(cluster: Cluster) -> None:
    kind = Widgets(cluster, f"{cluster.namespace}.konverge.test")
    definition = await cluster.client.create(kind.definition())
    await cluster.eventually(kind.is_served)
    await cluster.client.create(kind.new())

    await cluster.client.delete(CUSTOM_RESOURCE_DEFINITION, ObjectKey.of(definition))

    async def is_gone() -> bool:
        return not await kind.is_served()

    await cluster.eventually(is_gone, describe="the kind is not served any more")
    with pytest.raises(KindNotServedError):
        await cluster.client.get(kind.gvk, ObjectKey.of(kind.new()))


# Validation


async def test_a_valid_instance_is_stored_as_it_is(widgets: Widgets, cluster: Cluster) -> None:
    spec: Object = {
        "size": 3,
        "colour": "red",
        "code": "abc",
        "anything": {"a": [1, {"b": None}]},
        "labels": {"x": "y"},
        "tags": ["b", "a"],
        "order": ["z", "z"],
    }

    created = await cluster.client.create(widgets.new(**spec))

    assert created["spec"] == spec
    assert created["kind"] == "Widget"
    assert created["metadata"]["generation"] == 1


async def test_an_invalid_instance_is_refused_with_the_path_and_the_limit(widgets: Widgets, cluster: Cluster) -> None:
    with pytest.raises(InvalidError) as refused:
        await cluster.client.create(widgets.new("big", size=11))

    assert refused.value.message == (
        'Widget.conformance.konverge.test "big" is invalid: '
        "spec.size: Invalid value: 11: spec.size in body should be less than or equal to 10"
    )
    assert [(cause.field, cause.reason) for cause in refused.value.causes] == [("spec.size", "FieldValueInvalid")]


async def test_a_wrong_type_is_refused(widgets: Widgets, cluster: Cluster) -> None:
    assert await refusal(cluster, widgets.new(size="three")) == [("spec.size", "FieldValueTypeInvalid")]


async def test_a_missing_required_field_is_refused(widgets: Widgets, cluster: Cluster) -> None:
    wanted = widgets.new()
    del wanted["spec"]["size"]

    assert await refusal(cluster, wanted) == [("spec.size", "FieldValueRequired")]


async def test_a_value_that_is_not_in_the_enumeration_is_refused(widgets: Widgets, cluster: Cluster) -> None:
    assert await refusal(cluster, widgets.new(colour="green")) == [("spec.colour", "FieldValueNotSupported")]


async def test_every_mistake_in_an_instance_is_named_at_once(widgets: Widgets, cluster: Cluster) -> None:
    wanted = widgets.new(size=0, code="TOOLONG", parts=[{"weight": 1}], labels={"a": 1})

    fields = {field for field, _ in await refusal(cluster, wanted)}

    assert fields == {"spec.size", "spec.code", "spec.parts[0].name", "spec.labels.a"}


async def test_keys_of_a_keyed_list_must_be_unique(widgets: Widgets, cluster: Cluster) -> None:
    wanted = widgets.new(parts=[{"name": "door"}, {"name": "door"}])

    assert await refusal(cluster, wanted) == [("spec.parts[1]", "FieldValueDuplicate")]


async def test_items_of_a_set_must_be_unique(widgets: Widgets, cluster: Cluster) -> None:
    assert await refusal(cluster, widgets.new(tags=["a", "b", "a"])) == [("spec.tags[2]", "FieldValueDuplicate")]


async def test_int_or_string_takes_both_and_nothing_else(widgets: Widgets, cluster: Cluster) -> None:
    number = await cluster.client.create(widgets.new("number", port=80))
    text = await cluster.client.create(widgets.new("text", port="http"))

    assert (number["spec"]["port"], text["spec"]["port"]) == (80, "http")
    assert [field for field, _ in await refusal(cluster, widgets.new("neither", port=True))] == ["spec.port"]


async def test_updates_are_validated_like_creates(widgets: Widgets, cluster: Cluster) -> None:
    created = await cluster.client.create(widgets.new(size=1))

    with pytest.raises(InvalidError):
        await cluster.client.update({**created, "spec": {"size": 11}})
    with pytest.raises(InvalidError):
        await cluster.client.apply(widgets.new(size=11), field_manager="ann")


async def test_the_status_is_validated_on_its_own_path(widgets: Widgets, cluster: Cluster) -> None:
    created = await cluster.client.create(widgets.new())

    with pytest.raises(InvalidError) as refused:
        await cluster.client.update({**created, "status": {"phase": 1}}, subresource="status")

    assert [cause.field for cause in refused.value.causes] == ["status.phase"]


async def test_a_body_of_another_kind_is_refused(widgets: Widgets, cluster: Cluster) -> None:
    transport = cluster.new_transport()
    path = (await cluster.client.mapping(widgets.gvk)).build_path(namespace=cluster.namespace)

    answer = await transport.request(
        "POST",
        path,
        headers={"content-type": "application/json", "accept": "application/json"},
        body=b'{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"one"}}',
        timeout_seconds=60,
    )

    assert answer.status == BadRequestError.default_code


# Pruning and defaults


async def test_unknown_fields_are_pruned_where_the_schema_does_not_keep_them(
    widgets: Widgets, cluster: Cluster
) -> None:
    wanted = widgets.new(surprise=1, parts=[{"name": "door", "surprise": 1}], anything={"surprise": 1})

    created = await cluster.client.create(wanted | {"surprise": 1})

    assert "surprise" not in created
    assert "surprise" not in created["spec"]
    assert created["spec"]["parts"] == [{"name": "door", "weight": 1}]
    assert created["spec"]["anything"] == {"surprise": 1}


async def test_defaults_are_filled_in_where_the_parent_is_there(widgets: Widgets, cluster: Cluster) -> None:
    created = await cluster.client.create(widgets.new(size=2, parts=[{"name": "door"}, {"name": "roof", "weight": 7}]))

    assert created["spec"] == {
        "size": 2,
        "colour": "blue",
        "parts": [{"name": "door", "weight": 1}, {"name": "roof", "weight": 7}],
    }


async def test_defaults_come_back_when_a_field_is_removed(widgets: Widgets, cluster: Cluster) -> None:
    created = await cluster.client.create(widgets.new(colour="red"))

    updated = await cluster.client.update({**created, "spec": {"size": 1}})

    assert updated["spec"] == {"size": 1, "colour": "blue"}


async def test_a_null_is_replaced_by_the_default(widgets: Widgets, cluster: Cluster) -> None:
    created = await cluster.client.create(widgets.new(colour=None))

    assert created["spec"]["colour"] == "blue"


# Types of the values in a definition

TEXT: Object = {"type": "string"}
FIELDS = "spec.versions.schema.openAPIV3Schema.properties.properties"
STRUCT = "Go struct field JSONSchemaProps"
# The schema of a field, and the part of the message about it, which may be that of a validation error.
WRONG_TYPES: dict[str, tuple[Object, str]] = {
    "a number for a boolean": (
        {**TEXT, "nullable": 1},
        f"json: cannot unmarshal number into {STRUCT}.{FIELDS}.nullable of type bool",
    ),
    "a text for a number": (
        {**TEXT, "maxLength": "3"},
        f"json: cannot unmarshal string into {STRUCT}.{FIELDS}.maxLength of type int64",
    ),
    "a number for a schema or boolean": (
        {"type": "object", "additionalProperties": 1},
        "boolean or JSON schema expected",
    ),
    "a text for a schema or boolean": (
        {"type": "object", "additionalProperties": "true"},
        "boolean or JSON schema expected",
    ),
    "a list for a schema or boolean": (
        {"type": "object", "additionalProperties": []},
        "boolean or JSON schema expected",
    ),
    "a text for a number below values": (
        {"type": "object", "additionalProperties": {**TEXT, "maxLength": "3"}},
        f"json: cannot unmarshal string into {STRUCT}.{FIELDS}.additionalProperties.maxLength of type int64",
    ),
    "a text for a number below items": (
        {"type": "array", "items": {**TEXT, "maxLength": "3"}},
        f"json: cannot unmarshal string into {STRUCT}.{FIELDS}.items.maxLength of type int64",
    ),
    "a text for a number below fields of items": (
        {"type": "array", "items": {"type": "object", "properties": {"a": {**TEXT, "maxLength": "3"}}}},
        f"json: cannot unmarshal string into {STRUCT}.{FIELDS}.items.properties.maxLength of type int64",
    ),
    "a number for a schema of items": ({"type": "array", "items": 1}, ".items: Required value: must be specified"),
    "a boolean for a schema of items": ({"type": "array", "items": True}, ".items: Required value: must be specified"),
    "unique items": (
        {"type": "array", "items": TEXT, "uniqueItems": True},
        ".uniqueItems: Forbidden: uniqueItems cannot be set to true since the runtime complexity becomes quadratic",
    ),
}


@pytest.mark.parametrize("name", WRONG_TYPES)
async def test_a_wrong_type_in_a_schema_is_refused(cluster: Cluster, name: str) -> None:
    field, message = WRONG_TYPES[name]
    schema = {"type": "object", "properties": {"spec": {"type": "object", "properties": {"f": field}}}}
    definition = Widgets(cluster, f"{cluster.namespace}.konverge.test").definition(schema={"openAPIV3Schema": schema})

    with pytest.raises((BadRequestError, InvalidError)) as refused:
        await cluster.client.create(definition, dry_run=True)

    assert refused.value.message.endswith(message)


@pytest.mark.parametrize("below", ["items", "additionalProperties"])
async def test_an_unknown_keyword_below_values_and_items_is_dropped(cluster: Cluster, below: str) -> None:
    kind = "array" if below == "items" else "object"
    field = {"type": kind, below: {**TEXT, "maxLenght": 3}}
    schema = {"type": "object", "properties": {"spec": {"type": "object", "properties": {"f": field}}}}
    definition = Widgets(cluster, f"{cluster.namespace}.konverge.test").definition(schema={"openAPIV3Schema": schema})

    response = await cluster.new_transport().request(
        "POST",
        "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
        query={"dryRun": "All", "fieldValidation": "Strict"},
        headers={"content-type": "application/json", "accept": "application/json"},
        body=json.dumps(definition).encode(),
        timeout_seconds=60,
    )

    assert (response.status, response.headers.get("warning")) == (201, None)
    (version,) = json.loads(response.body)["spec"]["versions"]
    stored = version["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]["f"]
    assert stored == {"type": kind, below: TEXT}
