"""The store against a naive model: a server with a history, a lagging watch, and responses in any order."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from konverge._internal.cache import Store, StoreChange
from konverge._internal.cache.store import StoreReplacement
from konverge.kube import Object, ObjectKey
from tests.cache.objects import CONFIG_MAP, config_map, key, raw

NAMES = st.sampled_from(["a", "b"])


@dataclass(frozen=True)
class State:
    """The state under a name on the server from a version on; without a UID there is no object."""

    revision: int
    uid: str = ""


@dataclass
class Server:
    """The server with all earlier states of each name."""

    revision: int = 10
    history: dict[str, list[State]] = field(default_factory=lambda: {"a": [State(0)], "b": [State(0)]})
    log: list[tuple[int, str]] = field(default_factory=list)
    births: int = 0

    def write(self, name: str) -> State:
        self.revision += 1
        uid = self.history[name][-1].uid
        if not uid:
            self.births += 1
            uid = f"{name}{self.births:04}"
        return self._log(name, State(self.revision, uid))

    def delete(self, name: str) -> State:
        self.revision += 1
        return self._log(name, State(self.revision))

    def at(self, name: str, revision: int) -> State:
        return next(state for state in reversed(self.history[name]) if state.revision <= revision)

    def _log(self, name: str, state: State) -> State:
        self.history[name].append(state)
        self.log.append((state.revision, name))
        return state


class StoreMachine(RuleBasedStateMachine):
    """Random interleavings of the server's changes, the watch, lists, and the responses to own requests.

    The expected state of a name has the highest version of two sources: the watch (or the last list), and own writes
    whose responses have arrived. It is absent if an own request whose response has arrived deleted its UID. For an
    object that is not kept, the store knows only the existence; its first read may go to the server.
    """

    def __init__(self) -> None:
        super().__init__()
        self.server = Server()
        self.noted = {"a", "b"}
        self.store = Store(CONFIG_MAP, lambda meta: meta.name in self.noted)
        self.store.begin_replacement(0.0).commit("10")
        self.watched = 10
        self.now = 0.0
        self.answers_under_way: list[tuple[str, State]] = []
        self.deletes_under_way: list[tuple[str, str]] = []
        self.answered: dict[str, list[State]] = {"a": [], "b": []}
        self.deleted_uids: set[str] = set()
        self.list_under_way: StoreReplacement | None = None
        self.listed_at: int | None = None
        self.reported: dict[ObjectKey, str] = {}

    def hear(self, change: StoreChange | None) -> None:
        """Follow the changes like a subscriber: each must start where the last one ended."""
        if change is None:
            return
        meta = change.new or change.old
        assert meta is not None
        assert self.reported.get(meta.key) == (None if change.old is None else change.old.resource_version)
        if change.new is None:
            del self.reported[meta.key]
        else:
            self.reported[meta.key] = change.new.resource_version

    # The server.

    @rule(name=NAMES)
    def another_client_writes(self, name: str) -> None:
        self.server.write(name)

    @rule(name=NAMES)
    def another_client_deletes(self, name: str) -> None:
        if self.server.history[name][-1].uid:
            self.server.delete(name)

    @rule(name=NAMES)
    def we_write(self, name: str) -> None:
        self.answers_under_way.append((name, self.server.write(name)))

    @rule(name=NAMES)
    def we_delete(self, name: str) -> None:
        uid = self.server.history[name][-1].uid
        if uid:
            self.server.delete(name)
            self.deletes_under_way.append((name, uid))

    # The watch.

    @precondition(lambda self: self.list_under_way is None)
    @rule()
    def the_watch_shows_the_next_event(self) -> None:
        following = next(((revision, name) for revision, name in self.server.log if revision > self.watched), None)
        if following is None:
            return
        self.watched, name = following
        state = self.server.at(name, self.watched)
        if state.uid:
            self.hear(self.store.upsert(raw(config_map(self.watched, name, uid=state.uid))))
        else:
            gone = self.server.at(name, self.watched - 1).uid
            self.hear(self.store.remove(raw(config_map(self.watched, name, uid=gone))))

    @precondition(lambda self: self.list_under_way is None)
    @rule(revision=st.integers(0, 100), name=NAMES)
    def the_watch_repeats_an_old_event(self, revision: int, name: str) -> None:
        state = self.server.at(name, min(revision, self.watched))
        if state.uid:
            self.hear(self.store.upsert(raw(config_map(state.revision, name, uid=state.uid))))

    # Lists.

    @precondition(lambda self: self.list_under_way is None)
    @rule()
    def a_list_is_asked_for(self) -> None:
        self.now += 1.0
        self.list_under_way = self.store.begin_replacement(self.now)
        self.listed_at = None

    @precondition(lambda self: self.list_under_way is not None and self.listed_at is None)
    @rule()
    def the_server_answers_with_a_list(self) -> None:
        assert self.list_under_way is not None
        self.listed_at = self.server.revision
        for name in self.server.history:
            state = self.server.history[name][-1]
            if state.uid:
                self.list_under_way.upsert(raw(config_map(state.revision, name, uid=state.uid)))

    @precondition(lambda self: self.listed_at is not None)
    @rule()
    def the_list_is_through(self) -> None:
        assert self.list_under_way is not None
        assert self.listed_at is not None
        self.watched = self.listed_at
        for change in self.list_under_way.commit(str(self.listed_at)):
            self.hear(change)
        self.list_under_way, self.listed_at = None, None

    @precondition(lambda self: self.list_under_way is None)
    @rule()
    def a_list_is_read_in_one_go(self) -> None:
        self.a_list_is_asked_for()
        self.the_server_answers_with_a_list()
        self.the_list_is_through()

    # Readers.

    @rule(name=NAMES)
    def last_reader_leaves(self, name: str) -> None:
        self.noted.discard(name)
        self.store.evict_rejected()
        if self.list_under_way is not None:
            self.list_under_way.evict_rejected()
        self.reported.pop(key(name), None)

    @rule(name=NAMES)
    def reader_announces_itself(self, name: str) -> None:
        self.noted.add(name)

    @rule(name=NAMES)
    def reader_reads(self, name: str) -> None:
        self.noted.add(name)
        state = self.server.history[name][-1]
        if state.uid and self.store.is_dropped(key(name)):
            self.store.record_read(config_map(state.revision, name, uid=state.uid))
            self.answered[name].append(state)
            self.reported = {meta.key: meta.resource_version for meta in self.store.iter_metadata()}

    # Answers to our own requests.

    @precondition(lambda self: self.answers_under_way)
    @rule(which=st.randoms(use_true_random=False))
    def a_write_is_answered(self, which: Any) -> None:
        index = int(which.random() * len(self.answers_under_way))
        name, state = self.answers_under_way.pop(index)
        self.answered[name].append(state)
        self.hear(self.store.record_write(config_map(state.revision, name, uid=state.uid)))

    @precondition(lambda self: self.deletes_under_way)
    @rule()
    def a_delete_is_answered(self) -> None:
        name, uid = self.deletes_under_way.pop(0)
        self.now += 1.0
        self.deleted_uids.add(uid)
        self.hear(self.store.record_delete(key(name), uid, self.now))

    def has_deleted_a_later_one(self, name: str, uid: str) -> bool:
        return any(deleted > uid for deleted in self.deleted_uids if deleted.startswith(name))

    @invariant()
    def readers_see_the_newest_that_is_known(self) -> None:
        for name in self.server.history:
            newest = max([self.server.at(name, self.watched), *self.answered[name]], key=lambda state: state.revision)
            expected = "" if newest.uid in self.deleted_uids else newest.uid
            meta = self.store.get_metadata(key(name))
            if meta is None and (self.store.is_dropped(key(name)) or self.has_deleted_a_later_one(name, newest.uid)):
                continue  # who reads it asks the server, or learns what the watch will show
            assert (meta.uid if meta else "") == expected
            if meta is not None:
                assert meta.revision == newest.revision

    @invariant()
    def subscribers_know_what_readers_see(self) -> None:
        assert self.reported == {meta.key: meta.resource_version for meta in self.store.iter_metadata()}

    @invariant()
    def nothing_is_left_of_what_is_settled(self) -> None:
        settled = self.watched == self.server.revision and not self.list_under_way
        if settled and not self.answers_under_way and not self.deletes_under_way:
            assert not self.store._floors
            assert not self.store._unheld


StoreMachine.TestCase.settings = settings(max_examples=300, stateful_step_count=40, deadline=None)
TestStoreAgainstModel = pytest.mark.slow(StoreMachine.TestCase)


OPERATIONS = st.lists(st.tuples(st.sampled_from(["keep", "refuse", "delete", "repeat a deletion", "list"]), NAMES))


@given(OPERATIONS)
def test_what_is_dropped_is_told_from_what_is_absent(operations: list[tuple[str, str]]) -> None:
    store = Store(CONFIG_MAP, lambda meta: "keep" in meta.labels)
    store.begin_replacement(0.0).commit("10")
    server: dict[str, Object] = {}
    deleted: list[Object] = []
    for revision, (operation, name) in enumerate(operations, start=11):
        uid = f"{name}{len(deleted)}"
        match operation:
            case "keep" | "refuse":
                labels = {"keep": "yes"} if operation == "keep" else None
                server[name] = config_map(revision, name, labels=labels, uid=uid)
                store.upsert(raw(server[name]))
            case "delete" if name in server:
                deleted.append(server.pop(name) | {"data": {}})
                deleted[-1]["metadata"]["resourceVersion"] = str(revision)
                store.remove(raw(deleted[-1]))
            case "repeat a deletion" if deleted:
                store.remove(raw(deleted[0]))
            case "list":
                replacement = store.begin_replacement(float(revision))
                for obj in server.values():
                    replacement.upsert(raw(obj))
                replacement.commit(str(revision))

    kept = {name: obj for name, obj in server.items() if "labels" in obj["metadata"]}
    assert {name: store.get(key(name)) for name in ("a", "b")} == {name: kept.get(name) for name in ("a", "b")}
    assert {name for name in ("a", "b") if store.is_dropped(key(name))} == server.keys() - kept.keys()
