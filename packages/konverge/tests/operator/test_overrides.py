"""A foreign webhook changes the objects of an operator before storage, on either cluster."""

from __future__ import annotations

from pathlib import Path

import pytest

from konverge.kube import GroupVersionKind, Object
from konverge.operator import Operator
from tests.cluster.conformance.webhook_registrations import MUTATING, webhook_registrations
from tests.cluster.conformance.webhook_servers import ALLOWED, json_patch
from tests.operator.sample_operator import OperatorHarness, Shop, settings

pytestmark = pytest.mark.anyio

EVENT = GroupVersionKind("events.k8s.io", "v1", "Event")


def rude(request: Object) -> Object:
    data = (request["object"] or {}).get("data") or {}
    return (
        json_patch({"op": "replace", "path": "/data/greeting", "value": "Go away"}) if "greeting" in data else ALLOWED
    )


async def test_an_overridden_field_is_said_by_an_event_and_heals_after_the_webhook_has_gone(
    town: OperatorHarness, tmp_path: Path
) -> None:
    operator = Operator("shops")
    operator.manages(Shop, settings)

    async def warnings() -> list[str]:
        listed = await town.client.list(EVENT, namespace=town.namespace)
        return [event["note"] for event in listed.items if event["reason"] == "ResourceOverridden"]

    async with webhook_registrations(town.cluster, tmp_path) as hooks:
        await hooks.add(MUTATING, "rude", rude)
        async with town.running_operator(operator):
            await town.create_shop("corner")
            await town.wait_until_ready("corner")
            assert await town.data("corner-settings") == {"greeting": "Go away"}
            (told,) = await town.cluster.eventually(warnings, describe="an event says so")
            assert "ConfigMap 'corner-settings' is stored with other values" in told
            await town.wait_until_quiet()

            await hooks.remove_all()

            async def is_healed() -> bool:
                return await town.data("corner-settings") == {"greeting": "Hello"}

            await town.cluster.eventually(is_healed, timeout_seconds=100, describe="the field has our value")
            await town.wait_until_quiet()
            assert len(await warnings()) == 1
