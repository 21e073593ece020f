"""Rules of the pipeline that several steps share, for docs/box-parity.md."""

from __future__ import annotations

import pytest

from konverge.kube import GroupVersionKind, find_condition
from konverge_box._internal.file import KINDS, find_file_errors
from konverge_cluster.testing import Cluster
from tests.box.file.sample_boxes import load_custom_resource
from tests.box.running.box_harness import (
    CONFIG_MAP,
    SHELF,
    BoxHarness,
    build_box,
    build_box_text,
    build_config_map,
    build_custom_resource,
)

INGRESS = GroupVersionKind("networking.k8s.io", "v1", "Ingress")


@pytest.mark.anyio
async def test_the_first_error_stops_what_comes_after_it_and_what_was_made_before_stays(cluster: Cluster) -> None:
    library = BoxHarness(cluster)
    shelf = build_custom_resource(
        "Shelf",
        onCreate={"configMaps": [build_config_map("made-once", a="b")]},
        onReconcile=[
            {
                "name": "first",
                "configMaps": [build_config_map("made", a="b"), build_config_map("broken", a="{{ spec.absent }}")],
            },
            {"name": "second", "configMaps": [build_config_map("never", a="b")]},
        ],
        status={
            "fields": [
                {"path": "always", "value": "yes"},
                {"path": "broken", "value": "yes", "when": [{"field": "spec.absent", "exists": False}]},
            ]
        },
    )
    async with library.running(build_box(shelf=shelf)):
        await library.create(SHELF, "top")
        ready = await library.wait_for_condition(SHELF, "top", "Error", message="onReconcile[0].configMaps[1].data.a")
        found = await library.get(SHELF, "top")

        assert len(ready.message) < 1_000
        assert [await library.exists(CONFIG_MAP, name) for name in ("made-once", "made", "broken", "never")] == [
            True,
            True,
            False,
            False,
        ]
        assert find_condition(found, "SecondReady") is None
        assert {name: found["status"].get(name) for name in ("always", "broken")} == {"always": None, "broken": "yes"}


def test_two_deployments_of_one_owner_select_pods_of_their_own() -> None:
    (group,) = load_custom_resource(
        "onReconcile: {deployments: [{name: a, image: i}, {name: b, image: i}]}"
    ).on_reconcile

    selectors = [each.object["spec"]["selector"]["matchLabels"] for each in group.resources]

    assert selectors[0] != selectors[1]


def test_kinds_that_other_systems_parse_and_ignore_are_made_or_refused() -> None:
    made = load_custom_resource("onReconcile: {daemonSets: [{name: a, image: i}]}").on_reconcile
    box = build_box_text(shelf=build_custom_resource("Shelf", onReconcile={"storageClasses": [{"name": "a"}]}))

    assert [each.kind for each in made[0].resources] == ["daemonSets"]
    assert ["storageClasses" in str(each) for each in find_file_errors(box)] == [True]


@pytest.mark.parametrize("misspelt", ["rollBackOnError: true", "autoscale: {}", "hooks: {}", "observe: {}"])
def test_what_has_no_meaning_is_refused_and_not_ignored(misspelt: str) -> None:
    name = misspelt.partition(":")[0]
    box = build_box_text(shelf={**build_custom_resource("Shelf"), name: {}})

    assert [name in str(each) for each in find_file_errors(box)] == [True]


@pytest.mark.anyio
async def test_ready_waits_for_the_objects_and_not_only_for_the_reconcile(cluster: Cluster) -> None:
    library = BoxHarness(cluster)
    shelf = build_custom_resource("Shelf", onReconcile={"name": "routed", "ingresses": [{"host": "example.com"}]})
    async with library.running(build_box(shelf=shelf)):
        await library.create(SHELF, "top")
        early = await library.wait_for_condition(SHELF, "top", "OperationPending", status="False")
        status = {"status": {"loadBalancer": {"ingress": [{"ip": "192.0.2.1"}]}}}
        await library.client.patch(INGRESS, library.key("top"), status, patch_type="merge", subresource="status")
        late = await library.wait_for_condition(SHELF, "top", "Operational", status="True")

    assert "routed" in early.message
    assert "routed" in late.message


def test_an_object_comes_after_what_it_needs_unlike_in_the_other_system() -> None:
    order = list(KINDS)

    for first, second in [
        ("resourceQuotas", "secrets"),
        ("limitRanges", "secrets"),
        ("serviceAccounts", "clusterRoles"),
        ("persistentVolumes", "deployments"),
        ("persistentVolumeClaims", "deployments"),
        ("persistentVolumeClaims", "statefulSets"),
        ("statefulSets", "services"),
    ]:
        assert order.index(first) < order.index(second)


def test_the_resync_is_every_ten_minutes_by_default() -> None:
    assert load_custom_resource("finalizers: []").reconcile.resync == "10m"
