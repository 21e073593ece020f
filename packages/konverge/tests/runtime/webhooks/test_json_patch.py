"""The patch for the changes of a handler."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from konverge._internal.runtime.webhooks.json_patch import create_json_patch, merge_partial_change
from konverge_cluster._internal.embedded.json_patches import apply_json_patch as applied

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from(["", "a", "a/b", "~", "name"]),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(["a", "b/c", "~1", "name"]), inner),
    max_leaves=12,
)

REPLACED = {"op": "replace", "path": "/a/b/c", "value": 3}


@pytest.mark.slow
@given(before=VALUES, after=VALUES)
def test_a_patch_makes_the_one_value_of_the_other(before: Any, after: Any) -> None:
    found = (
        applied(copy.deepcopy(before), create_json_patch(before, after)) if create_json_patch(before, after) else before
    )

    assert repr(found) == repr(after) or _sort_value(found) == _sort_value(after)


@given(value=VALUES)
def test_what_is_the_same_needs_no_patch(value: Any) -> None:
    assert create_json_patch(value, copy.deepcopy(value)) == []


@given(whole=VALUES, value=VALUES)
def test_a_handler_that_changes_nothing_changes_nothing(whole: Any, value: Any) -> None:
    assert merge_partial_change(whole, value, copy.deepcopy(value)) is whole


@given(before=VALUES, after=VALUES)
def test_where_the_class_knows_everything_its_new_value_is_the_new_value(before: Any, after: Any) -> None:
    assert _sort_value(merge_partial_change(before, before, after)) == _sort_value(after)


@pytest.mark.parametrize(
    ("before", "after", "operations"),
    [
        ({"a": 1}, {"a": True}, [{"op": "replace", "path": "/a", "value": True}]),
        ({}, {"a/b": 1}, [{"op": "add", "path": "/a~1b", "value": 1}]),
        ({"a~b": 1}, {}, [{"op": "remove", "path": "/a~0b"}]),
        ({"a": [1, 2, 3]}, {"a": [1]}, [{"op": "remove", "path": "/a/2"}, {"op": "remove", "path": "/a/1"}]),
        ({"a": [1]}, {"a": [1, 2]}, [{"op": "add", "path": "/a/1", "value": 2}]),
        (
            {"a": {"b": {"c": 1, "d": 2}}},
            {"a": {"b": {"c": 3, "d": 2}}},
            [{"op": "replace", "path": "/a/b/c", "value": 3}],
        ),
    ],
)
def test_only_what_differs_is_named(before: Any, after: Any, operations: list[Any]) -> None:
    assert create_json_patch(before, after) == operations


@pytest.mark.parametrize(
    ("whole", "before", "after", "expected"),
    [
        # Fields that the class does not cover stay, beside changed and removed ones.
        ({"a": 1, "x": 9}, {"a": 1}, {"a": 2}, {"a": 2, "x": 9}),
        ({"a": 1, "x": 9}, {"a": 1}, {}, {"x": 9}),
        ({"d": {"x": 9}}, {"d": {}}, {"d": {"a": 1}}, {"d": {"x": 9, "a": 1}}),
        # A default that the class omits from its JSON.
        ({"d": {"x": 9, "a": 0}}, {}, {"d": {"a": 1}}, {"d": {"x": 9, "a": 1}}),
        # Items of lists keep their unknown fields: matched by name,
        (
            {"l": [{"name": "a", "x": 1}, {"name": "b", "x": 2}]},
            {"l": [{"name": "a"}, {"name": "b"}]},
            {"l": [{"name": "b", "port": 5}, {"name": "c"}]},
            {"l": [{"name": "b", "port": 5, "x": 2}, {"name": "c"}]},
        ),
        # by equality,
        (
            [{"a": 1, "x": 1}, {"a": 2, "x": 2}],
            [{"a": 1}, {"a": 2}],
            [{"a": 2}, {"a": 3}],
            [{"a": 2, "x": 2}, {"a": 3}],
        ),
        # by position.
        ([{"a": 1, "x": 1}], [{"a": 1}], [{"a": 5}], [{"a": 5, "x": 1}]),
        # The server's own spelling of a set is another order.
        (["b", "a"], ["a", "b"], ["a", "c"], ["a", "c"]),
    ],
)
def test_what_the_class_does_not_know_stays(whole: Any, before: Any, after: Any, expected: Any) -> None:
    held = copy.deepcopy(whole)

    assert merge_partial_change(whole, before, after) == expected
    assert whole == held


def _sort_value(value: Any) -> Any:
    if isinstance(value, dict):
        return {"object": sorted((name, repr(_sort_value(item))) for name, item in value.items())}
    return [_sort_value(item) for item in value] if isinstance(value, list) else repr(value)
