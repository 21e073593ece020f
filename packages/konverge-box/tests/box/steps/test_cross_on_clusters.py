"""The observations of a reconcile through the cache of an operator. A change of them queues the owner."""

from __future__ import annotations

from typing import Any

import pytest

from konverge.crd import encode
from konverge.operator import Operator, OwnerContext
from konverge_box._internal.file import CrossEntry, Selector
from konverge_box._internal.steps import build_scope
from konverge_box._internal.steps.observations import Observations
from konverge_box.expressions import EvaluationEnvironment, reveal_sensitive
from konverge_cluster.testing import Cluster
from tests.operator.sample_operator import Shop, start_harness

pytestmark = pytest.mark.anyio


async def test_changes_of_what_is_observed_wake_the_owner_unless_they_are_not_to(cluster: Cluster) -> None:
    town = await start_harness(cluster)
    labels = {"a": "b", "c": "d"}
    step = Observations(
        (
            CrossEntry(api_version="v1", kind="Secret", as_="secret", selector=Selector(name="{{ metadata.name }}-it")),
            CrossEntry(api_version="v1", kind="ConfigMap", as_="quiet", selector=Selector(name="quiet"), wake=False),
            CrossEntry(api_version="v1", kind="ConfigMap", as_="some", selector=Selector(match_labels=labels)),
            CrossEntry(api_version="v1", kind="Namespace", as_="space", selector=Selector(name=town.namespace)),
            CrossEntry(api_version="nowhere.konverge.test/v1", kind="Db", as_="db", selector=Selector(name="a")),
        ),
        "cross",
        {},
    )
    operator = Operator("shops")
    seen: list[dict[str, Any]] = []

    @operator.reconciles(Shop)
    async def reconcile(shop: Shop, ctx: OwnerContext) -> None:
        scope = build_scope(encode(shop), EvaluationEnvironment())
        seen.append(reveal_sensitive(await step.observe(scope, ctx.cluster, ctx.cluster.without_read_tracking())))

    async def put(kind: str, name: str, **more: Any) -> None:
        metadata = {"name": name, "namespace": town.namespace, "labels": more.pop("labels", {})}
        obj = {"apiVersion": "v1", "kind": kind, "metadata": metadata, **more}
        await town.client.apply(obj, field_manager="town-hall")

    async with town.running_operator(operator):
        await town.create_shop("corner")
        await town.cluster.eventually(lambda: seen, describe="a first reconcile")
        assert {name: each["found"] for name, each in seen[-1].items()} == {
            **dict.fromkeys(("secret", "quiet", "some", "db"), False),
            "space": True,
        }

        await put("Secret", "corner-it", stringData={"password": "hunter2"})
        await town.cluster.eventually(lambda: seen[-1]["secret"]["found"], describe="the Secret is seen")
        assert seen[-1]["secret"]["data"] == {"password": "hunter2"}

        await put("ConfigMap", "half", labels={"a": "b"})
        await put("ConfigMap", "whole", labels=labels, data={"x": "y"})
        await town.cluster.eventually(lambda: seen[-1]["some"]["found"], describe="the labels are seen")
        assert (seen[-1]["some"]["name"], seen[-1]["some"]["data"]) == ("whole", {"x": "y"})

        await town.wait_until_quiet()
        passes = len(seen)
        await put("ConfigMap", "quiet", data={"a": "b"})
        await town.wait_until_quiet()
        assert len(seen) == passes

        await put("ConfigMap", "whole", labels=labels, data={"x": "z"})
        await town.cluster.eventually(lambda: seen[-1]["some"]["data"] == {"x": "z"}, describe="the change is seen")
        assert seen[-1]["quiet"]["data"] == {"a": "b"}
