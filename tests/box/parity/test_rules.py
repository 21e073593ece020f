"""Rules of the pipeline that several steps share, for docs/box-parity.md."""

from __future__ import annotations

import pytest

from konverge.box.file import find_mistakes
from konverge.kube import find_condition
from konverge.testing import Cluster
from tests.box.file.boxes import loaded
from tests.box.running.boxes import CONFIG_MAP, SHELF, Library, a_box, box_text, config_map, custom_resource


@pytest.mark.anyio
async def test_the_first_error_stops_what_comes_after_it_and_what_was_made_before_stays(cluster: Cluster) -> None:
    library = Library(cluster)
    shelf = custom_resource(
        "Shelf",
        onCreate={"configMaps": [config_map("made-once", a="b")]},
        onReconcile=[
            {"name": "first", "configMaps": [config_map("made", a="b"), config_map("broken", a="{{ spec.absent }}")]},
            {"name": "second", "configMaps": [config_map("never", a="b")]},
        ],
        status={
            "fields": [
                {"path": "always", "value": "yes"},
                {"path": "broken", "value": "yes", "when": [{"field": "spec.absent", "exists": False}]},
            ]
        },
    )
    async with library.running(a_box(shelf=shelf)):
        await library.create(SHELF, "top")
        ready = await library.until(SHELF, "top", "Error", message="onReconcile[0].configMaps[1].data.a")
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
    (group,) = loaded("onReconcile: {deployments: [{name: a, image: i}, {name: b, image: i}]}").on_reconcile

    selectors = [each.object["spec"]["selector"]["matchLabels"] for each in group.resources]

    assert selectors[0] != selectors[1]


def test_kinds_that_other_systems_parse_and_ignore_are_made_or_refused() -> None:
    made = loaded("onReconcile: {daemonSets: [{name: a, image: i}]}").on_reconcile
    box = box_text(shelf=custom_resource("Shelf", onReconcile={"storageClasses": [{"name": "a"}]}))

    assert [each.kind for each in made[0].resources] == ["daemonSets"]
    assert ["storageClasses" in str(each) for each in find_mistakes(box)] == [True]


@pytest.mark.parametrize("misspelt", ["rollBackOnError: true", "autoscale: {}", "hooks: {}", "observe: {}"])
def test_what_has_no_meaning_is_refused_and_not_ignored(misspelt: str) -> None:
    name = misspelt.partition(":")[0]
    box = box_text(shelf={**custom_resource("Shelf"), name: {}})

    assert [name in str(each) for each in find_mistakes(box)] == [True]
