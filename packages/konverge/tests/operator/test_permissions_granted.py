"""On the real API server, the derived permissions are sufficient and minimal, and missing ones are found."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from typing import Any

import pytest

from konverge._internal.client.http_transport import HttpTransport
from konverge._internal.client.kubeconfig import load_kubeconfig
from konverge._internal.component.diagnosis import CLAIM, EVENT, POD
from konverge._internal.operator.permission_check import find_missing_permissions
from konverge._internal.operator.permission_derivation import (
    DeclaredOwner,
    OperatorDeclaration,
    RequiredPermissions,
    RuntimeFeatures,
    derive_permissions,
)
from konverge._internal.operator.rbac_rules import READ, PolicyRule, ResourceAccess, build_rules
from konverge._internal.operator.role_manifests import build_role_manifests
from konverge.client import Client
from konverge.component import ReconcileContext
from konverge.crd import Metadata, crd_manifest, decode, encode, find_definition
from konverge.errors import ForbiddenError, KonvergeError, NotFoundError
from konverge.kube import GroupVersionKind, Object, ObjectKey
from konverge_cluster.testing import Cluster
from tests.operator.test_permission_derivation import Bakery, BakerySpec, Counter, Oven, delivery, kitchen, shop

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.parametrize("cluster_kind", [pytest.param("real", marks=pytest.mark.real)]),
]

ACCOUNT = "bakery"
BAKERY = OperatorDeclaration("bakery", (DeclaredOwner(Bakery, (kitchen, shop, delivery)),))
BAKERIES = find_definition(Bakery).gvk
CONFIG_MAP = GroupVersionKind("", "v1", "ConfigMap")


@asynccontextmanager
async def acting_as(cluster: Cluster, account: str) -> AsyncIterator[Client]:
    """A client with the rights of a ServiceAccount of the test's namespace."""
    config = load_kubeconfig(await cluster.write_kubeconfig(), env={})
    user = f"system:serviceaccount:{cluster.namespace}:{account}"
    transport = HttpTransport(replace(config, impersonation=(("Impersonate-User", user),)))
    async with Client(transport, user_agent="restricted") as client:
        yield client


@asynccontextmanager
async def granting_permissions(
    cluster: Cluster, permissions: RequiredPermissions, *namespaces: str
) -> AsyncIterator[None]:
    """Apply the manifests; what is not in a namespace goes at the end."""
    found = build_role_manifests(permissions, ObjectKey(cluster.namespace, ACCOUNT), namespaces)
    # Two tests at once must not share a ClusterRole.
    for obj in found:
        if "namespace" not in obj["metadata"]:
            obj["metadata"]["name"] += f"-{cluster.namespace}"
            if "roleRef" in obj:
                obj["roleRef"]["name"] += f"-{cluster.namespace}"
    for obj in found:
        await cluster.client.apply(obj, field_manager="tests")
    try:
        yield
    finally:
        for obj in found:
            with suppress(NotFoundError):
                await cluster.client.delete(GroupVersionKind.of(obj), ObjectKey.of(obj))


async def serve(cluster: Cluster) -> None:
    await cluster.install(crd_manifest(Bakery))


async def takes_effect(cluster: Cluster, client: Client, permissions: RequiredPermissions, *namespaces: str) -> None:
    """Wait until the server's authorizer has read the new roles."""

    async def is_granted() -> bool:
        return not await missing(client, permissions, cluster, *namespaces)

    await cluster.eventually(is_granted, describe="the roles are in effect")


async def missing(client: Client, permissions: RequiredPermissions, cluster: Cluster, *namespaces: str) -> list[str]:
    found = await find_missing_permissions(
        client, permissions, role=ACCOUNT, home=cluster.namespace, namespaces=namespaces
    )
    return [str(each).replace(cluster.namespace, "home") for each in found]


def bakery(cluster: Cluster, **spec: Any) -> Object:
    return encode(Bakery(Metadata(name="corner", namespace=cluster.namespace), BakerySpec(**spec)))


async def a_life(cluster: Cluster, client: Client) -> None:
    """Everything that the engine does, with gates on and off; then what the caches do."""
    stored = await cluster.client.create(bakery(cluster))
    specs = [
        {"oven": Oven.GAS, "delivers": True, "counters": [Counter("a", has_till=True)]},
        {"oven": Oven.GAS, "delivers": False, "counters": [Counter("a", has_till=True)]},
        {"closed": True, "sign": "closed"},
    ]
    for spec in specs:
        stored = await cluster.client.get(BAKERIES, ObjectKey.of(stored))
        stored["spec"] = bakery(cluster, **spec)["spec"]
        stored = await cluster.client.update(stored)
        owner = await client.get(BAKERIES, ObjectKey.of(stored))
        ctx = ReconcileContext(client=client, owner=owner)
        async with ctx.flushing_status():
            for factory in (kitchen, shop, delivery):
                await factory(decode(Bakery, owner)).reconcile(ctx)
    for kind in (POD, EVENT):
        await client.list_page(kind, namespace=cluster.namespace, limit=1)
    with suppress(NotFoundError):
        await client.get(CLAIM, ObjectKey(cluster.namespace, "data"))
    for rule in derive_permissions(BAKERY, RuntimeFeatures(records_events=False, diagnoses=False)).rules:
        for resource in rule.resources:
            if "/" not in resource:
                kind = next(
                    found.gvk
                    for found in await client.mappings()
                    if (found.gvk.group, found.plural) == (rule.api_groups[0], resource)
                )
                page = await client.list_page(kind, namespace=cluster.namespace)
                watch = client.watch(kind, namespace=cluster.namespace, resource_version=page.resource_version)
                async with watch:
                    pass


async def test_what_is_derived_is_enough_for_everything_that_the_engine_does(cluster: Cluster) -> None:
    await serve(cluster)
    permissions = derive_permissions(BAKERY)
    async with granting_permissions(cluster, permissions), acting_as(cluster, ACCOUNT) as client:
        await takes_effect(cluster, client, permissions)

        await a_life(cluster, client)

    refused = [request for request in cluster.list_requests("restricted") if request.code == 403]
    assert refused == []


async def test_roles_of_namespaces_are_enough_within_them(cluster: Cluster) -> None:
    await serve(cluster)
    permissions = derive_permissions(BAKERY)
    async with granting_permissions(cluster, permissions, cluster.namespace), acting_as(cluster, ACCOUNT) as client:
        await takes_effect(cluster, client, permissions, cluster.namespace)

        await a_life(cluster, client)

        with pytest.raises(ForbiddenError):
            await client.list_page(CONFIG_MAP)


@pytest.mark.parametrize("verb", ["create", "patch"])
async def test_server_side_apply_of_a_new_object_takes_create_and_patch(cluster: Cluster, verb: str) -> None:
    both = derive_permissions(
        OperatorDeclaration(
            "bakery", uses=(ResourceAccess.of(GroupVersionKind("", "v1", "ConfigMap"), ("create", "patch")),)
        )
    )
    one = replace(both, rules=(PolicyRule(("",), ("configmaps",), (verb,)),))
    obj: Object = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "new", "namespace": cluster.namespace},
    }
    async with acting_as(cluster, ACCOUNT) as client:
        async with granting_permissions(cluster, one):
            await takes_effect(cluster, client, one)
            with pytest.raises(ForbiddenError):
                await client.apply(obj, field_manager="x")
        async with granting_permissions(cluster, both):
            await takes_effect(cluster, client, both)
            applied = await client.apply(obj, field_manager="x")

    assert applied.created


def without(permissions: RequiredPermissions, group: str, resource: str, verb: str) -> RequiredPermissions:
    """All permissions but one."""
    uses = [
        ResourceAccess(
            rule.api_groups[0], each, tuple(found for found in rule.verbs if (each, found) != (resource, verb))
        )
        for rule in permissions.rules
        for each in rule.resources
        if rule.api_groups[0] == group or each != resource
    ]
    return replace(permissions, rules=build_rules(use for use in uses if use.verbs))


@pytest.mark.parametrize(
    ("group", "resource", "verb"),
    [
        ("", "configmaps", "create"),
        ("", "configmaps", "patch"),
        ("", "services", "delete"),
        ("apps", "deployments", "delete"),
        ("", "persistentvolumeclaims", "get"),
        ("", "pods", "list"),
        ("batch", "jobs", "get"),
        ("batch", "jobs", "watch"),
        ("policy", "poddisruptionbudgets", "update"),
        ("", "secrets", "list"),
        ("permissions.konverge.test", "bakeries/status", "update"),
    ],
)
async def test_nothing_derived_is_too_much(cluster: Cluster, group: str, resource: str, verb: str) -> None:
    """Take away one verb, and the same life ends in a refusal, which the check has foretold in one line."""
    await serve(cluster)
    permissions = derive_permissions(BAKERY)
    fewer = without(permissions, group, resource, verb)
    async with granting_permissions(cluster, fewer), acting_as(cluster, ACCOUNT) as client:
        await takes_effect(cluster, client, fewer)

        found = await missing(client, permissions, cluster)
        with suppress(KonvergeError):
            await a_life(cluster, client)

    group_text = group or "''"
    assert found == [
        f"missing permission: add to ClusterRole bakery: "
        f"{{apiGroups: [{group_text}], resources: [{resource}], verbs: [{verb}]}}"
    ]
    refused = [request for request in cluster.list_requests("restricted") if request.code == 403]
    assert refused, "nothing of the sort was asked for"


async def test_an_account_without_roles_lacks_everything_rule_by_rule(cluster: Cluster) -> None:
    permissions = derive_permissions(BAKERY, RuntimeFeatures(elects_leader=True))

    async with acting_as(cluster, "nobody") as client:
        everywhere = await missing(client, permissions, cluster)
        within = await missing(client, permissions, cluster, cluster.namespace)

    assert len(everywhere) == len(permissions.rules) + len(permissions.home_rules)
    assert "missing permission: add to ClusterRole bakery: " in everywhere[0]
    assert everywhere[-2:] == [
        "missing permission: add to Role bakery in namespace home: "
        "{apiGroups: [coordination.k8s.io], resources: [leases], verbs: [create]}",
        "missing permission: add to Role bakery in namespace home: "
        "{apiGroups: [coordination.k8s.io], resources: [leases], resourceNames: [bakery], verbs: [get, update]}",
    ]
    assert all("add to Role bakery in namespace home" in line for line in within)


async def test_a_rule_in_one_namespace_is_not_taken_for_one_in_all(cluster: Cluster) -> None:
    permissions = derive_permissions(
        OperatorDeclaration("bakery", uses=(ResourceAccess.of(GroupVersionKind("", "v1", "ConfigMap"), READ),)),
        RuntimeFeatures(False),
    )

    async with granting_permissions(cluster, permissions, cluster.namespace), acting_as(cluster, ACCOUNT) as client:
        await takes_effect(cluster, client, permissions, cluster.namespace)

        assert await missing(client, permissions, cluster) == [
            "missing permission: add to ClusterRole bakery: "
            "{apiGroups: [''], resources: [configmaps], verbs: [get, list, watch]}"
        ]


async def test_an_administrator_lacks_nothing_and_is_asked_once(cluster: Cluster) -> None:
    client = cluster.new_client("admin-check")

    assert await missing(client, derive_permissions(BAKERY), cluster) == []

    reviews = [request.path for request in cluster.list_requests("admin-check") if "reviews" in request.path]
    assert [re.sub(r".*/", "", path) for path in reviews] == ["selfsubjectrulesreviews"]


async def test_names_of_objects_are_part_of_the_question(cluster: Cluster) -> None:
    def named(*names: str) -> RequiredPermissions:
        return RequiredPermissions((PolicyRule(("",), ("configmaps",), ("get",), names),))

    async with granting_permissions(cluster, named("a")), acting_as(cluster, ACCOUNT) as client:
        await takes_effect(cluster, client, named("a"))

        assert await missing(client, named("a", "b"), cluster) == [
            "missing permission: add to ClusterRole bakery: "
            "{apiGroups: [''], resources: [configmaps], resourceNames: [b], verbs: [get]}"
        ]
