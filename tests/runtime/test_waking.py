import pytest

from konverge.kube import GroupVersionKind, ObjectKey
from konverge.kube.metadata import ObjectMeta
from konverge.runtime.reads import Reader, ReadObject, Reads
from konverge.runtime.routing import OwnedKind, Routing
from konverge.runtime.waking import Waking

WEB_APP = GroupVersionKind("demo.konverge.dev", "v1alpha1", "WebApp")
SECRET = GroupVersionKind("", "v1", "Secret")
ME = Reader(WEB_APP, ObjectKey("default", "me"))
OTHER = Reader(WEB_APP, ObjectKey("default", "other"))
TOKEN = ReadObject(SECRET, ObjectKey("default", "token"))


def token(version: int, uid: str = "u-1") -> ObjectMeta:
    return ObjectMeta(name="token", namespace="default", uid=uid, resource_version=str(version))


class Alarm:
    """A `Waking` that both owners' reads of the token go through, and whom it woke."""

    def __init__(self) -> None:
        self.woken: list[str] = []
        reads = Reads()
        reads.note(ME, TOKEN)
        reads.note(OTHER, TOKEN)
        routing = Routing([OwnedKind(WEB_APP, namespaced=True)], reads)
        self.waking = Waking(routing, lambda reader, reason: self.woken.append(reader.key.name))
        self.waking.kind_is_read(SECRET)

    def changed(self, old: ObjectMeta | None, new: ObjectMeta | None) -> None:
        self.waking.changed(SECRET, old, new)

    def write_begins(self) -> None:
        self.waking.write_begins(ME, TOKEN)

    def write_ends(self, version: str = "", deleted_uid: str = "") -> None:
        self.waking.write_ends(ME, TOKEN, version=version, deleted_uid=deleted_uid)


@pytest.fixture
def alarm() -> Alarm:
    return Alarm()


def test_a_change_wakes_all_whom_it_concerns(alarm: Alarm) -> None:
    alarm.changed(token(1), token(2))

    assert sorted(alarm.woken) == ["me", "other"]


def test_the_first_list_of_a_kind_wakes_nobody(alarm: Alarm) -> None:
    unread = Waking(Routing([OwnedKind(SECRET, namespaced=True)], Reads()), lambda *_: alarm.woken.append("woken"))
    unread.changed(SECRET, None, token(1))

    assert alarm.woken == []


def test_an_own_write_wakes_others_and_not_the_writer(alarm: Alarm) -> None:
    alarm.write_begins()
    alarm.changed(token(1), token(2))
    assert alarm.woken == ["other"], "others need not wait for the answer"
    alarm.write_ends(version="2")

    assert alarm.woken == ["other"]


def test_a_change_that_the_answered_write_came_after_wakes_the_writer(alarm: Alarm) -> None:
    alarm.write_begins()
    alarm.changed(token(1), token(2))
    alarm.changed(token(2), token(3))
    alarm.write_ends(version="3")

    assert alarm.woken.count("me") == 1


def test_what_happened_during_a_write_that_failed_wakes_the_writer(alarm: Alarm) -> None:
    alarm.write_begins()
    alarm.changed(token(1), token(2))
    alarm.write_ends()

    assert alarm.woken == ["other", "me"]


def test_a_write_without_an_event_wakes_nobody(alarm: Alarm) -> None:
    alarm.write_begins()
    alarm.write_ends(version="2")

    assert alarm.woken == []


def test_an_own_delete_does_not_wake_the_writer(alarm: Alarm) -> None:
    alarm.write_begins()
    alarm.changed(token(1), None)
    alarm.write_ends(deleted_uid="u-1")

    assert alarm.woken == ["other"]


def test_the_deletion_of_another_object_of_that_name_wakes_the_writer(alarm: Alarm) -> None:
    alarm.write_begins()
    alarm.changed(token(7, uid="u-2"), None)
    alarm.write_ends(deleted_uid="u-1")

    assert alarm.woken == ["other", "me"]


def test_two_writes_at_once_are_judged_when_both_are_answered(alarm: Alarm) -> None:
    alarm.write_begins()
    alarm.write_begins()
    alarm.changed(token(1), token(2))
    alarm.changed(token(2), token(3))
    alarm.write_ends(version="3")
    alarm.write_ends(version="2")

    assert "me" not in alarm.woken


def test_what_one_of_two_writes_at_once_has_overtaken_wakes_the_writer(alarm: Alarm) -> None:
    alarm.write_begins()
    alarm.write_begins()
    alarm.changed(token(1), token(3))
    alarm.write_ends(version="3")
    alarm.changed(token(3), token(3))
    alarm.write_ends(version="4")

    assert "me" in alarm.woken


def test_after_the_answer_changes_wake_as_ever(alarm: Alarm) -> None:
    alarm.write_begins()
    alarm.write_ends(version="2")
    alarm.changed(token(2), token(3))

    assert "me" in alarm.woken
