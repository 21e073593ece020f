from __future__ import annotations

from typing import Any

import pytest

from konverge.errors import ApiError, BadRequestError, Cause, InvalidError, KindNotServedError
from konverge.kube import Object, ObjectKey, find_condition
from konverge_cluster._internal.embedded.apiserver import ApiServer
from konverge_cluster._internal.embedded.object_decoding import FieldValidation
from tests.cluster.embedded.objects import (
    CONFIG_MAP,
    DEFINITION,
    WEBAPP,
    WEBAPP_BETA,
    WEBAPP_SCHEMA,
    config_map,
    key,
    webapp,
    webapp_definition,
)

WEBAPPS = ObjectKey("", "webapps.demo.konverge.dev")


def causes(api: ApiServer, body: Object) -> set[tuple[str, str]]:
    """Return the fields and the texts with which the server rejects a new object."""
    with pytest.raises(InvalidError) as caught:
        api.create(WEBAPP, body)
    return {(cause.field, cause.message) for cause in caught.value.causes}


def test_a_definition_is_established_and_its_kind_served(api: ApiServer) -> None:
    with pytest.raises(KindNotServedError):
        api.list(WEBAPP)

    created = api.create(DEFINITION, webapp_definition())

    established = find_condition(created, "Established")
    assert established is not None
    assert established.status == "True"
    assert created["status"]["acceptedNames"]["listKind"] == "WebAppList"
    assert created["status"]["storedVersions"] == ["v1"]
    assert api.list(WEBAPP) == []


def test_names_that_are_taken_are_not_accepted(api: ApiServer, webapps: Object) -> None:
    other = webapp_definition()
    other["metadata"]["name"] = "others.demo.konverge.dev"
    other["spec"]["names"] = {"plural": "others", "kind": "WebApp"}

    created = api.create(DEFINITION, other)

    accepted, established = find_condition(created, "NamesAccepted"), find_condition(created, "Established")
    assert accepted is not None
    assert (accepted.status, accepted.reason) == ("False", "ListKindConflict")
    assert established is not None
    assert established.status == "False"
    assert api.resources.find_by_path("demo.konverge.dev", "v1", "others") is None


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"group": "flat"}, "spec.group"),
        ({"scope": "Everywhere"}, "spec.scope"),
        ({"names": {"plural": "webapps"}}, "spec.names.kind"),
        ({"versions": []}, "spec.versions"),
    ],
)
def test_a_definition_that_makes_no_sense_is_refused(api: ApiServer, change: dict[str, Any], field: str) -> None:
    body = webapp_definition()
    body["spec"] |= change

    with pytest.raises(InvalidError) as caught:
        api.create(DEFINITION, body)
    assert field in {cause.field for cause in caught.value.causes}


def test_a_schema_says_what_each_field_is(api: ApiServer) -> None:
    schema = {
        "type": "object",
        "properties": {"spec": {"type": "object", "properties": {"x": {}, "y": {"type": "map"}}}},
    }

    with pytest.raises(InvalidError) as caught:
        api.create(DEFINITION, webapp_definition(schema={"openAPIV3Schema": schema}))

    where = "spec.validation.openAPIV3Schema.properties[spec].properties"
    assert {cause.field for cause in caught.value.causes} == {f"{where}[x].type", f"{where}[y].type"}


def test_defaults_are_filled_and_unknown_fields_dropped(api: ApiServer, webapps: Object) -> None:
    body = webapp(unknown=1, ports=[{"name": "http", "extra": 2}], extra={"anything": {"goes": True}})

    created = api.create(WEBAPP, body)

    assert created["spec"] == {
        "image": "shop:1",
        "size": "small",
        "ports": [{"name": "http", "protocol": "TCP"}],
        "extra": {"anything": {"goes": True}},
    }


def test_unknown_fields_are_told_or_refused_when_asked(api: ApiServer, webapps: Object) -> None:
    body = webapp(unknown=1, ports=[{"name": "http", "extra": 2}])
    errors_found = FieldValidation("Warn")

    api.create(WEBAPP, body, fields=errors_found, dry_run=True)

    assert errors_found.warnings == ['unknown field "spec.ports[0].extra"', 'unknown field "spec.unknown"']
    with pytest.raises(BadRequestError, match=r'strict decoding error: unknown field "spec\.ports\[0\]\.extra"'):
        api.create(WEBAPP, body, fields=FieldValidation("Strict"))


def test_nulls_count_as_absent_where_they_mean_nothing(api: ApiServer, webapps: Object) -> None:
    created = api.create(WEBAPP, webapp(size=None, replicas=None, note=None))

    assert created["spec"] == {"image": "shop:1", "size": "small", "note": None}


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({"image": None}, ("spec.image", "Required value")),
        (
            {"image": 7},
            ("spec.image", 'Invalid value: "integer": spec.image in body must be of type string: "integer"'),
        ),
        ({"image": "ab"}, ("spec.image", 'Invalid value: "ab": spec.image in body should be at least 3 chars long')),
        ({"image": "Shop"}, ("spec.image", "Invalid value: \"Shop\": spec.image in body should match '^[a-z]'")),
        ({"size": "huge"}, ("spec.size", 'Unsupported value: "huge": supported values: "small", "large"')),
        (
            {"replicas": "three"},
            ("spec.replicas", 'Invalid value: "string": spec.replicas in body must be of type integer: "string"'),
        ),
        (
            {"replicas": -1},
            ("spec.replicas", "Invalid value: -1: spec.replicas in body should be greater than or equal to 0"),
        ),
        (
            {"replicas": 11},
            ("spec.replicas", "Invalid value: 11: spec.replicas in body should be less than or equal to 10"),
        ),
        ({"ratio": 0.3}, ("spec.ratio", "Invalid value: 0.3: spec.ratio in body should be a multiple of 0.25")),
        ({"ratio": 0.0}, ("spec.ratio", "Invalid value: 0.0: spec.ratio in body should be greater than 0")),
        ({"hosts": ["a", "b", "a"]}, ("spec.hosts[2]", 'Duplicate value: "a"')),
        (
            {"hosts": [1]},
            ("spec.hosts[0]", 'Invalid value: "integer": spec.hosts[0] in body must be of type string: "integer"'),
        ),
        ({"ports": [{"port": 1}]}, ("spec.ports[0].name", "Required value")),
        ({"ports": [{"name": "a"}, {"name": "a"}]}, ("spec.ports[1]", 'Duplicate value: {"name":"a"}')),
        ({"ports": [{"name": n} for n in "abcd"]}, ("spec.ports", "Too many: 4: must have at most 3 items")),
        (
            {"ports": [{"name": "a", "port": True}]},
            (
                "spec.ports[0].port",
                'Invalid value: "boolean": spec.ports[0].port in body must be of type integer,string: "boolean"',
            ),
        ),
        ({"limits": {}}, ("spec.limits", "Invalid value: 0: spec.limits in body should have at least 1 properties")),
        ({"template": {"spec": {}}}, ("spec.template.kind", "Required value")),
        (
            {"source": {"git": "a", "oci": "b"}},
            (
                "<nil>",
                'Invalid value: "": "spec.source" must validate one and only one schema (oneOf). '
                "Found 2 valid alternatives",
            ),
        ),
        (
            {"since": "yesterday"},
            ("spec.since", 'Invalid value: "yesterday": spec.since in body must be of type date-time: "yesterday"'),
        ),
    ],
)
def test_a_value_that_breaks_the_schema_is_refused_in_the_servers_words(
    api: ApiServer, webapps: Object, spec: dict[str, Any], expected: tuple[str, str]
) -> None:
    assert expected in causes(api, webapp(**spec))


def test_all_mistakes_are_told_at_once(api: ApiServer, webapps: Object) -> None:
    body = webapp("Bad_Name", image="ab", size="huge")

    fields = {field for field, _ in causes(api, body)}

    assert fields == {"metadata.name", "spec.image", "spec.size"}


def test_a_good_value_of_every_sort_is_accepted(api: ApiServer, webapps: Object) -> None:
    spec: dict[str, Any] = {
        "replicas": 10,
        "ratio": 0.75,
        "hosts": ["a", "b"],
        "ports": [{"name": "http", "port": 80}, {"name": "named", "port": "http"}],
        "limits": {"cpu": 3},
        "template": {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "any"}},
        "source": {"git": "here"},
        "since": "2026-01-31T08:00:00Z",
    }

    created = api.create(WEBAPP, webapp(**spec))

    assert {name: created["spec"][name] for name in spec if name != "ports"} == {
        name: value for name, value in spec.items() if name != "ports"
    }


def test_an_integer_keeps_to_its_format(api: ApiServer, webapps: Object) -> None:
    errors_found = causes(api, webapp(replicas=2**31))

    sentence = "Checked value must be of type integer with format int32 in spec.replicas"
    assert ("<nil>", f'Invalid value: "": {sentence}') in errors_found


def test_metadata_is_decoded_like_everybodys(api: ApiServer, webapps: Object) -> None:
    body = webapp()
    body["metadata"]["labels"] = {"a": 1}

    with pytest.raises(BadRequestError, match=r"Go struct field ObjectMeta\.labels of type string"):
        api.create(WEBAPP, body)


def test_the_kind_in_the_data_must_be_the_one_in_the_path(api: ApiServer, webapps: Object) -> None:
    with pytest.raises(InvalidError) as caught:
        api.create(WEBAPP, {**webapp(), "kind": "Shop"})
    assert caught.value.causes == (Cause("FieldValueInvalid", 'Invalid value: "Shop": must be WebApp', "kind"),)
    with pytest.raises(BadRequestError, match="does not match the expected API version"):
        api.create(WEBAPP, {**webapp(), "apiVersion": "demo.konverge.dev/v9"})


def test_the_status_is_written_apart_and_takes_no_metadata_along(api: ApiServer, webapps: Object) -> None:
    created = api.create(WEBAPP, {**webapp(replicas=1), "status": {"replicas": 9}})
    patch = {"status": {"replicas": 1}, "spec": {"replicas": 5}, "metadata": {"labels": {"a": "b"}}}

    reported = api.patch(WEBAPP, key("shop"), patch, subresource="status")

    assert "status" not in created
    assert reported["status"] == {"replicas": 1}
    assert reported["spec"]["replicas"] == 1
    assert "labels" not in reported["metadata"]
    assert reported["metadata"]["generation"] == 1


def test_without_the_subresource_the_status_is_a_field_like_any_other(api: ApiServer) -> None:
    api.create(DEFINITION, webapp_definition(subresources={}))

    created = api.create(WEBAPP, {**webapp(), "status": {"replicas": 9}})
    updated = api.patch(WEBAPP, key("shop"), {"status": {"replicas": 8}})

    assert created["status"] == {"replicas": 9}
    assert updated["metadata"]["generation"] == 2


def test_a_custom_resource_scales_where_its_definition_says(api: ApiServer, webapps: Object) -> None:
    api.create(WEBAPP, webapp(replicas=2))
    api.patch(WEBAPP, key("shop"), {"status": {"replicas": 1, "selector": "app=shop"}}, subresource="status")

    scale = api.get_scale(WEBAPP, key("shop"))
    api.patch(WEBAPP, key("shop"), {"spec": {"replicas": 4}}, subresource="scale")

    assert (scale["spec"], scale["status"]) == ({"replicas": 2}, {"replicas": 1, "selector": "app=shop"})
    assert api.get(WEBAPP, key("shop"))["spec"]["replicas"] == 4


def test_an_update_needs_a_resource_version(api: ApiServer, webapps: Object) -> None:
    api.create(WEBAPP, webapp())

    with pytest.raises(InvalidError, match=r"metadata\.resourceVersion: Invalid value: 0: must be specified"):
        api.update(WEBAPP, webapp(size="large"))


def test_lists_of_a_custom_resource_merge_by_the_schema(api: ApiServer, webapps: Object) -> None:
    api.apply(WEBAPP, webapp(ports=[{"name": "http", "port": 80}]), manager="one")

    merged = api.apply(WEBAPP, webapp(ports=[{"name": "grpc", "port": 81}]), manager="two")

    assert [each["name"] for each in merged["spec"]["ports"]] == ["http", "grpc"]


def test_an_applied_null_is_refused_where_none_may_be(api: ApiServer, webapps: Object) -> None:
    with pytest.raises(InvalidError, match=r"spec\.replicas in body must be of type integer: \"null\""):
        api.apply(WEBAPP, webapp(replicas=None), manager="me")


def test_versions_show_the_same_object(api: ApiServer) -> None:
    body = webapp_definition()
    body["spec"]["versions"].append(
        {"name": "v1beta1", "served": True, "storage": False, "schema": {"openAPIV3Schema": WEBAPP_SCHEMA}}
    )
    api.create(DEFINITION, body)

    api.create(WEBAPP_BETA, {**webapp(), "apiVersion": WEBAPP_BETA.api_version})

    assert api.get(WEBAPP_BETA, key("shop"))["apiVersion"] == "demo.konverge.dev/v1beta1"
    assert api.get(WEBAPP, key("shop"))["apiVersion"] == "demo.konverge.dev/v1"
    assert api.list_changes(0)[-1].new["apiVersion"] == "demo.konverge.dev/v1"


def test_a_version_that_is_no_longer_served_is_gone(api: ApiServer, webapps: Object) -> None:
    versions = [{**webapps["spec"]["versions"][0], "served": False}]

    api.update(DEFINITION, {**webapps, "spec": {**webapps["spec"], "versions": versions}})

    with pytest.raises(KindNotServedError):
        api.list(WEBAPP)


def test_a_changed_schema_holds_from_then_on(api: ApiServer, webapps: Object) -> None:
    patch = [
        {
            "op": "add",
            "path": "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/color",
            "value": {"type": "string", "default": "red"},
        }
    ]

    api.patch(DEFINITION, WEBAPPS, patch, patch_type="json")

    assert api.create(WEBAPP, webapp())["spec"]["color"] == "red"


def test_what_objects_are_stored_under_stays(api: ApiServer, webapps: Object) -> None:
    with pytest.raises(InvalidError, match=r'spec\.scope: Invalid value: "Cluster": field is immutable'):
        api.patch(DEFINITION, WEBAPPS, {"spec": {"scope": "Cluster"}})


def test_a_deleted_definition_takes_its_objects_along(api: ApiServer, webapps: Object) -> None:
    api.create(WEBAPP, webapp())
    api.create(CONFIG_MAP, config_map("stays"))

    api.delete(DEFINITION, WEBAPPS)

    assert api.find(DEFINITION, WEBAPPS) is None
    with pytest.raises(KindNotServedError):
        api.list(WEBAPP)
    assert api.find(CONFIG_MAP, key("stays")) is not None


def test_a_definition_waits_for_objects_that_finalizers_hold(api: ApiServer, webapps: Object) -> None:
    held = webapp()
    held["metadata"]["finalizers"] = ["example.com/hold"]
    api.create(WEBAPP, held)

    api.delete(DEFINITION, WEBAPPS)
    with pytest.raises(ApiError, match="create not allowed while custom resource definition is terminating"):
        api.create(WEBAPP, webapp("another"))
    api.patch(WEBAPP, key("shop"), {"metadata": {"finalizers": None}})

    assert api.find(DEFINITION, WEBAPPS) is None
