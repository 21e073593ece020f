import pytest

from konverge.kube import GroupVersionKind, ObjectKey
from konverge.runtime.reads import Reader, ReadObject, Reads

WEB_APP = GroupVersionKind("demo.konverge.dev", "v1alpha1", "WebApp")
SECRET = GroupVersionKind("", "v1", "Secret")
ME = Reader(WEB_APP, ObjectKey("default", "me"))
OTHER = Reader(WEB_APP, ObjectKey("default", "other"))
TOKEN = ReadObject(SECRET, ObjectKey("default", "token"))
KEY = ReadObject(SECRET, ObjectKey("default", "key"))


def complete_pass(reads: Reads, reader: Reader, *objects: ReadObject) -> None:
    reads.begin(reader)
    for read in objects:
        reads.note(reader, read)
    reads.finish(reader, complete=True)


def test_an_object_concerns_all_who_read_it() -> None:
    reads = Reads()
    complete_pass(reads, ME, TOKEN)
    complete_pass(reads, OTHER, TOKEN, KEY)

    assert reads.readers_of(TOKEN) == {ME, OTHER}
    assert reads.readers_of(KEY) == {OTHER}


def test_a_read_counts_at_once() -> None:
    reads = Reads()
    reads.begin(ME)
    reads.note(ME, TOKEN)

    assert reads.readers_of(TOKEN) == {ME}


def test_what_a_complete_pass_no_longer_read_is_forgotten() -> None:
    reads = Reads()
    complete_pass(reads, ME, TOKEN, KEY)
    complete_pass(reads, ME, KEY)

    assert not reads.is_read(TOKEN)
    assert reads.readers_of(KEY) == {ME}


@pytest.mark.parametrize("read_again", [(), (KEY,)])
def test_a_pass_that_stopped_early_forgets_nothing(read_again: tuple[ReadObject, ...]) -> None:
    reads = Reads()
    complete_pass(reads, ME, TOKEN)
    reads.begin(ME)
    for read in read_again:
        reads.note(ME, read)
    reads.finish(ME, complete=False)

    assert reads.readers_of(TOKEN) == {ME}


def test_a_reader_that_is_gone_leaves_nothing_behind() -> None:
    reads = Reads()
    complete_pass(reads, ME, TOKEN, KEY)
    complete_pass(reads, OTHER, KEY)
    reads.forget(ME)

    assert not reads.is_read(TOKEN)
    assert reads.readers_of(KEY) == {OTHER}

    reads.forget(OTHER)

    assert not reads.is_read(TOKEN)
    assert (reads._by_reader, reads._readers, reads._under_way) == ({}, {}, {})
