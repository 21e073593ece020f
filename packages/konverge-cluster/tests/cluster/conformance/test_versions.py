"""Versions of a custom resource without a webhook: pruning and defaults by the stored and the served version."""

from __future__ import annotations

import pytest

from konverge.errors import ServerError
from konverge.kube import GroupVersionKind, Object, ObjectKey
from konverge_cluster.testing import Cluster
from tests.cluster.conformance.objects import CUSTOM_RESOURCE_DEFINITION, new

pytestmark = pytest.mark.anyio

TEXT: Object = {"type": "string"}
V1_FIELDS: Object = {"a": TEXT, "only1": TEXT, "default1": {"type": "string", "default": "one"}}
V2_FIELDS: Object = {"a": TEXT, "only2": TEXT, "default2": {"type": "string", "default": "two"}}


class Gizmos:
    """A kind with two served versions whose schemas differ; objects are stored as v2."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        # A group of its own for each test: the definition changes.
        self.group = f"{cluster.namespace}.konverge.test"
        self.v1, self.v2 = (GroupVersionKind(self.group, version, "Gizmo") for version in ("v1", "v2"))

    def definition(self, v2_fields: Object = V2_FIELDS, *, stored: str = "v2") -> Object:
        versions = []
        for name, fields in (("v1", V1_FIELDS), ("v2", v2_fields)):
            spec = {"type": "object", "properties": fields}
            schema = {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}}
            versions.append({"name": name, "served": True, "storage": name == stored, "schema": schema})
        return {
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": f"gizmos.{self.group}"},
            "spec": {
                "group": self.group,
                "scope": "Namespaced",
                "names": {"kind": "Gizmo", "plural": "gizmos"},
                "versions": versions,
            },
        }

    async def create(self, gvk: GroupVersionKind, **spec: str) -> Object:
        created = await self._cluster.client.create(new(gvk, self._cluster.namespace, "one", spec=spec))
        found: Object = created["spec"]
        return found

    async def get(self, gvk: GroupVersionKind) -> Object:
        spec: Object = (await self._cluster.client.get(gvk, ObjectKey(self._cluster.namespace, "one")))["spec"]
        return spec

    async def list_specs(self, gvk: GroupVersionKind) -> list[Object]:
        found = await self._cluster.client.list(gvk, namespace=self._cluster.namespace)
        return [item["spec"] for item in found.items]

    async def until(self, gvk: GroupVersionKind, expected: Object) -> None:
        """Wait until the object has that spec; the real server needs a moment after a change of the definition."""

        async def check() -> bool:
            return await self.get(gvk) == expected

        await self._cluster.eventually(check, describe=f"{gvk.version} is {expected}")


@pytest.fixture
async def gizmos(cluster: Cluster) -> Gizmos:
    gizmos = Gizmos(cluster)
    await cluster.install(gizmos.definition())
    return gizmos


async def test_what_the_stored_version_does_not_know_is_lost(gizmos: Gizmos) -> None:
    created = await gizmos.create(gizmos.v1, a="x", only1="y", only2="z")

    assert created == {"a": "x"}
    assert await gizmos.get(gizmos.v1) == {"a": "x"}
    assert await gizmos.get(gizmos.v2) == {"a": "x", "default2": "two"}


async def test_what_the_served_version_does_not_know_is_not_shown(gizmos: Gizmos) -> None:
    created = await gizmos.create(gizmos.v2, a="x", only1="y", only2="z")

    assert created == {"a": "x", "only2": "z", "default2": "two"}
    assert await gizmos.get(gizmos.v1) == {"a": "x"}
    assert await gizmos.list_specs(gizmos.v1) == [{"a": "x"}]
    assert await gizmos.list_specs(gizmos.v2) == [created]


async def test_a_write_in_another_version_loses_the_rest(gizmos: Gizmos, cluster: Cluster) -> None:
    await gizmos.create(gizmos.v2, a="x", only2="z")

    key = ObjectKey(cluster.namespace, "one")
    await cluster.client.patch(gizmos.v1, key, {"spec": {"a": "new"}}, patch_type="merge", field_manager="ann")

    assert await gizmos.get(gizmos.v2) == {"a": "new", "default2": "two"}


async def test_stored_objects_follow_a_changed_schema(gizmos: Gizmos, cluster: Cluster) -> None:
    await gizmos.create(gizmos.v2, a="x", only2="z")

    later = {"a": TEXT, "default2": V2_FIELDS["default2"], "late": {"type": "string", "default": "later"}}
    await cluster.client.apply(gizmos.definition(later), field_manager="konverge-testing", force=True)

    await gizmos.until(gizmos.v2, {"a": "x", "default2": "two", "late": "later"})
    assert await gizmos.get(gizmos.v1) == {"a": "x"}


async def test_a_stored_object_keeps_its_version_until_it_is_written(gizmos: Gizmos, cluster: Cluster) -> None:
    await gizmos.create(gizmos.v2, a="x", only2="z")

    await cluster.client.apply(gizmos.definition(stored="v1"), field_manager="konverge-testing", force=True)

    async def is_stored_as_v1() -> bool:
        definition = await cluster.client.get(CUSTOM_RESOURCE_DEFINITION, ObjectKey("", f"gizmos.{gizmos.group}"))
        return bool(definition["status"]["storedVersions"] == ["v2", "v1"])

    await cluster.eventually(is_stored_as_v1)
    assert await gizmos.get(gizmos.v2) == {"a": "x", "only2": "z", "default2": "two"}
    assert await gizmos.get(gizmos.v1) == {"a": "x"}


# Field owners in several versions

Owner = tuple[str, str, str]


class Owners:
    """Writes one object and shows its managers as (manager, operation, version)."""

    def __init__(self, cluster: Cluster, gizmos: Gizmos) -> None:
        self._client = cluster.client
        self._gizmos = gizmos
        self.key = ObjectKey(cluster.namespace, "one")

    async def merge(self, gvk: GroupVersionKind, manager: str, **spec: str) -> None:
        await self._client.patch(gvk, self.key, {"spec": spec}, patch_type="merge", field_manager=manager)

    async def apply(self, gvk: GroupVersionKind, manager: str, **spec: str) -> None:
        wanted = new(gvk, self.key.namespace, "one", spec=spec)
        await self._client.apply(wanted, field_manager=manager, force=True)

    async def list(self) -> list[Owner]:
        metadata = (await self._client.get(self._gizmos.v1, self.key))["metadata"]
        return [
            (entry["manager"], entry["operation"], entry["apiVersion"].rpartition("/")[2])
            for entry in metadata.get("managedFields") or ()
        ]


@pytest.fixture
def owners(cluster: Cluster, gizmos: Gizmos) -> Owners:
    return Owners(cluster, gizmos)


async def test_all_owners_are_forgotten_if_their_version_lacks_a_field(owners: Owners, gizmos: Gizmos) -> None:
    await owners.apply(gizmos.v1, "ann", a="x")
    assert await owners.list() == [("ann", "Apply", "v1")]

    await owners.merge(gizmos.v2, "bob", only2="z")
    assert await owners.list() == []
    await owners.merge(gizmos.v1, "bob", a="y")
    assert await owners.list() == []
    await owners.apply(gizmos.v1, "ann", a="z")
    assert ("ann", "Apply", "v1") in await owners.list()


async def test_an_apply_fails_if_the_version_of_an_owner_lacks_a_field(owners: Owners, gizmos: Gizmos) -> None:
    await owners.apply(gizmos.v1, "ann", a="x")

    for manager in ("ann", "bob"):
        with pytest.raises(ServerError) as refused:
            await owners.apply(gizmos.v2, manager, only2="z")
        assert (refused.value.code, refused.value.message) == (500, ".spec.default2: field not declared in schema")

    assert await owners.list() == [("ann", "Apply", "v1")]


async def test_owners_stay_if_their_version_knows_all_fields(cluster: Cluster, gizmos: Gizmos, owners: Owners) -> None:
    fields = {"a": TEXT, "only2": TEXT}
    await cluster.client.apply(gizmos.definition(fields), field_manager="konverge-testing", force=True)
    await owners.apply(gizmos.v1, "ann", a="x")
    await gizmos.until(gizmos.v2, {"a": "x"})

    await owners.merge(gizmos.v2, "bob", a="y")

    assert await owners.list() == [("bob", "Update", "v2")]
