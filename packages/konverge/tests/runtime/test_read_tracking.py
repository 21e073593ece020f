import pytest

from konverge._internal.kube.metadata import ObjectMeta
from konverge._internal.kube.selectors import LabelSelector
from konverge._internal.runtime.read_tracking import Read, ReadingOwner, ReadList, ReadObject, ReadTracker
from konverge.kube import GroupVersionKind, ObjectKey

WEB_APP = GroupVersionKind("demo.konverge.dev", "v1alpha1", "WebApp")
SECRET = GroupVersionKind("", "v1", "Secret")
ME = ReadingOwner(WEB_APP, ObjectKey("default", "me"))
OTHER = ReadingOwner(WEB_APP, ObjectKey("default", "other"))
TOKEN = ReadObject(SECRET, ObjectKey("default", "token"))
KEY = ReadObject(SECRET, ObjectKey("default", "key"))


def meta(name: str, namespace: str = "default", **labels: str) -> ObjectMeta:
    return ObjectMeta(name=name, namespace=namespace, labels=labels)


def readers(reads: ReadTracker, name: str) -> set[ReadingOwner]:
    return set(reads.find_readers(SECRET, [meta(name)]))


def complete_pass(reads: ReadTracker, reader: ReadingOwner, *objects: Read) -> None:
    reads.begin(reader)
    for read in objects:
        reads.record(reader, read)
    reads.finish(reader, complete=True)


def test_an_object_concerns_all_its_readers() -> None:
    reads = ReadTracker()
    complete_pass(reads, ME, TOKEN)
    complete_pass(reads, OTHER, TOKEN, KEY)

    assert readers(reads, "token") == {ME, OTHER}
    assert readers(reads, "key") == {OTHER}


def test_a_read_counts_at_once() -> None:
    reads = ReadTracker()
    reads.begin(ME)
    reads.record(ME, TOKEN)

    assert readers(reads, "token") == {ME}


def test_a_complete_reconcile_forgets_reads_that_it_did_not_repeat() -> None:
    reads = ReadTracker()
    complete_pass(reads, ME, TOKEN, KEY)
    complete_pass(reads, ME, KEY)

    assert not reads.is_read(SECRET, meta("token"))
    assert readers(reads, "key") == {ME}


@pytest.mark.parametrize("read_again", [(), (KEY,)])
def test_a_reconcile_that_stopped_early_forgets_nothing(read_again: tuple[ReadObject, ...]) -> None:
    reads = ReadTracker()
    complete_pass(reads, ME, TOKEN)
    reads.begin(ME)
    for read in read_again:
        reads.record(ME, read)
    reads.finish(ME, complete=False)

    assert readers(reads, "token") == {ME}


def test_a_reader_that_is_gone_leaves_nothing_behind() -> None:
    reads = ReadTracker()
    complete_pass(reads, ME, TOKEN, KEY)
    complete_pass(reads, OTHER, KEY)
    reads.forget(ME)

    assert not reads.is_read(SECRET, meta("token"))
    assert readers(reads, "key") == {OTHER}

    reads.forget(OTHER)

    assert not reads.is_read(SECRET, meta("token"))
    assert not reads.list_kinds()
    assert (reads._by_reader, reads._readers, reads._running, reads._lists) == ({}, {}, {}, {})


def test_a_list_concerns_its_readers_by_what_matches_before_or_after() -> None:
    reads = ReadTracker()
    complete_pass(reads, ME, ReadList(SECRET, "default", LabelSelector.parse("app=web")))

    assert set(reads.find_readers(SECRET, [meta("new", app="web")])) == {ME}
    assert set(reads.find_readers(SECRET, [meta("old", app="web"), meta("old", app="db")])) == {ME}
    assert not set(reads.find_readers(SECRET, [meta("other", app="db")]))
    assert not set(reads.find_readers(SECRET, [meta("far", "elsewhere", app="web")]))


def test_a_list_without_readers_concerns_no_owner() -> None:
    reads = ReadTracker()
    everything = ReadList(SECRET, "", LabelSelector.parse(""))
    complete_pass(reads, ME, everything)
    assert reads.is_recorded(everything)
    assert reads.is_read(SECRET, meta("any"))

    complete_pass(reads, ME, TOKEN)

    assert not reads.is_recorded(everything)
    assert not reads.is_read(SECRET, meta("any"))
    assert reads.list_kinds() == {SECRET}


def test_lists_of_many_owners_are_found_by_their_label() -> None:
    reads = ReadTracker()
    owners = [ReadingOwner(WEB_APP, ObjectKey("default", f"app-{number}")) for number in range(50)]
    for owner in owners:
        complete_pass(reads, owner, ReadList(SECRET, "", LabelSelector.from_labels({"app": owner.key.name})))
    complete_pass(reads, ME, ReadList(SECRET, "", LabelSelector.parse("app,tier in (a, b)")))

    assert set(reads.find_readers(SECRET, [meta("new", app="app-7")])) == {owners[7]}
    assert set(reads.find_readers(SECRET, [meta("new", app="app-7", tier="a")])) == {owners[7], ME}
    assert not set(reads.find_readers(SECRET, [meta("new", tier="a")]))
    for owner in (*owners, ME):
        reads.forget(owner)
    assert reads._lists == {}


@pytest.mark.parametrize(
    "read",
    [
        ReadObject(SECRET, ObjectKey("default", "token"), triggers=False),
        ReadList(SECRET, "", LabelSelector.parse(""), triggers=False),
    ],
)
def test_a_read_without_trigger_keeps_the_object_cached_and_concerns_no_owner(read: Read) -> None:
    reads = ReadTracker()
    complete_pass(reads, ME, read)

    assert reads.is_read(SECRET, meta("token"))
    assert readers(reads, "token") == set()


def test_a_reader_in_both_ways_is_triggered() -> None:
    reads = ReadTracker()
    complete_pass(reads, ME, TOKEN._replace(triggers=False), TOKEN)

    assert readers(reads, "token") == {ME}
