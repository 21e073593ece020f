from __future__ import annotations

from typing import Literal

from konverge.kube import GroupVersionKind, Object, ObjectKey
from konverge.localcluster.players.view import Notice, View

CONFIG_MAP = GroupVersionKind("", "v1", "ConfigMap")


def owned(name: str, *owners: str, controller: bool = True, **metadata: str) -> Object:
    references = [
        {"apiVersion": "v1", "kind": "ConfigMap", "name": each, "uid": each, "controller": controller}
        for each in owners
    ]
    return {"metadata": {"name": name, "uid": name, "namespace": "default", "ownerReferences": references, **metadata}}


def note(
    view: View, new: Object, old: Object | None = None, change: Literal["ADDED", "MODIFIED", "DELETED"] | None = None
) -> None:
    change = change or ("ADDED" if old is None else "MODIFIED")
    view.note(Notice(change, CONFIG_MAP.group_kind, ObjectKey.of(new), old, new))


def names(objects: list[Object]) -> list[str]:
    return [obj["metadata"]["name"] for obj in objects]


def test_dependents_stay_in_the_order_in_which_they_came() -> None:
    view = View()
    first, second = owned("first", "owner"), owned("second", "owner")
    note(view, first)
    note(view, second)
    note(view, owned("first", "owner", resourceVersion="2"), first)

    assert names(view.controlled(CONFIG_MAP, "owner")) == ["first", "second"]


def test_a_changed_reference_moves_the_object_to_its_new_owner() -> None:
    view = View()
    before = owned("child", "one")
    note(view, before)
    note(view, owned("child", "two"), before)

    assert view.dependents("one") == []
    assert names(view.controlled(CONFIG_MAP, "two")) == ["child"]


def test_an_owner_that_does_not_control_leaves_the_object_free() -> None:
    view = View()
    note(view, owned("child", "owner", controller=False))

    assert names([item.object for item in view.dependents("owner")]) == ["child"]
    assert view.controlled(CONFIG_MAP, "owner") == []
    assert names(view.uncontrolled(CONFIG_MAP, "default")) == ["child"]


def test_what_is_deleted_is_nowhere() -> None:
    view = View()
    child = owned("child", "owner")
    note(view, child)
    note(view, child, child, "DELETED")

    assert view.get(CONFIG_MAP, ObjectKey("default", "child")) is None
    assert view.by_uid("child") is None
    assert view.dependents("owner") == []
    assert view.contents("default") == []
