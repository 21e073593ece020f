"""Lists: selection, pages and consistency."""

from __future__ import annotations

import pytest

from konverge.client import ListPage
from konverge.errors import ApiError, BadRequestError
from konverge.kube import ObjectKey
from konverge_cluster.testing import Cluster
from tests.cluster.conformance.objects import CONFIG_MAP, NAMESPACE, POD, SECRET, config_map, new, pod_spec

pytestmark = pytest.mark.anyio

NAMES = ["a", "b", "c", "d", "e"]


async def fill(cluster: Cluster) -> None:
    for name in NAMES:
        await cluster.client.create(config_map(cluster.namespace, name, labels={"case": "yes", "name": name}))


async def page(cluster: Cluster, continue_token: str = "", limit: int = 2) -> ListPage:
    return await cluster.client.list_page(
        CONFIG_MAP,
        namespace=cluster.namespace,
        label_selector="case=yes",
        limit=limit,
        continue_token=continue_token,
    )


async def names(cluster: Cluster, label_selector: str) -> list[str]:
    found = await cluster.client.list(CONFIG_MAP, namespace=cluster.namespace, label_selector=label_selector)
    return [item["metadata"]["name"] for item in found.items]


async def test_items_come_in_the_order_of_their_names(cluster: Cluster) -> None:
    for name in ("b", "c", "a"):
        await cluster.client.create(config_map(cluster.namespace, name, labels={"case": "yes"}))

    assert await names(cluster, "case=yes") == ["a", "b", "c"]


async def test_an_empty_collection_has_a_resource_version(cluster: Cluster) -> None:
    found = await cluster.client.list(SECRET, namespace=cluster.namespace)

    assert found.items == []
    assert int(found.resource_version) > 0


async def test_pages_hold_every_object_once(cluster: Cluster) -> None:
    await fill(cluster)

    found = await cluster.client.list(CONFIG_MAP, namespace=cluster.namespace, label_selector="case=yes", limit=2)

    assert [item["metadata"]["name"] for item in found.items] == NAMES


async def test_later_pages_show_the_moment_of_the_first(cluster: Cluster) -> None:
    await fill(cluster)
    first = await page(cluster)
    await cluster.client.create(config_map(cluster.namespace, "c2", labels={"case": "yes"}))
    await cluster.client.delete(CONFIG_MAP, ObjectKey(cluster.namespace, "d"))

    second = await page(cluster, first.continue_token)
    third = await page(cluster, second.continue_token)

    assert [len(part.items) for part in (first, second, third)] == [2, 2, 1]
    assert b'"name":"d"' in bytes(second.items[1])
    assert second.resource_version == first.resource_version
    assert third.continue_token == ""


async def test_a_page_that_is_not_full_has_no_continuation(cluster: Cluster) -> None:
    await fill(cluster)

    assert (await page(cluster, limit=50)).continue_token == ""


async def test_a_continue_token_that_is_none_is_refused(cluster: Cluster) -> None:
    with pytest.raises(BadRequestError, match="continue key is not valid"):
        await page(cluster, "nonsense")


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        ("name=a", ["a"]),
        ("name==b", ["b"]),
        ("case=yes,name!=a", ["b", "c", "d", "e"]),
        ("name in (a, c)", ["a", "c"]),
        ("case=yes,name notin (a,c)", ["b", "d", "e"]),
        ("name", NAMES),
        ("case,!name", []),
        ("case=yes,name in (a,b),name!=b", ["a"]),
    ],
)
async def test_labels_select(cluster: Cluster, selector: str, expected: list[str]) -> None:
    await fill(cluster)

    assert await names(cluster, selector) == expected


async def test_a_label_selector_that_cannot_be_read_is_refused(cluster: Cluster) -> None:
    with pytest.raises(BadRequestError):
        await names(cluster, "a in (")


async def test_fields_select(cluster: Cluster) -> None:
    await fill(cluster)

    found = await cluster.client.list(CONFIG_MAP, namespace=cluster.namespace, field_selector="metadata.name=b")

    assert [item["metadata"]["name"] for item in found.items] == ["b"]


async def test_fields_that_the_kind_offers_select(cluster: Cluster) -> None:
    await cluster.client.create(new(POD, cluster.namespace, "here", spec=pod_spec(nodeName="nowhere")))

    on_node = await cluster.client.list(POD, namespace=cluster.namespace, field_selector="spec.nodeName=nowhere")
    elsewhere = await cluster.client.list(POD, namespace=cluster.namespace, field_selector="spec.nodeName!=nowhere")

    assert [item["metadata"]["name"] for item in on_node.items] == ["here"]
    assert elsewhere.items == []


async def test_a_field_that_nobody_offers_is_refused(cluster: Cluster) -> None:
    with pytest.raises(
        ApiError, match='field label not supported: data.a|"data.a" is not a known field selector'
    ) as refused:
        await cluster.client.list(CONFIG_MAP, namespace=cluster.namespace, field_selector="data.a=1")

    assert refused.value.code == 400


async def test_all_namespaces_are_listed_together(cluster: Cluster) -> None:
    await cluster.client.create(config_map(cluster.namespace, "here", labels={"owner": cluster.namespace}))
    await cluster.client.create(
        config_map("default", f"{cluster.namespace}-there", labels={"owner": cluster.namespace})
    )

    found = await cluster.client.list(CONFIG_MAP, label_selector=f"owner={cluster.namespace}")

    assert [ObjectKey.of(item) for item in found.items] == [
        ("default", f"{cluster.namespace}-there"),
        (cluster.namespace, "here"),
    ]
    await cluster.client.delete(CONFIG_MAP, ObjectKey("default", f"{cluster.namespace}-there"))


async def test_cluster_scoped_objects_are_listed_too(cluster: Cluster) -> None:
    found = await cluster.client.list(NAMESPACE)

    assert {"default", "kube-system", cluster.namespace} <= {item["metadata"]["name"] for item in found.items}
