"""Claims bind to the smallest volume of their class that is large enough; without one they wait."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, suppress
from typing import Any

import pytest

from konverge.errors import ForbiddenError, InvalidError, NotFoundError
from konverge.kube import GroupVersionKind, Object, ObjectKey
from konverge_cluster.testing import Cluster
from tests.cluster.conformance.objects import POD, new, pod_spec

pytestmark = pytest.mark.anyio

CLAIM = GroupVersionKind("", "v1", "PersistentVolumeClaim")
VOLUME = GroupVersionKind("", "v1", "PersistentVolume")
STORAGE_CLASS = GroupVersionKind("storage.k8s.io", "v1", "StorageClass")
BOUND_BY_CONTROLLER = "pv.kubernetes.io/bound-by-controller"


class Disks:
    """Volumes and claims of one test; volumes have no namespace, so they get a class and names of their own."""

    def __init__(self, cluster: Cluster, closing: AsyncExitStack) -> None:
        self._cluster = cluster
        self._closing = closing
        self.namespace = cluster.namespace
        self.storage_class = f"{cluster.namespace}-class"

    async def volume(
        self,
        name: str,
        size: str = "1Gi",
        *,
        labels: dict[str, str] | None = None,
        phase: str = "Available",
        **spec: Any,
    ) -> str:
        """Create a volume and wait until it has the phase, unless that is empty; return its name."""
        full_name = f"{self.namespace}-{name}"
        body: Object = {
            "apiVersion": "v1",
            "kind": "PersistentVolume",
            "metadata": {"name": full_name, "labels": labels or {}},
            "spec": {
                "capacity": {"storage": size},
                "accessModes": ["ReadWriteOnce"],
                "storageClassName": self.storage_class,
                "persistentVolumeReclaimPolicy": "Retain",
                "hostPath": {"path": f"/tmp/{full_name}"},
                **spec,
            },
        }
        await self._cluster.client.create(body)
        self._closing.push_async_callback(self._delete, VOLUME, full_name)
        if phase:
            await self.wait_for_volume(name, phase)
        return full_name

    async def add_class(self, name: str, **fields: Any) -> str:
        """Create a storage class without a provisioner."""
        full_name = f"{self.namespace}-{name}"
        annotations = fields.pop("annotations", {})
        body: Object = {
            "apiVersion": "storage.k8s.io/v1",
            "kind": "StorageClass",
            "metadata": {"name": full_name, "annotations": annotations},
            "provisioner": "kubernetes.io/no-provisioner",
            **fields,
        }
        await self._cluster.client.create(body)
        self._closing.push_async_callback(self._delete, STORAGE_CLASS, full_name)
        return full_name

    async def _delete(self, kind: GroupVersionKind, name: str) -> None:
        try:
            await self._cluster.client.delete(kind, ObjectKey("", name))
        except NotFoundError:
            return
        if kind == VOLUME:
            patch: Object = {"metadata": {"finalizers": None}}
            try:
                await self._cluster.client.patch(kind, ObjectKey("", name), patch, patch_type="merge")
            except NotFoundError:
                return

    async def claim(self, name: str = "data", size: str = "1Gi", **spec: Any) -> Object:
        fields = {
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": size}},
            "storageClassName": self.storage_class,
            **spec,
        }
        wanted = {key: value for key, value in fields.items() if value is not None}
        return await self._cluster.client.create(new(CLAIM, self.namespace, name, spec=wanted))

    async def get_claim(self, name: str = "data") -> Object:
        return await self._cluster.client.get(CLAIM, ObjectKey(self.namespace, name))

    async def get_volume(self, name: str) -> Object:
        return await self._cluster.client.get(VOLUME, ObjectKey("", f"{self.namespace}-{name}"))

    async def wait_for_volume(self, name: str, phase: str) -> None:
        async def has_phase() -> bool:
            return bool((await self.get_volume(name))["status"].get("phase") == phase)

        await self._cluster.eventually(has_phase, describe=f"volume {name} is {phase}")

    async def wait_for_claim(self, volume: str, name: str = "data") -> Object:
        async def is_bound() -> Object | None:
            claim = await self.get_claim(name)
            return claim if claim["status"]["phase"] == "Bound" else None

        claim = await self._cluster.eventually(is_bound, describe=f"claim {name} is bound")
        assert claim["spec"]["volumeName"] == f"{self.namespace}-{volume}"
        return claim

    async def check_waiting(self, name: str = "data") -> None:
        """Check that a claim stays without a volume while another one, created later, is bound."""
        await self.volume("control", storageClassName=f"{self.storage_class}-control")
        await self.claim("control", storageClassName=f"{self.storage_class}-control")
        await self.wait_for_claim("control", "control")
        claim = await self.get_claim(name)
        assert (claim["status"], claim["spec"].get("volumeName")) == ({"phase": "Pending"}, None)


@pytest.fixture
async def disks(cluster: Cluster) -> AsyncIterator[Disks]:
    """Return volumes and claims on a cluster without a default class, such as a new real control plane."""
    with suppress(NotFoundError):
        await cluster.client.delete(STORAGE_CLASS, ObjectKey("", "standard"))
    async with AsyncExitStack() as closing:
        yield Disks(cluster, closing)


async def test_a_claim_gets_the_smallest_volume_that_is_large_enough(disks: Disks) -> None:
    await disks.volume("large", "10Gi")
    await disks.volume("fitting", "2Gi", accessModes=["ReadWriteOnce", "ReadOnlyMany"])
    await disks.volume("small", "1Gi")
    created = await disks.claim(size="1500Mi")
    assert created["status"] == {"phase": "Pending"}

    claim = await disks.wait_for_claim("large")

    assert claim["status"] == {"phase": "Bound", "accessModes": ["ReadWriteOnce"], "capacity": {"storage": "10Gi"}}
    assert claim["metadata"]["annotations"] == {"pv.kubernetes.io/bind-completed": "yes", BOUND_BY_CONTROLLER: "yes"}


async def test_of_volumes_with_the_same_modes_the_smallest_is_taken(disks: Disks) -> None:
    await disks.volume("large", "10Gi")
    await disks.volume("fitting", "2Gi")
    await disks.claim(size="1500Mi")

    claim = await disks.wait_for_claim("fitting")

    await disks.wait_for_volume("fitting", "Bound")
    volume = await disks.get_volume("fitting")
    reference = volume["spec"]["claimRef"]
    assert {name: value for name, value in reference.items() if name != "resourceVersion"} == {
        "kind": "PersistentVolumeClaim",
        "apiVersion": "v1",
        "namespace": disks.namespace,
        "name": "data",
        "uid": claim["metadata"]["uid"],
    }
    assert volume["metadata"]["annotations"] == {BOUND_BY_CONTROLLER: "yes"}
    assert volume["metadata"]["finalizers"] == ["kubernetes.io/pv-protection"]


@pytest.mark.parametrize(
    "spec",
    [
        {"size": "2Gi"},
        {"storageClassName": "absent-class"},
        {"storageClassName": ""},
        {"storageClassName": None},
        {"accessModes": ["ReadWriteMany"]},
        {"volumeMode": "Block"},
        {"selector": {"matchLabels": {"disk": "ssd"}}},
        {"volumeName": "absent-volume"},
    ],
)
async def test_a_claim_waits_for_a_volume_that_fits(disks: Disks, spec: dict[str, Any]) -> None:
    await disks.volume("one")
    await disks.claim(**spec)

    if "volumeName" in spec:
        claim = await disks.get_claim()
        assert claim["status"] == {"phase": "Pending"}
        return
    await disks.check_waiting()


async def test_a_claim_selects_volumes_by_their_labels(disks: Disks) -> None:
    await disks.volume("one")
    await disks.volume("two", "5Gi", labels={"disk": "ssd"})
    await disks.claim(selector={"matchLabels": {"disk": "ssd"}})

    await disks.wait_for_claim("two")


async def test_a_volume_is_bound_to_one_claim_only(disks: Disks) -> None:
    await disks.volume("one")
    await disks.claim("first")
    await disks.wait_for_claim("one", "first")
    await disks.claim("data")

    await disks.check_waiting()


async def test_a_claim_is_bound_when_a_volume_appears(disks: Disks) -> None:
    await disks.claim()
    await disks.volume("late", phase="")

    await disks.wait_for_claim("late")


async def test_a_claim_can_name_its_volume(disks: Disks) -> None:
    await disks.volume("small")
    name = await disks.volume("named", "5Gi")
    await disks.claim(volumeName=name)

    claim = await disks.wait_for_claim("named")

    assert claim["metadata"]["annotations"] == {"pv.kubernetes.io/bind-completed": "yes"}
    await disks.wait_for_volume("named", "Bound")


async def test_a_named_volume_must_fit_too(disks: Disks) -> None:
    name = await disks.volume("named")
    await disks.claim(volumeName=name, size="2Gi")
    await disks.volume("control", storageClassName=f"{disks.storage_class}-control")
    await disks.claim("control", storageClassName=f"{disks.storage_class}-control")
    await disks.wait_for_claim("control", "control")

    assert (await disks.get_claim())["status"] == {"phase": "Pending"}
    assert (await disks.get_volume("named"))["status"]["phase"] == "Available"


async def test_a_volume_can_name_its_claim(disks: Disks) -> None:
    await disks.volume("small")
    reference = {"namespace": disks.namespace, "name": "data"}
    await disks.volume("kept", "5Gi", claimRef=reference, accessModes=["ReadWriteOnce", "ReadWriteMany"])
    await disks.claim("other")
    await disks.wait_for_claim("small", "other")
    await disks.claim()

    await disks.wait_for_claim("kept")


async def test_a_volume_is_released_when_its_claim_is_deleted(disks: Disks, cluster: Cluster) -> None:
    await disks.volume("one")
    await disks.claim()
    await disks.wait_for_claim("one")
    await disks.wait_for_volume("one", "Bound")

    await cluster.client.delete(CLAIM, ObjectKey(disks.namespace, "data"))

    await disks.wait_for_volume("one", "Released")
    await disks.claim("data")
    await disks.check_waiting()


async def test_a_bound_volume_is_kept_until_its_claim_is_gone(disks: Disks, cluster: Cluster) -> None:
    name = await disks.volume("one")
    await disks.claim()
    await disks.wait_for_claim("one")
    await disks.wait_for_volume("one", "Bound")

    await cluster.client.delete(VOLUME, ObjectKey("", name))
    assert "deletionTimestamp" in (await disks.get_volume("one"))["metadata"]
    await cluster.client.delete(CLAIM, ObjectKey(disks.namespace, "data"))

    async def is_gone() -> bool:
        try:
            await disks.get_volume("one")
        except NotFoundError:
            return True
        return False

    await cluster.eventually(is_gone, describe="the volume is deleted")


async def test_a_class_can_wait_for_a_pod(disks: Disks, cluster: Cluster) -> None:
    name = await disks.add_class("lazy", volumeBindingMode="WaitForFirstConsumer")
    await disks.volume("one", storageClassName=name)
    await disks.claim(storageClassName=name)
    await disks.check_waiting()

    volumes = [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]
    await cluster.client.create(new(POD, disks.namespace, "one", spec=pod_spec(volumes=volumes)))

    await disks.wait_for_claim("one")


async def test_a_default_class_is_added_to_claims_that_name_none(disks: Disks, cluster: Cluster) -> None:
    annotations = {"storageclass.kubernetes.io/is-default-class": "true"}
    name = await disks.add_class("default", annotations=annotations)

    async def is_default() -> bool:
        wanted = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
        created = await cluster.client.create(new(CLAIM, disks.namespace, "probe", spec=wanted), dry_run=True)
        return bool(created["spec"].get("storageClassName") == name)

    await cluster.eventually(is_default, describe="the server uses the default class")
    created = await disks.claim(storageClassName=None)
    explicit = await disks.claim("explicit", storageClassName="")

    assert (created["spec"]["storageClassName"], explicit["spec"]["storageClassName"]) == (name, "")


async def resize(cluster: Cluster, name: str, size: str) -> Object:
    patch: Object = {"spec": {"resources": {"requests": {"storage": size}}}}
    return await cluster.client.patch(CLAIM, ObjectKey(cluster.namespace, name), patch, patch_type="merge")


async def test_a_claim_grows_only_if_it_is_bound_and_its_class_permits_it(disks: Disks, cluster: Cluster) -> None:
    fixed = await disks.add_class("fixed")
    growing = await disks.add_class("growing", allowVolumeExpansion=True)
    for name, storage_class in (("fixed", fixed), ("growing", growing)):
        await disks.volume(name, storageClassName=storage_class)
        await disks.claim(name, storageClassName=storage_class)
    await disks.claim("waiting", "5Gi", storageClassName=growing)
    await disks.wait_for_claim("fixed", "fixed")
    await disks.wait_for_claim("growing", "growing")

    with pytest.raises(ForbiddenError) as of_fixed:
        await resize(cluster, "fixed", "2Gi")
    with pytest.raises((ForbiddenError, InvalidError)) as of_waiting:
        await resize(cluster, "waiting", "6Gi")
    grown = await resize(cluster, "growing", "2Gi")
    with pytest.raises(InvalidError) as of_shrunk:
        await resize(cluster, "growing", "512Mi")

    assert "only dynamically provisioned pvc can be resized and the storageclass" in str(of_fixed.value)
    assert "for bound claims" in str(of_waiting.value)
    assert grown["spec"]["resources"]["requests"]["storage"] == "2Gi"
    assert "field can not be less than status.capacity" in str(of_shrunk.value)


@pytest.mark.parametrize("cluster_kind", [pytest.param("embedded", marks=pytest.mark.embedded)])
async def test_the_embedded_cluster_makes_expands_and_deletes_volumes_of_its_default_class(cluster: Cluster) -> None:
    client, key = cluster.client, ObjectKey(cluster.namespace, "data")
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    await client.create(new(CLAIM, cluster.namespace, "data", spec=spec))

    async def has_size(size: str) -> Object | None:
        claim = await client.get(CLAIM, key)
        return claim if claim["status"].get("capacity") == {"storage": size} else None

    claim = await cluster.eventually(lambda: has_size("1Gi"), describe="the claim is bound")
    volume = await client.get(VOLUME, ObjectKey("", claim["spec"]["volumeName"]))
    await resize(cluster, "data", "3Gi")
    await cluster.eventually(lambda: has_size("3Gi"), describe="the claim has grown")
    await client.delete(CLAIM, key)

    async def is_gone() -> bool:
        try:
            await client.get(VOLUME, ObjectKey.of(volume))
        except NotFoundError:
            return True
        return False

    await cluster.eventually(is_gone, describe="the volume is deleted with its claim")
    assert (claim["status"]["phase"], claim["spec"]["storageClassName"]) == ("Bound", "standard")
    assert volume["spec"]["claimRef"]["uid"] == claim["metadata"]["uid"]
