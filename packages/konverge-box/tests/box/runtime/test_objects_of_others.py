"""Objects that exist before a box creates them: adopted with an event, rejected, or kept instead of deleted."""

from __future__ import annotations

from typing import Any

import pytest

from konverge.kube import GroupVersionKind, Object
from tests.box.running.box_harness import (
    CONFIG_MAP,
    SHELF,
    BoxHarness,
    build_box,
    build_config_map,
    build_custom_resource,
)

pytestmark = pytest.mark.anyio

SECRET = GroupVersionKind("", "v1", "Secret")
EVENT = GroupVersionKind("events.k8s.io", "v1", "Event")


async def create_by_hand(library: BoxHarness) -> Object:
    metadata = {"name": "top", "namespace": library.namespace}
    obj = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"text": "theirs"}}
    return await library.client.create(obj, field_manager="painter")


async def until_warned(library: BoxHarness, reason: str) -> list[str]:
    """Return the notes of the events of that reason, once there is one."""

    async def notes() -> list[str] | None:
        events = [event async for event in library.client.items(EVENT, namespace=library.namespace)]
        return [event["note"] for event in events if (event["type"], event["reason"]) == ("Warning", reason)] or None

    return await library.cluster.eventually(notes, describe=f"there is an event {reason}")


def shelf(*, reconcile: dict[str, Any] | None = None, **entry: Any) -> dict[str, Any]:
    return build_custom_resource(
        "Shelf",
        reconcile=reconcile or {},
        onReconcile={"configMaps": [{**build_config_map(text="ours"), **entry}]},
    )


async def test_an_object_that_is_there_is_adopted_and_an_event_says_so(library: BoxHarness) -> None:
    await create_by_hand(library)
    async with library.running(build_box(shelf=shelf())):
        await library.create(SHELF, "top")
        await library.wait_for_condition(SHELF, "top", "Healthy", status="True")
        (note,) = await until_warned(library, "ResourceAdopted")
    assert "it was managed by painter. Overruled: painter (.data.text)" in note


@pytest.mark.parametrize(
    "declared",
    [shelf(adopt=False), shelf(reconcile={"adopt": False}), shelf(reconcile={"adopt": True}, adopt=False)],
    ids=["resource", "custom resource", "resource first"],
)
async def test_a_box_refuses_adoption_until_the_name_is_free(library: BoxHarness, declared: dict[str, Any]) -> None:
    before = await create_by_hand(library)
    async with library.running(build_box(shelf=declared)):
        await library.create(SHELF, "top")
        refused = await library.wait_for_condition(SHELF, "top", "Blocked", type="ResourcesReady")
        untouched = await library.get(CONFIG_MAP, "top")
        await library.delete(CONFIG_MAP, "top")
        await library.wait_for_data("top", text="ours")
    assert "exists already, managed by painter, and adoption is refused" in refused.message
    assert untouched == before


async def test_a_resource_adopts_where_the_custom_resource_does_not(library: BoxHarness) -> None:
    await create_by_hand(library)
    async with library.running(build_box(shelf=shelf(reconcile={"adopt": False}, adopt=True))):
        await library.create(SHELF, "top")
        await library.wait_for_data("top", text="ours")


async def test_what_is_not_wanted_and_not_ours_stays_and_one_event_says_so(library: BoxHarness) -> None:
    before = await create_by_hand(library)
    declared = shelf(when=[{"field": "spec.wanted", "equals": True}])
    async with library.running(build_box(shelf=declared)):
        await library.create(SHELF, "top")
        await library.wait_for_condition(SHELF, "top", "Healthy", status="True")
        await until_warned(library, "ResourceLeftAlone")
        await library.change(SHELF, "top", turn=1)
        await library.change(SHELF, "top", turn=2)
        await library.wait_for_condition(SHELF, "top", "Healthy", status="True")
        notes = await until_warned(library, "ResourceLeftAlone")
    assert notes == [f"ConfigMap {library.namespace}/top does not belong to this object and is kept"]
    assert await library.get(CONFIG_MAP, "top") == before


async def test_an_object_with_our_label_that_another_owner_controls_stays(library: BoxHarness) -> None:
    declared = shelf(when=[{"field": "spec.wanted", "equals": True}])
    async with library.running(build_box(shelf=declared)):
        await library.create(SHELF, "top", wanted=True)
        await library.wait_for_data("top", text="ours")
        other = await library.create(SHELF, "other")
        made = await library.get(CONFIG_MAP, "top")
        (reference,) = made["metadata"]["ownerReferences"]
        # Before its gate is switched off, a user hands it over.
        reference |= {"name": "other", "uid": other["metadata"]["uid"]}
        await library.client.patch(
            CONFIG_MAP, library.key("top"), {"metadata": {"ownerReferences": [reference]}}, patch_type="merge"
        )
        await library.change(SHELF, "top", wanted=False)
        await until_warned(library, "ResourceLeftAlone")
    assert (await library.get(CONFIG_MAP, "top"))["metadata"]["uid"] == made["metadata"]["uid"]


ONCE = {"name": "{{ metadata.name }}", "once": True, "stringData": {"text": "{{ randomAlphanumeric(16) }}"}}


@pytest.mark.parametrize(
    ("gvk", "made"),
    [
        (SECRET, {"secrets": [{**ONCE, "adopt": False}]}),
        (CONFIG_MAP, {"configMaps": [build_config_map() | {"adopt": False}]}),
    ],
    ids=["once", "onCreate"],
)
async def test_what_is_made_once_is_not_taken_from_others_where_adoption_is_refused(
    library: BoxHarness, gvk: GroupVersionKind, made: dict[str, Any]
) -> None:
    planted: Object = {"apiVersion": gvk.api_version, "kind": gvk.kind, "data": {"text": "dGhlaXJz"}}
    before = await library.client.create({**planted, "metadata": {"name": "top", "namespace": library.namespace}})
    declared = build_box(shelf=build_custom_resource("Shelf", onCreate=made))
    async with library.running(declared):
        await library.create(SHELF, "top")
        refused = await library.wait_for_condition(SHELF, "top", "Blocked", type="CreatedReady")
        untouched = await library.get(gvk, "top")
        await library.delete(gvk, "top")
        await library.wait_for_condition(SHELF, "top", "Healthy", status="True")
    async with library.running(declared):
        await library.change(SHELF, "top", turn=1)
        await library.wait_for_condition(SHELF, "top", "Healthy", status="True")
        kept = await library.get(gvk, "top")

    assert refused.message == (
        f"{gvk.kind} {library.namespace}/top exists already, created by another client, and adoption is refused. "
        "Delete it, give one of the two another name, or allow its adoption"
    )
    assert untouched == before
    assert kept["metadata"]["ownerReferences"][0]["name"] == "top"
