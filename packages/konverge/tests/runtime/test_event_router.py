from collections.abc import Callable, Iterable

import pytest

from konverge._internal.kube.metadata import ObjectMeta, OwnerReference
from konverge._internal.runtime.changes import Change, Predicate, generation_changed, labels_changed
from konverge._internal.runtime.event_router import EventRouter, RoutedKind, WatchedKind
from konverge._internal.runtime.read_tracking import ReadingOwner, ReadObject, ReadTracker
from konverge.kube import GroupVersionKind, Object, ObjectKey

WEB_APP = GroupVersionKind("demo.konverge.dev", "v1alpha1", "WebApp")
TENANT = GroupVersionKind("demo.konverge.dev", "v1", "Tenant")
SECRET = GroupVersionKind("", "v1", "Secret")
WEB = ReadingOwner(WEB_APP, ObjectKey("default", "web"))


class Nothing:
    """A lookup without any cached object."""

    def get_cached(self, gvk: GroupVersionKind, key: ObjectKey) -> Object | None:
        return None

    def get_uid(self, gvk: GroupVersionKind, key: ObjectKey) -> str:
        return f"uid-{key.name}"

    def list_keys_by_index(self, gvk: GroupVersionKind, index: str, value: str) -> list[ObjectKey]:
        return []


def a_routing(
    reads: ReadTracker | None = None,
    *watches: WatchedKind,
    when: Predicate | None = None,
    holds: Callable[[str], bool] = lambda uid: True,
) -> EventRouter:
    routing = EventRouter(reads or ReadTracker(), lookup=Nothing(), holds=holds)
    routing.set_routes([RoutedKind(WEB_APP, namespaced=True, when=when), RoutedKind(TENANT, namespaced=False)], watches)
    for gvk in (WEB_APP, TENANT, SECRET):
        routing.open_kind(gvk)
    return routing


def meta(name: str, *owners: OwnerReference) -> ObjectMeta:
    return ObjectMeta(name=name, namespace="default", owner_references=owners)


def build_controller_reference(
    name: str, kind: str = "WebApp", api_version: str = "demo.konverge.dev/v1alpha1"
) -> OwnerReference:
    return OwnerReference(api_version=api_version, kind=kind, name=name, uid=f"uid-{name}", controller=True)


def test_an_owner_concerns_itself() -> None:
    web = meta("web")

    assert a_routing().find_owners(WEB_APP, None, web) == {WEB: "WebApp default/web added"}
    assert a_routing().find_owners(WEB_APP, web, web) == {WEB: "WebApp default/web changed"}
    assert a_routing().find_owners(WEB_APP, web, None) == {WEB: "WebApp default/web deleted"}


def test_a_child_concerns_its_controller() -> None:
    child = meta("token", build_controller_reference("web"))

    assert a_routing().find_owners(SECRET, child, None) == {WEB: "Secret default/token deleted"}


def test_a_cluster_scoped_owner_is_found_without_a_namespace() -> None:
    child = meta("token", build_controller_reference("acme", "Tenant", "demo.konverge.dev/v1"))

    assert set(a_routing().find_owners(SECRET, None, child)) == {ReadingOwner(TENANT, ObjectKey("", "acme"))}


def test_the_version_of_an_owner_reference_does_not_matter() -> None:
    child = meta("token", build_controller_reference("web", api_version="demo.konverge.dev/v1beta7"))

    assert set(a_routing().find_owners(SECRET, None, child)) == {WEB}


def test_an_owner_that_does_not_control_is_not_concerned() -> None:
    child = meta("token", OwnerReference("demo.konverge.dev/v1alpha1", "WebApp", "web", "uid-web"))

    assert a_routing().find_owners(SECRET, None, child) == {}
    assert not a_routing().is_needed(SECRET, child)


def test_a_child_that_changes_hands_concerns_both_owners() -> None:
    other = ReadingOwner(WEB_APP, ObjectKey("default", "other"))

    concerned = a_routing().find_owners(
        SECRET, meta("token", build_controller_reference("web")), meta("token", build_controller_reference("other"))
    )

    assert set(concerned) == {WEB, other}


def test_a_read_object_concerns_its_readers_also_when_it_comes_to_exist() -> None:
    reads = ReadTracker()
    reads.record(WEB, ReadObject(SECRET, ObjectKey("default", "token")))

    assert set(a_routing(reads).find_owners(SECRET, None, meta("token"))) == {WEB}


def test_the_caches_hold_owners_their_objects_and_what_they_read() -> None:
    reads = ReadTracker()
    reads.record(WEB, ReadObject(SECRET, ObjectKey("default", "read")))
    routing = a_routing(reads)

    assert routing.is_needed(WEB_APP, meta("web"))
    assert routing.is_needed(SECRET, meta("owned", build_controller_reference("web")))
    assert routing.is_needed(SECRET, meta("read"))
    assert not routing.is_needed(SECRET, meta("foreign", build_controller_reference("web", "StatefulSet", "apps/v1")))
    assert not routing.is_needed(SECRET, meta("nobodys"))


def test_a_kind_that_is_not_open_concerns_no_owner() -> None:
    routing = a_routing()
    routing.close_kind(SECRET)

    assert routing.find_owners(SECRET, None, meta("token", build_controller_reference("web"))) == {}


def test_a_watch_concerns_whom_it_names_by_either_state() -> None:
    def by_name(change: Change) -> Iterable[ObjectKey]:
        return [ObjectKey(change.meta.namespace, change.meta.name.removeprefix("token-of-"))]

    routing = a_routing(None, WatchedKind(SECRET, WEB_APP, by_name))

    assert set(routing.find_owners(SECRET, None, meta("token-of-web"))) == {WEB}
    assert set(routing.find_owners(SECRET, meta("token-of-web"), None)) == {WEB}
    assert routing.is_needed(SECRET, meta("anything"))


def test_a_mapping_function_that_fails_harms_no_other(caplog: pytest.LogCaptureFixture) -> None:
    def raise_error(change: Change) -> Iterable[ObjectKey]:
        raise LookupError("no idea")

    routing = a_routing(None, WatchedKind(SECRET, TENANT, raise_error))

    assert set(routing.find_owners(SECRET, None, meta("token", build_controller_reference("web")))) == {WEB}
    assert "v1/Secret default/token: the function that maps it to Tenant failed" in caplog.text


def test_a_mapping_function_without_end_is_stopped(caplog: pytest.LogCaptureFixture) -> None:
    def endless(change: Change) -> Iterable[ObjectKey]:
        while True:
            yield WEB.key

    routing = a_routing(None, WatchedKind(SECRET, WEB_APP, endless))

    assert set(routing.find_owners(SECRET, None, meta("token"))) == {WEB}
    assert "expected at most 100000 owners, found more" in caplog.text


def test_a_predicate_decides_on_the_owners_own_changes_alone() -> None:
    routing = a_routing(when=generation_changed)
    before, after = ObjectMeta(name="web", namespace="default", generation=1), meta("web")

    assert routing.find_owners(WEB_APP, before, before) == {}
    assert set(routing.find_owners(WEB_APP, before, after)) == {WEB}
    child = meta("token", build_controller_reference("web"))
    assert set(routing.find_owners(SECRET, child, child)) == {WEB}


def test_a_predicate_that_fails_lets_the_change_pass(caplog: pytest.LogCaptureFixture) -> None:
    def raise_error(change: Change) -> bool:
        raise LookupError("no idea")

    assert set(a_routing(when=raise_error).find_owners(WEB_APP, None, meta("web"))) == {WEB}
    assert "WebApp default/web: a predicate failed" in caplog.text


def test_the_ready_made_predicates() -> None:
    def change(old: ObjectMeta | None, new: ObjectMeta | None) -> Change:
        return Change(SECRET, old, new, Nothing())

    plain, labelled = ObjectMeta(name="a"), ObjectMeta(name="a", labels={"app": "web"})
    going = ObjectMeta(name="a", deletion_timestamp="2026-01-01T00:00:00Z")

    assert generation_changed(change(None, plain))
    assert generation_changed(change(plain, None))
    assert generation_changed(change(plain, going))
    assert not generation_changed(change(plain, labelled))
    assert labels_changed(change(plain, labelled))
    assert not labels_changed(change(plain, going))


def test_owners_of_other_replicas_and_what_they_control_are_not_held() -> None:
    routing = a_routing(holds=lambda uid: uid == "uid-web")
    ours, others = ObjectMeta(name="web", uid="uid-web"), ObjectMeta(name="other", uid="uid-other")

    assert routing.is_needed(WEB_APP, ours)
    assert not routing.is_needed(WEB_APP, others)
    assert routing.is_needed(SECRET, meta("token", build_controller_reference("web")))
    assert not routing.is_needed(SECRET, meta("token", build_controller_reference("other")))


def test_a_reference_with_the_uid_of_another_owner_concerns_no_owner() -> None:
    forged = OwnerReference("demo.konverge.dev/v1alpha1", "WebApp", "web", "uid-of-an-earlier-one", controller=True)

    assert a_routing().find_owners(SECRET, None, meta("token", forged)) == {}


def test_the_deletion_of_an_owner_concerns_it_despite_its_predicate() -> None:
    assert set(a_routing(when=lambda change: False).find_owners(WEB_APP, meta("web"), None)) == {WEB}


@pytest.mark.parametrize("key", [("default", "web"), ObjectKey("default", 7), ObjectKey(None, "web"), "web"])  # type: ignore[arg-type]  # the mistake
def test_a_key_that_is_none_is_the_mapping_functions_failure(key: object, caplog: pytest.LogCaptureFixture) -> None:
    def odd(change: Change) -> Iterable[ObjectKey]:
        return [key]  # type: ignore[list-item]  # the mistake

    child = meta("token", build_controller_reference("web"))
    assert set(a_routing(None, WatchedKind(SECRET, TENANT, odd)).find_owners(SECRET, None, child)) == {WEB}
    assert "expected ObjectKeys of two strings" in caplog.text
