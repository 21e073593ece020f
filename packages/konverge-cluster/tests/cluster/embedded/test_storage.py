from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from konverge.errors import ExpiredError
from konverge.kube import Object, ObjectKey
from konverge_cluster._internal.embedded.storage import Storage, StorageChange

PODS, SERVICES = "pods", "services"


def thing(name: str, value: int = 0) -> Object:
    return {"metadata": {"namespace": "default", "name": name}, "value": value}


def key(name: str) -> ObjectKey:
    return ObjectKey("default", name)


@pytest.fixture
def storage() -> Storage:
    return Storage()


def test_each_change_takes_the_next_revision_as_resource_version(storage: Storage) -> None:
    first, second = storage.store(PODS, thing("a")), storage.store(SERVICES, thing("a"))

    assert (first.revision, second.revision) == (1, 2)
    assert second.object["metadata"]["resourceVersion"] == "2"


def test_a_removed_object_is_told_with_the_revision_of_its_removal(storage: Storage) -> None:
    storage.store(PODS, thing("a", value=7))

    gone = storage.remove(PODS, key("a"))

    assert storage.get(PODS, key("a")) is None
    assert gone.object == {**thing("a", value=7), "metadata": {**thing("a")["metadata"], "resourceVersion": "2"}}
    assert [change.type for change in storage.list_changes(1)] == ["DELETED"]


def test_items_come_in_the_order_of_their_keys(storage: Storage) -> None:
    for name in ("c", "a", "b"):
        storage.store(PODS, thing(name))

    assert [stored.key.name for stored in storage.list_objects(PODS, "default")] == ["a", "b", "c"]
    assert storage.list_objects(PODS, "other") == []


def test_what_a_reader_changes_in_its_copy_stays_out_of_the_store(storage: Storage) -> None:
    stored = storage.store(PODS, thing("a", value=1))

    stored.copy()["value"] = 2

    assert stored.object["value"] == 1


def test_subscribers_hear_of_changes_in_order_until_they_end(storage: Storage) -> None:
    heard: list[tuple[str, str]] = []
    end = storage.subscribe(lambda change: heard.append((change.type, change.key.name)))

    storage.store(PODS, thing("a"))
    storage.store(PODS, thing("a", value=1))
    storage.remove(PODS, key("a"))
    end()
    storage.store(PODS, thing("b"))

    assert heard == [("ADDED", "a"), ("MODIFIED", "a"), ("DELETED", "a")]


def test_changes_before_a_compaction_are_expired(storage: Storage) -> None:
    for value in range(4):
        storage.store(PODS, thing("a", value))

    storage.compact(2)

    assert [change.revision for change in storage.list_changes(2)] == [3, 4]
    with pytest.raises(ExpiredError) as caught:
        storage.list_changes(1)
    assert caught.value.code == 410


def test_the_log_forgets_by_itself_what_is_older_than_its_history() -> None:
    storage = Storage(history=8)

    for value in range(100):
        storage.store(PODS, thing("a", value))

    assert 100 - 8 - 2 <= storage.oldest_revision <= 100 - 8
    assert len(storage.list_changes(storage.oldest_revision)) == 100 - storage.oldest_revision


def test_a_history_of_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="at least 1"):
        Storage(history=0)


# A write: the name and the resource of an object, and True for a deletion.
WRITES = st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from([PODS, SERVICES]), st.booleans()), max_size=30)


def write_all(storage: Storage, writes: list[tuple[str, str, bool]]) -> None:
    for value, (name, resource, goes) in enumerate(writes):
        if not goes:
            storage.store(resource, thing(name, value))
        elif storage.get(resource, key(name)) is not None:
            storage.remove(resource, key(name))


def replay_changes(state: dict[ObjectKey, Any], changes: list[StorageChange]) -> dict[ObjectKey, Any]:
    for change in changes:
        if change.type == "DELETED":
            del state[change.key]
        else:
            state[change.key] = change.new
    return state


def state_of(storage: Storage, revision: int | None = None) -> dict[ObjectKey, Any]:
    found = storage.list_objects(PODS) if revision is None else storage.list_objects_at(PODS, revision)
    return {stored.key: stored.object for stored in found}


@pytest.mark.slow
@given(before=WRITES, after=WRITES)
def test_replaying_a_watch_from_any_revision_gives_the_present_state(
    before: list[tuple[str, str, bool]], after: list[tuple[str, str, bool]]
) -> None:
    storage = Storage()
    write_all(storage, before)
    start, revision = state_of(storage), storage.revision
    write_all(storage, after)

    changes = [change for change in storage.list_changes(revision) if change.resource == PODS]

    assert replay_changes(start, changes) == state_of(storage)


@pytest.mark.slow
@given(before=WRITES, after=WRITES)
def test_a_past_state_is_what_it_was_then(
    before: list[tuple[str, str, bool]], after: list[tuple[str, str, bool]]
) -> None:
    storage = Storage()
    write_all(storage, before)
    then, revision = state_of(storage), storage.revision

    write_all(storage, after)

    assert state_of(storage, revision) == then
