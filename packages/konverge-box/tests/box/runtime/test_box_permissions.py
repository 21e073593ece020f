"""The permissions of a box: derived from the file alone, and sufficient on the real API server."""

from typing import Any

import pytest

from konverge._internal.operator.permission_derivation import RequiredPermissions, RuntimeFeatures, derive_permissions
from konverge.operator import RunOptions
from konverge_box._internal.file import OperatorBox, load_box
from konverge_box._internal.runtime import build_box_operator
from konverge_cluster.testing import Cluster
from tests.box.running.box_harness import (
    CONFIG_MAP,
    EXAMPLES,
    SHELF,
    BoxHarness,
    build_box,
    build_config_map,
    build_custom_resource,
)
from tests.operator.test_permissions_granted import acting_as, granting_permissions, takes_effect

LATE = {"name": "{{ metadata.name }}", "image": "konverge.test/never-ready:1"}


def permissions(box: OperatorBox) -> RequiredPermissions:
    return derive_permissions(build_box_operator(box).registered.declaration)


def verbs(found: RequiredPermissions, resource: str) -> set[str]:
    rules = (*found.rules, *found.cluster_rules)
    return {verb for rule in rules if resource in rule.resources for verb in rule.verbs}


@pytest.mark.parametrize("file", sorted(EXAMPLES.glob("*/box.yaml")), ids=lambda file: file.parent.name)
def test_nothing_of_the_examples_is_left_to_find_out(file: Any) -> None:
    assert permissions(load_box(file.read_bytes())).gaps == ()


def test_each_step_brings_its_rights() -> None:
    job = {"name": "sweep", "image": "busybox:1", "restartPolicy": "Never"}
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "x"}
    box = build_box(
        shelf=build_custom_resource(
            "Shelf",
            cross=[
                {"crd": "book", "selector": {"name": "x"}},
                {"apiVersion": "v1", "kind": "Node", "as": "node", "selector": {"name": "x"}},
            ],
            external=[
                {"name": "asked", "url": "https://example.com", "auth": {"secretRef": {"name": "a", "key": "b"}}}
            ],
            onReconcile={"roleBindings": [{"roleRef": role}]},
            onDelete={"groups": [{"run": [job], "delete": {"configMaps": [{"name": "x"}]}}]},
        ),
        book=build_custom_resource("Book"),
    )  # fmt: skip

    found = permissions(box)

    read = {"get", "list", "watch"}
    assert verbs(found, "books") == {*read, "patch"}  # to remove the finalizer that an earlier file has added
    assert verbs(found, "nodes") == read
    assert verbs(found, "secrets") == read
    assert verbs(found, "shelfs") == {*read, "patch"}
    assert verbs(found, "configmaps") == {*read, "delete"}
    assert verbs(found, "jobs") == {*read, "create", "delete"}
    assert verbs(found, "rolebindings") == {*read, "create", "patch", "delete"}
    assert verbs(found, "roles") == {"bind"}


def test_a_workload_of_a_box_brings_the_reads_that_explain_it_when_it_is_late() -> None:
    found = permissions(build_box(shelf=build_custom_resource("Shelf", onReconcile={"deployments": [LATE]})))

    assert verbs(found, "pods") == {"list"}
    assert verbs(found, "persistentvolumeclaims") == {"get"}


@pytest.mark.anyio
async def test_the_condition_of_a_late_workload_of_a_box_has_the_cause(cluster: Cluster) -> None:
    library = BoxHarness(cluster)
    box = build_box(shelf=build_custom_resource("Shelf", onReconcile={"deployments": [LATE]}))

    async with library.running(box):
        await library.create(SHELF, "top")
        condition = await library.wait_for_condition(SHELF, "top", "Creating", message="(Pod top-")

    assert 'container main: ImagePullBackOff, image "konverge.test/never-ready:1"' in condition.message


@pytest.mark.anyio
@pytest.mark.parametrize("cluster_kind", [pytest.param("real", marks=pytest.mark.real)])
async def test_what_is_derived_is_enough(cluster: Cluster) -> None:
    library = BoxHarness(cluster)
    secret = {"name": "{{ metadata.name }}-key", "once": True, "stringData": {"key": "{{ randomAlphanumeric(8) }}"}}
    box = build_box(
        shelf=build_custom_resource(
            "Shelf",
            finalizers=["boxes.konverge.test/shelf"],
            cross=[{"apiVersion": "v1", "kind": "ServiceAccount", "as": "seen", "selector": {"name": "default"}}],
            onCreate={"secrets": [secret]},
            onReconcile={"configMaps": [{**build_config_map(a="{{ spec.word }}"), "when": [{"field": "spec.word"}]}]},
            onDelete={"groups": [{"delete": {"configMaps": [{"name": "{{ metadata.name }}"}]}}]},
        )
    )
    found = derive_permissions(build_box_operator(box).registered.declaration, RuntimeFeatures())
    async with (
        granting_permissions(cluster, found, cluster.namespace),
        acting_as(cluster, "bakery") as client,
    ):
        await takes_effect(cluster, client, found, cluster.namespace)
        async with library.running(box, RunOptions(namespaces=(cluster.namespace,)), client=client):
            await library.create(SHELF, "top", word="a")
            await library.wait_for_condition(SHELF, "top", "Healthy", status="True")
            await library.change(SHELF, "top", word=None)
            await library.wait_until_gone(CONFIG_MAP, "top")
            await library.change(SHELF, "top", word="b")
            await library.wait_for_data("top", a="b")
            await library.delete(SHELF, "top")
            await library.wait_until_gone(SHELF, "top")
        refused = [request for request in cluster.list_requests("restricted") if request.code == 403]
        assert refused == []
