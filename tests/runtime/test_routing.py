from collections.abc import Callable, Iterable

import pytest

from konverge.kube import GroupVersionKind, Object, ObjectKey
from konverge.kube.metadata import ObjectMeta, OwnerReference
from konverge.runtime.changes import Change, Predicate, generation_changed, labels_changed
from konverge.runtime.reads import Reader, ReadObject, Reads
from konverge.runtime.routing import OwnedKind, Routing, WatchedKind

WEB_APP = GroupVersionKind("demo.konverge.dev", "v1alpha1", "WebApp")
TENANT = GroupVersionKind("demo.konverge.dev", "v1", "Tenant")
SECRET = GroupVersionKind("", "v1", "Secret")
WEB = Reader(WEB_APP, ObjectKey("default", "web"))


class Nothing:
    """Knows of no other object."""

    def held(self, gvk: GroupVersionKind, key: ObjectKey) -> Object | None:
        return None

    def uid_of(self, gvk: GroupVersionKind, key: ObjectKey) -> str:
        return f"uid-{key.name}"

    def by_index(self, gvk: GroupVersionKind, index: str, value: str) -> list[ObjectKey]:
        return []


def a_routing(
    reads: Reads | None = None,
    *watches: WatchedKind,
    when: Predicate | None = None,
    holds: Callable[[str], bool] = lambda uid: True,
) -> Routing:
    routing = Routing(reads or Reads(), lookup=Nothing(), holds=holds)
    routing.serve([OwnedKind(WEB_APP, namespaced=True, when=when), OwnedKind(TENANT, namespaced=False)], watches)
    for gvk in (WEB_APP, TENANT, SECRET):
        routing.open(gvk)
    return routing


def meta(name: str, *owners: OwnerReference) -> ObjectMeta:
    return ObjectMeta(name=name, namespace="default", owner_references=owners)


def controlled_by(name: str, kind: str = "WebApp", api_version: str = "demo.konverge.dev/v1alpha1") -> OwnerReference:
    return OwnerReference(api_version=api_version, kind=kind, name=name, uid=f"uid-{name}", controller=True)


def test_an_owner_concerns_itself() -> None:
    web = meta("web")

    assert a_routing().concerned(WEB_APP, None, web) == {WEB: "WebApp default/web came"}
    assert a_routing().concerned(WEB_APP, web, web) == {WEB: "WebApp default/web changed"}
    assert a_routing().concerned(WEB_APP, web, None) == {WEB: "WebApp default/web went"}


def test_a_child_concerns_its_controller() -> None:
    child = meta("token", controlled_by("web"))

    assert a_routing().concerned(SECRET, child, None) == {WEB: "Secret default/token went"}


def test_a_cluster_scoped_owner_is_found_without_a_namespace() -> None:
    child = meta("token", controlled_by("acme", "Tenant", "demo.konverge.dev/v1"))

    assert set(a_routing().concerned(SECRET, None, child)) == {Reader(TENANT, ObjectKey("", "acme"))}


def test_the_version_of_an_owner_reference_does_not_matter() -> None:
    child = meta("token", controlled_by("web", api_version="demo.konverge.dev/v1beta7"))

    assert set(a_routing().concerned(SECRET, None, child)) == {WEB}


def test_an_owner_that_does_not_control_is_not_concerned() -> None:
    child = meta("token", OwnerReference("demo.konverge.dev/v1alpha1", "WebApp", "web", "uid-web"))

    assert a_routing().concerned(SECRET, None, child) == {}
    assert not a_routing().keeps(SECRET, child)


def test_a_child_that_changes_hands_concerns_both_owners() -> None:
    other = Reader(WEB_APP, ObjectKey("default", "other"))

    concerned = a_routing().concerned(
        SECRET, meta("token", controlled_by("web")), meta("token", controlled_by("other"))
    )

    assert set(concerned) == {WEB, other}


def test_a_read_object_concerns_its_readers_also_when_it_comes_to_exist() -> None:
    reads = Reads()
    reads.note(WEB, ReadObject(SECRET, ObjectKey("default", "token")))

    assert set(a_routing(reads).concerned(SECRET, None, meta("token"))) == {WEB}


def test_the_caches_hold_owners_their_objects_and_what_they_read() -> None:
    reads = Reads()
    reads.note(WEB, ReadObject(SECRET, ObjectKey("default", "read")))
    routing = a_routing(reads)

    assert routing.keeps(WEB_APP, meta("web"))
    assert routing.keeps(SECRET, meta("owned", controlled_by("web")))
    assert routing.keeps(SECRET, meta("read"))
    assert not routing.keeps(SECRET, meta("foreign", controlled_by("web", "StatefulSet", "apps/v1")))
    assert not routing.keeps(SECRET, meta("nobodys"))


def test_a_kind_that_is_not_open_concerns_nobody() -> None:
    routing = a_routing()
    routing.close(SECRET)

    assert routing.concerned(SECRET, None, meta("token", controlled_by("web"))) == {}


def test_a_watch_concerns_whom_it_names_by_either_state() -> None:
    def by_name(change: Change) -> Iterable[ObjectKey]:
        return [ObjectKey(change.meta.namespace, change.meta.name.removeprefix("token-of-"))]

    routing = a_routing(None, WatchedKind(SECRET, WEB_APP, by_name))

    assert set(routing.concerned(SECRET, None, meta("token-of-web"))) == {WEB}
    assert set(routing.concerned(SECRET, meta("token-of-web"), None)) == {WEB}
    assert routing.keeps(SECRET, meta("anything"))


def test_a_mapping_function_that_fails_harms_no_other(caplog: pytest.LogCaptureFixture) -> None:
    def broken(change: Change) -> Iterable[ObjectKey]:
        raise LookupError("no idea")

    routing = a_routing(None, WatchedKind(SECRET, TENANT, broken))

    assert set(routing.concerned(SECRET, None, meta("token", controlled_by("web")))) == {WEB}
    assert "the function that maps v1/Secret to Tenant failed on default/token" in caplog.text


def test_a_mapping_function_without_end_is_stopped(caplog: pytest.LogCaptureFixture) -> None:
    def endless(change: Change) -> Iterable[ObjectKey]:
        while True:
            yield WEB.key

    routing = a_routing(None, WatchedKind(SECRET, WEB_APP, endless))

    assert set(routing.concerned(SECRET, None, meta("token"))) == {WEB}
    assert "it names more than 100000 owners" in caplog.text


def test_a_predicate_decides_on_the_owners_own_changes_alone() -> None:
    routing = a_routing(when=generation_changed)
    before, after = ObjectMeta(name="web", namespace="default", generation=1), meta("web")

    assert routing.concerned(WEB_APP, before, before) == {}
    assert set(routing.concerned(WEB_APP, before, after)) == {WEB}
    child = meta("token", controlled_by("web"))
    assert set(routing.concerned(SECRET, child, child)) == {WEB}


def test_a_predicate_that_fails_lets_the_change_pass(caplog: pytest.LogCaptureFixture) -> None:
    def broken(change: Change) -> bool:
        raise LookupError("no idea")

    assert set(a_routing(when=broken).concerned(WEB_APP, None, meta("web"))) == {WEB}
    assert "a predicate failed on WebApp default/web" in caplog.text


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

    assert routing.keeps(WEB_APP, ours)
    assert not routing.keeps(WEB_APP, others)
    assert routing.keeps(SECRET, meta("token", controlled_by("web")))
    assert not routing.keeps(SECRET, meta("token", controlled_by("other")))


def test_a_reference_with_the_uid_of_another_owner_concerns_nobody() -> None:
    forged = OwnerReference("demo.konverge.dev/v1alpha1", "WebApp", "web", "uid-of-an-earlier-one", controller=True)

    assert a_routing().concerned(SECRET, None, meta("token", forged)) == {}


def test_that_an_owner_is_gone_concerns_it_whatever_the_predicate_says() -> None:
    assert set(a_routing(when=lambda change: False).concerned(WEB_APP, meta("web"), None)) == {WEB}


@pytest.mark.parametrize("key", [("default", "web"), ObjectKey("default", 7), ObjectKey(None, "web"), "web"])  # type: ignore[arg-type]
def test_a_key_that_is_none_is_the_mapping_functions_failure(key: object, caplog: pytest.LogCaptureFixture) -> None:
    def odd(change: Change) -> Iterable[ObjectKey]:
        return [key]  # type: ignore[list-item]

    child = meta("token", controlled_by("web"))
    assert set(a_routing(None, WatchedKind(SECRET, TENANT, odd)).concerned(SECRET, None, child)) == {WEB}
    assert "expected ObjectKeys of two texts" in caplog.text
