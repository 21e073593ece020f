from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from konverge.localcluster.players.rollout import Limits, Sized, new_size, proportional_sizes, rolling_sizes


def limits_of(replicas: int, surge: int | str, unavailable: int | str) -> Limits:
    rolling = {"maxSurge": surge, "maxUnavailable": unavailable}
    return Limits.of({"replicas": replicas, "strategy": {"type": "RollingUpdate", "rollingUpdate": rolling}})


@pytest.mark.parametrize(
    ("replicas", "surge", "unavailable", "expected"),
    [
        (10, "25%", "25%", Limits(10, 3, 2)),
        (1, "25%", "25%", Limits(1, 1, 0)),
        (4, 0, "10%", Limits(4, 0, 1)),
        (2, 3, 5, Limits(2, 3, 2)),
        (0, "25%", "25%", Limits(0, 0, 0)),
    ],
)
def test_surge_rounds_up_and_unavailability_down(
    replicas: int, surge: int | str, unavailable: int | str, expected: Limits
) -> None:
    assert limits_of(replicas, surge, unavailable) == expected


@pytest.mark.parametrize("spec", [{}, {"replicas": 1}])
def test_limits_have_the_servers_defaults(spec: dict[str, Any]) -> None:
    assert Limits.of(spec) == Limits(1, 1, 0)


def test_recreate_allows_neither_more_nor_less() -> None:
    assert Limits.of({"replicas": 3, "strategy": {"type": "Recreate"}}) == Limits(3, 0, 0)


@pytest.mark.parametrize(
    ("new", "total", "expected"),
    [(0, 10, 2), (0, 12, 0), (0, 15, 0), (9, 9, 10), (12, 12, 10), (0, 0, 10)],
)
def test_the_new_replica_set_takes_the_room_that_is_left(new: int, total: int, expected: int) -> None:
    assert new_size(Limits(10, 2, 0), Sized("new", new), total) == expected


def test_a_rolling_update_grows_the_new_before_it_shrinks_the_old() -> None:
    sizes = rolling_sizes(Limits(3, 1, 0), Sized("new", 0), [Sized("old", 3, available=3)])

    assert sizes == {"new": 1}


def test_unready_new_pods_hold_the_old_ones() -> None:
    sizes = rolling_sizes(Limits(3, 1, 0), Sized("new", 1, available=0), [Sized("old", 3, available=3)])

    assert sizes == {}


def test_available_new_pods_release_as_many_old_ones() -> None:
    sizes = rolling_sizes(Limits(3, 1, 0), Sized("new", 1, available=1), [Sized("old", 3, available=3)])

    assert sizes == {"old": 2}


def test_broken_old_pods_go_first() -> None:
    old = [Sized("healthy", 5, available=5), Sized("broken", 3, available=0)]

    sizes = rolling_sizes(Limits(5, 3, 0), Sized("new", 0, available=0), old)

    assert sizes == {"broken": 0}


def test_the_oldest_gives_up_first() -> None:
    old = [Sized("older", 2, available=2), Sized("younger", 4, available=4)]

    sizes = rolling_sizes(Limits(4, 2, 2), Sized("new", 0, available=0), old)

    assert sizes == {"older": 0, "younger": 2}


def test_a_new_replica_set_that_is_too_large_shrinks() -> None:
    assert rolling_sizes(Limits(2, 1, 0), Sized("new", 5, available=5), []) == {"new": 2}


@pytest.mark.parametrize(
    ("limits", "sets", "expected"),
    [
        # Twice as many wanted: each doubles.
        (Limits(20, 0, 0), [Sized("new", 5, most_before=10), Sized("old", 5, most_before=10)], {"new": 10, "old": 10}),
        # What cannot be shared evenly goes to the first of the largest.
        (Limits(6, 0, 0), [Sized("new", 2, most_before=5), Sized("old", 3, most_before=5)], {"new": 2, "old": 4}),
        # Equal sizes: growing begins with the newest, shrinking with the oldest.
        (Limits(5, 0, 0), [Sized("new", 2, most_before=4), Sized("old", 2, most_before=4)], {"new": 3, "old": 2}),
        (Limits(3, 0, 0), [Sized("new", 2, most_before=4), Sized("old", 2, most_before=4)], {"new": 2, "old": 1}),
        (Limits(0, 0, 0), [Sized("new", 2, most_before=4), Sized("old", 3, most_before=4)], {"new": 0, "old": 0}),
    ],
)
def test_a_changed_size_is_shared_in_proportion(limits: Limits, sets: list[Sized], expected: dict[str, int]) -> None:
    assert proportional_sizes(limits, sets, total_before=0) == expected


def test_without_a_noted_size_the_counted_replicas_are_the_base() -> None:
    sizes = proportional_sizes(Limits(20, 0, 0), [Sized("new", 5), Sized("old", 5)], total_before=10)

    assert sizes == {"new": 10, "old": 10}


@given(
    limits=st.builds(limits_of, st.integers(1, 12), st.integers(0, 6), st.integers(0, 6)),
    readiness=st.lists(st.booleans(), max_size=60),
)
def test_a_rollout_stays_within_its_limits_and_ends(limits: Limits, readiness: list[bool]) -> None:
    new, old = Sized("new", 0), Sized("old", limits.desired, available=limits.desired)
    for gets_ready in [*readiness, *[True] * 60]:
        sizes = rolling_sizes(limits, new, [old] if old.replicas else [])
        new = replace(new, replicas=sizes.get("new", new.replicas))
        # A ReplicaSet gives up what is not available first; here all old pods are.
        left = sizes.get("old", old.replicas)
        old = replace(old, replicas=left, available=min(old.available, left))
        new = replace(new, available=min(new.replicas, new.available + gets_ready))
        assert new.replicas + old.replicas <= limits.most
        assert new.available + old.available >= limits.least_available

    assert (new.replicas, old.replicas) == (limits.desired, 0)
