"""The examples of the guidelines behave as the page describes."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

import pytest

from konverge import Metadata
from konverge.crd import find_definition
from konverge.errors import NotFoundError, TerminalError
from konverge.kube import GroupVersionKind, Object, ObjectKey
from konverge_cluster.testing import Cluster
from tests.docs.pages import load_page_operator, save_page_code

PAGE = "docs/guidelines.md"
CLUSTER_ROLE = GroupVersionKind("rbac.authorization.k8s.io", "v1", "ClusterRole")


@pytest.fixture
def example(tmp_path: Path) -> dict[str, Any]:
    """Return the variables of the page's file."""
    return runpy.run_path(str(save_page_code(PAGE, tmp_path)))


def pages(example: dict[str, Any], **spec: Any) -> Any:
    return example["pages"](example["Shop"](Metadata(name="a", namespace="b"), example["ShopSpec"](**spec)))


def deployment(component: Any) -> Object:
    found: Object = component.preview()[1]
    return found


def test_an_old_version_and_a_user_change_what_the_newest_shape_is(example: dict[str, Any]) -> None:
    old = pages(example, version="8.4.2", memory="1Gi")

    (container,) = deployment(old)["spec"]["template"]["spec"]["containers"]

    assert old.firing_set() == ("old-port-flag", "restart-on-settings", "users-memory")
    assert pages(example).firing_set() == ("restart-on-settings",)
    assert (container["args"], container["resources"]) == (["--listen=8080"], {"limits": {"memory": "1Gi"}})


def test_a_version_below_the_oldest_is_refused_for_good(example: dict[str, Any]) -> None:
    with pytest.raises(TerminalError, match=r"spec.version is 8.3.9: this operator runs >=8.4"):
        pages(example, version="8.3.9")


def test_the_annotation_changes_with_the_settings_and_only_then(example: dict[str, Any]) -> None:
    def annotation(**spec: Any) -> str:
        text: str = deployment(pages(example, **spec))["spec"]["template"]["metadata"]["annotations"]["settings"]
        return text

    assert annotation(settings={"a": "1"}) == annotation(settings={"a": "1"}, memory="1Gi")
    assert annotation(settings={"a": "1"}) != annotation(settings={"a": "2"})


@pytest.mark.anyio
async def test_the_shop_becomes_ready_and_takes_its_cluster_role_with_it(cluster: Cluster, tmp_path: Path) -> None:
    operator = load_page_operator(PAGE, tmp_path)
    shop = find_definition(operator.custom_resources[0]).gvk
    key, role = ObjectKey(cluster.namespace, "home"), ObjectKey("", f"{cluster.namespace}-home-shop")
    metadata = {"name": key.name, "namespace": key.namespace}

    async def is_gone() -> bool:
        try:
            await cluster.client.get(shop, key)
        except NotFoundError:
            return True
        return False

    async with cluster.run_operator(operator):
        await cluster.client.create(
            {"apiVersion": shop.api_version, "kind": shop.kind, "metadata": metadata, "spec": {}}
        )
        await cluster.wait_for_condition(shop, "home", type="AccessReady")
        await cluster.wait_for_condition(shop, "home", reason="Healthy")
        service = await cluster.client.get(
            GroupVersionKind("", "v1", "Service"), ObjectKey(key.namespace, "home-store")
        )
        cache = await cluster.client.get(
            GroupVersionKind("apps", "v1", "Deployment"), ObjectKey(key.namespace, "home-cache")
        )
        assert "ownerReferences" not in (await cluster.client.get(CLUSTER_ROLE, role))["metadata"]
        await cluster.client.delete(shop, key)
        await cluster.eventually(is_gone, describe="the shop is gone")
        with pytest.raises(NotFoundError):
            await cluster.client.get(CLUSTER_ROLE, role)

    (container,) = cache["spec"]["template"]["spec"]["containers"]
    assert container["env"] == [{"name": "STORE", "value": service["spec"]["clusterIP"]}]
