"""The scale subresource: who owns the replicas after a write, and apply."""

from __future__ import annotations

import json
from typing import Any

import pytest

from konverge.kube import Object
from konverge_cluster.testing import Cluster
from tests.cluster.conformance.objects import DEPLOYMENT, deployment, new
from tests.cluster.conformance.widgets import Widgets

pytestmark = pytest.mark.anyio

APPLY, MERGE, JSON = "application/apply-patch+yaml", "application/merge-patch+json", "application/json"
KINDS = ["deployments", "widgets"]


class Scaled:
    """One object with replicas, of a built-in kind or of a custom resource."""

    def __init__(self, cluster: Cluster, path: str, api_version: str) -> None:
        self._transport = cluster.new_transport()
        self._path = path
        self.api_version = api_version

    async def ask(
        self, method: str, body: Object | None = None, content_type: str = JSON, *, part: str = "", **query: str
    ) -> tuple[int, Any]:
        response = await self._transport.request(
            method,
            self._path + part,
            query=query,
            headers={"content-type": content_type, "accept": JSON},
            body=None if body is None else json.dumps(body).encode(),
            timeout_seconds=60,
        )
        return response.status, json.loads(response.body)

    async def scale(self, replicas: int, manager: str) -> int:
        status, _ = await self.ask("PUT", scale(replicas), part="/scale", fieldManager=manager)
        return status

    async def list_owners(self) -> list[tuple[str, str, str, str, bool]]:
        """Return (manager, operation, subresource, apiVersion, has a time) of each owner of the replicas."""
        _, body = await self.ask("GET")
        return [
            (entry["manager"], entry["operation"], entry.get("subresource", ""), entry["apiVersion"], "time" in entry)
            for entry in body["metadata"]["managedFields"]
            if "f:replicas" in entry["fieldsV1"].get("f:spec", {})
        ]

    async def get_replicas(self) -> int:
        _, body = await self.ask("GET")
        return int(body["spec"]["replicas"])


def scale(replicas: int | None, **rest: Any) -> Object:
    spec = {} if replicas is None else {"replicas": replicas}
    return {"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": "web"}, "spec": {**spec, **rest}}


async def create(cluster: Cluster, kind: str) -> Scaled:
    """Create a scalable object with one replica; its pods are never scheduled."""
    if kind == "deployments":
        wanted = deployment(cluster.namespace, replicas=1, paused=True)
        await cluster.client.create(wanted, field_manager="creator")
        path = f"/apis/apps/v1/namespaces/{cluster.namespace}/deployments/web"
        return Scaled(cluster, path, DEPLOYMENT.api_version)
    widgets = Widgets(cluster, "scaled.konverge.test")
    number = {"type": "integer"}
    part = {"type": "object", "properties": {"replicas": number, "size": number}}
    paths = {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}
    schema = {"openAPIV3Schema": {"type": "object", "properties": {"spec": part, "status": part}}}
    await cluster.install(widgets.definition(schema=schema, subresources={"status": {}, "scale": paths}))
    wanted = new(widgets.gvk, cluster.namespace, "web", spec={"size": 1, "replicas": 1})
    await cluster.client.create(wanted, field_manager="creator")
    path = f"/apis/{widgets.group}/v1/namespaces/{cluster.namespace}/widgets/web"
    return Scaled(cluster, path, widgets.gvk.api_version)


@pytest.mark.parametrize("kind", KINDS)
async def test_the_client_that_scales_owns_the_replicas(cluster: Cluster, kind: str) -> None:
    scaled = await create(cluster, kind)

    assert await scaled.list_owners() == [("creator", "Update", "", scaled.api_version, True)]
    assert await scaled.scale(3, "scaler") == 200
    assert await scaled.list_owners() == [("scaler", "Update", "scale", scaled.api_version, False)]
    assert await scaled.scale(3, "other") == 200
    assert await scaled.list_owners() == [("scaler", "Update", "scale", scaled.api_version, False)]
    assert await scaled.scale(4, "other") == 200
    assert await scaled.list_owners() == [("other", "Update", "scale", scaled.api_version, False)]


@pytest.mark.parametrize("kind", KINDS)
async def test_a_patch_of_the_scale_owns_the_replicas(cluster: Cluster, kind: str) -> None:
    scaled = await create(cluster, kind)

    await scaled.ask("PATCH", {"spec": {"replicas": 2}}, MERGE, part="/scale", fieldManager="scaler")

    assert await scaled.list_owners() == [("scaler", "Update", "scale", scaled.api_version, False)]


@pytest.mark.parametrize("kind", KINDS)
async def test_nothing_owns_replicas_that_are_scaled_to_zero(cluster: Cluster, kind: str) -> None:
    scaled = await create(cluster, kind)

    assert await scaled.scale(0, "scaler") == 200

    assert await scaled.list_owners() == []
    assert await scaled.get_replicas() == 0


@pytest.mark.parametrize("kind", KINDS)
async def test_an_apply_of_the_object_conflicts_with_the_scale(cluster: Cluster, kind: str) -> None:
    scaled = await create(cluster, kind)
    _, body = await scaled.ask("GET")
    await scaled.scale(3, "scaler")
    wanted = {"apiVersion": body["apiVersion"], "kind": body["kind"], "metadata": {"name": "web"}}

    status, answer = await scaled.ask("PATCH", wanted | {"spec": {"replicas": 2}}, APPLY, fieldManager="main")

    assert (status, answer["details"]["causes"]) == (
        409,
        [
            {
                "reason": "FieldManagerConflict",
                "message": f'conflict with "scaler" with subresource "scale" using {scaled.api_version}',
                "field": ".spec.replicas",
            }
        ],
    )


@pytest.mark.parametrize("kind", KINDS)
async def test_an_apply_of_the_scale_conflicts_with_the_owner(cluster: Cluster, kind: str) -> None:
    scaled = await create(cluster, kind)

    status, answer = await scaled.ask("PATCH", scale(2), APPLY, part="/scale", fieldManager="scaler")

    causes = [(cause["field"], cause["message"]) for cause in answer["details"]["causes"]]
    assert (status, causes) == (409, [(".spec.replicas", 'conflict with "creator" using autoscaling/v1')])
    assert await scaled.get_replicas() == 1


async def test_an_apply_of_the_scale_of_a_built_in_kind_takes_the_replicas(cluster: Cluster) -> None:
    scaled = await create(cluster, "deployments")

    status, answer = await scaled.ask("PATCH", scale(2), APPLY, part="/scale", fieldManager="scaler", force="true")

    assert (status, answer["kind"], answer["spec"]) == (200, "Scale", {"replicas": 2})
    assert await scaled.list_owners() == [("scaler", "Apply", "scale", "apps/v1", False)]
    status, answer = await scaled.ask("PATCH", scale(5), APPLY, part="/scale", fieldManager="other")
    assert (status, answer["details"]["causes"][0]["message"]) == (
        409,
        'conflict with "scaler" with subresource "scale"',
    )
    assert (await scaled.ask("PATCH", scale(6), APPLY, part="/scale", fieldManager="scaler"))[0] == 200
    assert await scaled.get_replicas() == 6


async def test_the_scale_of_a_custom_resource_cannot_be_applied(cluster: Cluster) -> None:
    scaled = await create(cluster, "widgets")

    wanted = scale(2) | {"metadata": {"name": "web", "namespace": cluster.namespace}}
    status, answer = await scaled.ask("PATCH", wanted, APPLY, part="/scale", fieldManager="scaler", force="true")

    reason = "autoscaling/v1, Kind=Scale) to proper version: request to convert CR to an invalid group/version"
    assert (status, answer["message"]) == (
        500,
        f"failed to convert new object ({cluster.namespace}/web; {reason}: autoscaling/v1",
    )
    await scaled.scale(0, "scaler")
    status, answer = await scaled.ask("PATCH", scale(2), APPLY, part="/scale", fieldManager="scaler")
    assert (status, answer["message"]) == (
        500,
        f"failed to create manager for existing fields: failed to convert live object (/; {reason}: autoscaling/v1",
    )


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("body", "status", "message"),
    [
        (
            scale(2, surprise=1),
            500,
            "failed to create typed patch object (/web; autoscaling/v1, Kind=Scale): .spec.surprise: field not "
            "declared in schema",
        ),
        (
            {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": {"replicas": 2}},
            400,
            "invalid object type: apps/v1, Kind=Deployment",
        ),
    ],
)
async def test_what_is_applied_to_the_scale_is_a_scale(
    cluster: Cluster, kind: str, body: Object, status: int, message: str
) -> None:
    scaled = await create(cluster, kind)

    found, answer = await scaled.ask("PATCH", body, APPLY, part="/scale", fieldManager="scaler")

    assert (found, answer["message"]) == (status, message)


# Bodies without a type


BARE = {"none": ("apiVersion", "kind"), "no kind": ("kind",), "no apiVersion": ("apiVersion",)}


@pytest.mark.parametrize("missing", BARE)
async def test_a_built_in_kind_takes_a_scale_without_type(cluster: Cluster, missing: str) -> None:
    scaled = await create(cluster, "deployments")
    body = {name: value for name, value in scale(3).items() if name not in BARE[missing]}

    status, _ = await scaled.ask("PUT", body, part="/scale", fieldManager="scaler")

    assert status == 200
    assert await scaled.list_owners() == [("scaler", "Update", "scale", scaled.api_version, False)]


@pytest.mark.parametrize("missing", ["none", "no apiVersion"])
async def test_a_custom_resource_forgets_the_owner_of_replicas_from_a_scale_without_type(
    cluster: Cluster, missing: str
) -> None:
    scaled = await create(cluster, "widgets")
    body = {name: value for name, value in scale(3).items() if name not in BARE[missing]}

    status, _ = await scaled.ask("PUT", body, part="/scale", fieldManager="scaler")

    assert (status, await scaled.get_replicas()) == (200, 3)
    assert await scaled.list_owners() == []
    assert await scaled.scale(4, "other") == 200
    assert await scaled.list_owners() == []


async def test_a_custom_resource_takes_a_scale_without_kind(cluster: Cluster) -> None:
    scaled = await create(cluster, "widgets")
    body = {name: value for name, value in scale(3).items() if name != "kind"}

    assert (await scaled.ask("PUT", body, part="/scale", fieldManager="scaler"))[0] == 200

    assert await scaled.list_owners() == [("scaler", "Update", "scale", scaled.api_version, False)]


@pytest.mark.parametrize("kind", KINDS)
async def test_replicas_that_nothing_owns_stay_so_when_they_are_scaled(cluster: Cluster, kind: str) -> None:
    scaled = await create(cluster, kind)
    await scaled.scale(0, "scaler")

    assert await scaled.scale(2, "scaler") == 200

    assert await scaled.list_owners() == []


async def test_the_name_is_not_found_in_a_scale_of_a_built_in_kind_without_type(cluster: Cluster) -> None:
    scaled = await create(cluster, "deployments")

    status, body = await scaled.ask("PATCH", {"apiVersion": None, "kind": None}, MERGE, part="/scale")

    message = "the name of the object (web based on URL) was undeterminable: name must be provided"
    assert (status, body["message"]) == (400, message)


async def test_a_patch_can_remove_the_type_of_a_scale(cluster: Cluster) -> None:
    scaled = await create(cluster, "widgets")

    status, _ = await scaled.ask(
        "PATCH", {"apiVersion": None, "kind": None, "spec": {"replicas": 7}}, MERGE, part="/scale"
    )

    assert (status, await scaled.get_replicas(), await scaled.list_owners()) == (200, 7, [])


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        (
            "deployments",
            'Deployment in version "v1" cannot be handled as a Scale: '
            "converting (v1.Deployment) to (autoscaling.Scale): unknown conversion",
        ),
        ("widgets", 'no kind is registered for the type v1.Scale in scheme "pkg/runtime/scheme.go:111"'),
    ],
)
async def test_a_scale_of_another_type_is_refused(cluster: Cluster, kind: str, message: str) -> None:
    scaled = await create(cluster, kind)

    status, body = await scaled.ask(
        "PUT", {**scale(3), "apiVersion": "apps/v1", "kind": "Deployment"}, part="/scale", fieldManager="scaler"
    )

    assert (status, body["message"]) == (400, message)


@pytest.mark.parametrize("kind", KINDS)
async def test_a_patch_to_another_type_is_refused(cluster: Cluster, kind: str) -> None:
    scaled = await create(cluster, kind)

    status, body = await scaled.ask("PATCH", {"kind": "X", "spec": {"replicas": 9}}, MERGE, part="/scale")

    assert status == 422
    assert [(cause["field"], cause["reason"]) for cause in body["details"]["causes"]] == [
        ("patch", "FieldValueInvalid")
    ]
    assert body["message"].endswith(
        'no kind "X" is registered for version "autoscaling/v1" in scheme "pkg/runtime/scheme.go:111"'
    )
