"""What is remembered of objects that were compared or applied."""

from __future__ import annotations

from konverge.apply import Difference
from konverge.component import AppliedMemory
from konverge.component.memory import Wish
from konverge.kube import Object

_DESIRED: Object = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "web"}, "data": {"colour": "blue"}}
_WISH = Wish.of(_DESIRED, "App/web/1")


def _live(version: str = "7", uid: str = "u-1") -> Object:
    return {"metadata": {"uid": uid, "resourceVersion": version}}


def test_a_settled_object_is_known_in_just_that_version() -> None:
    memory = AppliedMemory()
    memory.settle(_live("7"), _WISH)
    assert memory.is_settled(_live("7"), _WISH)
    assert not memory.is_settled(_live("8"), _WISH)
    assert not memory.is_settled(_live("7", uid="u-2"), _WISH)


def test_a_settled_object_fulfils_no_other_wish_and_no_other_manager() -> None:
    memory = AppliedMemory()
    memory.settle(_live(), _WISH)
    assert not memory.is_settled(_live(), Wish.of({**_DESIRED, "data": {"colour": "red"}}, "App/web/1"))
    assert not memory.is_settled(_live(), Wish.of(_DESIRED, "App/api/1"))


def test_the_order_of_fields_makes_no_other_wish() -> None:
    assert Wish.of(dict(reversed(_DESIRED.items())), "App/web/1") == _WISH


def test_an_object_without_a_version_is_never_settled() -> None:
    memory = AppliedMemory()
    without: Object = {"metadata": {}}
    for live in (_live(version=""), _live(uid=""), without):
        memory.settle(live, _WISH)
        assert not memory.is_settled(live, _WISH)


def test_the_memory_of_settled_objects_is_bounded() -> None:
    memory = AppliedMemory(limit=2)
    for uid in ("u-1", "u-2", "u-3"):
        memory.settle(_live(uid=uid), _WISH)
    assert [memory.is_settled(_live(uid=uid), _WISH) for uid in ("u-1", "u-2", "u-3")] == [False, True, True]


def test_differences_that_an_apply_left_explain_only_themselves() -> None:
    memory = AppliedMemory()
    left = Difference(".data.colour", "changed", "blue", "navy")
    memory.remember("u-1", _WISH, [left])
    assert memory.explains("u-1", _WISH, [left])
    assert not memory.explains("u-1", _WISH, [])
    assert not memory.explains("u-1", Wish.of(_DESIRED, "App/api/1"), [left])
    memory.remember("u-1", _WISH, [])
    assert not memory.explains("u-1", _WISH, [left])
