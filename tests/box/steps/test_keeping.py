"""What is done with an object: a table, and what holds of every decision."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from konverge.box.steps.keeping import Decision, Keeping, Sighting, Values, decide

KEPT = Keeping(Values.ALWAYS, removes=True)
CREATED = Keeping(Values.MADE, removes=False)
JOB = Keeping(Values.RUN, removes=False)
ONCE = Keeping(Values.ONCE, removes=False)
ROTATED = Keeping(Values.RENEWED, removes=False)
ROTATED_AND_KEPT = Keeping(Values.RENEWED, removes=True)

ABSENT = Sighting()
GONE = Sighting(is_marked=True)
OURS = Sighting(exists=True, is_ours=True)
MARKED = Sighting(exists=True, is_ours=True, is_marked=True)
FOREIGN = Sighting(exists=True)
DUE = Sighting(exists=True, is_ours=True, is_due=True)
FOREIGN_AND_OLD = Sighting(exists=True, is_due=True)


@pytest.mark.parametrize(
    ("keeping", "seen", "expected"),
    [
        (KEPT, ABSENT, Decision.APPLY),
        (KEPT, OURS, Decision.APPLY),
        (CREATED, ABSENT, Decision.APPLY),
        (CREATED, OURS, Decision.LEAVE),
        (CREATED, FOREIGN, Decision.LEAVE),
        (CREATED, GONE, Decision.SKIP),
        (CREATED, MARKED, Decision.LEAVE),
        (JOB, ABSENT, Decision.APPLY),
        (JOB, OURS, Decision.LEAVE),
        (JOB, GONE, Decision.SKIP),
        (ONCE, ABSENT, Decision.APPLY),
        (ONCE, OURS, Decision.LEAVE),
        (ONCE, DUE, Decision.LEAVE),
        (ONCE, FOREIGN, Decision.LEAVE),
        (ROTATED, ABSENT, Decision.APPLY),
        (ROTATED, OURS, Decision.LEAVE),
        (ROTATED, DUE, Decision.APPLY),
        (ROTATED, FOREIGN_AND_OLD, Decision.LEAVE),
    ],
)
def test_what_is_wanted_is_made_kept_or_left_as_its_entry_says(
    keeping: Keeping, seen: Sighting, expected: Decision
) -> None:
    assert decide(keeping, seen, passes=True, is_wanted=False).decision is expected


@pytest.mark.parametrize(
    ("keeping", "seen", "expected"),
    [
        (KEPT, ABSENT, Decision.SKIP),
        (KEPT, OURS, Decision.DELETE),
        (KEPT, FOREIGN, Decision.SKIP),
        (CREATED, OURS, Decision.SKIP),
        (JOB, OURS, Decision.SKIP),
        (ONCE, OURS, Decision.SKIP),
        (ROTATED, OURS, Decision.SKIP),
        (ROTATED_AND_KEPT, OURS, Decision.DELETE),
    ],
)
def test_what_is_not_wanted_goes_if_its_entry_keeps_it_and_it_is_ours(
    keeping: Keeping, seen: Sighting, expected: Decision
) -> None:
    assert decide(keeping, seen, passes=False, is_wanted=False).decision is expected


@given(
    keeping=st.builds(Keeping, st.sampled_from(Values), st.booleans()),
    seen=st.builds(Sighting, st.booleans(), st.booleans(), st.booleans(), st.booleans()),
    passes=st.booleans(),
    is_wanted=st.booleans(),
)
def test_nothing_is_deleted_that_is_wanted_or_not_ours_or_a_job(
    keeping: Keeping, seen: Sighting, passes: bool, is_wanted: bool
) -> None:
    decision, why = decide(keeping, seen, passes=passes, is_wanted=is_wanted)

    assert why
    if decision is Decision.DELETE:
        assert seen.exists
        assert seen.is_ours
        assert not passes
        assert not is_wanted
        assert keeping.removes
        assert keeping.values is not Values.RUN
