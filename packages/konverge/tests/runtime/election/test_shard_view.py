"""The shards that a replica campaigns for, from its view of the Leases."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from konverge._internal.runtime.election.options import LeaseTiming
from konverge._internal.runtime.election.shard_view import (
    ShardPlan,
    ShardView,
    build_member_lease_name,
    build_shard_lease_name,
)
from konverge.kube import Object

TIMING = LeaseTiming(15, 10.0, 2.0)
NOTHING: frozenset[int] = frozenset()


def a_lease(name: str, holder: str, renewal: int = 0) -> Object:
    return {
        "metadata": {"name": name, "namespace": "ns", "uid": name},
        "spec": {"holderIdentity": holder, "leaseDurationSeconds": 15, "leaseTransitions": renewal},
    }


def leases(held: dict[str, set[int]], shards: int = 8, renewal: int = 0) -> list[Object]:
    """Return the Leases when these members are alive and hold these shards; each renewal makes them new."""
    return [a_lease(build_member_lease_name("web", shards, member), member, renewal) for member in held] + [
        a_lease(build_shard_lease_name("web", shard, shards), member, renewal)
        for member, each in held.items()
        for shard in each
    ]


def plan_when_stable(
    held: dict[str, set[int]], me: str, shards: int = 8, now: float = 100.0
) -> tuple[ShardView, ShardPlan]:
    """Return the plan of a replica that has seen the same state for some time."""
    board = ShardView("web", shards, me, TIMING)
    for renewal in range(4):
        board.update(leases(held, shards, renewal), now - 6 + 2 * renewal)
    return board, board.plan(frozenset(held.get(me, ())), now)


def test_no_replica_takes_a_shard_before_others_had_time_to_start() -> None:
    board = ShardView("web", 8, "a", TIMING)
    board.update(leases({"a": set()}), 0.0)
    assert board.plan(NOTHING, 0.0).campaign == NOTHING
    board.update(leases({"a": set(), "b": set(), "c": set()}), 2.0)
    assert len(board.plan(NOTHING, 2.0).campaign) == 3


def test_three_that_start_together_want_each_shard_once() -> None:
    members: dict[str, set[int]] = {"a": set(), "b": set(), "c": set()}
    wanted = [plan_when_stable(members, me)[1].campaign for me in members]
    assert sorted(len(each) for each in wanted) == [2, 3, 3]
    assert sorted(shard for each in wanted for shard in each) == list(range(8))


def test_what_is_no_lease_is_passed_over() -> None:
    board = ShardView("web", 8, "a", TIMING)
    for moment in (0.0, 2.0):
        board.update([{"metadata": 7}, {"metadata": {"name": []}}, {"spec": "held"}, *leases({"a": set()})], moment)
    assert board.plan(NOTHING, 2.0).campaign == set(range(8))


def test_one_alone_takes_all() -> None:
    assert plan_when_stable({"a": set()}, "a")[1].campaign == set(range(8))


def test_a_fair_division_stays_as_it_is() -> None:
    fair = {"a": {0, 1}, "b": {2, 3, 4}, "c": {5, 6, 7}}
    for me in fair:
        plan = plan_when_stable(fair, me)[1]
        assert (plan.campaign, plan.hand_over) == (NOTHING, NOTHING)


def test_members_above_their_target_hand_over_to_a_new_one() -> None:
    joined: dict[str, set[int]] = {"a": {0, 1}, "b": {2, 3, 4}, "c": {5, 6, 7}, "d": set()}
    handed = {me: plan_when_stable(joined, me)[1].hand_over for me in joined}
    assert {me: len(each) for me, each in handed.items()} == {"a": 0, "b": 1, "c": 1, "d": 0}


def test_no_member_hands_over_while_a_shard_is_unheld() -> None:
    assert plan_when_stable({"a": {0, 1, 2, 3, 4, 5, 6}, "b": set()}, "a")[1].hand_over == NOTHING


def test_no_member_hands_over_while_the_state_changes() -> None:
    board = ShardView("web", 8, "a", TIMING)
    for moment in range(0, 8, 2):
        board.update(leases({"a": set(range(8))}, renewal=moment), float(moment))
    board.update(leases({"a": set(range(8)), "b": set()}, renewal=9), 8.0)
    assert board.plan(frozenset(range(8)), 8.0).hand_over == NOTHING
    board.update(leases({"a": set(range(8)), "b": set()}, renewal=10), 12.0)
    assert len(board.plan(frozenset(range(8)), 12.0).hand_over) == 4


def test_a_dead_members_shards_are_shared_out_when_they_have_run_out() -> None:
    board, _ = plan_when_stable({"a": {0, 1}, "b": {2, 3, 4}, "c": {5, 6, 7}}, "a", now=100.0)
    alive = leases({"a": {0, 1}, "b": {2, 3, 4}}, renewal=9)
    dead = leases({"c": {5, 6, 7}}, renewal=3)
    board.update(alive + dead, 114.0)
    assert board.plan(frozenset({0, 1}), 114.0).campaign == NOTHING
    board.update(alive + dead, 115.0)
    assert board.plan(frozenset({0, 1}), 115.0).campaign == {5, 6}


def test_an_orphan_is_free_for_every_member_after_a_while() -> None:
    members: dict[str, set[int]] = {"a": {0, 1, 2, 3}, "b": {4, 5, 6}}  # b should take 7, and does not
    board, plan = plan_when_stable(members, "a")
    assert plan.campaign == NOTHING
    board.update(leases(members, renewal=9), 110.0)
    assert board.plan(frozenset(range(4)), 110.0).campaign == {7}


def test_the_first_of_the_members_sweeps_what_has_been_dead_for_long() -> None:
    members: dict[str, set[int]] = {"a": {0, 1, 2, 3}, "b": {4, 5, 6, 7}}
    gone = a_lease(build_member_lease_name("web", 8, "c"), "c")
    for me, swept in (("a", (gone,)), ("b", ())):
        board = ShardView("web", 8, me, TIMING)
        board.update([*leases(members), gone], 0.0)
        board.update([*leases(members, renewal=1), gone], 59.0)
        assert board.plan(frozenset(members[me]), 59.0).sweep == ()
        board.update([*leases(members, renewal=2), gone], 60.0)
        assert board.plan(frozenset(members[me]), 60.0).sweep == swept


def test_holders_of_another_division_are_rivals_where_the_ranges_overlap() -> None:
    board = ShardView("web", 8, "a", TIMING)
    board.update(
        [a_lease(build_shard_lease_name("web", 1, 4), "old"), a_lease(build_shard_lease_name("web", 3, 4), "")], 0.0
    )
    assert [shard for shard in range(8) if board.find_rivals([shard], 1.0)] == [2, 3]
    assert [shard for shard in range(8) if board.find_rivals([shard], 15.0)] == []  # they have expired


def test_other_names_are_no_shards() -> None:
    board = ShardView("web", 8, "a", TIMING)
    names = ["web-shard-1-of-x", "web-shard-9-of-4", "web-shard--1-of-4", "webshop-shard-1-of-4", "shard-1-of-4"]
    board.update([a_lease(name, "x") for name in names], 0.0)
    assert not board.find_rivals(range(8), 1.0)


@pytest.mark.slow
@given(st.integers(1, 24), st.lists(st.sampled_from(["a", "b", "c", "d", ""]), min_size=24, max_size=24))
def test_from_any_division_the_plans_lead_to_a_fair_one(shards: int, first: list[str]) -> None:
    members = ("a", "b", "c", "d")
    division = {me: {shard for shard in range(shards) if first[shard] == me} for me in members}
    moves = 0
    for step in range(8):
        plans = {me: plan_when_stable(division, me, shards, now=100.0 + step)[1] for me in members}
        taken = [shard for plan in plans.values() for shard in plan.campaign]
        assert len(taken) == len(set(taken))  # with one view, no replica competes with another
        moves += len(taken)
        division = {me: (division[me] - plans[me].hand_over) | plans[me].campaign for me in members}
    sizes = [len(each) for each in division.values()]
    assert sum(sizes) == shards
    assert max(sizes) - min(sizes) <= 1
    assert moves <= shards  # no shard moves twice
