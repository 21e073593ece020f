"""Groups that read results of providers and of earlier groups, and deletions that take a while, on both clusters."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from konverge._internal.operator.dry_run import dry_run_owner
from konverge_box._internal.file import load_box
from konverge_box._internal.runtime import BoxController
from konverge_box.providers import ProviderPool, ProviderRegistry
from tests.box.providers.fake_cloud import FakeCloud, FakeCloudProvider
from tests.box.running.box_harness import (
    CONFIG_MAP,
    SECRET,
    SHELF,
    BoxHarness,
    build_box_text,
    build_config_map,
    build_custom_resource,
)

pytestmark = pytest.mark.anyio


def build_running(cloud: FakeCloudProvider, **steps: Any) -> BoxController:
    shelf = build_custom_resource("Shelf", **steps)
    text = build_box_text(shelf=shelf).replace("spec:\n", "spec:\n  providers: {cloud: {}}\n", 1)
    return BoxController(load_box(text), pool=ProviderPool(ProviderRegistry.from_providers([cloud])))


MACHINE = {"cloud": [{"kind": "Machine", "name": "m"}]}
LATE: dict[str, Any] = {
    "providers": MACHINE,
    "onReconcile": [
        {"name": "first", "configMaps": [build_config_map("base", a="b")]},
        {
            "name": "late",
            "configMaps": [build_config_map("address", id="{{ providers.cloud.m.outputs.id }}")],
            "secrets": [{"name": "word", "stringData": {"word": "{{ providers.cloud.m.outputs.secret }}"}}],
        },
    ],
    "status": {"fields": [{"path": "machine", "value": "{{ providers.cloud.m.outputs.id }}"}]},
}


async def test_a_group_reads_the_outputs_of_a_provider_in_the_same_reconcile(library: BoxHarness) -> None:
    cloud = FakeCloudProvider(FakeCloud())
    async with library.running(build_running(cloud, **LATE)):
        await library.create(SHELF, "top")

        await library.wait_for_condition(SHELF, "top", "Healthy", status="True")
        await library.wait_for_data("address", id="i-1")
        word = (await library.get(SECRET, "word"))["data"]["word"]
        assert base64.b64decode(word).decode() == "s3cr3t-output"
        shelf = await library.get(SHELF, "top")
        assert shelf["status"]["machine"] == "i-1"
        assert "s3cr3t" not in str(shelf)
        await library.wait_until_quiet()
        before = len(library.requests())
        await library.wait_until_quiet()
        assert len(library.requests()) == before


async def test_a_provider_that_fails_leaves_the_objects_of_its_readers_as_they_are(library: BoxHarness) -> None:
    cloud = FakeCloudProvider(FakeCloud())
    async with library.running(build_running(cloud, **LATE)):
        await library.create(SHELF, "top")
        await library.wait_for_condition(SHELF, "top", "Healthy", status="True")

        def fail(request: object) -> None:
            raise OSError("no route")

        cloud.during = fail
        await library.change(SHELF, "top", size=2)
        await library.wait_for_condition(SHELF, "top", "Error", message="no route")
        assert (await library.get(CONFIG_MAP, "address"))["data"] == {"id": "i-1"}
        assert (await library.get(CONFIG_MAP, "base"))["data"] == {"a": "b"}

        cloud.during = None
        await library.wait_for_condition(SHELF, "top", "Healthy", status="True")


async def test_a_dry_run_shows_the_readers_of_providers_as_blocked(library: BoxHarness) -> None:
    cloud = FakeCloudProvider(FakeCloud())
    running = build_running(cloud, **LATE)
    async with library.running(running):
        owner = await library.create(SHELF, "top")
        await library.wait_for_condition(SHELF, "top", "Healthy", status="True")
    calls = len(cloud.calls)
    registered = running.operator.registered

    report = await dry_run_owner(
        registered.classes[0], owner, library.client, indexes=registered.indexes, clock=library.clock
    )

    late = next(each for each in report.components if each.component == "late")
    assert late.after is not None
    assert late.after.reason == "Blocked"
    assert "waiting for providers, which have no results in this reconcile" in late.after.message
    assert len(cloud.calls) == calls


async def test_an_owner_waits_for_the_items_that_their_service_still_deletes(library: BoxHarness) -> None:
    cloud = FakeCloudProvider(FakeCloud())
    async with library.running(build_running(cloud, providers=MACHINE)):
        await library.create(SHELF, "top")
        await library.wait_for_condition(SHELF, "top", "Ready", status="True")
        cloud.slow_deletes = 1_000_000
        await library.delete(SHELF, "top")

        waiting = await library.wait_for_condition(SHELF, "top", "Deleting", message="Machine m is being deleted")
        assert "i-1 shuts down" in waiting.message
        calls = len(cloud.calls)
        await library.clock.sleep(3)
        assert len(cloud.calls) - calls <= 1, "the report of the deletion triggers the next one"

        cloud.slow_deletes = 0
        await library.wait_until_gone(SHELF, "top")
        assert cloud.cloud.things == {}
