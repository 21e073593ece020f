"""Owners whose objects the cluster refuses, and their recovery."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import pairwise

import pytest

from konverge.kube import GroupVersionKind
from konverge.operator import Operator
from tests.operator.faulty_transport import ErrorResponse, FaultyTransport, build_error_response
from tests.operator.sample_operator import CONFIG_MAP, SHOP, OperatorHarness, Shop, settings

pytestmark = pytest.mark.anyio

RESOURCE_QUOTA = GroupVersionKind("", "v1", "ResourceQuota")
BUSY_SECONDS = 15  # for a machine that has other things to do as well
EXCEEDED = 'configmaps "corner-settings" is forbidden: exceeded quota: small, requested: count/configmaps=1'


class Quota:
    """Refuses every ConfigMap until it is lifted."""

    is_lifted = False

    def __call__(self, method: str, path: str) -> ErrorResponse | None:
        refuses = method == "PATCH" and "/configmaps/" in path and not self.is_lifted
        return build_error_response(403, EXCEEDED, "Forbidden") if refuses else None


async def fail_by_events(town: OperatorHarness, name: str, tries: Callable[[], int]) -> None:
    """Bring on 22 failures by changes of the owner that mean nothing."""
    for number in range(22):
        has_more = partial(lambda before: tries() > before, tries())
        body = {"metadata": {"annotations": {"touched": str(number)}}}
        await town.client.patch(SHOP, town.key(name), body, patch_type="merge")
        await town.cluster.eventually(has_more, describe="another try")


async def seconds_until_settings(town: OperatorHarness, name: str) -> float:
    """Return the time from now until the owner's ConfigMap exists."""
    lifted = town.clock.monotonic()
    await town.cluster.eventually(lambda: town.exists(CONFIG_MAP, f"{name}-settings"), 90, "the owner is tried again")
    return town.clock.monotonic() - lifted


async def test_failures_that_events_bring_on_do_not_make_an_owner_wait_for_minutes(town: OperatorHarness) -> None:
    operator = Operator("shops")
    operator.manages(Shop, settings)
    transport = FaultyTransport(town.cluster.new_transport(), quota := Quota())
    async with town.running_operator(operator, transport=transport):
        await town.create_shop("corner")
        await fail_by_events(town, "corner", lambda: len(transport.refused))
        quota.is_lifted = True

        assert await seconds_until_settings(town, "corner") <= 30


# The embedded cluster enforces no quotas.
@pytest.mark.parametrize("cluster_kind", [pytest.param("real", marks=pytest.mark.real)])
async def test_an_owner_is_tried_again_within_half_a_minute_after_its_quota_was_lifted(town: OperatorHarness) -> None:
    key = town.key("small")
    quota = {"apiVersion": "v1", "kind": "ResourceQuota", "spec": {"hard": {"count/configmaps": "1"}}}
    await town.client.create({**quota, "metadata": {"name": key.name, "namespace": key.namespace}})

    async def is_full() -> bool:
        status = (await town.client.get(RESOURCE_QUOTA, key)).get("status", {})
        return "1" in (status.get("used") or {}).values()

    await town.cluster.eventually(is_full, 120, describe="the quota counts kube-root-ca.crt, and is used up")
    operator = Operator("shops")
    operator.manages(Shop, settings)
    async with town.running_operator(operator):
        await town.create_shop("corner")
        await fail_by_events(town, "corner", lambda: len(town.writes()))
        condition = await town.condition("corner", "SettingsReady")
        await town.client.delete(RESOURCE_QUOTA, key)

        assert condition is not None
        assert "exceeded quota: small" in condition.message
        await seconds_until_settings(town, "corner")

    # The server may refuse for a while what it is asked after the quota has gone: each try that it gets counts.
    times = [request.time for request in town.writes() if "/configmaps/" in request.path]
    pauses = [(later - earlier).total_seconds() for earlier, later in pairwise(times)]
    assert max(pauses) <= 30 + BUSY_SECONDS
