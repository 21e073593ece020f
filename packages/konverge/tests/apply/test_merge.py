from __future__ import annotations

import copy
import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from konverge._internal.apply import (
    ApplyConflictError,
    FieldSet,
    build_custom_resource_schema,
    find_builtin_schema,
    find_drift,
    server_side_apply,
    track_update,
)
from konverge._internal.apply.managed_fields import decode_managed_fields
from konverge.errors import BadRequestError, ServerError
from konverge.kube import GroupVersionKind, Object
from tests.apply.widget_strategies import widgets
from tests.apply.widgets import WIDGET_SCHEMA

SCHEMA = build_custom_resource_schema(WIDGET_SCHEMA)
START = datetime(2026, 1, 1, tzinfo=UTC)
LATER = START + timedelta(seconds=5)

managers = st.sampled_from(["one", "two", "three"])


def apply_to_object(
    live: Object | None, wanted: Object, manager: str, *, force: bool = True, now: datetime = START
) -> Object:
    return server_side_apply(live, wanted, SCHEMA, manager=manager, force=force, now=now)


def get_owned_fields(obj: Object, manager: str) -> FieldSet:
    found = [
        entry.fields
        for who, entry in decode_managed_fields(obj["metadata"].get("managedFields")).items()
        if who.name == manager
    ]
    return found[0] if found else FieldSet()


def timeless(obj: Object | None) -> Any:
    """Remove the times of the managers and their order, which follows from the times.

    The server renews both, even if nothing else changes, while an applied value is not in canonical form.
    """
    assert obj is not None
    entries = obj["metadata"].get("managedFields", [])
    normalized = sorted(({**entry, "time": None} for entry in entries), key=json.dumps)
    return {**obj, "metadata": {**obj["metadata"], "managedFields": normalized}}


def apply_twice(live: Object | None, wanted: Object, manager: str) -> Object:
    """Apply twice: an empty list that replaces own items only appears the second time, as on the real server."""
    return apply_to_object(apply_to_object(live, wanted, manager), wanted, manager)


@pytest.mark.slow
@given(st.lists(st.tuples(managers, widgets), min_size=1, max_size=4))
def test_applying_the_same_again_changes_nothing(history: list[tuple[str, Object]]) -> None:
    live: Object | None = None
    for manager, wanted in history:
        live = apply_twice(live, wanted, manager)
    manager, wanted = history[-1]
    assert timeless(apply_to_object(live, wanted, manager, now=LATER)) == timeless(live)


@pytest.mark.slow
@given(st.lists(st.tuples(managers, widgets), min_size=1, max_size=4))
def test_after_an_apply_there_is_no_difference(history: list[tuple[str, Object]]) -> None:
    live: Object | None = None
    for manager, wanted in history:
        live = apply_twice(live, wanted, manager)
    manager, wanted = history[-1]
    assert live is not None
    assert find_drift(wanted, live, manager, SCHEMA) == ()


@pytest.mark.slow
@given(st.lists(st.tuples(managers, widgets), min_size=1, max_size=3), widgets, managers)
def test_no_difference_means_that_an_apply_changes_nothing(
    history: list[tuple[str, Object]], wanted: Object, manager: str
) -> None:
    live: Object | None = None
    for earlier, each in history:
        live = apply_twice(live, each, earlier)
    assert live is not None
    is_proven = find_drift(wanted, live, manager, SCHEMA) == ()
    assert not is_proven or timeless(apply_to_object(live, wanted, manager, now=LATER)) == timeless(live)


@pytest.mark.slow
@given(widgets, widgets)
def test_giving_everything_up_removes_only_what_nobody_else_owns(mine: Object, others: Object) -> None:
    alone = apply_twice(None, others, "two")
    shared = apply_twice(alone, mine, "one")
    left = apply_twice(shared, {**mine, "metadata": {"name": "w"}, "spec": {}}, "one")
    spec = FieldSet.of([("f:spec",)])  # Owned by who applies it empty, and a new one once it has been emptied.
    assert not get_owned_fields(left, "one") - spec
    assert get_owned_fields(left, "two") - spec == get_owned_fields(shared, "two") - spec


@pytest.mark.slow
@given(st.lists(st.tuples(managers, widgets), min_size=1, max_size=4))
def test_by_force_everything_applied_is_owned(history: list[tuple[str, Object]]) -> None:
    live: Object | None = None
    for manager, wanted in history:
        live = apply_to_object(live, wanted, manager)
    manager, wanted = history[-1]
    assert get_owned_fields(live or {}, manager) == get_owned_fields(apply_to_object(None, wanted, manager), manager)


@pytest.mark.slow
@given(widgets, widgets, managers)
def test_no_write_changes_what_it_is_given(before: Object, wanted: Object, manager: str) -> None:
    live = apply_to_object(None, before, "one")
    given_live, given_wanted = copy.deepcopy(live), copy.deepcopy(wanted)
    apply_to_object(live, wanted, manager)
    track_update(live, wanted, SCHEMA, manager=manager, now=START)
    assert (live, wanted) == (given_live, given_wanted)


@pytest.mark.slow
@given(widgets, widgets)
def test_an_update_owns_exactly_what_it_changed(before: Object, after: Object) -> None:
    live = apply_to_object(None, before, "one")
    new = {**after, "metadata": {**after["metadata"], "managedFields": live["metadata"].get("managedFields", [{}])}}
    stored = track_update(live, new, SCHEMA, manager="updater", now=LATER)
    again = track_update(stored, stored, SCHEMA, manager="updater", now=LATER + timedelta(seconds=1))
    assert again == stored
    assert not get_owned_fields(stored, "updater") & get_owned_fields(stored, "one")


def deployment(**spec: Any) -> Object:
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": spec}


def test_a_conflict_is_told_in_the_servers_words() -> None:
    schema = find_builtin_schema(GroupVersionKind("apps", "v1", "Deployment"))
    assert schema is not None
    live = server_side_apply(None, deployment(replicas=1), schema, manager="one", force=False, now=START)
    with pytest.raises(ApplyConflictError) as caught:
        server_side_apply(live, deployment(replicas=2), schema, manager="two", force=False, now=START)
    assert caught.value.message == 'Apply failed with 1 conflict: conflict with "one": .spec.replicas'
    assert caught.value.conflicts == (('"one"', ".spec.replicas"),)
    assert caught.value.to_status()["reason"] == "Conflict"
    assert caught.value.causes[0].field == ".spec.replicas"


def test_a_change_has_its_time_and_nothing_else_does() -> None:
    first = apply_to_object(None, {**_widget(), "spec": {"text": "a"}}, "one", now=START)
    second = apply_to_object(first, {**_widget(), "spec": {"size": 2}}, "two", now=LATER)
    times = {entry["manager"]: entry["time"] for entry in second["metadata"]["managedFields"]}
    assert times == {"one": "2026-01-01T00:00:00Z", "two": "2026-01-01T00:00:05Z"}


def test_who_applies_what_is_there_already_has_an_entry_without_time() -> None:
    first = apply_to_object(None, {**_widget(), "spec": {"text": "a"}}, "one")
    second = apply_to_object(first, {**_widget(), "spec": {"text": "a"}}, "two")
    assert ["time" in entry for entry in second["metadata"]["managedFields"]] == [False, True]


def test_a_nameless_manager_is_called_unknown() -> None:
    stored = apply_to_object(None, {**_widget(), "spec": {"text": "a"}}, "")
    assert stored["metadata"]["managedFields"][0]["manager"] == "unknown"


def test_managed_fields_that_cannot_be_read_count_as_none() -> None:
    live = {**_widget(), "spec": {"text": "a"}}
    live["metadata"] = {"name": "w", "managedFields": [{"operation": "Guess"}]}
    stored = apply_to_object(live, {**_widget(), "spec": {"size": 2}}, "one")
    assert {entry["manager"] for entry in stored["metadata"]["managedFields"]} == {"before-first-apply", "one"}


def test_managed_fields_cannot_be_applied() -> None:
    wanted = {**_widget(), "metadata": {"name": "w", "managedFields": []}}
    with pytest.raises(BadRequestError, match=r"metadata\.managedFields must be nil"):
        apply_to_object(None, wanted, "one")


def test_a_refused_value_is_not_told() -> None:
    with pytest.raises(ServerError, match=r"\.spec\.text: expected string, got number") as caught:
        apply_to_object(None, {**_widget(), "spec": {"text": 12345}}, "one")
    assert "12345" not in caught.value.message


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ({"unknown": 1}, r"\.spec\.unknown: field not declared in schema"),
        (
            {"ports": [{"port": 1}, {"port": 1, "protocol": "TCP"}]},
            r'duplicate entries for key \[port=1,protocol="TCP"\]',
        ),
        ({"ports": {}}, r"\.spec\.ports: expected list, got map"),
        ({"ports": [1]}, r"a list with keys holds mappings, got number"),
        ({"ports": [{"port": []}]}, r"omits all key fields"),
        ({"set": [{}]}, r"a set holds scalars, got map"),
        ({"map": []}, r"\.spec\.map: expected map, got list"),
        ({"size": True}, r"\.spec\.size: expected numeric, got boolean"),
        ({"unknown": 1, "size": "1"}, r"errors:\n  \.spec\.unknown"),
    ],
)
def test_what_does_not_fit_the_schema_is_refused(spec: dict[str, Any], message: str) -> None:
    with pytest.raises(ServerError, match=message):
        apply_to_object(None, {**_widget(), "spec": spec}, "one")


def _widget() -> Object:
    return {"apiVersion": "apply.konverge.test/v1", "kind": "Widget", "metadata": {"name": "w"}}
