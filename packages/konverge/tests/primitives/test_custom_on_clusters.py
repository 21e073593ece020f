"""Readiness by conditions, against an API server: what a definition, a namespace and custom resources really report."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from konverge.errors import KindNotServedError
from konverge.kube import GroupVersionKind, Object, ObjectKey
from konverge.primitives import (
    Convergence,
    ConvergingStatus,
    Custom,
    CustomResourceDefinition,
    Gateway,
    GraceStatus,
    HTTPRoute,
    Namespace,
    Operation,
    Primitive,
)
from konverge_cluster.testing import Cluster

pytestmark = pytest.mark.anyio

MANAGER = "primitives-under-test"
CONTROLLER = "controller-under-test"
ANYTHING = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


def definition(group: str, kind: str, plural: str, scope: str = "Namespaced") -> CustomResourceDefinition:
    """The definition of a kind with a status, in which anything may stand."""
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": ANYTHING, "status": ANYTHING}}},
        "subresources": {"status": {}},
    }
    metadata: Object = {"name": f"{plural}.{group}"}
    if group.endswith("k8s.io"):
        # The server takes no definition into this group without a word on who has approved of it.
        metadata["annotations"] = {"api-approved.kubernetes.io": "unapproved, a test"}
    names = {"kind": kind, "plural": plural, "singular": kind.lower()}
    spec = {"group": group, "scope": scope, "names": names, "versions": [version]}
    return CustomResourceDefinition({"metadata": metadata, "spec": spec})


async def apply(cluster: Cluster, primitive: Primitive[Any]) -> Object:
    return (await cluster.client.apply(primitive.render(), field_manager=MANAGER)).object


async def read_health(cluster: Cluster, primitive: Primitive[Any]) -> tuple[Convergence, GraceStatus]:
    live = await cluster.client.get(primitive.gvk, primitive.key)
    converging, grace = primitive.converging_status(live, Operation.NONE), primitive.grace_status(live)
    assert converging is not None
    assert grace is not None
    return converging, grace.status


async def until(cluster: Cluster, primitive: Primitive[Any], status: ConvergingStatus) -> Convergence:
    async def found() -> Convergence | None:
        converging, _ = await read_health(cluster, primitive)
        return converging if converging.status is status else None

    return await cluster.eventually(found, describe=f"{primitive.identity} is {status}")


async def report(cluster: Cluster, primitive: Primitive[Any], status: Object) -> None:
    """Write a status as the kind's controller does."""
    live = await cluster.client.get(primitive.gvk, primitive.key)
    await cluster.client.update({**live, "status": status}, subresource="status", field_manager=CONTROLLER)


async def delete_live_object(cluster: Cluster, primitive: Primitive[Any]) -> None:
    await cluster.client.delete(primitive.gvk, primitive.key)


class Serving:
    """Definitions of one test, and their end."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._definitions: list[CustomResourceDefinition] = []

    async def add(self, wanted: CustomResourceDefinition, gvk: GroupVersionKind) -> None:
        """Have a kind served."""
        self._definitions.append(wanted)
        await apply(self._cluster, wanted)
        await until(self._cluster, wanted, ConvergingStatus.OPERATIONAL)
        await self._cluster.eventually(lambda: self._is_served(gvk), describe=f"{gvk} is served")

    async def _is_served(self, gvk: GroupVersionKind) -> bool:
        try:
            await self._cluster.client.list(gvk)
        except KindNotServedError:
            return False
        return True

    async def end(self) -> None:
        for each in self._definitions:
            await delete_live_object(self._cluster, each)


@pytest.fixture
async def serving(cluster: Cluster) -> AsyncIterator[Serving]:
    serving = Serving(cluster)
    yield serving
    await serving.end()


def condition(condition_type: str, status: str, seen: int, reason: str = "Tested", message: str = "") -> Object:
    return {
        "type": condition_type,
        "status": status,
        "observedGeneration": seen,
        "reason": reason,
        "message": message,
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }


@pytest.mark.parametrize("scope", ["Namespaced", "Cluster"])
async def test_a_custom_resource_is_as_ready_as_its_controller_says(
    cluster: Cluster, serving: Serving, scope: str
) -> None:
    group = f"{cluster.namespace}.konverge.test"
    gvk = GroupVersionKind(group, "v1", "Widget")
    await serving.add(definition(group, "Widget", "widgets", scope), gvk)
    metadata = {"name": "one"} | ({"namespace": cluster.namespace} if scope == "Namespaced" else {})

    def widget(size: int) -> Custom:
        obj = {"apiVersion": gvk.api_version, "kind": gvk.kind, "metadata": metadata, "spec": {"size": size}}
        return Custom(obj, cluster_scoped=scope == "Cluster", required_conditions="Ready")

    one = widget(1)
    await apply(cluster, one)
    unreported = await read_health(cluster, one)
    await report(cluster, one, {"observedGeneration": 1, "conditions": [condition("Ready", "False", 1, "Disk", "no")]})
    not_ready = await read_health(cluster, one)
    await report(cluster, one, {"observedGeneration": 1, "conditions": [condition("Ready", "True", 1)]})
    ready = await read_health(cluster, one)
    changed = await apply(cluster, widget(2))
    stale = await read_health(cluster, one)
    await report(
        cluster, one, {"observedGeneration": 2, "conditions": [condition("Stalled", "True", 2, "Quota", "full")]}
    )
    stalled = await read_health(cluster, one)

    pending, degraded, down = ConvergingStatus.OPERATION_PENDING, GraceStatus.DEGRADED, GraceStatus.DOWN
    assert changed["metadata"]["generation"] == 2
    assert unreported == (Convergence(pending, "Waiting for condition Ready"), degraded)
    assert not_ready == (Convergence(pending, "Ready is False (Disk): no"), down)
    assert ready == (Convergence(ConvergingStatus.OPERATIONAL, "Resource is current"), GraceStatus.HEALTHY)
    assert stale == (Convergence(pending, "Waiting for widget controller to observe latest spec"), degraded)
    assert stalled == (Convergence(ConvergingStatus.OPERATION_FAILING, "Stalled is True (Quota): full"), down)


async def test_a_custom_resource_that_a_finalizer_keeps_is_being_deleted(cluster: Cluster, serving: Serving) -> None:
    group = f"{cluster.namespace}.konverge.test"
    gvk = GroupVersionKind(group, "v1", "Widget")
    await serving.add(definition(group, "Widget", "widgets"), gvk)
    metadata = {"name": "one", "namespace": cluster.namespace, "finalizers": ["konverge.test/keep"]}
    one = Custom({"apiVersion": gvk.api_version, "kind": gvk.kind, "metadata": metadata, "spec": {}})
    live = await apply(cluster, one)

    await delete_live_object(cluster, one)
    found = await read_health(cluster, one)
    await cluster.client.apply({**one.render(), "metadata": {**metadata, "finalizers": []}}, field_manager=MANAGER)

    assert live["metadata"].get("deletionTimestamp") is None
    assert found == (Convergence(ConvergingStatus.OPERATION_PENDING, "Widget is being deleted"), GraceStatus.DOWN)


async def test_a_definition_whose_name_is_taken_is_failing(cluster: Cluster, serving: Serving) -> None:
    group = f"{cluster.namespace}.konverge.test"
    await serving.add(definition(group, "Widget", "widgets"), GroupVersionKind(group, "v1", "Widget"))
    second = definition(group, "Widget", "gadgets")

    await apply(cluster, second)
    found = await until(cluster, second, ConvergingStatus.OPERATION_FAILING)
    _, grace = await read_health(cluster, second)
    await delete_live_object(cluster, second)

    assert found.reason.startswith("NamesAccepted is False (")
    assert found.reason.endswith("is already in use")
    assert grace is GraceStatus.DOWN


async def test_a_namespace_is_ready_when_active_and_not_while_it_is_deleted(cluster: Cluster) -> None:
    own = Namespace({"metadata": {"name": f"{cluster.namespace}-own"}})
    held: Object = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "held", "namespace": own.key.name, "finalizers": ["konverge.test/keep"]},
    }
    await apply(cluster, own)
    active = await until(cluster, own, ConvergingStatus.OPERATIONAL)
    await cluster.client.apply(held, field_manager=MANAGER)

    await delete_live_object(cluster, own)

    async def says_what_is_in_the_way() -> tuple[Convergence, GraceStatus] | None:
        found = await read_health(cluster, own)
        return found if "konverge.test/keep" in found[0].reason else None

    stuck, grace = await cluster.eventually(says_what_is_in_the_way, describe="the namespace says what is in the way")
    held["metadata"]["finalizers"] = []
    await cluster.client.apply(held, field_manager=MANAGER)

    assert active.reason == "Namespace is active"
    assert stuck.status is ConvergingStatus.OPERATION_PENDING
    assert stuck.reason.startswith("Namespace is being deleted: ")
    assert grace is GraceStatus.DOWN


async def test_the_gateway_api_is_as_ready_as_its_controllers_say(cluster: Cluster, serving: Serving) -> None:
    await serving.add(definition(Gateway.gvk.group, "Gateway", "gateways"), Gateway.gvk)
    await serving.add(definition(HTTPRoute.gvk.group, "HTTPRoute", "httproutes"), HTTPRoute.gvk)
    metadata = {"name": "web", "namespace": cluster.namespace}
    listener = {"name": "http", "port": 80, "protocol": "HTTP"}
    gateway = Gateway({"metadata": metadata, "spec": {"gatewayClassName": "tested", "listeners": [listener]}})
    route = HTTPRoute({"metadata": metadata, "spec": {"parentRefs": [{"name": "web"}]}})
    for each in (gateway, route):
        await apply(cluster, each)
    untouched = [(await read_health(cluster, each))[0].status for each in (gateway, route)]

    good = [condition("Accepted", "True", 1), condition("Programmed", "True", 1)]
    unresolved = [*good, condition("ResolvedRefs", "False", 1, "InvalidCertificateRef")]
    await report(cluster, gateway, {"conditions": good, "listeners": [{"name": "http", "conditions": unresolved}]})
    partly = await read_health(cluster, gateway)
    await report(cluster, gateway, {"conditions": good, "listeners": [{"name": "http", "conditions": good}]})
    resolved = [condition("Accepted", "True", 1), condition("ResolvedRefs", "True", 1)]
    parent = {"parentRef": {"name": "web"}, "controllerName": "konverge.test/controller", "conditions": resolved}
    await report(cluster, route, {"parents": [parent]})
    ready = [(await read_health(cluster, each))[0].status for each in (gateway, route)]

    assert untouched == [ConvergingStatus.OPERATION_PENDING] * 2
    assert partly == (
        Convergence(ConvergingStatus.OPERATION_FAILING, "listener http: ResolvedRefs is False (InvalidCertificateRef)"),
        GraceStatus.DEGRADED,
    )
    assert ready == [ConvergingStatus.OPERATIONAL] * 2
    assert (await cluster.client.get(Gateway.gvk, ObjectKey(cluster.namespace, "web")))["metadata"]["generation"] == 1
