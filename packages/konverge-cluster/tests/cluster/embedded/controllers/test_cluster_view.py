from __future__ import annotations

from typing import Literal

from konverge.kube import GroupVersionKind, Object, ObjectKey
from konverge_cluster._internal.embedded.controllers.cluster_view import ClusterChange, ClusterView

CONFIG_MAP = GroupVersionKind("", "v1", "ConfigMap")


def build_owned(name: str, *owners: str, controller: bool = True, **metadata: str) -> Object:
    references = [
        {"apiVersion": "v1", "kind": "ConfigMap", "name": each, "uid": each, "controller": controller}
        for each in owners
    ]
    return {"metadata": {"name": name, "uid": name, "namespace": "default", "ownerReferences": references, **metadata}}


def note(
    view: ClusterView,
    new: Object,
    old: Object | None = None,
    change: Literal["ADDED", "MODIFIED", "DELETED"] | None = None,
) -> None:
    change = change or ("ADDED" if old is None else "MODIFIED")
    view.record(ClusterChange(change, CONFIG_MAP.group_kind, ObjectKey.of(new), old, new))


def names(objects: list[Object]) -> list[str]:
    return [obj["metadata"]["name"] for obj in objects]


def test_dependents_stay_in_the_order_in_which_they_came() -> None:
    view = ClusterView()
    first, second = build_owned("first", "owner"), build_owned("second", "owner")
    note(view, first)
    note(view, second)
    note(view, build_owned("first", "owner", resourceVersion="2"), first)

    assert names(view.list_controlled(CONFIG_MAP, "owner")) == ["first", "second"]


def test_a_changed_reference_moves_the_object_to_its_new_owner() -> None:
    view = ClusterView()
    before = build_owned("child", "one")
    note(view, before)
    note(view, build_owned("child", "two"), before)

    assert view.list_dependents("one") == []
    assert names(view.list_controlled(CONFIG_MAP, "two")) == ["child"]


def test_an_owner_that_does_not_control_leaves_the_object_free() -> None:
    view = ClusterView()
    note(view, build_owned("child", "owner", controller=False))

    assert names([item.object for item in view.list_dependents("owner")]) == ["child"]
    assert view.list_controlled(CONFIG_MAP, "owner") == []
    assert names(view.list_orphans(CONFIG_MAP, "default")) == ["child"]


def test_what_is_deleted_is_nowhere() -> None:
    view = ClusterView()
    child = build_owned("child", "owner")
    note(view, child)
    note(view, child, child, "DELETED")

    assert view.get(CONFIG_MAP, ObjectKey("default", "child")) is None
    assert view.find_by_uid("child") is None
    assert view.list_dependents("owner") == []
    assert view.list_namespace("default") == []
