"""Objects that a later schema forbids can still be changed elsewhere: errors of unchanged parts do not count."""

from __future__ import annotations

from typing import Any

import pytest

from konverge.errors import InvalidError
from konverge.kube import GroupVersionKind, Object, ObjectKey
from konverge_cluster.testing import Cluster
from tests.cluster.conformance.objects import new

pytestmark = pytest.mark.anyio

TEXT: Object = {"type": "string"}
ITEM: Object = {"type": "object", "properties": {"name": TEXT, "size": {"type": "integer"}}}


def fields(*, strict: bool) -> Object:
    """Return the fields of the kind, before or after the change of its definition."""
    limit = {"maximum": 5} if strict else {}
    short = {"maxLength": 3} if strict else {}
    item = {**ITEM, "properties": {"name": TEXT, "size": {"type": "integer", **limit}}}
    rule = {"x-kubernetes-validations": [{"rule": "self.low <= self.high"}]} if strict else {}
    size = {"type": "integer"}
    return {
        "count": {"type": "integer", **limit},
        "other": TEXT,
        "text": {"type": "string", **short},
        "group": {"type": "object", "properties": {"a": {"type": "integer", **limit}, "b": TEXT}},
        "free": {"type": "object", "additionalProperties": {"type": "integer", **limit}},
        "plain": {"type": "array", "items": item},
        "keyed": {
            "type": "array",
            "items": {**item, "required": ["name"]},
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["name"],
        },
        "tags": {"type": "array", "items": TEXT, **({"x-kubernetes-list-type": "set"} if strict else {})},
        "range": {"type": "object", "properties": {"low": size, "high": size, "note": TEXT}, **rule},
        "ranges": {
            "type": "array",
            "maxItems": 9,
            "items": {"type": "object", "properties": {"low": size, "high": size}, **rule},
        },
        "choice": {
            "type": "object",
            "properties": {"x": size, "y": size},
            **({"oneOf": [{"required": ["x"]}, {"required": ["y"]}]} if strict else {}),
        },
        "needed": {"type": "object", "properties": {"a": TEXT, "b": TEXT}, **({"required": ["a"]} if strict else {})},
    }


class Ratchets:
    """A kind whose schema becomes stricter."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self.gvk = GroupVersionKind(f"{cluster.namespace}.konverge.test", "v1", "Ratchet")
        self.key = ObjectKey(cluster.namespace, "one")

    def definition(self, *, strict: bool) -> Object:
        spec: Object = {"type": "object", "properties": fields(strict=strict)}
        status: Object = {"type": "object", "properties": {"count": fields(strict=strict)["count"], "other": TEXT}}
        schema = {"type": "object", "properties": {"spec": spec, "status": status}}
        version = {"name": "v1", "served": True, "storage": True, "subresources": {"status": {}}}
        return {
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": f"ratchets.{self.gvk.group}"},
            "spec": {
                "group": self.gvk.group,
                "scope": "Namespaced",
                "names": {"kind": "Ratchet", "plural": "ratchets"},
                "versions": [{**version, "schema": {"openAPIV3Schema": schema}}],
            },
        }

    async def create(self, spec: Object, status: Object | None = None) -> Object:
        """Create an object, then make the schema stricter."""
        created = await self._cluster.client.create(new(self.gvk, self._cluster.namespace, "one", spec=spec))
        if status is not None:
            patch = {"status": status}
            created = await self._cluster.client.patch(
                self.gvk, self.key, patch, subresource="status", patch_type="merge"
            )
        await self._cluster.client.apply(self.definition(strict=True), field_manager="konverge-testing", force=True)

        async def is_strict() -> bool:
            wanted = new(self.gvk, self._cluster.namespace, "probe", spec={"count": 100})
            try:
                await self._cluster.client.create(wanted, dry_run=True)
            except InvalidError:
                return True
            return False

        await self._cluster.eventually(is_strict, describe="the server uses the stricter schema")
        return created

    async def change(self, spec: Object, *, subresource: str = "") -> list[str]:
        """Merge a patch into the object; return the fields of the errors, sorted."""
        body = {"status": spec} if subresource else {"spec": spec}
        try:
            await self._cluster.client.patch(self.gvk, self.key, body, subresource=subresource, patch_type="merge")
        except InvalidError as error:
            return sorted({cause.field for cause in error.causes})
        return []


@pytest.fixture
async def ratchets(cluster: Cluster) -> Ratchets:
    kind = Ratchets(cluster)
    await cluster.install(kind.definition(strict=False))
    return kind


OLD: Object = {
    "count": 10,
    "other": "x",
    "text": "long text",
    "group": {"a": 10, "b": "x"},
    "free": {"a": 10},
    "plain": [{"name": "a", "size": 10}, {"name": "b", "size": 1}],
    "keyed": [{"name": "a", "size": 10}, {"name": "b", "size": 1}],
    "tags": ["a", "a"],
    "range": {"low": 9, "high": 1, "note": "x"},
    "ranges": [{"low": 9, "high": 1}],
    "choice": {"x": 1, "y": 1},
    "needed": {"b": "x"},
}
CHANGES: dict[str, tuple[Object, list[str]]] = {
    "elsewhere": ({"other": "y"}, []),
    "the value itself": ({"count": 11}, ["spec.count"]),
    "to a valid value": ({"count": 3}, []),
    "beside the value": ({"group": {"b": "y"}}, []),
    "the value in a group": ({"group": {"a": 11}}, ["spec.group.a"]),
    "another key": ({"free": {"b": 1}}, []),
    "another invalid key": ({"free": {"b": 11}}, ["spec.free.b"]),
    "an item of an atomic list": (
        {"plain": [{"name": "a", "size": 10}, {"name": "b", "size": 2}]},
        ["spec.plain[0].size"],
    ),
    "an item of a keyed list": ({"keyed": [{"name": "a", "size": 10}, {"name": "b", "size": 2}]}, []),
    "the order of a keyed list": ({"keyed": [{"name": "b", "size": 1}, {"name": "a", "size": 10}]}, []),
    "an invalid item of a keyed list": (
        {"keyed": [{"name": "a", "size": 10}, {"name": "b", "size": 20}]},
        ["spec.keyed[1].size"],
    ),
    "a set with duplicates": ({"tags": ["a", "a", "b"]}, []),
    "more duplicates": ({"tags": ["a", "a", "b", "b"]}, []),
    "a field of a rule": ({"range": {"low": 8}}, ["spec.range"]),
    "beside the fields of a rule": ({"range": {"note": "y"}}, ["spec.range"]),
    "another item with a rule": ({"ranges": [{"low": 9, "high": 1}, {"low": 1, "high": 2}]}, ["spec.ranges[0]"]),
    "within a choice": ({"choice": {"x": 2}}, ["<nil>"]),
    "within an object that lacks a field": ({"needed": {"b": "y"}}, ["<nil>", "spec.needed.a"]),
    "the type of the number": ({"count": 10.0}, ["spec.count"]),
}


@pytest.mark.parametrize("change", CHANGES)
async def test_only_changed_parts_are_validated_again(ratchets: Ratchets, change: str) -> None:
    await ratchets.create(OLD)
    patch, errors = CHANGES[change]

    assert await ratchets.change(patch) == errors


async def test_a_rule_that_does_not_hold_is_a_warning_where_nothing_changes(
    ratchets: Ratchets, caplog: pytest.LogCaptureFixture
) -> None:
    await ratchets.create(OLD)

    assert await ratchets.change({"other": "y"}) == []

    warnings = [record.getMessage().partition(" warns: ")[2].partition(" (")[0] for record in caplog.records]
    rule = "Invalid value: failed rule: self.low <= self.high"
    assert sorted(filter(None, warnings)) == [f"spec.range: {rule}", f"spec.ranges[0]: {rule}"]


async def test_a_status_is_written_although_the_spec_is_invalid(ratchets: Ratchets) -> None:
    await ratchets.create(OLD, {"count": 10, "other": "x"})

    assert await ratchets.change({"other": "y"}, subresource="status") == []
    assert await ratchets.change({"count": 11}, subresource="status") == ["status.count"]


async def test_a_spec_is_written_although_the_status_is_invalid(ratchets: Ratchets) -> None:
    await ratchets.create({"count": 1}, {"count": 10})

    assert await ratchets.change({"count": 2}) == []


async def test_metadata_of_an_invalid_object_can_change(ratchets: Ratchets, cluster: Cluster) -> None:
    created = await ratchets.create(OLD)

    patched = await cluster.client.patch(
        ratchets.gvk, ratchets.key, {"metadata": {"labels": {"a": "b"}}}, patch_type="merge"
    )
    same = await cluster.client.update(patched)

    assert same["metadata"]["resourceVersion"] == patched["metadata"]["resourceVersion"]
    assert patched["spec"] == created["spec"]


async def test_a_new_object_is_validated_whole(ratchets: Ratchets, cluster: Cluster) -> None:
    await ratchets.create({"count": 1})
    wanted: dict[str, Any] = new(ratchets.gvk, cluster.namespace, "two", spec=OLD)

    with pytest.raises(InvalidError) as refused:
        await cluster.client.create(wanted)

    assert len(refused.value.causes) > 5
