"""The records on an owner, on both clusters."""

from __future__ import annotations

from typing import Any

import pytest

from konverge.errors import ConflictError
from konverge.kube import GroupVersionKind, Object, ObjectKey
from konverge_box._internal.steps.scope import build_scope
from konverge_box.expressions import EvaluationEnvironment
from konverge_cluster.testing import Cluster
from tests.box.providers.fake_cloud import FakeCloud, FakeCloudProvider, build_pool, build_providers

pytestmark = pytest.mark.anyio

CONFIG_MAP = GroupVersionKind("", "v1", "ConfigMap")


async def test_the_record_comes_before_the_thing_and_goes_after_it(cluster: Cluster) -> None:
    client, key = cluster.client, ObjectKey(cluster.namespace, "owner")
    metadata = {"name": key.name, "namespace": key.namespace, "annotations": {"kept": "by its author"}}
    old = await client.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata})
    provider = FakeCloudProvider(FakeCloud())
    step = build_providers("{kind: Machine, name: one}", build_pool(provider))
    seen: list[dict[str, str]] = []

    async def look(_: Any) -> None:
        seen.append((await client.get(CONFIG_MAP, key))["metadata"]["annotations"])

    def run(call: Any, owner: Object) -> Any:
        return call(build_scope(owner, EvaluationEnvironment(now=cluster.clock.now())), owner, client, client)

    provider.during = look
    owner = await client.get(CONFIG_MAP, key)
    await run(step.reconcile, owner)
    made = await client.get(CONFIG_MAP, key)

    assert '"name":"one"' in seen[0]["konverge.dev/providers"]
    assert owner["metadata"]["resourceVersion"] == made["metadata"]["resourceVersion"]
    with pytest.raises(ConflictError):
        await run(build_providers("{kind: Machine, name: two}", build_pool(provider)).reconcile, old)
    assert provider.cloud.names() == ["Machine one"]

    assert (await run(step.delete, made)).problems == ()
    assert (await client.get(CONFIG_MAP, key))["metadata"]["annotations"] == {"kept": "by its author"}
    assert provider.cloud.things == {}
