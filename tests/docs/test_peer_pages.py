"""The examples for users of Metacontroller, kro and Operator SDK, and the takeover of what these tools leave."""

from __future__ import annotations

import re
import runpy
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from konverge._internal.cli.operator_file import load_operator, parse_operator_reference
from konverge.crd import crd_manifest, find_definition
from konverge.kube import GroupVersionKind, Object, ObjectKey, find_controller
from konverge.operator import Operator
from konverge_cluster.testing import Cluster
from tests.docs.known_names import is_known, list_known_names
from tests.docs.pages import REPOSITORY, find_code_blocks, load_page_operator, save_page_code
from tests.docs.test_migration_pages import find_documented_names

KRO, METACONTROLLER, TAKING_OVER = "docs/from-kro.md", "docs/from-metacontroller.md", "docs/taking-over.md"
OPERATOR_SDK = "docs/from-operator-sdk.md"
CONFIG_MAP, SERVICE = GroupVersionKind("", "v1", "ConfigMap"), GroupVersionKind("", "v1", "Service")
DEPLOYMENT = GroupVersionKind("apps", "v1", "Deployment")
BOX_PAGES = ("box-file.md", "box-schema.md", "box-functions.md", "box-simulations.md", "box-tutorial.md")
GOOD, BAD = "konverge.test/app:1", "konverge.test/never-ready:1"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("page", "headings"), [(METACONTROLLER, r"Metacontroller \| here"), (OPERATOR_SDK, r"Operator SDK \| here")]
)
def test_every_name_of_konverge_in_the_table_of_a_page_exists(page: str, headings: str) -> None:
    names = list_known_names()
    documented = find_documented_names(page, headings)

    assert len(documented) > 15
    assert {code for code in documented if not is_known(code, names)} == set()


@pytest.mark.slow
def test_every_name_of_konverge_in_the_table_of_the_page_for_kro_is_in_the_pages_of_boxes_or_in_python() -> None:
    names = list_known_names() | {"managedFields"}
    pages = "".join((REPOSITORY / "docs" / page).read_text() for page in BOX_PAGES)
    documented = find_documented_names(KRO, r"kro \| here")

    words = {word for code in documented for word in re.findall(r"[A-Za-z][\w.-]*", code)}

    assert len(documented) > 15
    assert {word for word in words if word not in pages and word.rpartition(".")[2] not in names} == set()


async def create_cache(cluster: Cluster, operator: Operator, **spec: object) -> GroupVersionKind:
    gvk = find_definition(operator.custom_resources[0]).gvk
    metadata = {"name": "main", "namespace": cluster.namespace}
    await cluster.client.create(
        {"apiVersion": gvk.api_version, "kind": gvk.kind, "metadata": metadata, "spec": {"image": GOOD, **spec}}
    )
    return gvk


async def read_images(cluster: Cluster) -> dict[str, str]:
    deployments = (await cluster.client.list(DEPLOYMENT, namespace=cluster.namespace)).items
    return {obj["metadata"]["name"]: obj["spec"]["template"]["spec"]["containers"][0]["image"] for obj in deployments}


@pytest.mark.anyio
async def test_the_shards_of_the_page_for_metacontroller_roll_out_one_by_one(cluster: Cluster, tmp_path: Path) -> None:
    operator = load_page_operator(METACONTROLLER, tmp_path)

    async def has_images(**images: str) -> bool:
        return await read_images(cluster) == {f"main-{name[1:]}": image for name, image in images.items()}

    async def patch(**spec: object) -> None:
        await cluster.client.patch(cache, ObjectKey(cluster.namespace, "main"), {"spec": spec}, patch_type="merge")

    async def has_ready(number: int) -> bool:
        live = await cluster.client.get(cache, ObjectKey(cluster.namespace, "main"))
        return bool(live["status"]["ready"] == number)

    async with cluster.run_operator(operator):
        cache = await create_cache(cluster, operator, shards=3)
        await cluster.wait_for_condition(cache, "main", reason="Healthy")
        await cluster.eventually(lambda: has_ready(3), describe="three shards are ready")
        await patch(image=BAD)
        await cluster.eventually(lambda: has_images(_0=BAD, _1=GOOD, _2=GOOD), describe="the first shard changes")
        blocked = await cluster.wait_for_condition(cache, "main", status="False", reason="Blocked")
        await cluster.wait_until_steady(operator.name)
        stopped = await read_images(cluster)
        await patch(image=GOOD, shards=1)
        await cluster.wait_for_condition(cache, "main", reason="Healthy")
        await cluster.eventually(lambda: has_images(_0=GOOD), describe="two shards are gone")
        await cluster.eventually(lambda: has_ready(1), describe="one shard is ready")

    assert stopped == {"main-0": BAD, "main-1": GOOD, "main-2": GOOD}
    assert 'waiting for data "shard 0"' in blocked.message


@dataclass(frozen=True)
class Remains:
    """How a tool leaves its objects: the manager, how it writes, and what it adds."""

    manager: str
    applies: bool
    reference: str = "controller"
    labels: dict[str, str] = field(default_factory=dict)
    annotations: dict[str, str] = field(default_factory=dict)


KRO_LABELS = {
    "app.kubernetes.io/managed-by": "kro",
    "applyset.kubernetes.io/part-of": "applyset-Zm9v-v1",
    "kro.run/instance-name": "main",
    "kro.run/node-id": "shard",
    "kro.run/owned": "true",
}
REMAINS = {
    "metacontroller": Remains(
        "metacontroller",
        applies=False,
        labels={"controller-uid": "uid"},
        annotations={"metacontroller.k8s.io/last-applied-configuration": "{}"},
    ),
    "metacontroller-ssa": Remains("metacontroller", applies=True, labels={"controller-uid": "uid"}),
    "kro": Remains("kro.run/applyset", applies=True, reference="none", labels=KRO_LABELS),
    "helm-operator": Remains(
        "helm-operator",
        applies=False,
        labels={"app.kubernetes.io/managed-by": "Helm"},
        annotations={"meta.helm.sh/release-name": "main"},
    ),
    "ansible-operator": Remains("OpenAPI-Generator", applies=False, reference="plain"),
    "go-operator": Remains("manager", applies=False, labels={"app.kubernetes.io/created-by": "controller"}),
}


@pytest.mark.anyio
@pytest.mark.parametrize("tool", REMAINS)
async def test_objects_that_another_tool_leaves_are_taken_over_as_the_page_says(
    cluster: Cluster, tmp_path: Path, tool: str
) -> None:
    remains, operator = REMAINS[tool], load_page_operator(METACONTROLLER, tmp_path)
    release: dict[str, Any] = runpy.run_path(str(save_page_code(TAKING_OVER, tmp_path, "release.py")))
    key = ObjectKey(cluster.namespace, "main-0")
    await cluster.install(crd_manifest(operator.custom_resources[0]))
    cache = await create_cache(cluster, operator)
    owner = await cluster.client.get(cache, ObjectKey(cluster.namespace, "main"))
    left = await leave_deployment(cluster, owner, remains)

    async with cluster.run_operator(operator):
        await cluster.wait_for_condition(cache, "main", reason="Healthy")
        taken = await cluster.client.get(DEPLOYMENT, key)
        await release["release_kind"](cluster.client, DEPLOYMENT, cluster.namespace, "Cache", remains.manager)
        await cluster.wait_until_steady(operator.name)
        released = await cluster.client.get(DEPLOYMENT, key)
        await release["release_kind"](cluster.client, DEPLOYMENT, cluster.namespace, "Cache", remains.manager)
        again = await cluster.client.get(DEPLOYMENT, key)
    pods = released["spec"]["template"]

    assert find_controller(taken)["uid"] == owner["metadata"]["uid"]  # type: ignore[index]
    assert released["metadata"]["uid"] == left["metadata"]["uid"], "it is the same object"
    assert "MODE" in str(taken["spec"]["template"]), "a field that the new operator does not declare stays at first"
    assert "MODE" not in str(pods)
    assert pods["spec"]["containers"][0]["image"] == GOOD
    assert set(released["metadata"]["labels"]) == {"cache", "shard"}
    assert set(released["metadata"].get("annotations", {})) <= {"deployment.kubernetes.io/revision"}
    assert find_controller(released)["uid"] == owner["metadata"]["uid"]  # type: ignore[index]
    assert not [
        entry
        for entry in released["metadata"]["managedFields"]
        if entry["manager"] in (remains.manager, "released-fields") and "subresource" not in entry
    ]
    assert again["metadata"]["resourceVersion"] == released["metadata"]["resourceVersion"]


async def leave_deployment(cluster: Cluster, owner: Object, remains: Remains) -> Object:
    """Create the Deployment main-0 as the tool has left it, with a variable that the new operator does not declare."""
    labels = {"cache": "main", "shard": "0"}
    container = {"name": "cache", "image": GOOD, "env": [{"name": "MODE", "value": "fast"}]}
    metadata: Object = {
        "name": "main-0",
        "namespace": cluster.namespace,
        "labels": {**labels, **remains.labels},
        "annotations": dict(remains.annotations),
    }
    reference = {
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": owner["metadata"]["name"],
        "uid": owner["metadata"]["uid"],
    }
    if remains.reference != "none":
        is_controller = {"controller": True, "blockOwnerDeletion": True} if remains.reference == "controller" else {}
        metadata["ownerReferences"] = [reference | is_controller]
    deployment = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": metadata,
        "spec": {
            "replicas": 1,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}},
        },
    }
    if remains.applies:
        return (await cluster.client.apply(deployment, field_manager=remains.manager)).object
    return await cluster.client.create(deployment, field_manager=remains.manager)


def load_page_box(tmp_path: Path) -> Operator:
    file = tmp_path / "websites.yaml"
    file.write_text(find_code_blocks(KRO, "yaml")[0])
    return load_operator(parse_operator_reference(str(file)))


@pytest.mark.anyio
async def test_the_box_of_the_page_for_kro_takes_over_what_kro_leaves(cluster: Cluster, tmp_path: Path) -> None:
    release: dict[str, Any] = runpy.run_path(str(save_page_code(TAKING_OVER, tmp_path, "release.py")))
    box, key = load_page_box(tmp_path), ObjectKey(cluster.namespace, "main")
    website = GroupVersionKind("example.com", "v1", "Website")
    await cluster.install(*map(crd_manifest, box.defined_resources))

    async def patch(**spec: object) -> None:
        await cluster.client.patch(website, key, {"spec": spec}, patch_type="merge")

    left = await leave_website(cluster)
    async with cluster.run_operator(box):
        await cluster.wait_for_condition(website, "main", status="False", reason="Blocked")
        platform: Object = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": "platform"},
            "data": {"tier": "gold"},
        }
        platform["metadata"] |= {"namespace": cluster.namespace}
        await cluster.client.create(platform)
        await cluster.wait_for_condition(website, "main")
        address = (await cluster.client.get(website, key))["status"]["address"]
        for kind in (DEPLOYMENT, SERVICE):
            await release["release_kind"](cluster.client, kind, cluster.namespace, "Website", "kro.run/applyset")
        await cluster.wait_until_steady(box.name)
        taken = [await cluster.client.get(GroupVersionKind.of(obj), ObjectKey.of(obj)) for obj in left]
        await patch(regions=["us"], public=False)
        await cluster.eventually(lambda: has_only(cluster, "main-us"), describe="the region and the Service are gone")
        await cluster.client.patch(website, key, {"metadata": {"finalizers": None}}, patch_type="merge")
        await cluster.client.delete(website, key)
        await cluster.eventually(lambda: has_only(cluster), describe="the objects are deleted with their owner")

    assert [obj["metadata"]["uid"] for obj in taken] == [obj["metadata"]["uid"] for obj in left]
    assert not re.search("kro", str([(obj["metadata"]["labels"], obj["metadata"]["managedFields"]) for obj in taken]))
    assert address == taken[-1]["spec"]["clusterIP"]


async def has_only(cluster: Cluster, *deployments: str) -> bool:
    names = {
        obj["metadata"]["name"] for obj in (await cluster.client.list(DEPLOYMENT, namespace=cluster.namespace)).items
    }
    services = (await cluster.client.list(SERVICE, namespace=cluster.namespace)).items
    return names == set(deployments) and not services


async def leave_website(cluster: Cluster) -> list[Object]:
    """Create an instance, two Deployments and a Service as kro has left them."""
    metadata: Object = {
        "name": "main",
        "namespace": cluster.namespace,
        "labels": {"kro.run/owned": "true", "applyset.kubernetes.io/id": "applyset-Zm9v-v1"},
        "annotations": {"applyset.kubernetes.io/tooling": "kro/v0.9.3"},
        "finalizers": ["kro.run/finalizer"],
    }
    spec = {"image": GOOD, "regions": ["eu", "us"], "public": True}
    website = {"apiVersion": "example.com/v1", "kind": "Website", "metadata": metadata, "spec": spec}
    await cluster.client.apply(website, field_manager="kro.run/labeller")
    left: list[Object] = []
    for name in ("main-eu", "main-us", "main"):
        labels, kind = {"web": name, "site": "main"}, DEPLOYMENT if "-" in name else SERVICE
        template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "web", "image": GOOD}]}}
        specs: dict[GroupVersionKind, Object] = {
            DEPLOYMENT: {"selector": {"matchLabels": {"web": name}}, "template": template},
            SERVICE: {"selector": {"site": "main"}, "ports": [{"port": 80}]},
        }
        metadata = {"name": name, "namespace": cluster.namespace, "labels": KRO_LABELS}
        obj = {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": metadata, "spec": specs[kind]}
        left.append((await cluster.client.apply(obj, field_manager="kro.run/applyset")).object)
    return left


@pytest.mark.anyio
async def test_the_component_of_the_page_for_operator_sdk_follows_its_owner(cluster: Cluster, tmp_path: Path) -> None:
    operator = load_page_operator(OPERATOR_SDK, tmp_path)
    async with cluster.run_operator(operator):
        cache = await create_cache(cluster, operator)
        key = ObjectKey(cluster.namespace, "main")
        await cluster.wait_for_condition(cache, "main", reason="Healthy")
        await cluster.client.patch(cache, key, {"spec": {"size": 2}}, patch_type="merge")

        async def has_grown() -> bool:
            return bool((await cluster.client.get(DEPLOYMENT, key))["spec"]["replicas"] == 2)

        await cluster.eventually(has_grown, describe="the Deployment has two replicas")
        service = await cluster.client.get(SERVICE, key)

    assert service["spec"]["selector"] == {"cache": "main"}


@pytest.mark.anyio
async def test_the_fields_are_released_although_another_client_writes_meanwhile(
    cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    release: dict[str, Any] = runpy.run_path(str(save_page_code(TAKING_OVER, tmp_path, "release.py")))
    gvk, key, client = GroupVersionKind("", "v1", "ConfigMap"), ObjectKey(cluster.namespace, "notes"), cluster.client
    metadata = {"name": "notes", "namespace": cluster.namespace}
    notes = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}
    await client.create(notes | {"data": {"old": "1"}}, field_manager="metacontroller")
    await client.apply(notes | {"data": {"new": "2"}}, field_manager="Cache/server/uid")
    read, reads = client.get, 0

    async def read_and_write(*arguments: Any) -> Object:
        nonlocal reads
        reads += 1
        obj = await read(*arguments)
        if reads == 1:
            await client.patch(gvk, key, {"data": {"other": "3"}}, patch_type="merge", field_manager="other")
        return obj

    with monkeypatch.context() as patched:
        patched.setattr(client, "get", read_and_write)
        await release["release_kind"](client, gvk, cluster.namespace, "Cache", "metacontroller")

    assert (await client.get(gvk, key))["data"] == {"new": "2", "other": "3"}
    assert reads == 3, "read before the conflict, after it, and at the end"
