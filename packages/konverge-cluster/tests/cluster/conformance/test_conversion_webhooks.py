"""Custom resources with a conversion webhook: ``size`` in v1 is ``width`` in v2, the storage version."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from konverge.errors import ApiError, InvalidError, NotFoundError
from konverge.kube import GroupVersionKind, Object, ObjectKey
from konverge_cluster.testing import Cluster
from tests.cluster.conformance.objects import new
from tests.cluster.conformance.webhook_servers import Handler, WebhookServer, webhook_server

pytestmark = pytest.mark.anyio

ANYTHING = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


def convert(request: Object) -> Object:
    """Rename the field that the versions name differently."""
    converted = []
    version = request["desiredAPIVersion"]
    before, after = ("size", "width") if version.endswith("/v2") else ("width", "size")
    for obj in request["objects"]:
        spec = {after if name == before else name: value for name, value in (obj.get("spec") or {}).items()}
        converted.append({**obj, "apiVersion": version, "spec": spec})
    return {"convertedObjects": converted, "result": {"status": "Success"}}


class Gadgets:
    """The kind ``Gadget`` in two versions."""

    def __init__(self, cluster: Cluster, server: WebhookServer) -> None:
        self.cluster = cluster
        self.server = server
        self.group = "gadgets.konverge.test"
        self.v1 = GroupVersionKind(self.group, "v1", "Gadget")
        self.v2 = GroupVersionKind(self.group, "v2", "Gadget")
        self.handle(convert)

    def handle(self, handler: Handler) -> None:
        self.server.handlers["convert"] = handler

    def definition(self, **conversion: Any) -> Object:
        schema = {"type": "object", "properties": {"spec": ANYTHING, "status": ANYTHING}}
        version = {"served": True, "schema": {"openAPIV3Schema": schema}, "subresources": {"status": {}}}
        webhook = {"clientConfig": self.server.client_config("convert"), "conversionReviewVersions": ["v1"]}
        return {
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": f"gadgets.{self.group}"},
            "spec": {
                "group": self.group,
                "scope": "Namespaced",
                "names": {"kind": "Gadget", "plural": "gadgets"},
                "versions": [
                    {"name": "v1", "storage": False, **version},
                    {"name": "v2", "storage": True, **version},
                ],
                "conversion": {"strategy": "Webhook", "webhook": webhook, **conversion},
            },
        }

    def new(self, gvk: GroupVersionKind, name: str = "one", /, **spec: Any) -> Object:
        return new(gvk, self.cluster.namespace, name, spec=spec)

    def key(self, name: str = "one") -> ObjectKey:
        return ObjectKey(self.cluster.namespace, name)

    async def are_converted(self) -> bool:
        """Return True if the server calls the webhook of this test."""
        await self.cluster.client.apply(self.new(self.v2, "probe", width=1), field_manager="test")
        await self.cluster.client.get(self.v1, self.key("probe"))
        await self.cluster.client.delete(self.v2, self.key("probe"))
        return bool(self.server.asked)


@pytest.fixture
async def gadgets(cluster: Cluster, tmp_path: Path) -> AsyncIterator[Gadgets]:
    """Return the served kind. The real cluster installs it only once, since the first use takes two seconds."""
    async with webhook_server(tmp_path) as server:
        kind = Gadgets(cluster, server)
        await cluster.install(kind.definition())
        await cluster.eventually(kind.are_converted, describe="the webhook is asked")
        yield kind
        kind.handle(convert)
        # While the objects can still be converted.
        await cluster.client.delete_collection(kind.v2, namespace=cluster.namespace)


async def test_each_version_has_its_own_form_of_an_object(gadgets: Gadgets, cluster: Cluster) -> None:
    created = await cluster.client.create(gadgets.new(gadgets.v1, size=1))
    other = await cluster.client.get(gadgets.v2, gadgets.key())

    assert (created["apiVersion"], created["spec"]) == (gadgets.v1.api_version, {"size": 1})
    assert (other["apiVersion"], other["spec"]) == (gadgets.v2.api_version, {"width": 1})
    assert other["metadata"] == created["metadata"]


async def test_the_webhook_is_asked_only_about_what_is_stored_in_another_version(
    gadgets: Gadgets, cluster: Cluster
) -> None:
    await cluster.client.create(gadgets.new(gadgets.v2, width=1))
    gadgets.handle(lambda request: {"result": {"status": "Failure", "message": "unexpected review"}})

    assert (await cluster.client.get(gadgets.v2, gadgets.key()))["spec"] == {"width": 1}


async def test_a_review_holds_the_object_as_it_is_in_the_version_that_is_known(
    gadgets: Gadgets, cluster: Cluster
) -> None:
    await cluster.client.create(gadgets.new(gadgets.v1, size=1))

    reviews = [request for _, request in gadgets.server.asked if request["objects"]]
    review = next(request for request in reviews if request["objects"][0]["metadata"]["name"] == "one")
    assert review["desiredAPIVersion"] == gadgets.v2.api_version
    assert [(obj["apiVersion"], obj["spec"]) for obj in review["objects"]] == [(gadgets.v1.api_version, {"size": 1})]
    assert review["objects"][0]["metadata"]["uid"]


async def test_lists_and_watches_are_in_the_version_that_was_asked_for(gadgets: Gadgets, cluster: Cluster) -> None:
    created = await cluster.client.create(gadgets.new(gadgets.v2, "a", width=1))
    await cluster.client.create(gadgets.new(gadgets.v1, "b", size=2))

    async def specs(gvk: GroupVersionKind) -> list[Object]:
        listed = await cluster.client.list(gvk, namespace=cluster.namespace)
        return [item["spec"] for item in listed.items]

    assert (await specs(gadgets.v1), await specs(gadgets.v2)) == (
        [{"size": 1}, {"size": 2}],
        [{"width": 1}, {"width": 2}],
    )
    lines = await watch_objects(cluster, gadgets.v1, created["metadata"]["resourceVersion"])
    assert [(line["type"], line["object"]["spec"]) for line in lines] == [("ADDED", {"size": 2})]


async def watch_objects(cluster: Cluster, gvk: GroupVersionKind, after: str) -> list[Object]:
    """Return the events of one second."""
    path = (await cluster.client.mapping(gvk)).build_path(namespace=cluster.namespace)
    query = {"watch": "1", "resourceVersion": after, "timeoutSeconds": "1"}
    lines: list[Object] = []
    async with cluster.new_transport().stream("GET", path, query=query, connect_timeout_seconds=10) as stream:
        async for chunk in stream.chunks():
            lines += [json.loads(line) for line in chunk.splitlines() if line]
    return lines


async def test_updates_patches_and_status_are_made_in_the_version_of_the_request(
    gadgets: Gadgets, cluster: Cluster
) -> None:
    created = await cluster.client.create(gadgets.new(gadgets.v1, size=1))

    updated = await cluster.client.update({**created, "spec": {"size": 2, "colour": "red"}})
    merged = await cluster.client.patch(gadgets.v1, gadgets.key(), {"spec": {"size": 3}}, patch_type="merge")
    ready = await cluster.client.update({**merged, "status": {"phase": "Ready"}}, subresource="status")
    stored = await cluster.client.get(gadgets.v2, gadgets.key())

    assert (updated["spec"], updated["metadata"]["generation"]) == ({"size": 2, "colour": "red"}, 2)
    assert (merged["spec"], merged["metadata"]["generation"]) == ({"size": 3, "colour": "red"}, 3)
    assert (ready["spec"], ready["status"]) == ({"size": 3, "colour": "red"}, {"phase": "Ready"})
    assert (stored["spec"], stored["status"]) == ({"width": 3, "colour": "red"}, {"phase": "Ready"})


async def test_a_write_that_changes_nothing_stores_nothing(gadgets: Gadgets, cluster: Cluster) -> None:
    created = await cluster.client.create(gadgets.new(gadgets.v1, size=1))

    patched = await cluster.client.patch(gadgets.v1, gadgets.key(), {"spec": {"size": 1}}, patch_type="merge")

    assert patched["metadata"]["resourceVersion"] == created["metadata"]["resourceVersion"]


async def test_an_apply_owns_fields_in_its_own_version(gadgets: Gadgets, cluster: Cluster) -> None:
    await cluster.client.apply(gadgets.new(gadgets.v1, size=1), field_manager="ann")

    applied = (await cluster.client.apply(gadgets.new(gadgets.v2, colour="red"), field_manager="bob")).object

    owned = {
        entry["manager"]: (entry["apiVersion"], entry["fieldsV1"]) for entry in applied["metadata"]["managedFields"]
    }
    assert applied["spec"] == {"width": 1, "colour": "red"}
    assert owned == {
        "ann": (gadgets.v1.api_version, {"f:spec": {"f:size": {}}}),
        "bob": (gadgets.v2.api_version, {"f:spec": {"f:colour": {}}}),
    }


async def test_a_deleted_object_is_told_in_the_version_that_watches(gadgets: Gadgets, cluster: Cluster) -> None:
    created = await cluster.client.create(gadgets.new(gadgets.v1, size=1))

    await cluster.client.delete(gadgets.v1, gadgets.key())

    lines = await watch_objects(cluster, gadgets.v1, created["metadata"]["resourceVersion"])
    assert [(line["type"], line["object"]["spec"]) for line in lines] == [("DELETED", {"size": 1})]


async def test_labels_and_annotations_may_change_and_nothing_else_in_metadata(
    gadgets: Gadgets, cluster: Cluster
) -> None:
    await cluster.client.create(gadgets.new(gadgets.v2, width=1))

    def label(request: Object) -> Object:
        answer = convert(request)
        for obj in answer["convertedObjects"]:
            obj["metadata"] = {**obj["metadata"], "labels": {"a": "b"}, "finalizers": ["konverge.test/x"]}
        return answer

    gadgets.handle(label)

    read = await cluster.client.get(gadgets.v1, gadgets.key())
    assert read["metadata"]["labels"] == {"a": "b"}
    assert "finalizers" not in read["metadata"]


def change_object(**fields: Any) -> Handler:
    """Return a webhook that changes a field which it must not change."""

    def answer(request: Object) -> Object:
        found = convert(request)
        for obj in found["convertedObjects"]:
            obj["metadata"] = {**obj["metadata"], **fields.get("metadata", {})}
            obj.update({name: value for name, value in fields.items() if name != "metadata"})
        return found

    return answer


@pytest.mark.parametrize(
    ("handler", "why"),
    [
        (lambda request: {"result": {"status": "Failed", "message": "cannot do it"}}, "failed: cannot do it"),
        (
            lambda request: {"result": {"status": "Failure"}},
            "failed: response.result.status was 'Failure', not 'Success'",
        ),
        (lambda request: {}, "failed: response.result.status was '', not 'Success'"),
        (lambda request: {"result": {"status": "Success"}}, "returned 0 objects, expected 1"),
        (
            lambda request: web.Response(status=500, text="boom"),
            'failed: an error on the server ("boom") has prevented the request from succeeding',
        ),
        (
            change_object(kind="Other"),
            "returned invalid object at index 0: invalid kind (expected Gadget, received Other)",
        ),
        (
            change_object(metadata={"name": "other"}),
            "returned invalid object: must have the same name: one != other",
        ),
        (
            lambda request: web.json_response({}),
            "failed: expected webhook response of apiextensions.k8s.io/v1, Kind=ConversionReview, got /, Kind=",
        ),
    ],
)
async def test_a_conversion_that_fails_reads_like_this(
    gadgets: Gadgets, cluster: Cluster, handler: Handler, why: str
) -> None:
    await cluster.client.create(gadgets.new(gadgets.v2, width=1))
    gadgets.handle(handler)

    with pytest.raises(ApiError) as error:
        await cluster.client.get(gadgets.v1, gadgets.key())

    assert error.value.code == 500
    assert error.value.message == f"conversion webhook for {gadgets.group}/v2, Kind=Gadget {why}"


async def test_nothing_is_stored_that_cannot_be_converted(gadgets: Gadgets, cluster: Cluster) -> None:
    gadgets.handle(lambda request: {"result": {"status": "Failed", "message": "cannot do it"}})

    with pytest.raises(ApiError) as error:
        await cluster.client.create(gadgets.new(gadgets.v1, size=1))

    assert error.value.message == f"conversion webhook for {gadgets.group}/v1, Kind=Gadget failed: cannot do it"
    with pytest.raises(NotFoundError):
        await cluster.client.get(gadgets.v2, gadgets.key())


@pytest.mark.parametrize(
    ("conversion", "mistakes"),
    [
        (
            {"webhook": None},
            {("webhookClientConfig", "FieldValueRequired"), ("conversionReviewVersions", "FieldValueRequired")},
        ),
        ({"strategy": "Magic", "webhook": None}, {("strategy", "FieldValueNotSupported")}),
        (
            {"webhook": {"clientConfig": {"url": "http://x/"}, "conversionReviewVersions": ["v9"]}},
            {("webhookClientConfig.url", "FieldValueInvalid"), ("conversionReviewVersions", "FieldValueInvalid")},
        ),
        (
            {"strategy": "None"},
            {("webhookClientConfig", "FieldValueForbidden"), ("conversionReviewVersions", "FieldValueForbidden")},
        ),
    ],
)
async def test_a_conversion_is_held_to_the_rules(
    cluster: Cluster, tmp_path: Path, conversion: Object, mistakes: set[tuple[str, str]]
) -> None:
    async with webhook_server(tmp_path) as server:
        definition = Gadgets(cluster, server).definition(**conversion)
        definition["metadata"]["name"] = "gadgets.others.konverge.test"
        definition["spec"]["group"] = "others.konverge.test"

        with pytest.raises(InvalidError) as refused:
            await cluster.client.create(definition, dry_run=True)

    found = {(cause.field.removeprefix("spec.conversion."), cause.reason) for cause in refused.value.causes}
    assert found == mistakes
