"""The isolation of the custom resources of a box, and the report of the health of each."""

import asyncio
from typing import Any

import prometheus_client
import pytest
from yarl import URL

from konverge._internal.operator.dry_run import dry_run_owner
from konverge.kube import find_condition
from konverge.observability import Metrics
from konverge_box._internal.calls import CallRequest
from konverge_box._internal.file import load_box
from konverge_box._internal.runtime import BoxController
from konverge_box._internal.runtime.box_dry_run import DryRunCaller
from konverge_box._internal.runtime.box_health import BoxHealth, BoxReconcileResult
from konverge_box._internal.runtime.box_metrics import BoxMetrics
from konverge_box.providers import ProviderPool, ProviderRegistry
from tests.box.providers.fake_cloud import FakeCloud, FakeCloudProvider
from tests.box.running.box_harness import (
    BOOK,
    CONFIG_MAP,
    SHELF,
    BoxHarness,
    build_box,
    build_box_text,
    build_config_map,
    build_custom_resource,
)

pytestmark = pytest.mark.anyio

NOWHERE: Any = None  # no request is sent, so that no network is needed
MACHINE = {"cloud": [{"kind": "Machine", "name": "{{ metadata.name }}", "spec": {"size": 2}}]}


def with_cloud(cloud: FakeCloudProvider, **crds: Any) -> BoxController:
    text = build_box_text(**crds).replace("spec:\n", "spec:\n  providers: {cloud: {settings: {region: here}}}\n", 1)
    return BoxController(load_box(text), pool=ProviderPool(ProviderRegistry.from_providers([cloud])))


async def test_a_call_that_hangs_holds_up_no_other_custom_resource(library: BoxHarness) -> None:
    provider = FakeCloudProvider(FakeCloud())
    forever = asyncio.Event()
    provider.during = lambda request: forever.wait()
    running = with_cloud(
        provider,
        shelf=build_custom_resource("Shelf", providers=MACHINE),
        book=build_custom_resource("Book", onReconcile={"configMaps": [build_config_map(a="b")]}),
    )
    async with library.running(running):
        for number in range(6):
            await library.create(SHELF, f"stuck-{number}")
        await library.cluster.eventually(lambda: provider.calls or None, describe="the provider is called")
        await library.create(BOOK, "novel")
        await library.wait_for_condition(BOOK, "novel", "Healthy", status="True")
        forever.set()


async def test_what_providers_keep_is_made_told_and_deleted_with_its_owner(library: BoxHarness) -> None:
    cloud = FakeCloud()
    running = with_cloud(
        FakeCloudProvider(cloud),
        shelf=build_custom_resource(
            "Shelf",
            providers=MACHINE,
            status={"fields": [{"path": "ready", "value": "{{ providers.cloud.top.state }}"}]},
        ),
    )
    async with library.running(running):
        await library.create(SHELF, "top")
        await library.wait_for_condition(SHELF, "top", "Ready", "CloudReady", "True")
        assert cloud.names() == ["Machine top"]
        shelf = await library.get(SHELF, "top")
        ready = find_condition(shelf, "Ready")
        assert ready is not None
        assert (ready.status, ready.message) == ("True", "The part Cloud is healthy.")
        assert shelf["status"]["ready"] == "Ready"

        await library.delete(SHELF, "top")
        await library.wait_until_gone(SHELF, "top")
    assert cloud.names() == []


async def test_a_rehearsal_changes_nothing_and_asks_no_provider(library: BoxHarness) -> None:
    provider = FakeCloudProvider(FakeCloud())
    shelf = build_custom_resource(
        "Shelf",
        cross=[{"apiVersion": "v1", "kind": "ConfigMap", "as": "seen", "selector": {"name": "none"}}],
        providers=MACHINE,
        onCreate={"configMaps": [build_config_map("{{ metadata.name }}-seed", a="b")]},
        onReconcile={"configMaps": [{**build_config_map("{{ item }}", found="{{ cross.seen.found }}"),
                                     "forEach": {"field": "spec.names"}}]},
    )  # fmt: skip
    running = with_cloud(provider, shelf=shelf)
    async with library.running(with_cloud(FakeCloudProvider(FakeCloud()), shelf=build_custom_resource("Shelf"))):
        owner = await library.create(SHELF, "top", names=["one", "two"])
        await library.wait_for_condition(SHELF, "top", "Reconciled")
        owner = await library.get(SHELF, "top")
    registered = running.operator.registered

    found = await dry_run_owner(
        registered.classes[0], owner, library.client, indexes=registered.indexes, clock=library.clock
    )

    names = ["top-seed", "one", "two"]
    made = [f"v1/ConfigMap/{library.namespace}/{name}" for name in names]
    assert found.errors == ()
    assert [change.identity for change in found.changes if change.action == "create"] == made
    assert provider.calls == []
    for name in names:
        assert not await library.exists(CONFIG_MAP, name)
    assert await library.get(SHELF, "top") == owner


async def test_a_file_without_providers_leaves_nothing_of_them_in_the_status(library: BoxHarness) -> None:
    cloud = FakeCloud()
    running = with_cloud(FakeCloudProvider(cloud), shelf=build_custom_resource("Shelf", providers=MACHINE))
    bare = with_cloud(FakeCloudProvider(cloud), shelf=build_custom_resource("Shelf"))
    async with library.running(running):
        await library.create(SHELF, "top")
        await library.wait_for_condition(SHELF, "top", "Ready", type="CloudReady", status="True")
        running.active.replace(bare.active.box, bare.active.pipelines)

        async def is_bare() -> bool:
            status = (await library.get(SHELF, "top"))["status"]
            assert ([each["type"] for each in status["conditions"]], "providers" in status) == (["Ready"], False)
            return True

        await library.cluster.eventually(is_bare, describe="the status has no fields of providers")
        assert cloud.names() == []


@pytest.mark.parametrize("cluster_kind", [pytest.param("embedded", marks=pytest.mark.embedded)])
async def test_a_pass_that_never_ends_counts_as_a_failure_when_its_time_is_over(
    library: BoxHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    running = BoxController(build_box(shelf=build_custom_resource("Shelf")))

    async def forever(*args: Any) -> Any:
        await asyncio.Event().wait()

    monkeypatch.setattr(running.active.pipelines["shelf"].groups, "plan", forever)
    async with library.running(running):
        await library.create(SHELF, "stuck")
        [run] = running.active.runs
        await library.clock.sleep(130)

        health = run.health.resources["shelf"]
        assert health.is_started
        assert (health.failures, health.last_error) == (1, "the reconcile timed out after 120 s")


async def test_a_rehearsal_makes_no_call_that_might_change_something() -> None:
    async with DryRunCaller() as caller:
        request = CallRequest(protocol="http", url=URL("https://example.com/"), networks=NOWHERE, method="POST")
        answer = await caller.call(request)

    assert answer.error == "not sent in a dry run: a POST call can change data"


async def test_metrics_and_the_debug_page_tell_how_each_custom_resource_does(library: BoxHarness) -> None:
    rules = [{"field": "spec.text", "notEquals": "rude", "message": "no"}]
    lines = {"configMaps": [build_config_map(lines="{{ spec.lines | join(',') }}")]}
    shelf = build_custom_resource("Shelf", validation=rules, onReconcile=lines, reconcile={"failureThreshold": 2})
    async with library.running(build_box(shelf=shelf, book=build_custom_resource("Book"))) as running:
        await library.create(SHELF, "rude", text="rude")
        await library.wait_for_condition(SHELF, "rude", "ValidationFailed")
        await library.create(SHELF, "poison", lines={"no": "list"})
        [run] = running.active.runs
        await library.cluster.eventually(
            lambda: run.health.resources["shelf"].is_degraded or None, describe="it is degraded"
        )
        rows = {row["custom resource"]: row for row in run.build_debug_rows()}

    assert rows["shelf"]["state"] == "degraded"
    assert rows["shelf"]["reconciles: denied"] >= 1
    assert "expected a list" in rows["shelf"]["last error"]
    assert rows["book"]["state"] == "healthy"


def test_what_is_counted_has_the_names_of_the_documentation() -> None:
    metrics = Metrics()
    figures, health = BoxMetrics("library", metrics), BoxHealth({}, {"shelf": 1})
    health.resources["shelf"].failures = 3
    figures.record_reconcile("shelf", BoxReconcileResult.ERROR, health)
    figures.record_step("shelf", "cross", 0.25)
    figures.record_validation("shelf", denied=True, warned=False)
    figures.record_reload(applied=False)

    text = prometheus_client.generate_latest(metrics.registry).decode()
    for line in (
        'konverge_box_passes_total{box="library",crd="shelf",result="error"} 1.0',
        'konverge_box_consecutive_failures{box="library",crd="shelf"} 3.0',
        'konverge_box_degraded{box="library",crd="shelf"} 1.0',
        'konverge_box_step_seconds_sum{box="library",crd="shelf",step="cross"} 0.25',
        'konverge_box_validation_total{box="library",crd="shelf",result="rejected"} 1.0',
        'konverge_box_reloads_total{box="library",result="refused"} 1.0',
        'konverge_box_file_refused{box="library"} 1.0',
    ):
        assert line in text
