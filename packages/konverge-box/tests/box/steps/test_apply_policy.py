"""The action on an object: a table of decisions, and properties of every decision."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from konverge_box._internal.steps.apply_policy import (
    ApplyPolicy,
    ApplyTiming,
    ObjectAction,
    ObservedObject,
    decide_action,
)

KEPT = ApplyPolicy(ApplyTiming.ALWAYS, deletes=True)
CREATED = ApplyPolicy(ApplyTiming.MADE, deletes=False)
JOB = ApplyPolicy(ApplyTiming.RUN, deletes=False)
ONCE = ApplyPolicy(ApplyTiming.ONCE, deletes=False)
ROTATED = ApplyPolicy(ApplyTiming.RENEWED, deletes=False)
ROTATED_AND_KEPT = ApplyPolicy(ApplyTiming.RENEWED, deletes=True)

ABSENT = ObservedObject()
GONE = ObservedObject(is_marked=True)
OURS = ObservedObject(exists=True, is_ours=True)
MARKED = ObservedObject(exists=True, is_ours=True, is_marked=True)
FOREIGN = ObservedObject(exists=True)
DUE = ObservedObject(exists=True, is_ours=True, renewal="its values have expired")
FOREIGN_AND_OLD = ObservedObject(exists=True, renewal="its values have expired")


@pytest.mark.parametrize(
    ("policy", "seen", "expected"),
    [
        (KEPT, ABSENT, ObjectAction.APPLY),
        (KEPT, OURS, ObjectAction.APPLY),
        (CREATED, ABSENT, ObjectAction.APPLY),
        (CREATED, OURS, ObjectAction.LEAVE),
        (CREATED, FOREIGN, ObjectAction.LEAVE),
        (CREATED, GONE, ObjectAction.SKIP),
        (CREATED, MARKED, ObjectAction.LEAVE),
        (JOB, ABSENT, ObjectAction.APPLY),
        (JOB, OURS, ObjectAction.LEAVE),
        (JOB, GONE, ObjectAction.SKIP),
        (ONCE, ABSENT, ObjectAction.APPLY),
        (ONCE, OURS, ObjectAction.LEAVE),
        (ONCE, DUE, ObjectAction.APPLY),
        (ONCE, FOREIGN_AND_OLD, ObjectAction.LEAVE),
        (CREATED, DUE, ObjectAction.LEAVE),
        (ONCE, FOREIGN, ObjectAction.LEAVE),
        (ROTATED, ABSENT, ObjectAction.APPLY),
        (ROTATED, OURS, ObjectAction.LEAVE),
        (ROTATED, DUE, ObjectAction.APPLY),
        (ROTATED, FOREIGN_AND_OLD, ObjectAction.LEAVE),
    ],
)
def test_what_is_wanted_is_made_kept_or_left_as_its_entry_says(
    policy: ApplyPolicy, seen: ObservedObject, expected: ObjectAction
) -> None:
    assert decide_action(policy, seen, is_on=True, is_wanted=False).action is expected


@pytest.mark.parametrize(
    ("policy", "seen", "expected"),
    [
        (KEPT, ABSENT, ObjectAction.SKIP),
        (KEPT, OURS, ObjectAction.DELETE),
        (KEPT, FOREIGN, ObjectAction.SKIP),
        (CREATED, OURS, ObjectAction.SKIP),
        (JOB, OURS, ObjectAction.SKIP),
        (ONCE, OURS, ObjectAction.SKIP),
        (ROTATED, OURS, ObjectAction.SKIP),
        (ROTATED_AND_KEPT, OURS, ObjectAction.DELETE),
    ],
)
def test_what_is_not_wanted_goes_if_its_entry_keeps_it_and_it_is_ours(
    policy: ApplyPolicy, seen: ObservedObject, expected: ObjectAction
) -> None:
    assert decide_action(policy, seen, is_on=False, is_wanted=False).action is expected


@given(
    policy=st.builds(ApplyPolicy, st.sampled_from(ApplyTiming), st.booleans()),
    seen=st.builds(ObservedObject, st.booleans(), st.booleans(), st.booleans(), st.booleans()),
    is_on=st.booleans(),
    is_wanted=st.booleans(),
)
def test_nothing_is_deleted_that_is_wanted_or_not_ours_or_a_job(
    policy: ApplyPolicy, seen: ObservedObject, is_on: bool, is_wanted: bool
) -> None:
    decision, why = decide_action(policy, seen, is_on=is_on, is_wanted=is_wanted)

    assert why
    if decision is ObjectAction.DELETE:
        assert seen.exists
        assert seen.is_ours
        assert not is_on
        assert not is_wanted
        assert policy.deletes
        assert policy.timing is not ApplyTiming.RUN
