"""The requests of the write verbs besides the usual four."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest

from konverge.client import Client
from konverge.clock import SeededEntropy, SimulatedClock
from konverge.errors import ApiError, BadRequestError, KindNotServedError, NotFoundError
from konverge.kube import GroupVersionKind, Object, ObjectKey
from tests.client.scripted_transport import Script, ScriptedRequest, ScriptedResponse, ScriptedTransport, build_failure

pytestmark = pytest.mark.anyio

DEPLOYMENT = GroupVersionKind("apps", "v1", "Deployment")
NODE = GroupVersionKind("", "v1", "Node")
KEY = ObjectKey("default", "web")
COLLECTION = "/apis/apps/v1/namespaces/default/deployments"
WEB: Object = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web", "namespace": "default"}}


def resource(plural: str, kind: str, *subresources: str, scope: str = "Namespaced") -> Object:
    return {
        "resource": plural,
        "responseKind": {"kind": kind},
        "scope": scope,
        "subresources": [{"subresource": name} for name in subresources],
    }


def group(name: str, *resources: Object) -> Object:
    items = [{"metadata": {"name": name}, "versions": [{"version": "v1", "resources": list(resources)}]}]
    return {"kind": "APIGroupDiscoveryList", "items": items}


DISCOVERY: dict[str, Object] = {
    "/api": group("", resource("pods", "Pod", "eviction"), resource("nodes", "Node", scope="Cluster")),
    "/apis": group("apps", resource("deployments", "Deployment", "scale")),
}


def client_of(*script: Script, discovery: dict[str, Object] = DISCOVERY) -> tuple[Client, ScriptedTransport]:
    transport = ScriptedTransport(*script, discovery=discovery)
    return Client(transport, clock=SimulatedClock(), entropy=SeededEntropy()), transport


def get_only_request(transport: ScriptedTransport) -> ScriptedRequest:
    (asked,) = transport.asked
    return asked


@pytest.mark.parametrize(
    "verb",
    [
        lambda client: client.create(WEB, dry_run=True, field_validation="Strict"),
        lambda client: client.update(WEB, dry_run=True, field_validation="Strict"),
        lambda client: client.patch(DEPLOYMENT, KEY, {}, patch_type="merge", dry_run=True, field_validation="Strict"),
        lambda client: client.apply(WEB, field_manager="", dry_run=True, field_validation="Strict"),
    ],
    ids=["create", "update", "patch", "apply"],
)
async def test_a_write_can_be_tried_and_its_fields_be_checked(verb: Callable[[Client], Awaitable[object]]) -> None:
    client, transport = client_of(ScriptedResponse(json=WEB))
    await verb(client)

    assert {"dryRun": "All", "fieldValidation": "Strict"}.items() <= get_only_request(transport).query.items()


async def test_a_delete_carries_all_its_conditions() -> None:
    client, transport = client_of(ScriptedResponse(json={"kind": "Status"}))
    await client.delete(DEPLOYMENT, KEY, uid="u", resource_version="7", grace_period_seconds=0, dry_run=True)

    assert get_only_request(transport).body == {
        "apiVersion": "v1",
        "kind": "DeleteOptions",
        "propagationPolicy": "Background",
        "gracePeriodSeconds": 0,
        "dryRun": ["All"],
        "preconditions": {"uid": "u", "resourceVersion": "7"},
    }


async def test_a_collection_is_deleted_by_selectors() -> None:
    client, transport = client_of(ScriptedResponse(json={"kind": "DeploymentList", "items": []}))
    await client.delete_collection(DEPLOYMENT, namespace="default", label_selector="a=b", propagation="Orphan")

    assert (get_only_request(transport).method, get_only_request(transport).path) == ("DELETE", COLLECTION)
    assert get_only_request(transport).query == {"labelSelector": "a=b"}
    assert get_only_request(transport).body["propagationPolicy"] == "Orphan"


async def test_a_collection_of_all_namespaces_is_not_deleted() -> None:
    client, transport = client_of()

    with pytest.raises(BadRequestError, match="apps/v1/Deployment: cannot delete a collection in all namespaces"):
        await client.delete_collection(DEPLOYMENT)
    assert transport.asked == []


async def test_a_collection_without_namespaces_is_deleted() -> None:
    client, transport = client_of(ScriptedResponse(json={}))
    await client.delete_collection(NODE, field_selector="metadata.name=n")

    assert get_only_request(transport).path == "/api/v1/nodes"


async def test_scaling_patches_the_subresource() -> None:
    client, transport = client_of(ScriptedResponse(json={"kind": "Scale"}))
    await client.scale(DEPLOYMENT, KEY, 3, resource_version="7")

    assert (get_only_request(transport).method, get_only_request(transport).path) == (
        "PATCH",
        f"{COLLECTION}/web/scale",
    )
    assert get_only_request(transport).body == {"spec": {"replicas": 3}, "metadata": {"resourceVersion": "7"}}


async def test_an_eviction_is_posted_to_the_pod() -> None:
    client, transport = client_of(ScriptedResponse(201, {"kind": "Status"}))
    await client.evict(KEY, uid="u", grace_period_seconds=5, dry_run=True)

    assert (get_only_request(transport).method, get_only_request(transport).path) == (
        "POST",
        "/api/v1/namespaces/default/pods/web/eviction",
    )
    assert get_only_request(transport).query == {"dryRun": "All"}
    assert get_only_request(transport).body == {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"name": "web", "namespace": "default"},
        "deleteOptions": {
            "apiVersion": "v1",
            "kind": "DeleteOptions",
            "gracePeriodSeconds": 5,
            "preconditions": {"uid": "u"},
        },
    }


# Missing subresources, with the responses of kube-apiserver 1.36.

NO_PATH = build_failure(404, "NotFound", "the server could not find the requested resource")
NO_OBJECT = build_failure(404, "NotFound", 'deployments.apps "web" not found', name="web")


@pytest.mark.parametrize("refusal", [NO_PATH, NO_OBJECT], ids=["built-in kind", "custom resource"])
async def test_a_subresource_that_a_kind_does_not_have_is_told_as_such(refusal: ScriptedResponse) -> None:
    client, _ = client_of(refusal, ScriptedResponse(json=WEB))

    with pytest.raises(ApiError) as raised:
        await client.update(WEB, subresource="status")
    assert str(raised.value) == 'apps/v1/Deployment has no subresource "status" (it has scale)'
    assert not isinstance(raised.value, NotFoundError)
    # The kind is served as before.
    assert await client.get(DEPLOYMENT, KEY) == WEB


async def test_an_object_that_is_not_there_is_not_found_by_its_subresource_either() -> None:
    client, _ = client_of(NO_OBJECT)

    with pytest.raises(NotFoundError, match="web"):
        await client.get(DEPLOYMENT, KEY, subresource="scale")


async def test_a_subresource_of_a_kind_that_is_gone_tells_that_the_kind_is() -> None:
    discovery = dict(DISCOVERY)
    client, _ = client_of(NO_PATH, discovery=discovery)
    await client.mapping(DEPLOYMENT)
    discovery["/apis"] = group("apps")
    await SimulatedClock().sleep(5)

    with pytest.raises(KindNotServedError, match="the server no longer serves apps/v1/Deployment"):
        await client.update(WEB, subresource="scale")


async def test_a_subresource_that_came_later_is_not_denied() -> None:
    discovery = dict(DISCOVERY)
    client, _ = client_of(NO_OBJECT, discovery=discovery)
    await client.mapping(DEPLOYMENT)
    discovery["/apis"] = group("apps", resource("deployments", "Deployment", "status"))
    await SimulatedClock().sleep(5)

    with pytest.raises(NotFoundError):
        await client.update(WEB, subresource="status")
