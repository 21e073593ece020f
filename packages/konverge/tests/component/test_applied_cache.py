"""The cache of compared and applied objects."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from konverge._internal.apply import Difference
from konverge._internal.component.applied_cache import DesiredFingerprint
from konverge.component import AppliedCache
from konverge.kube import Object

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
_DESIRED: Object = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "web"}, "data": {"colour": "blue"}}
_WISH = DesiredFingerprint.of(_DESIRED, "App/web/1")


def _live(version: str = "7", uid: str = "u-1") -> Object:
    return {"metadata": {"uid": uid, "resourceVersion": version}}


def test_a_settled_object_is_known_in_just_that_version() -> None:
    memory = AppliedCache()
    memory.mark_steady(_live("7"), _WISH)
    assert memory.is_steady(_live("7"), _WISH)
    assert not memory.is_steady(_live("8"), _WISH)
    assert not memory.is_steady(_live("7", uid="u-2"), _WISH)


def test_a_settled_object_fulfils_no_other_wish_and_no_other_manager() -> None:
    memory = AppliedCache()
    memory.mark_steady(_live(), _WISH)
    assert not memory.is_steady(_live(), DesiredFingerprint.of({**_DESIRED, "data": {"colour": "red"}}, "App/web/1"))
    assert not memory.is_steady(_live(), DesiredFingerprint.of(_DESIRED, "App/api/1"))


def test_the_order_of_fields_makes_no_other_wish() -> None:
    assert DesiredFingerprint.of(dict(reversed(_DESIRED.items())), "App/web/1") == _WISH


def test_an_object_without_a_version_is_never_settled() -> None:
    memory = AppliedCache()
    without: Object = {"metadata": {}}
    for live in (_live(version=""), _live(uid=""), without):
        memory.mark_steady(live, _WISH)
        assert not memory.is_steady(live, _WISH)


def test_the_memory_of_settled_objects_is_bounded() -> None:
    memory = AppliedCache(limit=2)
    for uid in ("u-1", "u-2", "u-3"):
        memory.mark_steady(_live(uid=uid), _WISH)
    assert [memory.is_steady(_live(uid=uid), _WISH) for uid in ("u-1", "u-2", "u-3")] == [False, True, True]


def test_differences_that_an_apply_left_explain_only_themselves_and_for_ever() -> None:
    memory = AppliedCache()
    left = Difference(".spec.cpu", "changed", "1000m", "1")
    assert not memory.record_drift("u-1", _WISH, [left], NOON)
    assert memory.is_known_drift("u-1", _WISH, [left], NOON + timedelta(days=365))
    assert memory.find_retry_time("u-1", _WISH) is None
    assert not memory.is_known_drift("u-1", _WISH, [], NOON)
    assert not memory.is_known_drift("u-1", DesiredFingerprint.of(_DESIRED, "App/api/1"), [left], NOON)
    memory.record_drift("u-1", _WISH, [], NOON)
    assert not memory.is_known_drift("u-1", _WISH, [left], NOON)


def test_what_somebody_overrides_is_worth_another_apply_at_intervals_that_grow() -> None:
    memory = AppliedCache()
    left = Difference(".data.colour", "changed", "blue", "red", is_override=True)
    now, intervals, said = NOON, [], []
    for _ in range(9):
        said.append(memory.record_drift("u-1", _WISH, [left], now))
        again_at = memory.find_retry_time("u-1", _WISH)
        assert again_at is not None
        assert memory.is_known_drift("u-1", _WISH, [left], again_at - timedelta(seconds=1))
        assert not memory.is_known_drift("u-1", _WISH, [left], again_at)
        intervals.append((again_at - now).total_seconds())
        now = again_at
    assert intervals == [30, 60, 120, 240, 480, 960, 1920, 1920, 1920]
    assert said == [True] + 8 * [False]


def test_another_field_that_is_overridden_begins_anew() -> None:
    memory = AppliedCache()
    left = Difference(".data.colour", "changed", "blue", "red", is_override=True)
    other = Difference(".data.shape", "changed", "round", "square", is_override=True)
    assert memory.record_drift("u-1", _WISH, [left], NOON)
    assert not memory.record_drift("u-1", _WISH, [left], NOON)
    assert memory.record_drift("u-1", _WISH, [left, other], NOON)
    assert memory.find_retry_time("u-1", _WISH) == NOON + timedelta(seconds=30)
