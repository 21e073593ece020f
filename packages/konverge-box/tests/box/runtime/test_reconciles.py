"""Reconciles of the custom resources of a box, on both clusters: failures, denials, dependencies, leftovers."""

import json
from typing import Any

import pytest

from konverge.client import Client
from konverge.kube import GroupVersionKind, ObjectKey, find_condition
from konverge_box._internal.runtime import BoxController
from konverge_box._internal.runtime.box_health import BoxReconcileResult
from konverge_box._internal.steps.labels import RAN
from tests.box.running.box_harness import (
    AGENT,
    ANYTHING,
    BOOK,
    CONFIG_MAP,
    SHELF,
    BoxHarness,
    build_box,
    build_config_map,
    build_custom_resource,
)

pytestmark = pytest.mark.anyio

LINES = build_custom_resource(
    "Shelf", onReconcile={"configMaps": [build_config_map(lines="{{ spec.lines | join(',') }}")]}
)


async def test_an_error_is_told_and_recovered_from_while_others_are_not_hurt(library: BoxHarness) -> None:
    async with library.running(build_box(shelf=LINES)):
        await library.create(SHELF, "poison", lines={"no": "list"})
        await library.create(SHELF, "sound", lines=["a", "b"])

        await library.wait_for_condition(SHELF, "sound", "Healthy", status="True")
        await library.wait_for_data("sound", lines="a,b")
        await library.wait_for_condition(SHELF, "poison", "Error", message="spec.crds.shelf.onReconcile")

        await library.change(SHELF, "poison", lines=["fine"])
        await library.wait_for_condition(SHELF, "poison", "Healthy", status="True")
        await library.wait_for_data("poison", lines="fine")


async def test_a_settled_object_sends_no_requests(library: BoxHarness) -> None:
    box = build_box(
        shelf=build_custom_resource(
            "Shelf",
            mutation=[{"field": "spec.size", "default": 3}],
            validation=[{"field": "spec.size", "max": 5, "message": "too large"}],
            cross=[{"apiVersion": "v1", "kind": "ConfigMap", "selector": {"name": "catalogue"}, "as": "catalogue"}],
            onCreate={"configMaps": [build_config_map("{{ metadata.name }}-once", made="once")]},
            onReconcile={"configMaps": [build_config_map(size="{{ spec.size }}", found="{{ cross.catalogue.found }}")]},
            status={
                "fields": [
                    {"path": "size", "value": "{{ children.configMaps[metadata.name].data.size }}", "type": "integer"}
                ]
            },
        )
    )
    async with library.running(box) as running:
        await library.create(SHELF, "top")
        await library.wait_for_condition(SHELF, "top", "Healthy", status="True")
        await library.wait_until_quiet()
        before = len(library.requests())
        [run] = running.active.runs
        passes = run.health.resources["shelf"].results.total()

        run.process.enqueue(SHELF, run.process.list_owners(SHELF), reason="a test")
        await library.cluster.eventually(
            lambda: run.health.resources["shelf"].results.total() > passes, describe="another reconcile"
        )
        await library.wait_until_quiet()

        assert library.requests()[before:] == []
        assert (await library.get(SHELF, "top"))["status"]["size"] == 3


async def test_a_denied_object_keeps_what_it_has_and_waits_for_its_change(library: BoxHarness) -> None:
    rules = [{"field": "spec.text", "notEquals": "rude", "message": "{{ spec.text }} is not for a library"}]
    shelf = build_custom_resource(
        "Shelf", validation=rules, onReconcile={"configMaps": [build_config_map(text="{{ spec.text }}")]}
    )
    async with library.running(build_box(shelf=shelf)) as running:
        await library.create(SHELF, "top", text="kind")
        await library.wait_for_condition(SHELF, "top", "Healthy", status="True")
        await library.change(SHELF, "top", text="rude")
        ready = await library.wait_for_condition(SHELF, "top", "ValidationFailed", status="False")
        [run] = running.active.runs
        await library.wait_until_quiet()
        passes = run.health.resources["shelf"].results.total()
        await library.clock.sleep(3.0)

        assert ready.message == "spec.text: rude is not for a library"
        assert run.health.resources["shelf"].results.total() == passes
        assert (await library.get(CONFIG_MAP, "top"))["data"] == {"text": "kind"}
        assert run.health.resources["shelf"].failures == 0

        await library.change(SHELF, "top", text="fair")
        await library.wait_for_condition(SHELF, "top", "Healthy", status="True")
        await library.wait_for_data("top", text="fair")


async def test_a_denied_object_is_tried_again_where_the_file_says_so(library: BoxHarness) -> None:
    rules = [{"field": "spec.text", "exists": True, "message": "say something"}]
    shelf = build_custom_resource("Shelf", validation=rules, reconcile={"retryDenied": True})
    async with library.running(build_box(shelf=shelf)) as running:
        await library.create(SHELF, "top")
        await library.wait_for_condition(SHELF, "top", "ValidationFailed")
        [run] = running.active.runs

        passes = run.health.resources["shelf"].results
        await library.cluster.eventually(
            lambda: passes[BoxReconcileResult.DENIED] >= 4 or None, describe="it is denied again"
        )
        assert not run.health.resources["shelf"].is_degraded


async def test_who_came_first_keeps_a_unique_value(library: BoxHarness) -> None:
    shelf = build_custom_resource(
        "Shelf",
        normalize={"spec": {"code": "{{ spec.code | toLower }}"}},
        validation=[{"field": "spec.code", "unique": True, "message": "{{ spec.code }} is taken"}],
    )
    async with library.running(build_box(shelf=shelf)):
        await library.create(SHELF, "first", code="ONE")
        await library.wait_for_condition(SHELF, "first", "Reconciled", status="True")
        await library.clock.sleep(1.1)  # creation timestamps have whole seconds
        await library.create(SHELF, "second", code="one")
        await library.wait_for_condition(SHELF, "second", "ValidationFailed", message="one is taken")
        await library.wait_for_condition(SHELF, "first", "Reconciled", status="True")

        await library.delete(SHELF, "first")
        await library.wait_for_condition(SHELF, "second", "Reconciled", status="True")


async def test_too_many_failures_in_a_row_degrade_a_custom_resource_and_one_success_ends_that(
    library: BoxHarness,
) -> None:
    shelf = {**LINES, "reconcile": {"failureThreshold": 3}}
    async with library.running(build_box(shelf=shelf, book=build_custom_resource("Book"))) as running:
        await library.create(SHELF, "poison", lines={"no": "list"})
        await library.cluster.eventually(
            lambda: running.active.runs and running.active.runs[0].health.resources["shelf"].is_degraded,
            describe="it is degraded",
        )
        [run] = running.active.runs
        assert "spec.crds.shelf" in run.health.resources["shelf"].last_error
        assert not run.health.resources["book"].is_degraded

        await library.change(SHELF, "poison", lines=[])
        await library.cluster.eventually(
            lambda: run.health.resources["shelf"].is_healthy, describe="it is healthy again"
        )


async def test_passes_wait_until_another_custom_resource_is_healthy(library: BoxHarness) -> None:
    shelf = {**LINES, "reconcile": {"failureThreshold": 2}}
    book = build_custom_resource(
        "Book", dependsOn={"shelf": "healthy"}, onReconcile={"configMaps": [build_config_map(a="b")]}
    )
    async with library.running(build_box(shelf=shelf, book=book)) as running:
        await library.create(SHELF, "poison", lines={"no": "list"})
        await library.cluster.eventually(
            lambda: running.active.runs and running.active.runs[0].health.resources["shelf"].is_degraded,
            describe="it is degraded",
        )
        await library.create(BOOK, "novel")
        await library.wait_for_condition(
            BOOK, "novel", "DependencyNotReady", status="False", message="waits until shelf is healthy"
        )
        assert not await library.exists(CONFIG_MAP, "novel")

        await library.change(SHELF, "poison", lines=[])
        await library.wait_for_condition(BOOK, "novel", "Healthy", status="True")
        assert await library.exists(CONFIG_MAP, "novel")


async def test_who_depends_on_what_has_no_objects_starts_at_once(library: BoxHarness) -> None:
    box = build_box(
        shelf=build_custom_resource("Shelf"),
        box=build_custom_resource("Box", dependsOn={"shelf": "started"}),
        book=build_custom_resource("Book", dependsOn={"box": "healthy", "shelf": "healthy"}),
    )
    async with library.running(box):
        await library.create(BOOK, "novel")
        await library.wait_for_condition(BOOK, "novel", "Reconciled", status="True")


async def test_the_condition_of_a_group_that_is_gone_goes_with_it_and_others_stay(library: BoxHarness) -> None:
    def box(*names: str) -> Any:
        groups = [
            {"name": name, "configMaps": [build_config_map(f"{{{{ metadata.name }}}}-{name}", a="b")]} for name in names
        ]
        return build_box(shelf=build_custom_resource("Shelf", onReconcile=groups))

    async with library.running(box("front", "back")):
        await library.create(SHELF, "top")
        await library.wait_for_condition(SHELF, "top", "Healthy", "BackReady")
        await library.wait_for_condition(SHELF, "top", "Healthy")
    foreign = await library.get(SHELF, "top")
    moment = {"lastTransitionTime": "2026-01-01T00:00:00Z", "reason": "Healthy", "message": ""}
    foreign["status"]["conditions"].append({"type": "NeighbourReady", "status": "True", **moment})
    await library.client.update(foreign, subresource="status")
    async with library.running(box("front")):

        async def is_gone() -> bool:
            return find_condition(await library.get(SHELF, "top"), "BackReady") is None

        await library.cluster.eventually(is_gone, describe="the condition of the old group is gone")
        await library.wait_until_quiet()
    shelf = await library.get(SHELF, "top")
    assert find_condition(shelf, "FrontReady") is not None
    assert find_condition(shelf, "NeighbourReady") is not None


async def test_fields_of_the_status_are_written_also_when_a_step_fails(library: BoxHarness) -> None:
    fields = [
        {"path": "phase", "value": "Broken", "when": [{"field": "spec.lines", "typeOf": "map"}]},
        {"path": "phase", "value": "Fine", "when": [{"field": "spec.lines", "typeOf": "list"}]},
        {"path": "plain", "value": "only after success"},
    ]
    async with library.running(build_box(shelf={**LINES, "status": {"fields": fields}})):
        await library.create(SHELF, "top", lines={"no": "list"})
        await library.wait_for_condition(SHELF, "top", "Error")
        status = (await library.get(SHELF, "top"))["status"]
        assert (status["phase"], status.get("plain"), status["observedGeneration"]) == ("Broken", None, 1)

        await library.change(SHELF, "top", lines=[])
        await library.wait_for_condition(SHELF, "top", "Healthy")
        status = (await library.get(SHELF, "top"))["status"]
        assert (status["phase"], status["plain"], status["observedGeneration"]) == ("Fine", "only after success", 2)


async def test_a_status_that_the_schema_refuses_is_written_without_the_fields_of_the_file(library: BoxHarness) -> None:
    number = {"type": "object", "properties": {"size": {"type": "integer", "maximum": 5}}}
    shelf = build_custom_resource("Shelf", status={"fields": [{"path": "size", "value": "{{ spec.size }}"}]})
    shelf["resource"] = {**shelf["resource"], "schema": {**ANYTHING, "status": number}}
    async with library.running(build_box(shelf=shelf)):
        await library.create(SHELF, "top", size=3)
        await library.wait_for_condition(SHELF, "top", "Reconciled", status="True")
        await library.change(SHELF, "top", size=9)

        ready = await library.wait_for_condition(SHELF, "top", "Reconciled", message="no field of status is written: ")
        status = (await library.get(SHELF, "top"))["status"]
        assert "status.size" in ready.message
        assert (status["size"], status["observedGeneration"], ready.observed_generation) == (3, 2, 2)

        await library.change(SHELF, "top", size=4)

        async def is_written() -> bool:
            found = await library.get(SHELF, "top")
            ready = find_condition(found, "Ready")
            assert ready is not None
            assert (found["status"]["size"], ready.message) == (4, "")
            return True

        await library.cluster.eventually(is_written, describe="the status has the field again")


async def test_marks_that_another_process_makes_during_a_pass_are_kept(
    library: BoxHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    running = BoxController(
        build_box(shelf=build_custom_resource("Shelf", onCreate={"configMaps": [build_config_map(a="b")]}))
    )
    pipeline = running.active.pipelines["shelf"]
    plan = pipeline.groups.plan
    marked: list[str] = []

    async def plan_while_another_marks(*args: Any, **named: Any) -> Any:
        if not marked:
            marked.append("konverge.dev/created")
            body = {"metadata": {"annotations": {marked[0]: '["abcdefabcdef"]'}}}
            await library.client.patch(SHELF, library.key("top"), body, patch_type="merge")
        return await plan(*args, **named)

    monkeypatch.setattr(pipeline.groups, "plan", plan_while_another_marks)
    async with library.running(running):
        await library.create(SHELF, "top")
        await library.wait_for_condition(SHELF, "top", "Healthy", status="True")

        marks = json.loads((await library.get(SHELF, "top"))["metadata"]["annotations"]["konverge.dev/created"])
        assert (marks[0], len(marks)) == ("abcdefabcdef", 2)


async def test_the_owner_of_a_finalizer_goes_with_all_that_it_made_elsewhere(library: BoxHarness) -> None:
    shelf = build_custom_resource(
        "Shelf", finalizers=["a.konverge.test/one", "a.konverge.test/two"],
        onReconcile={"configMaps": [build_config_map(a="b")]},
    )  # fmt: skip
    async with library.running(build_box(shelf=shelf)):
        await library.create(SHELF, "top")
        await library.wait_for_condition(SHELF, "top", "Healthy")
        assert (await library.get(SHELF, "top"))["metadata"]["finalizers"] == [
            "a.konverge.test/one",
            "a.konverge.test/two",
        ]

        await library.delete(SHELF, "top")
        await library.wait_until_gone(SHELF, "top")


async def test_a_finalizer_comes_with_the_need_for_it_and_goes_with_its_owner_whatever_the_file_needs_by_then(
    library: BoxHarness,
) -> None:
    plain = build_box(shelf=build_custom_resource("Shelf"))
    careful = BoxController(build_box(shelf=build_custom_resource("Shelf", onDelete={"groups": []})))
    async with library.running(plain) as running:
        await library.create(SHELF, "top")
        await library.wait_for_condition(SHELF, "top", "Reconciled")
        assert "finalizers" not in (await library.get(SHELF, "top"))["metadata"]

        running.active.replace(careful.active.box, careful.active.pipelines)

        async def has_finalizer() -> bool:
            metadata = (await library.get(SHELF, "top"))["metadata"]
            assert metadata.get("finalizers") == ["boxes.konverge.test/box"]
            return True

        await library.cluster.eventually(has_finalizer, describe="it has the finalizer")

    async with library.running(plain):
        await library.delete(SHELF, "top")
        await library.wait_until_gone(SHELF, "top")


@pytest.mark.parametrize("cluster_kind", [pytest.param("embedded", marks=pytest.mark.embedded)])
async def test_a_pass_comes_again_when_an_answer_is_not_kept_any_more(
    library: BoxHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = [{"name": name, "url": "https://example.com", "cacheFor": "20s"} for name in ("asked", "skipped")]
    box = build_box(shelf=build_custom_resource("Shelf", external=calls))
    asked_at: list[float] = []

    class Answers:
        """A replacement of the network, which has no simulated time."""

        def find_next_change(self, now: object) -> None:
            return None

        async def run_calls(self, *args: object, **named: object) -> dict[str, dict[str, bool]]:
            asked_at.append(library.clock.monotonic())
            return {"asked": {"called": True}, "skipped": {"called": False}}

    running = BoxController(box)
    monkeypatch.setattr(running.active.pipelines["shelf"], "calls", Answers())
    async with library.running(running):
        await library.create(SHELF, "top")
        await library.wait_for_condition(SHELF, "top", "Reconciled")
        await library.wait_until_quiet()
        before = len(asked_at)
        await library.clock.sleep(45)

    assert len(asked_at) == before + 2


async def test_an_object_whose_deletion_takes_its_normal_course_is_no_error(library: BoxHarness) -> None:
    shelf = build_custom_resource(
        "Shelf",
        onReconcile={"configMaps": [build_config_map(size="3")]},
        onDelete={"groups": [{"name": "maps", "delete": {"configMaps": [{"name": "{{ metadata.name }}"}]}}]},
    )
    hold = {"metadata": {"finalizers": ["example.com/hold"]}}
    async with library.running(build_box(shelf=shelf)):
        await library.create(SHELF, "top")
        await library.wait_for_condition(SHELF, "top", "Healthy", status="True")
        await library.client.patch(CONFIG_MAP, library.key("top"), hold, patch_type="merge")
        await library.delete(SHELF, "top")
        waiting = await library.wait_for_condition(
            SHELF, "top", "Deleting", status="False", message="The object is being deleted: "
        )
        await library.client.patch(
            CONFIG_MAP, library.key("top"), {"metadata": {"finalizers": None}}, patch_type="merge"
        )
        await library.wait_until_gone(SHELF, "top")

    assert "held by example.com/hold" in waiting.message


async def test_a_rule_that_cannot_be_evaluated_hides_no_denial(library: BoxHarness) -> None:
    rules = [
        {"field": "spec.size", "max": "{{ spec.bound }}"},
        {"field": "spec.text", "notEquals": "rude", "message": "be polite"},
    ]
    shelf = build_custom_resource("Shelf", validation=rules)
    async with library.running(build_box(shelf=shelf)) as running:
        await library.create(SHELF, "top", size=3, text="rude")
        ready = await library.wait_for_condition(SHELF, "top", "ValidationFailed", status="False")
        [run] = running.active.runs
        await library.wait_until_quiet()
        passes = run.health.resources["shelf"].results.total()
        await library.clock.sleep(3.0)

        assert ready.message.startswith("spec.text: be polite; spec.crds.shelf.validation[0].max")
        assert run.health.resources["shelf"].results.total() == passes
        assert run.health.resources["shelf"].failures == 0

        await library.change(SHELF, "top", text="kind")
        ready = await library.wait_for_condition(SHELF, "top", "Error", status="False")
        assert "spec.bound is absent" in ready.message


class ConflictingClient(Client):
    """A client for which another one changes the owner just before the completed Jobs are recorded, eight times."""

    conflicts = 0

    async def patch(self, gvk: GroupVersionKind, key: ObjectKey, body: Any, **options: Any) -> Any:
        if RAN in str(body) and self.conflicts < 8:
            self.conflicts += 1
            body = {"metadata": {**body["metadata"], "resourceVersion": "1"}}
        return await super().patch(gvk, key, body, **options)


async def test_ready_reports_no_error_during_a_deletion_that_goes_on(library: BoxHarness) -> None:
    job = {"name": "{{ metadata.name }}-last", "image": "konverge.test/app:1"}
    shelf = build_custom_resource(
        "Shelf",
        onReconcile={"configMaps": [build_config_map(a="b")], "namespaces": [{"name": "{{ spec.room }}"}]},
        onDelete={"groups": [{"name": "first", "run": [job]}, {"delete": {"configMaps": [{"name": "top"}]}}]},
    )
    room = f"{library.namespace}-room"
    client = ConflictingClient(library.cluster.new_transport(), user_agent=AGENT, clock=library.clock)
    async with library.running(build_box(shelf=shelf), client=client):
        await library.create(SHELF, "top", room=room)
        await library.wait_for_condition(SHELF, "top", "Operational", status="True")
        held = {
            "metadata": {"finalizers": [*(await library.get(SHELF, "top"))["metadata"]["finalizers"], "test.dev/x"]}
        }
        await library.client.patch(SHELF, library.key("top"), held, patch_type="merge")
        seen: list[tuple[str, str]] = []

        async def watch_ready() -> None:
            for _ in range(400):
                condition = find_condition(await library.get(SHELF, "top"), "Ready")
                assert condition is not None
                if condition.reason not in [reason for reason, _ in seen]:
                    seen.append((condition.reason, condition.message))
                await library.clock.sleep(0.02)

        await library.delete(SHELF, "top")
        await watch_ready()

        assert [reason for reason, _ in seen] == ["Operational", "Deleting"], seen
        assert client.conflicts == 8
        await library.client.patch(SHELF, library.key("top"), {"metadata": {"finalizers": None}}, patch_type="merge")


@pytest.mark.parametrize("cluster_kind", ["embedded"])
async def test_functions_of_time_in_conditions_reconcile_at_their_change(library: BoxHarness) -> None:
    young = {"field": "{{ isExpired(metadata.creationTimestamp, spec.ttl) }}", "equals": False}
    shelf = build_custom_resource(
        "Shelf",
        reconcile={"resync": "7d"},
        onReconcile={"configMaps": [{**build_config_map(a="b"), "when": [young]}]},
        validation=[{"field": "{{ isExpired(metadata.creationTimestamp, '3h') }}", "equals": False, "message": "old"}],
    )
    async with library.running(build_box(shelf=shelf)) as running:
        await library.create(SHELF, "top", ttl="2h")
        await library.wait_for_data("top", a="b")
        await library.wait_until_quiet()
        [run] = running.active.runs
        passes = run.health.resources["shelf"].results.total()

        await library.clock.sleep(7100)
        assert await library.exists(CONFIG_MAP, "top")
        assert run.health.resources["shelf"].results.total() == passes

        await library.clock.sleep(200)
        assert not await library.exists(CONFIG_MAP, "top")

        await library.clock.sleep(3600)
        await library.wait_for_condition(SHELF, "top", "ValidationFailed", message="old")
