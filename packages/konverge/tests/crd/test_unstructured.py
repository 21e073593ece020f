"""Kinds that are known by their schema alone."""

from typing import Literal

import pytest

from konverge.crd import (
    UnstructuredResource,
    build_sample_objects,
    crd_manifest,
    decode,
    find_definition,
    unstructured_resource,
)
from konverge.errors import BuildError
from konverge.kube import GroupVersionKind, Object
from konverge.operator import Operator

SITE = GroupVersionKind("demo.konverge.test", "v1", "Site")
SCHEMA: dict[Literal["spec", "status"], Object] = {
    "spec": {"type": "object", "required": ["host"], "properties": {"host": {"type": "string"}}},
    "status": {"type": "object", "properties": {"url": {"type": "string"}}},
}


def test_its_definition_has_the_schema_and_room_for_conditions() -> None:
    manifest = crd_manifest(unstructured_resource(SITE, SCHEMA, plural="sitez", short_names=["st"], scope="Cluster"))

    assert manifest["metadata"]["name"] == "sitez.demo.konverge.test"
    assert manifest["spec"]["scope"] == "Cluster"
    assert manifest["spec"]["names"]["shortNames"] == ["st"]
    root = manifest["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    assert root["properties"]["spec"] == SCHEMA["spec"]
    assert list(root["properties"]["status"]["properties"]) == ["conditions", "url"]
    assert root["required"] == ["spec"]


def test_its_objects_decode_to_plain_json_with_the_fields_as_they_are() -> None:
    cls = unstructured_resource(SITE, SCHEMA)
    obj: Object = {"metadata": {"name": "a", "namespace": "b"}, "spec": {"hostName": [{"aB": 1}]}, "status": None}

    site = decode(cls, obj)

    assert isinstance(site, UnstructuredResource)
    assert (site.metadata.name, site.spec, site.status) == ("a", {"hostName": [{"aB": 1}]}, {})


def test_two_kinds_are_two_classes() -> None:
    other = GroupVersionKind("demo.konverge.test", "v1", "Shop")

    assert [find_definition(unstructured_resource(gvk, SCHEMA)).gvk for gvk in (SITE, other)] == [SITE, other]


def test_samples_are_made_from_the_schema() -> None:
    samples = build_sample_objects(find_definition(unstructured_resource(SITE, SCHEMA))).objects

    assert {"host": "sample"} in [obj["spec"] for obj in samples]


@pytest.mark.parametrize(
    ("pattern", "text"),
    [(r"^\p{L}+$", "sample"), (r"^sample\z", "sample"), (r"^[[:digit:]]+$", "1"), (r"^(a+)+b$", None), ("(", None)],
)
def test_a_sample_fits_a_pattern_of_the_server(pattern: str, text: str | None) -> None:
    spec: Object = {"type": "object", "required": ["t"], "properties": {"t": {"type": "string", "pattern": pattern}}}

    samples = build_sample_objects(find_definition(unstructured_resource(SITE, {"spec": spec})))

    assert samples.objects[0]["spec"]["t"] == text or text is None
    assert samples.gaps == (() if text else ("spec.t: no sample string fits its pattern and its length",))


def test_a_kind_of_the_cluster_has_no_definition_here() -> None:
    cls = unstructured_resource(GroupVersionKind("", "v1", "ConfigMap"), None)
    operator = Operator("maps")

    @operator.reconciles(cls)
    async def reconcile(obj: UnstructuredResource, ctx: object) -> None: ...

    assert operator.custom_resources == (cls,)
    assert operator.defined_resources == ()
    with pytest.raises(BuildError, match="whose definition the cluster already has"):
        crd_manifest(cls)


def test_names_that_no_server_takes_are_refused() -> None:
    with pytest.raises(BuildError, match="group: expected a DNS name with a dot"):
        unstructured_resource(GroupVersionKind("flat", "v1", "Site"), SCHEMA)
