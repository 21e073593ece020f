"""Own writes that the watch has not confirmed yet."""

from __future__ import annotations

import pytest

from konverge._internal.cache.own_writes import OwnWrites


def three_writes() -> OwnWrites:
    writes = OwnWrites()
    for revision, now in [(11, 100.0), (15, 101.0), (13, 102.0)]:  # two answers may overtake each other
        writes.add(revision, now)
    return writes


@pytest.mark.parametrize(
    ("revision", "listed_at", "left", "oldest_at"),
    [
        (10, 0.0, 3, 100.0),
        (11, 0.0, 2, 101.0),
        (14, 0.0, 2, 101.0),
        (15, 0.0, 0, None),
        (3, 101.0, 2, 101.0),
        (3, 103.0, 0, None),
    ],
    ids=["none yet", "up to the first", "between", "all", "a list since the first", "a list since all"],
)
def test_what_the_watch_or_a_later_list_has_shown_is_confirmed(
    revision: int, listed_at: float, left: int, oldest_at: float | None
) -> None:
    writes = three_writes()

    writes.confirm(revision, listed_at)

    assert (len(writes), writes.oldest_at) == (left, oldest_at)


def test_the_oldest_of_too_many_writes_is_still_known() -> None:
    writes = OwnWrites()
    for number in range(10_001):
        writes.add(number + 1, float(number))

    assert (len(writes), writes.oldest_at) == (10_000, 0.0)
