"""The operator of the page about generated values works as the page describes, and shows no value."""

from __future__ import annotations

import logging
from base64 import b64decode
from pathlib import Path

import pytest

from konverge._internal.primitives.value_generation import ROTATE
from konverge.crd import find_definition
from konverge.kube import GroupVersionKind, Object, ObjectKey
from konverge.primitives import Generated, Secret
from konverge_cluster.testing import Cluster
from tests.docs.pages import load_page_operator, read_page

PAGE = "docs/generated-values.md"
DEPLOYMENT = GroupVersionKind("apps", "v1", "Deployment")
EVENT = GroupVersionKind("events.k8s.io", "v1", "Event")
SECRET = GroupVersionKind("", "v1", "Secret")


def test_every_shape_is_listed() -> None:
    shapes = [name for name in vars(Generated) if not name.startswith("_")]
    assert len(shapes) > 5
    assert [name for name in shapes if f"| `Generated.{name}(" not in read_page(PAGE)] == []


@pytest.mark.anyio
async def test_the_operator_of_the_page_makes_rotates_and_hides_values(
    cluster: Cluster, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    operator = load_page_operator(PAGE, tmp_path)
    shop = find_definition(operator.custom_resources[0]).gvk
    client, key = cluster.client, ObjectKey(cluster.namespace, "home")
    values: set[str] = set()

    async def read() -> Object:
        secret = await client.get(SECRET, ObjectKey(key.namespace, "home-db"))
        values.update(b64decode(text).decode() for name, text in secret["data"].items() if name != "username")
        return secret

    async def is_settled(first: Object | None = None) -> bool:
        secret = await read()
        deployment = await client.get(DEPLOYMENT, key)
        annotations = deployment["spec"]["template"]["metadata"]["annotations"]
        is_changed = first is None or secret["data"]["password"] != first["data"]["password"]
        return bool(is_changed) and annotations == {"access": Secret.hash_data(secret)}

    async def has_events() -> bool:
        events = (await client.list(EVENT, namespace=key.namespace)).items
        return {"ValuesGenerated", "ValuesRotated"} <= {event["reason"] for event in events}

    async with cluster.run_operator(operator):
        await client.create(
            {
                "apiVersion": shop.api_version,
                "kind": shop.kind,
                "metadata": {"name": key.name, "namespace": key.namespace},
                "spec": {},
            }
        )
        await cluster.wait_for_condition(shop, "home", type="StoreReady")
        assert await is_settled()
        first = await read()
        await client.patch(shop, key, {"spec": {"rotation": "leaked"}}, patch_type="merge")
        await cluster.eventually(lambda: is_settled(first), describe="the values of the declared rotation")
        second = await read()
        request = {"metadata": {"annotations": {ROTATE: "now"}}}
        await client.patch(SECRET, ObjectKey(key.namespace, "home-db"), request, patch_type="merge")
        await cluster.eventually(lambda: is_settled(second), describe="the values that the user requested")
        certificate = await client.get(SECRET, ObjectKey(key.namespace, "home-db-tls"))
        await cluster.wait_for_condition(shop, "home", type="StoreReady")
        owner = await client.get(shop, key)
        await cluster.eventually(has_events, describe="the events are written")
        events = (await client.list(EVENT, namespace=key.namespace)).items

    password = b64decode(first["data"]["password"]).decode()
    assert len(password) == 24
    assert b64decode(first["data"]["url"]).decode() == f"postgres://app:{password}@home-db/app"
    assert set(certificate["data"]) == {"tls.crt", "tls.key", "ca.crt"}
    assert certificate["type"] == "kubernetes.io/tls"
    assert len(values) == 9
    shown = f"{owner} {events} {caplog.text}"
    assert [value for value in values if value in shown] == []
