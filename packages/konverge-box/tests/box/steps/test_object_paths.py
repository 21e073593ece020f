"""Reading, setting and removing fields by their path, in a copy."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from konverge_box._internal.steps import StepError
from konverge_box._internal.steps.object_paths import get_value, remove_value, split_path, with_value
from konverge_box.expressions import Absent

KEYS = st.lists(st.sampled_from(["a", "b", "c"]), min_size=1, max_size=3).map(tuple)
OBJECTS = st.recursive(
    st.integers(0, 3) | st.none(),
    lambda inner: st.dictionaries(st.sampled_from(["a", "b", "c"]), inner, max_size=3),
).filter(lambda value: isinstance(value, dict))


@pytest.mark.parametrize(
    ("path", "keys"),
    [
        ("spec.a", ("spec", "a")),
        (".spec.a-b.0", ("spec", "a-b", "0")),
        ("metadata.labels.app.kubernetes.io/name", ("metadata", "labels", "app.kubernetes.io/name")),
        ("metadata.annotations.tier", ("metadata", "annotations", "tier")),
        ("metadata.labels", ("metadata", "labels")),
    ],
)
def test_a_path_goes_through_its_keys_and_that_of_a_label_is_one(path: str, keys: tuple[str, ...]) -> None:
    assert split_path(path) == keys


@pytest.mark.parametrize("path", ["", "spec..a", "spec.a/b", "0.a", "spec.a b", "spec.a\nb"])
def test_what_is_no_path_is_refused(path: str) -> None:
    with pytest.raises(ValueError, match="expected a path of field names"):
        split_path(path)


@pytest.mark.slow
@given(obj=OBJECTS, keys=KEYS, value=st.integers())
def test_what_was_set_is_found_and_what_was_given_stays(obj: dict[str, Any], keys: tuple[str, ...], value: int) -> None:
    before = copy.deepcopy(obj)
    try:
        changed = with_value(obj, keys, value, "here")
    except StepError:
        changed = None

    assert obj == before
    if changed is not None:
        assert get_value(changed, keys) == value
        assert isinstance(get_value(remove_value(changed, keys), keys), Absent)
        assert get_value(changed, keys) == value


@given(obj=OBJECTS, keys=KEYS)
def test_to_leave_out_what_is_absent_changes_nothing(obj: dict[str, Any], keys: tuple[str, ...]) -> None:
    once = remove_value(obj, keys)

    assert remove_value(once, keys) == once
