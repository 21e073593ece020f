from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from konverge_cluster._internal.embedded.controllers.rollout import (
    ReplicaSetSize,
    RolloutLimits,
    compute_new_size,
    compute_proportional_sizes,
    compute_rolling_sizes,
)


def limits_of(replicas: int, surge: int | str, unavailable: int | str) -> RolloutLimits:
    rolling = {"maxSurge": surge, "maxUnavailable": unavailable}
    return RolloutLimits.from_spec(
        {"replicas": replicas, "strategy": {"type": "RollingUpdate", "rollingUpdate": rolling}}
    )


@pytest.mark.parametrize(
    ("replicas", "surge", "unavailable", "expected"),
    [
        (10, "25%", "25%", RolloutLimits(10, 3, 2)),
        (1, "25%", "25%", RolloutLimits(1, 1, 0)),
        (4, 0, "10%", RolloutLimits(4, 0, 1)),
        (2, 3, 5, RolloutLimits(2, 3, 2)),
        (0, "25%", "25%", RolloutLimits(0, 0, 0)),
    ],
)
def test_surge_rounds_up_and_unavailability_down(
    replicas: int, surge: int | str, unavailable: int | str, expected: RolloutLimits
) -> None:
    assert limits_of(replicas, surge, unavailable) == expected


@pytest.mark.parametrize("spec", [{}, {"replicas": 1}])
def test_limits_have_the_servers_defaults(spec: dict[str, Any]) -> None:
    assert RolloutLimits.from_spec(spec) == RolloutLimits(1, 1, 0)


def test_recreate_allows_neither_more_nor_less() -> None:
    assert RolloutLimits.from_spec({"replicas": 3, "strategy": {"type": "Recreate"}}) == RolloutLimits(3, 0, 0)


@pytest.mark.parametrize(
    ("new", "total", "expected"),
    [(0, 10, 2), (0, 12, 0), (0, 15, 0), (9, 9, 10), (12, 12, 10), (0, 0, 10)],
)
def test_the_new_replica_set_takes_the_room_that_is_left(new: int, total: int, expected: int) -> None:
    assert compute_new_size(RolloutLimits(10, 2, 0), ReplicaSetSize("new", new), total) == expected


def test_a_rolling_update_grows_the_new_before_it_shrinks_the_old() -> None:
    sizes = compute_rolling_sizes(
        RolloutLimits(3, 1, 0), ReplicaSetSize("new", 0), [ReplicaSetSize("old", 3, available=3)]
    )

    assert sizes == {"new": 1}


def test_unready_new_pods_hold_the_old_ones() -> None:
    sizes = compute_rolling_sizes(
        RolloutLimits(3, 1, 0), ReplicaSetSize("new", 1, available=0), [ReplicaSetSize("old", 3, available=3)]
    )

    assert sizes == {}


def test_available_new_pods_release_as_many_old_ones() -> None:
    sizes = compute_rolling_sizes(
        RolloutLimits(3, 1, 0), ReplicaSetSize("new", 1, available=1), [ReplicaSetSize("old", 3, available=3)]
    )

    assert sizes == {"old": 2}


def test_broken_old_pods_go_first() -> None:
    old = [ReplicaSetSize("healthy", 5, available=5), ReplicaSetSize("broken", 3, available=0)]

    sizes = compute_rolling_sizes(RolloutLimits(5, 3, 0), ReplicaSetSize("new", 0, available=0), old)

    assert sizes == {"broken": 0}


def test_the_oldest_gives_up_first() -> None:
    old = [ReplicaSetSize("older", 2, available=2), ReplicaSetSize("younger", 4, available=4)]

    sizes = compute_rolling_sizes(RolloutLimits(4, 2, 2), ReplicaSetSize("new", 0, available=0), old)

    assert sizes == {"older": 0, "younger": 2}


def test_a_new_replica_set_that_is_too_large_shrinks() -> None:
    assert compute_rolling_sizes(RolloutLimits(2, 1, 0), ReplicaSetSize("new", 5, available=5), []) == {"new": 2}


@pytest.mark.parametrize(
    ("limits", "sets", "expected"),
    [
        # The desired number doubles, and so does each size.
        (
            RolloutLimits(20, 0, 0),
            [ReplicaSetSize("new", 5, previous_max_replicas=10), ReplicaSetSize("old", 5, previous_max_replicas=10)],
            {"new": 10, "old": 10},
        ),
        # The remainder of an uneven division goes to the first of the largest.
        (
            RolloutLimits(6, 0, 0),
            [ReplicaSetSize("new", 2, previous_max_replicas=5), ReplicaSetSize("old", 3, previous_max_replicas=5)],
            {"new": 2, "old": 4},
        ),
        # With equal sizes, an increase begins with the newest, a decrease with the oldest.
        (
            RolloutLimits(5, 0, 0),
            [ReplicaSetSize("new", 2, previous_max_replicas=4), ReplicaSetSize("old", 2, previous_max_replicas=4)],
            {"new": 3, "old": 2},
        ),
        (
            RolloutLimits(3, 0, 0),
            [ReplicaSetSize("new", 2, previous_max_replicas=4), ReplicaSetSize("old", 2, previous_max_replicas=4)],
            {"new": 2, "old": 1},
        ),
        (
            RolloutLimits(0, 0, 0),
            [ReplicaSetSize("new", 2, previous_max_replicas=4), ReplicaSetSize("old", 3, previous_max_replicas=4)],
            {"new": 0, "old": 0},
        ),
    ],
)
def test_a_changed_size_is_shared_in_proportion(
    limits: RolloutLimits, sets: list[ReplicaSetSize], expected: dict[str, int]
) -> None:
    assert compute_proportional_sizes(limits, sets, total_before=0) == expected


def test_without_a_noted_size_the_counted_replicas_are_the_base() -> None:
    sizes = compute_proportional_sizes(
        RolloutLimits(20, 0, 0), [ReplicaSetSize("new", 5), ReplicaSetSize("old", 5)], total_before=10
    )

    assert sizes == {"new": 10, "old": 10}


@given(
    limits=st.builds(limits_of, st.integers(1, 12), st.integers(0, 6), st.integers(0, 6)),
    readiness=st.lists(st.booleans(), max_size=60),
)
def test_a_rollout_stays_within_its_limits_and_ends(limits: RolloutLimits, readiness: list[bool]) -> None:
    new, old = ReplicaSetSize("new", 0), ReplicaSetSize("old", limits.desired, available=limits.desired)
    for gets_ready in [*readiness, *[True] * 60]:
        sizes = compute_rolling_sizes(limits, new, [old] if old.replicas else [])
        new = replace(new, replicas=sizes.get("new", new.replicas))
        # A ReplicaSet removes unavailable pods first; here all old pods are unavailable.
        left = sizes.get("old", old.replicas)
        old = replace(old, replicas=left, available=min(old.available, left))
        new = replace(new, available=min(new.replicas, new.available + gets_ready))
        assert new.replicas + old.replicas <= limits.max_replicas
        assert new.available + old.available >= limits.min_available

    assert (new.replicas, old.replicas) == (limits.desired, 0)
