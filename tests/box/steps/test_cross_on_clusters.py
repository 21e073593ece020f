"""What a pass observes through the cache of an operator, and that a change of it wakes the owner."""

from __future__ import annotations

from typing import Any

import pytest

from konverge.box.expressions import Environment, revealed
from konverge.box.file import Cross, Selector
from konverge.box.steps import scope_of
from konverge.box.steps.cross import Observations
from konverge.crd import encode
from konverge.operator import Operator, OwnerContext
from konverge.testing import Cluster
from tests.operator.shops import Shop, a_town

pytestmark = pytest.mark.anyio


async def test_changes_of_what_is_observed_wake_the_owner_unless_they_are_not_to(cluster: Cluster) -> None:
    town = await a_town(cluster)
    labels = {"a": "b", "c": "d"}
    step = Observations(
        (
            Cross(api_version="v1", kind="Secret", as_="secret", selector=Selector(name="{{ metadata.name }}-it")),
            Cross(api_version="v1", kind="ConfigMap", as_="quiet", selector=Selector(name="quiet"), wake=False),
            Cross(api_version="v1", kind="ConfigMap", as_="some", selector=Selector(match_labels=labels)),
            Cross(api_version="v1", kind="Namespace", as_="space", selector=Selector(name=town.namespace)),
            Cross(api_version="nowhere.konverge.test/v1", kind="Db", as_="db", selector=Selector(name="a")),
        ),
        "cross",
        {},
    )
    operator = Operator("shops")
    seen: list[dict[str, Any]] = []

    @operator.reconciles(Shop)
    async def reconcile(shop: Shop, ctx: OwnerContext) -> None:
        scope = scope_of(encode(shop), Environment())
        seen.append(revealed(await step.observe(scope, ctx.cluster, ctx.cluster.without_waking())))

    async def put(kind: str, name: str, **more: Any) -> None:
        metadata = {"name": name, "namespace": town.namespace, "labels": more.pop("labels", {})}
        obj = {"apiVersion": "v1", "kind": kind, "metadata": metadata, **more}
        await town.client.apply(obj, field_manager="town-hall")

    async with town.looked_after_by(operator):
        await town.open("corner")
        await town.cluster.eventually(lambda: seen, describe="a first pass")
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

        await town.quiet()
        passes = len(seen)
        await put("ConfigMap", "quiet", data={"a": "b"})
        await town.quiet()
        assert len(seen) == passes

        await put("ConfigMap", "whole", labels=labels, data={"x": "z"})
        await town.cluster.eventually(lambda: seen[-1]["some"]["data"] == {"x": "z"}, describe="the change is seen")
        assert seen[-1]["quiet"]["data"] == {"a": "b"}
