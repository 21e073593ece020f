"""The order of the steps: the names that each step can read."""

from collections.abc import Callable
from typing import Any

import pytest

from konverge_box._internal.file import find_file_errors
from konverge_box._internal.file.expression_scopes import STEPS
from konverge_box._internal.runtime import STEP_ORDER
from tests.box.running.box_harness import (
    SHELF,
    BoxHarness,
    build_box,
    build_box_text,
    build_config_map,
    build_custom_resource,
)

READS: dict[str, Callable[[str], Any]] = {
    "normalize": lambda text: {"spec": {"a": text}},
    "mutation": lambda text: [{"field": "spec.a", "override": text}],
    "validation": lambda text: [{"field": text, "exists": True}],
    "cross": lambda text: [{"apiVersion": "v1", "kind": "ConfigMap", "as": "other", "selector": {"name": text}}],
    "external": lambda text: [{"name": "second", "url": f"https://example.com/{text}"}],
    "onCreate": lambda text: {"configMaps": [build_config_map(a=text)]},
    "onReconcile": lambda text: {"configMaps": [build_config_map(a=text)]},
    "providers": lambda text: {"aws": [{"kind": "Bucket", "name": "b", "spec": {"a": text}}]},
    "status": lambda text: {"fields": [{"path": "a", "value": text}]},
    "onDelete": lambda text: {"groups": [{"delete": {"configMaps": [{"name": text}]}}]},
}
"""For each step: a part of the file that reads the given text."""

RESULTS = {"cross": "cross.seen.name", "external": "external.asked.status", "children": "children.configMap.data.a"}
MADE_IN = {"cross": "cross", "external": "external", "children": "onReconcile"}
BEFORE = list(STEPS)


@pytest.mark.parametrize("step", READS)
@pytest.mark.parametrize("name", RESULTS)
def test_what_a_step_makes_is_unknown_to_those_before_it(step: str, name: str) -> None:
    made_in = MADE_IN[name]
    declared: dict[str, Any] = {
        "cross": [{"apiVersion": "v1", "kind": "ConfigMap", "as": "seen", "selector": {"name": "x"}}],
        "external": [{"name": "asked", "url": "https://example.com/"}],
        "onReconcile": {"configMaps": [build_config_map("fixed", a="b")]},
    }
    more = READS[step]("{{ " + RESULTS[name] + " }}")
    shelf = {**declared, step: [*declared[step], *more] if step in ("cross", "external") else more}
    text = build_box_text(shelf=build_custom_resource("Shelf", **shelf))

    unknown = [found for found in find_file_errors(text) if name in found.message]

    comes_before = BEFORE.index(step) < BEFORE.index(made_in) or step == "onDelete"
    is_itself_of_children = name == "children" and step != "status"
    assert bool(unknown) == (comes_before or is_itself_of_children), find_file_errors(text)


def test_the_order_of_passes_is_that_of_the_file() -> None:
    names = [step.name for step in STEP_ORDER]

    assert len(set(names)) == len(names)
    assert [name for name in names if name in STEPS] == [name for name in STEPS if name != "onDelete"]
    assert names.index("forEach") == names.index("onCreate") - 1
    assert all(step.always for step in STEP_ORDER[names.index("status") :])


@pytest.mark.anyio
async def test_each_step_sees_what_those_before_it_made(library: BoxHarness) -> None:
    def seen(name: str) -> dict[str, object]:
        trace = "{{ spec.trace }}/{{ cross.seen.data.word }}/{{ external.asked.called }}"
        return {"configMaps": [build_config_map("{{ metadata.name }}-" + name, trace=trace)]}

    box = build_box(
        shelf=build_custom_resource(
            "Shelf",
            normalize={"spec": {"trace": "{{ spec.trace }}n"}},
            mutation=[{"field": "spec.trace", "override": "{{ spec.trace }}m"}],
            validation=[
                {"field": "spec.trace", "equals": "-", "action": "warn", "message": "{{ spec.trace }}v"},
                {"field": "spec.trace", "notPrefix": "bad"},
            ],
            cross=[{"apiVersion": "v1", "kind": "ConfigMap", "as": "seen", "selector": {"name": "{{ spec.trace }}"}}],
            external=[
                {
                    "name": "asked",
                    "url": "https://example.com/",
                    "when": [{"field": "cross.seen.data.word", "equals": "call"}],
                }
            ],
            onCreate=seen("created"),
            onReconcile=seen("kept"),
            status={"fields": [{"path": "last", "value": "{{ children.configMaps['top-kept'].data.trace }}"}]},
        )
    )
    metadata = {"name": "rawnm", "namespace": library.namespace}
    await library.client.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"word": "x"}})
    async with library.running(box):
        await library.create(SHELF, "top", trace="raw")
        await library.wait_for_condition(SHELF, "top", "Healthy", status="True")
        await library.wait_for_condition(SHELF, "top", "WarnRuleViolation", "ValidationWarning", message="rawnmv")
        await library.wait_for_data("top-created", trace="rawnm/x/false")
        await library.wait_for_data("top-kept", trace="rawnm/x/false")
        assert (await library.get(SHELF, "top"))["status"]["last"] == "rawnm/x/false"
        applied = [request.path.rpartition("/")[2] for request in library.requests() if "-" in request.path[-8:]]
        assert [name for name in applied if name.startswith("top-")][-2:] == ["top-created", "top-kept"]

        # A denied custom resource reads nothing and writes nothing.
        before = len(library.requests())
        await library.create(SHELF, "worse", trace="bad")
        await library.wait_for_condition(SHELF, "worse", "ValidationFailed")
        await library.wait_until_quiet()
        asked = {request.path for request in library.requests()[before:]}
        assert asked == {f"/apis/boxes.konverge.test/v1/namespaces/{library.namespace}/shelfs/worse/status"}
