from __future__ import annotations

import pytest

from konverge.errors import ExpiredError
from konverge.kube import ObjectKey
from konverge_cluster._internal.embedded.apiserver import ApiServer
from konverge_cluster._internal.embedded.resource_registry import ServedResource
from konverge_cluster._internal.embedded.selection import Selection
from konverge_cluster._internal.embedded.server_watch import ServerWatch
from tests.cluster.embedded.objects import CONFIG_MAP, POD, config_map, key, pod


@pytest.fixture
def config_maps(api: ApiServer) -> ServedResource:
    return api.resources.get_by_kind(CONFIG_MAP)


def take_event_names(watch: ServerWatch) -> list[tuple[str, str]]:
    return [(event.type, event.object["metadata"]["name"]) for event in watch.take_events()]


def build_labelled(name: str, tier: str) -> dict[str, object]:
    body = config_map(name)
    body["metadata"]["labels"] = {"tier": tier}
    return body


def test_a_watch_without_a_version_tells_the_state_and_then_what_happens(
    api: ApiServer, config_maps: ServedResource
) -> None:
    api.create(CONFIG_MAP, config_map("old"))

    watch = api.watch(config_maps, Selection(), after=None)
    api.create(CONFIG_MAP, config_map("new"))
    api.patch(CONFIG_MAP, key("old"), {"data": {"a": "1"}})
    api.delete(CONFIG_MAP, key("new"))

    assert take_event_names(watch) == [("ADDED", "old"), ("ADDED", "new"), ("MODIFIED", "old"), ("DELETED", "new")]
    assert take_event_names(watch) == []


def test_a_watch_from_a_version_tells_what_happened_since(api: ApiServer, config_maps: ServedResource) -> None:
    api.create(CONFIG_MAP, config_map("before"))
    revision = api.storage.revision
    api.create(CONFIG_MAP, config_map("after"))

    watch = api.watch(config_maps, Selection(), after=revision)

    assert take_event_names(watch) == [("ADDED", "after")]


def test_a_watch_from_a_forgotten_version_is_expired(api: ApiServer, config_maps: ServedResource) -> None:
    api.create(CONFIG_MAP, config_map())
    api.storage.compact()

    with pytest.raises(ExpiredError):
        api.watch(config_maps, Selection(), after=1)


def test_other_resources_and_namespaces_are_not_told(api: ApiServer, config_maps: ServedResource) -> None:
    watch = api.watch(config_maps, Selection(namespace="kube-system"), after=api.storage.revision)

    api.create(POD, pod())
    api.create(CONFIG_MAP, config_map("here"))
    api.create(CONFIG_MAP, config_map("there", "kube-system"))

    assert take_event_names(watch) == [("ADDED", "there")]


def test_an_object_comes_into_a_selection_and_leaves_it(api: ApiServer, config_maps: ServedResource) -> None:
    selection = Selection.parse(config_maps, label_selector="tier=web")
    watch = api.watch(config_maps, selection, after=None)
    created = api.create(CONFIG_MAP, build_labelled("a", "db"))

    api.patch(CONFIG_MAP, key("a"), {"metadata": {"labels": {"tier": "web"}}})
    left = api.patch(CONFIG_MAP, key("a"), {"metadata": {"labels": {"tier": "db"}}})
    events = watch.take_events()

    assert [event.type for event in events] == ["ADDED", "DELETED"]
    assert events[1].object["metadata"]["labels"] == {"tier": "web"}
    assert events[1].object["metadata"]["resourceVersion"] == left["metadata"]["resourceVersion"]
    assert created["metadata"]["labels"] == {"tier": "db"}


def test_a_field_can_be_selected_too(api: ApiServer) -> None:
    pods = api.resources.get_by_kind(POD)
    watch = api.watch(pods, Selection.parse(pods, field_selector="spec.nodeName=node-0"), after=None)

    api.create(POD, pod("elsewhere", nodeName="node-1"))
    api.create(POD, pod("here", nodeName="node-0"))

    assert take_event_names(watch) == [("ADDED", "here")]


def test_a_bookmark_tells_how_far_the_watch_has_seen(api: ApiServer, config_maps: ServedResource) -> None:
    watch = api.watch(config_maps, Selection(), after=None)
    api.create(POD, pod())

    bookmark = watch.build_bookmark()

    assert bookmark.object == {
        "kind": "ConfigMap",
        "apiVersion": "v1",
        "metadata": {"resourceVersion": str(api.storage.revision)},
    }


def test_a_watcher_that_takes_nothing_is_dropped(api: ApiServer, config_maps: ServedResource) -> None:
    watch = api.watch(config_maps, Selection(), after=None, limit=3)

    for number in range(4):
        api.create(CONFIG_MAP, config_map(f"c{number}"))

    assert watch.is_ended
    assert watch.take_events() == []
    api.create(CONFIG_MAP, config_map("later"))
    assert watch.take_events() == []


def test_an_ended_watch_hears_nothing(api: ApiServer, config_maps: ServedResource) -> None:
    watch = api.watch(config_maps, Selection(), after=None)
    woken: list[str] = []
    watch.wake = lambda: woken.append("wake")

    watch.end()
    api.create(CONFIG_MAP, config_map())

    assert woken == ["wake"]
    assert watch.take_events() == []
    assert api.find(CONFIG_MAP, ObjectKey("default", "settings")) is not None
