"""The objects of a box in expressions of the status."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from konverge._internal.kube.secret_values import SecretValues
from konverge._internal.kube.selectors import LabelSelector
from konverge.errors import ForbiddenError, KindNotServedError, NotFoundError
from konverge.kube import GroupVersionKind, Object, ObjectKey, build_owner_reference
from konverge_box._internal.file import CustomResource
from konverge_box._internal.steps import Scope
from konverge_box._internal.steps.children import Child, ChildrenReader
from konverge_box._internal.steps.labels import OWNER_UID
from konverge_box._internal.steps.status_fields import StatusFields
from konverge_box.expressions import MASK, EvaluationEnvironment, Sensitive, compile_expression
from tests.box.file.sample_boxes import find_errors, load_custom_resource

pytestmark = pytest.mark.anyio

OWNER: Object = {
    "apiVersion": "test.konverge.dev/v1",
    "kind": "Web",
    "metadata": {"name": "web", "namespace": "shop", "uid": "u-1"},
}
UNSERVED = GroupVersionKind("cert-manager.io", "v1", "Certificate")


class Shelf:
    """A reader of objects that records its reads."""

    def __init__(self, *objects: Object) -> None:
        self._objects = {(GroupVersionKind.of(obj), ObjectKey.of(obj)): obj for obj in objects}
        self.reads: list[tuple[str, str]] = []

    async def get(self, gvk: GroupVersionKind, key: ObjectKey, *, live: bool = False) -> Object:
        self.reads.append((gvk.kind, str(key)))
        if gvk == UNSERVED:
            raise KindNotServedError(f"{gvk} is not served")
        if key.name == "forbidden":
            raise ForbiddenError("no")
        try:
            return self._objects[gvk, key]
        except KeyError:
            raise NotFoundError("there is none") from None

    async def list(
        self, gvk: GroupVersionKind, *, namespace: str = "", labels: Mapping[str, str] | LabelSelector | str = ""
    ) -> list[Object]:
        raise AssertionError("children are read one by one")


def live(kind: str, name: str, *, namespace: str = "shop", api_version: str = "apps/v1", **more: Any) -> Object:
    """Return an object of the box. An empty namespace stands for a cluster-scoped one."""
    metadata: Object = {"name": name, "labels": {OWNER_UID: "u-1"}}
    if namespace:
        metadata["namespace"] = namespace
    if namespace == "shop":
        metadata["ownerReferences"] = [build_owner_reference(OWNER)]
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, **more}


def foreign(kind: str, name: str, **more: Any) -> Object:
    return {"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": name, "namespace": "shop"}, **more}


def box(resources: str, *values: str) -> CustomResource:
    """Return a box with these resources and those status values."""
    lines = "\n".join(f"  {line}" for line in resources.strip("\n").splitlines())
    fields = "\n".join(f'    - {{path: x{i}, value: "{value}"}}' for i, value in enumerate(values))
    return load_custom_resource(f"onReconcile:\n{lines}\nstatus:\n  fields:\n{fields}\n")


def children_of(custom: CustomResource) -> ChildrenReader:
    return ChildrenReader(
        (*custom.on_create, *custom.on_reconcile), StatusFields(custom.status, "status").list_read_paths()
    )


def list_children(custom: CustomResource, *, unwanted: str = "") -> list[Child]:
    """Return the plan of these resources, whose names have no expressions."""
    found = []
    for group in (*custom.on_create, *custom.on_reconcile):
        for resource in group.resources:
            name, namespace = (resource.object["metadata"].get(part, "") for part in ("name", "namespace"))
            found.append(Child(resource, ObjectKey(namespace or "shop", name), name != unwanted))
    return found


async def read(custom: CustomResource, *objects: Object, unwanted: str = "") -> dict[str, Any]:
    return await children_of(custom).read(OWNER, list_children(custom, unwanted=unwanted), Shelf(*objects))


async def test_the_singular_is_the_first_in_the_order_of_the_file_that_exists() -> None:
    custom = box(
        "deployments: [{name: c, image: i}, {name: b, image: i}, {name: a, image: i}]", "{{ children.deployment }}"
    )

    found = await read(custom, live("Deployment", "a"), live("Deployment", "b"))

    assert found["deployment"]["metadata"]["name"] == "b"
    assert list(found["deployments"]) == ["b", "a"]


async def test_kinds_that_have_no_object_yet_have_an_empty_status() -> None:
    custom = box("deployments: [{image: i}]", "{{ children.deployment.status.readyReplicas | default(0) }}")

    found = await read(custom)

    assert found == {"deployment": {"metadata": {}, "status": {}}, "deployments": {}}
    result = StatusFields(custom.status, "status").evaluate_fields(_scope(found))
    assert result.apply_to_status({}) == {"x0": 0}


async def test_an_object_without_a_status_has_an_empty_one() -> None:
    custom = box("deployments: [{name: a, image: i}]", "{{ children.deployment.status.readyReplicas | default(0) }}")

    found = await read(custom, live("Deployment", "a", spec={"replicas": 2}))

    assert found["deployment"]["status"] == {}
    assert found["deployment"]["spec"] == {"replicas": 2}


async def test_only_kinds_that_the_status_names_are_read() -> None:
    custom = box(
        "deployments: [{name: a, image: i}]\nservices: [{name: s, port: 80}]\nconfigMaps: [{name: c}]",
        "{{ children.service.metadata.name }}",
        "{{ metadata.name }}",
    )
    shelf = Shelf()

    await children_of(custom).read(OWNER, list_children(custom), shelf)

    assert shelf.reads == [("Service", "shop/s")]
    assert children_of(custom).kinds == {GroupVersionKind("", "v1", "Service")}


async def test_a_word_that_is_computed_reads_all_kinds_that_are_declared() -> None:
    custom = box("deployments: [{image: i}]\nservices: [{port: 80}]", "{{ children[spec.kind].status }}")

    assert {gvk.kind for gvk in children_of(custom).kinds} == {"Deployment", "Service"}


async def test_names_of_other_namespaces_have_the_namespace_before_them() -> None:
    custom = box(
        "configMaps: [{name: a, namespace: other}, {name: a}, {name: a, namespace: third}]", "{{ children.configMaps }}"
    )
    objects = [live("ConfigMap", "a", namespace=each, api_version="v1") for each in ("shop", "other", "third")]

    found = await read(custom, *objects)

    assert list(found["configMaps"]) == ["other/a", "a", "third/a"]
    assert found["configMap"]["metadata"]["namespace"] == "other"


async def test_custom_kinds_have_a_plural_and_several_of_them_the_kind_before_the_name() -> None:
    one = "{apiVersion: example.com/v1, kind: Door, name: a}"
    other = "{apiVersion: example.com/v1, kind: Wall, name: a}"
    objects = [live(kind, "a", api_version="example.com/v1") for kind in ("Door", "Wall")]

    alone = await read(box(f"custom: [{one}]", "{{ children.customs }}"), *objects)
    both = await read(box(f"custom: [{one}, {other}]", "{{ children.custom.status }}"), *objects)

    assert list(alone["customs"]) == ["a"]
    assert list(both["customs"]) == ["Door/a", "Wall/a"]
    assert both["custom"]["kind"] == "Door"


async def test_children_of_a_kind_that_is_not_declared_are_refused_when_the_file_is_loaded() -> None:
    errors = find_errors('status: {fields: [{path: x, value: "{{ children.deployment.status }}"}]}')

    assert len(errors) == 1
    assert "declare no deployments" in errors[0]


async def test_nothing_of_a_secret_can_be_read_out() -> None:
    custom = _with_secret()
    applied = {"kubectl.kubernetes.io/last-applied-configuration": '{"data": {"token": "aHVudGVyMg=="}}'}
    secret = live("Secret", "a", api_version="v1", data={"token": "aHVudGVyMg=="})
    secret["metadata"]["annotations"] = applied

    found = await read(custom, secret)
    text = compile_expression("{{ children.secret.data.token }} {{ children.secrets | toJSON }}", where="x")

    assert "aHVudGVyMg" not in repr(found)
    assert isinstance(text.render({"children": found}), Sensitive)
    assert found["secret"]["data"] == {"token": Sensitive("aHVudGVyMg==")}
    assert str(found["secret"]["data"]["token"]) == MASK
    assert secret["data"] == {"token": "aHVudGVyMg=="}


async def test_what_is_not_wanted_is_shown_as_long_as_it_is_ours() -> None:
    custom = box("deployments: [{name: a, image: i}]", "{{ children.deployments }}")

    assert list((await read(custom, live("Deployment", "a"), unwanted="a"))["deployments"]) == ["a"]
    assert list((await read(custom, foreign("Deployment", "a"), unwanted="a"))["deployments"]) == []
    assert list((await read(custom, foreign("Deployment", "a")))["deployments"]) == ["a"]


async def test_variants_of_one_object_are_one_child() -> None:
    custom = box(
        """
deployments:
  - {name: a, image: i, when: [{field: spec.x}]}
  - {name: a, image: j, when: [{field: spec.x, notExists: true}]}
""",
        "{{ children.deployments }}",
    )

    shelf = Shelf(live("Deployment", "a"))
    found = await children_of(custom).read(OWNER, list_children(custom), shelf)

    assert list(found["deployments"]) == ["a"]
    assert shelf.reads == [("Deployment", "shop/a")]


async def test_a_kind_that_is_not_served_has_no_children() -> None:
    custom = box(
        "custom: [{apiVersion: cert-manager.io/v1, kind: Certificate, name: a}]", "{{ children.custom.status }}"
    )

    assert await read(custom) == {"custom": {"metadata": {}, "status": {}}, "customs": {}}


async def test_a_read_that_is_refused_is_no_absence() -> None:
    custom = box("deployments: [{name: forbidden, image: i}]", "{{ children.deployment.status }}")

    with pytest.raises(ForbiddenError):
        await read(custom)


def _with_secret() -> CustomResource:
    return load_custom_resource("""
onCreate:
  secrets: [{name: a, stringData: {token: x}}]
status:
  fields: [{path: x, value: "{{ children.secret.metadata.name }}"}]
""")


def _scope(children: dict[str, Any]) -> Scope:
    return Scope({"metadata": {}, "spec": {}, "status": {}, "children": children}, EvaluationEnvironment())


async def test_values_of_secrets_are_hidden_in_what_a_controller_reports() -> None:
    values = SecretValues()
    values.add_text("s3cret-of-the-pod")
    custom = box("deployments: [{name: a, image: i}]", "{{ children.deployment.status.conditions[0].message }}")
    condition = {"type": "ReplicaFailure", "message": 'pods "a" is forbidden: env is s3cret-of-the-pod'}
    deployment = live("Deployment", "a", status={"conditions": [condition, "odd", {"message": 1}]})

    found = await children_of(custom).read(OWNER, list_children(custom), Shelf(deployment), values)

    condition, *odd = found["deployment"]["status"]["conditions"]
    assert condition == {"type": "ReplicaFailure", "message": 'pods "a" is forbidden: env is ***'}
    assert odd == ["odd", {"message": 1}]
