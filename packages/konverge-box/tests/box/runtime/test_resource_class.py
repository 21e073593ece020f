"""The CustomResourceDefinition of a box's custom resource."""

from typing import Any

import pytest

from konverge.crd import crd_manifest, find_definition
from konverge.errors import BuildError
from konverge_box._internal.runtime.resource_class import build_resource_class
from tests.box.running.box_harness import build_box

OPEN = "x-kubernetes-preserve-unknown-fields"


def entry(**resource: Any) -> Any:
    steps = resource.pop("steps", {})
    declared = {"resource": {"apiVersion": "boxes.konverge.test/v1", "kind": "Shelf", **resource}, **steps}
    return build_box(shelf=declared).spec.crds["shelf"]


def version(**resource: Any) -> Any:
    return crd_manifest(build_resource_class(entry(**resource)))["spec"]["versions"][0]


def test_types_that_the_file_leaves_out_are_written() -> None:
    spec = version(schema={"spec": {"properties": {"hosts": {"items": {"type": "string"}}}}})["schema"]

    assert spec["openAPIV3Schema"]["properties"]["spec"] == {
        "type": "object",
        "properties": {"hosts": {"type": "array", "items": {"type": "string"}}},
    }


def test_the_status_has_what_is_ours_what_is_declared_and_room_for_what_is_written() -> None:
    status = {"properties": {"url": {"type": "string"}, "parts": {"type": "object"}, "deep": {"type": "object"}}}
    fields = [{"path": path, "value": "x"} for path in ("url", "parts.one", "deep.two")]
    found = version(schema={"spec": {"properties": {}}, "status": status}, steps={"status": {"fields": fields}})
    root = found["schema"]["openAPIV3Schema"]["properties"]["status"]

    assert list(root["properties"]) == ["conditions", "url", "parts", "deep", "observedGeneration"]
    assert root[OPEN] is True
    assert root["properties"]["url"] == {"type": "string"}
    assert root["properties"]["parts"][OPEN] is True
    assert root["properties"]["deep"][OPEN] is True
    assert found["subresources"] == {"status": {}}


def test_without_a_schema_the_definition_is_the_clusters() -> None:
    assert find_definition(build_resource_class(entry())).is_external


def test_columns_are_those_of_the_file_or_the_usual_ones() -> None:
    column = {"name": "Hosts", "type": "string", "jsonPath": ".spec.hosts", "priority": 1}
    schema: Any = {"spec": {"properties": {"hosts": {"type": "string"}}}}

    assert version(schema=schema, additionalPrinterColumns=[column])["additionalPrinterColumns"] == [column]
    assert [each["name"] for each in version(schema=schema)["additionalPrinterColumns"]] == ["Ready", "Reason", "Age"]


def test_a_column_that_is_none_is_refused_with_all_that_is_wrong() -> None:
    with pytest.raises(BuildError, match=r"additionalPrinterColumns\[0\]") as refused:
        build_resource_class(
            entry(schema={"spec": {"properties": {}}}, additionalPrinterColumns=[{"type": "text", "path": "x"}])
        )

    for mistake in ("path: unknown field", "name is missing", "jsonPath is missing", "expected one of string"):
        assert mistake in str(refused.value)
