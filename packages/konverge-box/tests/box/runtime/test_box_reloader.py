"""A box file that changes while the operator runs: applied completely, or not at all."""

import os
from pathlib import Path
from typing import Any

import pytest

from konverge.kube import GroupVersionKind
from konverge_box._internal.file import load_box
from konverge_box._internal.runtime import BoxController, BoxReloader
from konverge_box._internal.runtime.box_reloader import find_restart_errors
from konverge_box._internal.runtime.pipeline import compile_pipelines
from konverge_box.providers import ProviderPool, ProviderRegistry
from tests.box.running.box_harness import (
    SHELF,
    BoxHarness,
    build_box,
    build_box_text,
    build_config_map,
    build_custom_resource,
)

SERVICE_ACCOUNT = GroupVersionKind("", "v1", "ServiceAccount")


def shelf(**steps: Any) -> str:
    return build_box_text(shelf=build_custom_resource("Shelf", **steps))


def rewrite(file: Path, text: str) -> None:
    """Replace the file by another one, as an editor does."""
    fresh = file.with_suffix(".new")
    fresh.write_text(text)
    os.replace(fresh, file)


def load_running_box(file: Path) -> BoxController:
    return BoxController(load_box(file.read_bytes(), file=str(file)))


# The result of a thread would arrive "hours" late in simulated time.
@pytest.mark.slow
@pytest.mark.real_time
@pytest.mark.anyio
async def test_a_good_file_is_at_work_for_all_objects_and_a_bad_one_leaves_the_last_good_one(
    library: BoxHarness, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "box.yaml"
    file.write_text(shelf(onReconcile={"configMaps": [build_config_map(edition="first")]}))
    running = load_running_box(file)
    reloader = BoxReloader(running.active, file)
    async with library.running(running):
        await library.create(SHELF, "top")
        await library.wait_for_data("top", edition="first")

        assert not await reloader.reload_if_changed()

        more = {"configMaps": [build_config_map(edition="second")], "serviceAccounts": [{}]}
        rewrite(file, shelf(onReconcile=more))
        assert await reloader.reload_if_changed()
        await library.wait_for_data("top", edition="second")

        async def has_account() -> bool:
            return await library.exists(SERVICE_ACCOUNT, "top")

        await library.cluster.eventually(has_account, describe="the newly declared kind is made")
        await library.wait_until_quiet()
        await library.delete(SERVICE_ACCOUNT, "top")
        await library.cluster.eventually(has_account, describe="the newly declared kind is watched")

        rewrite(file, shelf(onReconcile={"configMaps": [build_config_map(edition="{{ nonsense }}")]}))
        assert not await reloader.reload_if_changed()
        assert "nonsense" in reloader.problem
        assert "the changed file is not applied, the old box stays active" in caplog.text
        assert [run.reload_problem for run in running.active.runs] == [reloader.problem]
        await library.create(SHELF, "bottom")
        await library.wait_for_data("bottom", edition="second")

        rewrite(file, shelf(onReconcile={"configMaps": [build_config_map(edition="third")]}))
        assert await reloader.reload_if_changed()
        assert (reloader.problem, [run.reload_problem for run in running.active.runs]) == ("", [""])
        await library.wait_for_data("top", edition="third")
        await library.wait_for_data("bottom", edition="third")


@pytest.mark.anyio
async def test_a_pass_under_way_ends_with_the_steps_that_it_began_with(
    library: BoxHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    running, changed = (
        BoxController(load_box(shelf(onReconcile={"configMaps": [build_config_map(edition=edition)]})))
        for edition in ("first", "second")
    )
    changed_at: list[int] = []
    async with library.running(running):
        pipeline = running.active.pipelines["shelf"]
        plan = pipeline.groups.plan

        async def slow_plan(*args: Any, **named: Any) -> Any:
            if not changed_at:
                changed_at.append(len(library.requests()))
                running.active.replace(changed.active.box, changed.active.pipelines)
            return await plan(*args, **named)

        monkeypatch.setattr(pipeline.groups, "plan", slow_plan)
        await library.create(SHELF, "top")
        await library.wait_for_data("top", edition="second")
        later = library.requests()[changed_at[0] :]
        applied = [request.verb for request in later if request.path.endswith("/configmaps/top")]
        assert applied.count("patch") == 2  # once each edition


@pytest.mark.slow
@pytest.mark.real_time
@pytest.mark.anyio
async def test_the_file_of_a_running_operator_is_looked_at(library: BoxHarness, tmp_path: Path) -> None:
    file = tmp_path / "box.yaml"
    file.write_text(shelf(onReconcile={"configMaps": [build_config_map(edition="first")]}))
    running = BoxController(load_box(file.read_bytes()), file=file)
    async with library.running(running):
        await library.create(SHELF, "top")
        await library.wait_for_data("top", edition="first")
        rewrite(file, shelf(onReconcile={"configMaps": [build_config_map(edition="second")]}))
        await library.wait_for_data("top", edition="second")


@pytest.mark.anyio
async def test_a_file_that_changed_between_its_loading_and_the_first_look_is_taken_over(tmp_path: Path) -> None:
    file = tmp_path / "box.yaml"
    file.write_text(shelf())
    running = load_running_box(file)
    rewrite(file, shelf(mutation=[{"field": "spec.a", "default": 1}]))
    assert await BoxReloader(running.active, file).reload_if_changed()


@pytest.mark.anyio
async def test_a_file_that_says_the_same_again_changes_nothing_but_that_it_is_in_use(tmp_path: Path) -> None:
    file = tmp_path / "box.yaml"
    file.write_text(shelf())
    running = load_running_box(file)
    reloader, before = BoxReloader(running.active, file), running.active.pipelines
    rewrite(file, "nonsense")
    assert not await reloader.reload_if_changed()
    assert reloader.problem
    rewrite(file, f"# as before\n{shelf()}")
    assert not await reloader.reload_if_changed()
    assert reloader.problem == ""
    assert running.active.pipelines is before


def test_what_only_a_start_can_change_is_named() -> None:
    pool = ProviderPool(ProviderRegistry.from_providers([]))
    old = build_box(shelf=build_custom_resource("Shelf"), book=build_custom_resource("Book"))

    def mistakes(new: Any) -> list[str]:
        return list(find_restart_errors(old, new, compile_pipelines(old, pool), compile_pipelines(new, pool)))

    book = build_custom_resource("Book")
    assert mistakes(old) == []
    assert mistakes(build_box("other", shelf=build_custom_resource("Shelf"), book=book)) == [
        "metadata.name was library and is now other"
    ]
    assert mistakes(build_box(shelf=build_custom_resource("Shelf"))) == ["spec.crds were shelf, book and are now shelf"]
    assert mistakes(build_box(shelf=build_custom_resource("Board"), book=book)) == [
        "spec.crds.shelf.resource.kind was Shelf and is now Board"
    ]
    assert mistakes(build_box(shelf=build_custom_resource("Shelf", finalizers=["a.b/c"]), book=book)) == [
        "spec.crds.shelf.finalizers were boxes.konverge.test/box and are now a.b/c"
    ]
    unique = [{"field": "spec.code", "unique": True}]
    assert mistakes(build_box(shelf=build_custom_resource("Shelf", validation=unique), book=book)) == [
        "spec.crds.shelf.validation has other unique fields"
    ]


def test_an_object_with_a_record_of_what_providers_made_is_held_by_a_finalizer_whatever_the_file_has() -> None:
    plain = build_box(shelf=build_custom_resource("Shelf"))
    pipeline = compile_pipelines(plain, ProviderPool(ProviderRegistry.from_providers([])))["shelf"]

    assert not pipeline.needs_finalizers({"metadata": {"annotations": {"kept": "by its author"}}})
    assert pipeline.needs_finalizers({"metadata": {"annotations": {"konverge.dev/providers": "[]"}}})


@pytest.mark.anyio
async def test_a_file_that_needs_a_start_is_refused_with_the_word(tmp_path: Path) -> None:
    file = tmp_path / "box.yaml"
    running = BoxController(build_box(shelf=build_custom_resource("Shelf")))
    before = running.active.pipelines
    reloader = BoxReloader(running.active, file)
    rewrite(file, build_box_text(shelf=build_custom_resource("Board")))

    assert not await reloader.reload_if_changed()

    assert "restart the operator to apply these changes: spec.crds.shelf.resource.kind was Shelf" in reloader.problem
    assert running.active.pipelines is before


@pytest.mark.anyio
async def test_a_file_that_is_gone_for_a_moment_is_waited_for(tmp_path: Path) -> None:
    file = tmp_path / "box.yaml"
    file.write_text(shelf())
    running = load_running_box(file)
    reloader = BoxReloader(running.active, file)
    file.unlink()
    assert not await reloader.reload_if_changed()
    assert "No such file" in reloader.problem
    file.write_text(shelf(mutation=[{"field": "spec.a", "default": 1}]))
    assert await reloader.reload_if_changed()
    assert reloader.problem == ""
