"""The view of readers if the watch, lists, own writes and own deletes disagree."""

from __future__ import annotations

import pytest

from konverge._internal.cache import CacheOptions, InformerStatistics, Store, StoreChange
from konverge._internal.cache.store import StoreReplacement
from konverge._internal.kube.metadata import ObjectMeta
from konverge.errors import ConfigurationError
from konverge.kube import GroupVersionKind, Object
from tests.cache.objects import CONFIG_MAP, config_map, key, raw


@pytest.fixture
def store() -> Store:
    """A store that has read an empty list at version 10."""
    found = Store(CONFIG_MAP)
    found.begin_replacement(0.0).commit("10")
    return found


def versions(change: StoreChange | None) -> tuple[str, str] | None:
    """Return the versions before and after, empty for none; None without a change."""
    if change is None:
        return None
    return (
        change.old.resource_version if change.old is not None else "",
        change.new.resource_version if change.new is not None else "",
    )


def revision(store: Store, name: str = "web") -> str:
    """Return the version that readers see; empty for none."""
    meta = store.get_metadata(key(name))
    return "" if meta is None else meta.resource_version


def replace(store: Store, at: int, *listed: int, started: float = 1.0) -> list[tuple[str, str] | None]:
    """Replace the contents by a list with ``web`` in these versions (none or one), even if it proves a set-back."""
    replacement = store.begin_replacement(started)
    if replacement.proves_rollback(str(at)):
        store.invalidate()
        replacement = store.begin_replacement(started)
    return complete(replacement, at, *listed)


def uid_of(store: Store) -> str:
    meta = store.get_metadata(key())
    return "" if meta is None else meta.uid


def complete(replacement: StoreReplacement, at: int, *listed: int) -> list[tuple[str, str] | None]:
    """Commit a list that was requested earlier."""
    for version in listed:
        replacement.upsert(raw(config_map(version)))
    return [versions(change) for change in replacement.commit(str(at))]


# The watch.


def test_an_added_object_is_seen_and_told(store: Store) -> None:
    change = store.upsert(raw(config_map(11)))

    assert versions(change) == ("", "11")
    assert store.get(key()) == config_map(11)
    assert store.resource_version == "11"


def test_a_newer_event_replaces_an_older_state(store: Store) -> None:
    store.upsert(raw(config_map(11)))

    assert versions(store.upsert(raw(config_map(12)))) == ("11", "12")
    assert revision(store) == "12"


@pytest.mark.parametrize("late", [11, 12], ids=["older", "the same"])
def test_an_event_that_is_not_newer_changes_nothing(store: Store, late: int) -> None:
    store.upsert(raw(config_map(12)))

    assert store.upsert(raw(config_map(late))) is None
    assert revision(store) == "12"


def test_a_deleted_object_is_gone_and_told(store: Store) -> None:
    store.upsert(raw(config_map(11)))

    assert versions(store.remove(raw(config_map(12)))) == ("11", "")
    assert store.get(key()) is None
    assert store.resource_version == "12"


def test_deleting_what_is_not_there_tells_nothing(store: Store) -> None:
    assert store.remove(raw(config_map(12))) is None


def test_a_repeated_event_of_what_has_gone_does_not_bring_it_back(store: Store) -> None:
    store.upsert(raw(config_map(11)))
    store.remove(raw(config_map(12)))

    assert store.upsert(raw(config_map(11))) is None
    assert store.get(key()) is None


def test_a_late_deletion_does_not_hit_the_next_of_that_name(store: Store) -> None:
    store.record_write(config_map(14, uid="second"))

    assert store.remove(raw(config_map(12, uid="first"))) is None
    assert revision(store) == "14"


def test_a_bookmark_moves_the_version_alone(store: Store) -> None:
    store.record_bookmark("20")

    assert store.resource_version == "20"
    assert len(store) == 0


def test_the_version_never_goes_back(store: Store) -> None:
    store.record_bookmark("20")
    store.upsert(raw(config_map(15)))

    assert store.resource_version == "20"


# Lists.


def test_a_list_tells_what_came_changed_and_vanished(store: Store) -> None:
    for version, name in ((11, "changed"), (12, "same"), (13, "vanished")):
        store.upsert(raw(config_map(version, name)))
    replacement = store.begin_replacement(1.0)
    for obj in (config_map(15, "changed"), config_map(12, "same"), config_map(16, "came")):
        replacement.upsert(raw(obj))

    changes = replacement.commit("20")

    assert {versions(change) for change in changes} == {("11", "15"), ("13", ""), ("", "16")}
    assert {meta.name for meta in store.iter_metadata()} == {"changed", "same", "came"}


def test_readers_see_nothing_of_a_list_that_is_half_read(store: Store) -> None:
    store.upsert(raw(config_map(11)))
    replacement = store.begin_replacement(1.0)
    replacement.upsert(raw(config_map(15, "other")))

    assert [meta.name for meta in store.iter_metadata()] == ["web"]


def test_a_deletion_while_a_list_streams_takes_the_item_out_again(store: Store) -> None:
    replacement = store.begin_replacement(1.0)
    replacement.upsert(raw(config_map(15)))
    replacement.remove(raw(config_map(16)))

    assert replacement.commit("20") == []
    assert store.get(key()) is None


def test_a_list_of_a_server_that_was_set_back_makes_all_void(store: Store) -> None:
    store.upsert(raw(config_map(50)))
    store.record_write(config_map(60, "own"))

    changes = replace(store, 30, 25)

    assert set(changes) == {("50", "25"), ("60", "")}
    assert store.resource_version == "30"
    assert versions(store.upsert(raw(config_map(31)))) == ("25", "31")


def test_only_a_list_that_is_older_than_what_was_known_before_it_proves_that_the_server_was_set_back(
    store: Store,
) -> None:
    store.upsert(raw(config_map(50)))
    replacement = store.begin_replacement(1.0)
    store.record_write(config_map(60, "own"))

    assert [replacement.proves_rollback(version) for version in ("49", "50", "55", "", "0")] == [True] + 4 * [False]


def test_after_a_set_back_objects_of_the_same_version_are_taken_anew(store: Store) -> None:
    store.upsert(raw(config_map(50)))
    other = config_map(50) | {"data": {"of": "the other history"}}
    store.invalidate()
    replacement = store.begin_replacement(1.0)
    replacement.upsert(raw(other))

    assert [versions(change) for change in replacement.commit("70")] == [("50", "50")]
    assert store.get(key()) == other


def test_readers_keep_what_they_have_until_the_list_after_a_set_back(store: Store) -> None:
    store.upsert(raw(config_map(50)))
    store.invalidate()

    assert revision(store) == "50"
    under_way = store.begin_replacement(1.0)
    assert versions(store.record_write(config_map(31))) == ("50", "31")
    assert complete(under_way, 30, 28) == [], "the write is newer than the list"
    assert revision(store) == "31"


def test_what_was_deleted_after_a_set_back_may_come_again(store: Store) -> None:
    store.upsert(raw(config_map(50)))
    store.invalidate()
    store.record_delete(key(), uid_of(store), 1.0)

    assert replace(store, 30, started=2.0) == []
    assert versions(store.upsert(raw(config_map(31)))) == ("", "31")


# Own writes.


def test_an_own_write_is_seen_and_told_at_once(store: Store) -> None:
    assert versions(store.record_write(config_map(11))) == ("", "11")
    assert store.get(key()) == config_map(11)


def test_the_event_of_an_own_write_is_not_told_again(store: Store) -> None:
    store.record_write(config_map(11))

    assert store.upsert(raw(config_map(11))) is None


def test_events_of_earlier_own_writes_are_not_told(store: Store) -> None:
    store.record_write(config_map(11))
    store.record_write(config_map(12))

    assert store.upsert(raw(config_map(11))) is None
    assert store.upsert(raw(config_map(12))) is None


def test_an_answer_that_is_older_than_the_watch_changes_nothing(store: Store) -> None:
    store.upsert(raw(config_map(13)))

    assert store.record_write(config_map(12)) is None
    assert revision(store) == "13"


def test_an_answer_of_an_object_that_has_gone_since_does_not_bring_it_back(store: Store) -> None:
    store.upsert(raw(config_map(11)))
    store.remove(raw(config_map(13)))

    assert store.record_write(config_map(12)) is None
    assert store.get(key()) is None


def test_a_write_of_somebody_else_that_ours_has_overtaken_is_counted_as_stale() -> None:
    statistics = InformerStatistics()
    store = Store(CONFIG_MAP, statistics=statistics)
    store.upsert(raw(config_map(11)))
    store.record_write(config_map(13))

    assert store.upsert(raw(config_map(12))) is None
    assert revision(store) == "13"
    assert statistics.stale_events == 1


def test_the_event_of_an_own_write_is_not_stale() -> None:
    statistics = InformerStatistics()
    store = Store(CONFIG_MAP, statistics=statistics)
    store.record_write(config_map(13))
    store.upsert(raw(config_map(13)))

    assert statistics.stale_events == 0


def test_a_list_older_than_an_own_write_keeps_the_write(store: Store) -> None:
    store.upsert(raw(config_map(11)))
    under_way = store.begin_replacement(1.0)
    store.record_write(config_map(25))

    assert complete(under_way, 20, 12) == []
    assert revision(store) == "25"


def test_an_object_created_after_a_list_was_made_survives_it(store: Store) -> None:
    under_way = store.begin_replacement(1.0)
    store.record_write(config_map(25))

    assert complete(under_way, 20) == []
    assert revision(store) == "25"


@pytest.mark.parametrize(
    ("listed", "changes"), [((12,), [("25", "12")]), ((), [("25", "")])], ids=["changed", "created"]
)
def test_an_own_write_that_a_later_list_does_not_show_was_lost_with_the_storage(
    store: Store, listed: tuple[int, ...], changes: list[tuple[str, str]]
) -> None:
    store.upsert(raw(config_map(11)))
    store.record_write(config_map(25))

    assert replace(store, 20, *listed) == changes
    assert store.resource_version == "20"


def test_own_writes_after_the_storage_was_set_back_count_like_any_other(store: Store) -> None:
    store.record_write(config_map(25))
    replace(store, 20, 12)
    under_way = store.begin_replacement(2.0)
    store.record_write(config_map(23))

    assert complete(under_way, 22, 12) == []
    assert revision(store) == "23"


def test_a_list_newer_than_an_own_write_wins(store: Store) -> None:
    store.record_write(config_map(15))

    assert replace(store, 20) == [("15", "")]
    assert store.get(key()) is None


def test_an_own_write_that_is_older_than_a_list_does_not_stand_for_what_the_list_has_dropped() -> None:
    kept: set[str] = set()
    store = Store(CONFIG_MAP, lambda meta: meta.name in kept)
    replacement = store.begin_replacement(1.0)
    replacement.upsert(raw(config_map(12)))
    kept.add("web")
    store.record_write(config_map(11))
    replacement.commit("12")

    assert store.is_dropped(key()), "a read goes to the server"
    assert revision(store) == ""


def test_own_writes_before_the_first_list_are_seen() -> None:
    store = Store(CONFIG_MAP)

    assert versions(store.record_write(config_map(5))) == ("", "5")
    assert revision(store) == "5"


# Own deletes.


def test_an_own_delete_is_seen_and_told_at_once(store: Store) -> None:
    store.upsert(raw(config_map(11)))

    assert versions(store.record_delete(key(), "uid-web", 1.0)) == ("11", "")
    assert store.get(key()) is None


@pytest.mark.parametrize("late", [11, 12])
def test_a_late_event_does_not_bring_back_what_we_have_deleted(store: Store, late: int) -> None:
    store.upsert(raw(config_map(11)))
    store.record_delete(key(), "uid-web", 1.0)

    assert store.upsert(raw(config_map(late))) is None
    assert store.get(key()) is None


def test_a_late_answer_does_not_bring_back_what_we_have_deleted(store: Store) -> None:
    store.upsert(raw(config_map(11)))
    store.record_delete(key(), "uid-web", 1.0)

    assert store.record_write(config_map(12)) is None
    assert store.get(key()) is None


def test_a_list_that_was_under_way_does_not_bring_back_what_we_have_deleted(store: Store) -> None:
    store.upsert(raw(config_map(11)))
    replacement = store.begin_replacement(1.0)
    replacement.upsert(raw(config_map(11)))
    store.record_delete(key(), "uid-web", 2.0)

    assert replacement.commit("20") == []
    assert store.get(key()) is None


def test_a_list_that_was_asked_for_later_is_believed_over_an_own_delete(store: Store) -> None:
    store.upsert(raw(config_map(11)))
    store.record_delete(key(), "uid-web", 1.0)

    assert replace(store, 20, 12, started=2.0) == [("", "12")]


def test_an_own_delete_is_not_told_again_when_the_watch_shows_it(store: Store) -> None:
    store.upsert(raw(config_map(11)))
    store.record_delete(key(), "uid-web", 1.0)

    assert store.remove(raw(config_map(12))) is None


def test_the_next_of_that_name_is_seen_after_an_own_delete(store: Store) -> None:
    store.upsert(raw(config_map(11, uid="first")))
    store.record_delete(key(), "first", 1.0)

    assert versions(store.record_write(config_map(13, uid="second"))) == ("", "13")
    assert store.remove(raw(config_map(12, uid="first"))) is None
    assert revision(store) == "13"


def test_an_earlier_object_of_that_name_does_not_come_back_after_an_own_delete(store: Store) -> None:
    store.record_write(config_map(13, uid="second"))
    store.record_delete(key(), "second", 1.0)

    assert store.upsert(raw(config_map(11, uid="first"))) is None
    assert store.get(key()) is None


def test_an_own_delete_of_another_uid_leaves_the_object(store: Store) -> None:
    store.upsert(raw(config_map(11, uid="second")))

    assert store.record_delete(key(), "first", 1.0) is None
    assert revision(store) == "11"


def test_an_own_delete_that_no_event_confirms_is_forgotten_after_five_minutes(store: Store) -> None:
    store.record_delete(key(), "uid-web", 0.0)
    store.record_delete(key("other"), "uid-other", 301.0)

    assert versions(store.upsert(raw(config_map(12)))) == ("", "12")


# Dropping at ingest.


def has_keep_label(meta: ObjectMeta) -> bool:
    return meta.labels.get("keep") == "yes"


KEPT = {"keep": "yes"}


@pytest.fixture
def filtering() -> Store:
    """Return a store that keeps labelled objects, after an empty list at version 10."""
    found = Store(CONFIG_MAP, has_keep_label)
    found.begin_replacement(0.0).commit("10")
    return found


class Choosing:
    """A store that keeps objects of some names, after an empty list at version 10."""

    def __init__(self) -> None:
        self.names: set[str] = set()
        self.store = Store(CONFIG_MAP, lambda meta: meta.name in self.names)
        self.store.begin_replacement(0.0).commit("10")


@pytest.fixture
def choosing() -> Choosing:
    return Choosing()


def test_a_dropped_object_is_known_to_exist_and_told_to_nobody(filtering: Store) -> None:
    assert filtering.upsert(raw(config_map(11))) is None
    assert filtering.get(key()) is None
    assert filtering.is_dropped(key())
    assert not filtering.is_dropped(key("other"))


def test_a_dropped_object_that_is_deleted_is_known_to_be_absent(filtering: Store) -> None:
    filtering.upsert(raw(config_map(11)))

    assert filtering.remove(raw(config_map(12))) is None
    assert not filtering.is_dropped(key())


def test_an_object_that_is_held_no_longer_is_told_a_last_time(filtering: Store) -> None:
    filtering.upsert(raw(config_map(11, labels=KEPT)))

    assert versions(filtering.upsert(raw(config_map(12)))) == ("11", "12")
    assert filtering.is_dropped(key())
    assert filtering.upsert(raw(config_map(13))) is None


def test_an_object_that_begins_to_be_held_is_told_as_added(filtering: Store) -> None:
    filtering.upsert(raw(config_map(11)))

    assert versions(filtering.upsert(raw(config_map(12, labels=KEPT)))) == ("", "12")
    assert not filtering.is_dropped(key())


def test_a_dropped_object_that_is_noted_and_read_live_is_held_from_then_on(choosing: Choosing) -> None:
    store = choosing.store
    store.upsert(raw(config_map(11)))
    choosing.names.add("web")
    store.record_read(config_map(11))

    assert revision(store) == "11"
    assert versions(store.upsert(raw(config_map(12)))) == ("11", "12")


def test_a_dropped_object_that_nobody_noted_is_not_held_after_a_live_read(filtering: Store) -> None:
    filtering.upsert(raw(config_map(11)))
    filtering.record_read(config_map(11))

    assert filtering.get(key()) is None
    assert filtering.is_dropped(key())


def test_a_live_read_that_a_deletion_has_overtaken_brings_nothing_back(filtering: Store) -> None:
    filtering.upsert(raw(config_map(11)))
    filtering.remove(raw(config_map(12)))
    filtering.record_read(config_map(11))

    assert filtering.get(key()) is None


def test_a_live_read_during_a_list_survives_it(choosing: Choosing) -> None:
    store = choosing.store
    store.upsert(raw(config_map(11)))
    replacement = store.begin_replacement(1.0)
    replacement.upsert(raw(config_map(11)))
    choosing.names.add("web")
    store.record_read(config_map(11))
    replacement.commit("20")

    assert revision(store) == "11"
    assert not store.is_dropped(key())


def test_an_own_write_that_is_not_kept_is_not_held(filtering: Store) -> None:
    assert filtering.record_write(config_map(11)) is None
    assert filtering.is_dropped(key())


def test_what_we_wrote_before_anybody_read_it_is_not_shown_older_by_an_event(choosing: Choosing) -> None:
    store = choosing.store
    store.record_write(config_map(12))
    choosing.names.add("web")

    assert store.upsert(raw(config_map(11))) is None
    assert store.record_write(config_map(11)) is None, "the answers of two writes may come in any order"
    assert store.remove(raw(config_map(11))) is None
    assert store.get(key()) is None
    assert store.is_dropped(key()), "who reads it asks the server"
    assert versions(store.upsert(raw(config_map(12)))) == ("", "12")


@pytest.mark.parametrize("listed", [[], [11]], ids=["created", "changed"])
def test_what_we_wrote_before_anybody_read_it_is_not_shown_older_by_a_list(
    choosing: Choosing, listed: list[int]
) -> None:
    store = choosing.store
    replacement = store.begin_replacement(1.0)
    store.record_write(config_map(13))
    choosing.names.add("web")

    assert complete(replacement, 12, *listed) == []
    assert store.get(key()) is None
    assert store.is_dropped(key())
    store.record_read(config_map(13))
    assert revision(store) == "13"


def test_an_own_write_that_is_sifted_out_is_not_shown_older(choosing: Choosing) -> None:
    store = choosing.store
    choosing.names.add("web")
    store.record_write(config_map(12))
    choosing.names.clear()
    store.evict_rejected()
    choosing.names.add("web")

    assert store.upsert(raw(config_map(11))) is None
    assert store.is_dropped(key())


def test_an_own_delete_says_nothing_of_the_next_of_that_name_that_is_not_held(choosing: Choosing) -> None:
    store = choosing.store
    store.upsert(raw(config_map(11, uid="next")))
    assert store.record_delete(key(), "first", 0.0) is None

    assert store.is_dropped(key())


def test_an_answer_that_the_watch_has_passed_says_nothing_about_a_dropped_object(choosing: Choosing) -> None:
    store = choosing.store
    store.upsert(raw(config_map(13)))
    choosing.names.add("web")

    assert store.record_write(config_map(12)) is None, "it is at 13 already"
    assert store.is_dropped(key())


def test_what_is_kept_no_longer_is_sifted_out_and_told_to_nobody(choosing: Choosing) -> None:
    store = choosing.store
    choosing.names |= {"web", "other"}
    store.upsert(raw(config_map(11)))
    store.upsert(raw(config_map(12, "other")))
    choosing.names.discard("web")
    store.evict_rejected()

    assert [meta.name for meta in store.iter_metadata()] == ["other"]
    assert store.is_dropped(key())
    assert store.upsert(raw(config_map(13))) is None


def test_what_is_sifted_out_during_a_list_is_not_held_after_it(choosing: Choosing) -> None:
    store = choosing.store
    choosing.names.add("web")
    replacement = store.begin_replacement(1.0)
    replacement.upsert(raw(config_map(11)))
    choosing.names.clear()
    replacement.evict_rejected()

    assert replacement.commit("20") == []
    assert store.is_dropped(key())


def test_a_list_tells_a_last_time_what_it_drops(filtering: Store) -> None:
    filtering.upsert(raw(config_map(11, labels=KEPT)))

    assert replace(filtering, 20, 12) == [("11", "12")]
    assert filtering.is_dropped(key())


# Selectors.


def selecting(*, labels: str = "", fields: str = "") -> Store:
    found = Store(CONFIG_MAP, options=CacheOptions(label_selector=labels, field_selector=fields))
    found.begin_replacement(0.0).commit("10")
    return found


def test_an_own_write_outside_of_the_selector_is_not_held() -> None:
    store = selecting(labels="keep=yes")

    assert store.record_write(config_map(11)) is None
    assert store.get(key()) is None
    assert not store.is_dropped(key())


def test_an_own_write_inside_of_the_selector_is_held() -> None:
    store = selecting(labels="keep=yes")

    assert versions(store.record_write(config_map(11, labels=KEPT))) == ("", "11")


def test_an_own_write_that_takes_an_object_out_of_the_selector_is_told_as_its_end() -> None:
    store = selecting(labels="keep=yes")
    store.upsert(raw(config_map(11, labels=KEPT)))

    assert versions(store.record_write(config_map(13))) == ("11", "")
    assert store.upsert(raw(config_map(12, labels=KEPT))) is None, "an older state does not come back"
    assert store.remove(raw(config_map(13, labels=KEPT))) is None
    assert versions(store.upsert(raw(config_map(14, labels=KEPT)))) == ("", "14")


@pytest.mark.parametrize(
    ("fields", "held"),
    [
        ("metadata.name=web", True),
        ("metadata.name=other", False),
        ("metadata.name!=other,metadata.namespace=default", True),
        ("status.phase=Running", False),
    ],
)
def test_an_own_write_is_held_only_if_its_metadata_show_that_its_fields_are_selected(fields: str, held: bool) -> None:
    store = selecting(fields=fields)
    store.record_write(config_map(11))

    assert (key() in store) is held


def test_an_own_write_to_what_the_watch_has_shown_is_held_whatever_fields_are_selected() -> None:
    store = selecting(fields="status.phase=Running")
    store.upsert(raw(config_map(11)))

    assert versions(store.record_write(config_map(12))) == ("11", "12")


@pytest.mark.parametrize("options", [{"label_selector": "a b"}, {"field_selector": "a"}])
def test_a_selector_that_cannot_be_read_is_refused(options: dict[str, str]) -> None:
    with pytest.raises(ConfigurationError, match="selector: "):
        CacheOptions(**options)  # type: ignore[arg-type]  # the mistake


# Metadata alone, and transforms.


def test_of_a_metadata_only_kind_an_own_write_leaves_the_metadata() -> None:
    store = Store(CONFIG_MAP, options=CacheOptions(metadata_only=True))
    store.record_write(config_map(11))

    assert store.get(key()) == {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": config_map(11)["metadata"],
    }


def without_data(obj: Object) -> Object:
    del obj["data"]
    return obj


def test_readers_get_what_the_transform_has_left() -> None:
    store = Store(CONFIG_MAP, options=CacheOptions(transform=without_data))
    change = store.upsert(raw(config_map(11)))
    found = store.get(key())

    assert versions(change) == ("", "11")
    assert found is not None
    assert "data" not in found


def test_an_object_on_which_the_transform_fails_is_left_out_with_one_line(caplog: pytest.LogCaptureFixture) -> None:
    statistics = InformerStatistics()
    store = Store(CONFIG_MAP, options=CacheOptions(transform=without_data), statistics=statistics)
    store.upsert(raw(config_map(11)))
    broken = config_map(12)
    del broken["data"]
    with caplog.at_level("INFO"):
        change = store.upsert(raw(broken))
        store.upsert(raw(broken | {"metadata": config_map(13)["metadata"]}))

    assert versions(change) == ("11", "12"), "reported a last time"
    assert store.is_dropped(key())
    assert statistics.left_out == 2
    assert caplog.messages == [
        "v1/ConfigMap/default/web: cannot cache the object: the transform failed: KeyError: 'data'"
    ]


def test_a_transform_that_fails_on_a_secret_shows_nothing_of_it(caplog: pytest.LogCaptureFixture) -> None:
    def fail(obj: Object) -> Object:
        raise ValueError(obj["data"]["password"])

    secret = config_map(11) | {"kind": "Secret", "data": {"password": "aHVudGVyMg=="}}
    Store(GroupVersionKind("", "v1", "Secret"), options=CacheOptions(transform=fail)).upsert(raw(secret))

    assert "the transform failed: ValueError" in caplog.text
    assert "aHVudGVyMg" not in caplog.text
