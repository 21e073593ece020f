"""Custom resources that are paused, or only shown what would happen to them, on both clusters."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from konverge.kube import Object, ObjectKey, find_condition
from konverge_box._internal.file import find_file_errors
from konverge_box._internal.runtime.box_health import BoxHealth, BoxReconcileResult
from konverge_box._internal.runtime.pause import DRY_RUN_ANNOTATION, PAUSED_ANNOTATION
from tests.box.running.box_harness import (
    CONFIG_MAP,
    SHELF,
    BoxHarness,
    build_box,
    build_box_text,
    build_config_map,
    build_custom_resource,
)

pytestmark = pytest.mark.anyio

PAUSABLE = build_custom_resource(
    "Shelf",
    pause=[{"field": "spec.paused", "equals": True}],
    onReconcile={"configMaps": [build_config_map(a="{{ spec.a }}")]},
    onDelete={"groups": [{"delete": {"configMaps": [{"name": "{{ metadata.name }}"}]}}]},
)


async def annotate(library: BoxHarness, name: str, annotation: str, text: str | None) -> None:
    body = {"metadata": {"annotations": {annotation: text}}}
    await library.client.patch(SHELF, library.key(name), body, patch_type="merge")


async def wait_until_absent(library: BoxHarness, name: str, condition_type: str) -> None:
    async def is_absent() -> bool:
        return find_condition(await library.get(SHELF, name), condition_type) is None

    await library.cluster.eventually(is_absent, describe=f"{name} has no condition {condition_type}")


async def test_a_paused_object_is_left_as_it_is_and_goes_on_when_the_pause_ends(library: BoxHarness) -> None:
    async with library.running(build_box(shelf=PAUSABLE)):
        await library.create(SHELF, "top", a="1")
        await library.wait_for_data("top", a="1")
        await annotate(library, "top", PAUSED_ANNOTATION, "true")
        paused = await library.wait_for_condition(SHELF, "top", "PausedByAnnotation", "Paused", "True")
        assert PAUSED_ANNOTATION in paused.message

        await library.change(SHELF, "top", a="2")
        await library.client.delete(CONFIG_MAP, library.key("top"))
        await library.wait_until_quiet()
        assert not await library.exists(CONFIG_MAP, "top")

        await annotate(library, "top", PAUSED_ANNOTATION, None)
        await library.wait_for_data("top", a="2")
        await wait_until_absent(library, "top", "Paused")
        await library.wait_for_condition(SHELF, "top", "Healthy", status="True")


async def test_a_field_pauses_and_the_condition_names_it(library: BoxHarness) -> None:
    async with library.running(build_box(shelf=PAUSABLE)):
        await library.create(SHELF, "top", a="1", paused=True)
        paused = await library.wait_for_condition(SHELF, "top", "PausedByField", "Paused", "True")
        assert paused.message == "Nothing is changed while spec.paused equals true"
        assert not await library.exists(CONFIG_MAP, "top")
        await library.wait_until_quiet()
        before = len(library.requests())
        await library.wait_until_quiet()
        assert len(library.requests()) == before

        await library.change(SHELF, "top", paused=False)
        await library.wait_for_data("top", a="1")
        await wait_until_absent(library, "top", "Paused")


async def test_a_paused_object_is_not_cleaned_up_after_before_the_pause_ends(library: BoxHarness) -> None:
    async with library.running(build_box(shelf=PAUSABLE)):
        await library.create(SHELF, "top", a="1")
        await library.wait_for_data("top", a="1")
        await annotate(library, "top", PAUSED_ANNOTATION, "true")
        await library.wait_for_condition(SHELF, "top", "PausedByAnnotation", "Paused")
        await library.delete(SHELF, "top")

        await library.wait_for_condition(SHELF, "top", "Deleting", message="it is paused")
        await library.wait_until_quiet()
        assert await library.exists(CONFIG_MAP, "top")

        await annotate(library, "top", PAUSED_ANNOTATION, "false")
        await library.wait_until_gone(SHELF, "top")


async def test_an_object_that_is_paused_from_the_beginning_has_nothing_not_even_a_finalizer(
    library: BoxHarness,
) -> None:
    async with library.running(build_box(shelf=PAUSABLE)):
        metadata = {"name": "top", "namespace": library.namespace, "annotations": {PAUSED_ANNOTATION: "yes"}}
        await library.client.create(
            {"apiVersion": SHELF.api_version, "kind": SHELF.kind, "metadata": metadata, "spec": {"a": "1"}}
        )
        await library.wait_for_condition(SHELF, "top", "PausedByAnnotation", "Paused")
        assert "finalizers" not in (await library.get(SHELF, "top"))["metadata"]
        await library.delete(SHELF, "top")
        await library.wait_until_gone(SHELF, "top")


async def test_a_pause_that_cannot_be_told_is_an_error_and_changes_nothing(library: BoxHarness) -> None:
    shelf = {**PAUSABLE, "pause": [{"field": "{{ spec.a + 1 }}", "equals": 2}]}
    async with library.running(build_box(shelf=shelf)):
        await library.create(SHELF, "top", a="x")

        await library.wait_for_condition(SHELF, "top", "Error", message="spec.crds.shelf.pause[0]")
        assert not await library.exists(CONFIG_MAP, "top")


async def test_a_condition_of_that_name_of_another_operator_stays(library: BoxHarness) -> None:
    async with library.running(build_box(shelf=PAUSABLE)):
        created = await library.create(SHELF, "top", a="1")
        await library.wait_for_data("top", a="1")
        foreign = {"type": "Paused", "status": "False", "reason": "NotPaused", "message": "",
                   "lastTransitionTime": "2026-01-01T00:00:00Z"}  # fmt: skip
        live = await library.get(SHELF, "top")
        live["status"]["conditions"] = [*live["status"]["conditions"], foreign]
        await library.client.update(live, subresource="status")
        await library.change(SHELF, "top", a="2")
        await library.wait_for_data("top", a="2")

        found = find_condition(await library.get(SHELF, "top"), "Paused")
        assert found is not None
        assert found.reason == "NotPaused"
        assert created["metadata"]["name"] == "top"


async def test_a_dry_run_of_one_object_reports_and_writes_nothing_else(library: BoxHarness) -> None:
    async with library.running(build_box(shelf=PAUSABLE)):
        await library.create(SHELF, "top", a="1")
        await library.create(SHELF, "other", a="1")
        await library.wait_for_data("top", a="1")
        await annotate(library, "top", DRY_RUN_ANNOTATION, "true")
        await library.wait_for_condition(SHELF, "top", "NothingToChange", "DryRun", "True")

        await library.change(SHELF, "top", a="2")
        await library.change(SHELF, "other", a="2")

        report = await library.wait_for_condition(SHELF, "top", "WouldChange", "DryRun", "True")
        name = f"v1/ConfigMap/{library.namespace}/top"
        assert report.message == f"Dry run: 1 to update. update {name} (.data.a)"
        await library.wait_for_data("other", a="2")
        assert (await library.get(CONFIG_MAP, "top"))["data"] == {"a": "1"}

        await annotate(library, "top", DRY_RUN_ANNOTATION, None)
        await library.wait_for_data("top", a="2")
        await wait_until_absent(library, "top", "DryRun")


async def test_a_dry_run_reports_what_would_fail_and_what_would_be_denied(library: BoxHarness) -> None:
    shelf = {**PAUSABLE, "validation": [{"field": "spec.a", "notEquals": "bad", "message": "a is bad"}]}
    async with library.running(build_box(shelf=shelf)):
        for name, spec in (("failing", {"a": {"no": "text"}}), ("denied", {"a": "bad"})):
            metadata = {"name": name, "namespace": library.namespace, "annotations": {DRY_RUN_ANNOTATION: "1"}}
            obj: Object = {"apiVersion": SHELF.api_version, "kind": SHELF.kind, "metadata": metadata, "spec": spec}
            await library.client.create(obj)

        await library.wait_for_condition(SHELF, "failing", "WouldFail", "DryRun", message="it would fail: ")
        await library.wait_for_condition(
            SHELF, "denied", "NothingToChange", "DryRun", message="Ready would be False (ValidationFailed)"
        )
        assert not await library.exists(CONFIG_MAP, "failing")


async def test_an_object_in_a_dry_run_is_not_cleaned_up_after(library: BoxHarness) -> None:
    async with library.running(build_box(shelf=PAUSABLE)):
        await library.create(SHELF, "top", a="1")
        await library.wait_for_data("top", a="1")
        await annotate(library, "top", DRY_RUN_ANNOTATION, "true")
        await library.wait_for_condition(SHELF, "top", "NothingToChange", "DryRun")
        await library.delete(SHELF, "top")

        await library.wait_for_condition(SHELF, "top", "Deleting", message="nothing is deleted while the annotation")
        assert await library.exists(CONFIG_MAP, "top")
        await annotate(library, "top", DRY_RUN_ANNOTATION, None)
        await library.wait_until_gone(SHELF, "top")


@pytest.mark.parametrize(
    ("pause", "problem"),
    [
        ([{"field": "sepc.paused"}], "pause[0].field: unknown name: sepc; did you mean spec?"),
        (
            [{"field": "cross.a.found"}],
            "pause[0].field: cross.a.found is not available here: cross sets it after pause",
        ),
        ([{"field": "spec.a", "equal": 1}], "pause[0].equal: unknown field; did you mean equals?"),
        ({"field": "spec.a"}, "pause: expected a list"),
        ([{"negate": True}], "pause[0]: expected field, time, dayOfWeek or cron"),
    ],
)
def test_a_pause_with_a_mistake_says_where_and_what(pause: Any, problem: str) -> None:
    shelf = build_custom_resource("Shelf", pause=pause)

    found = [str(each) for each in find_file_errors(build_box_text(shelf=shelf))]

    assert [each for each in found if f"spec.crds.shelf.{problem}" in each], found


def test_a_paused_object_counts_as_reconciled_and_ends_no_row_of_failures() -> None:
    health, key = BoxHealth({"a": {}}, {"a": 2}), ObjectKey("x", "y")
    health.start({"a": [key]})
    now = datetime(2026, 1, 1, tzinfo=UTC)
    for _ in range(2):
        health.record_reconcile("a", ObjectKey("x", "z"), BoxReconcileResult.ERROR, error="no", at=now)

    health.record_reconcile("a", key, BoxReconcileResult.PAUSED, at=now)

    assert health.resources["a"].is_started
    assert health.resources["a"].is_degraded
