from konverge.kube import GroupVersionKind, ObjectKey
from konverge.kube.metadata import ObjectMeta, OwnerReference
from konverge.runtime.reads import Reader, ReadObject, Reads
from konverge.runtime.routing import OwnedKind, Routing

WEB_APP = GroupVersionKind("demo.konverge.dev", "v1alpha1", "WebApp")
TENANT = GroupVersionKind("demo.konverge.dev", "v1", "Tenant")
SECRET = GroupVersionKind("", "v1", "Secret")
WEB = Reader(WEB_APP, ObjectKey("default", "web"))


def a_routing(reads: Reads | None = None) -> Routing:
    return Routing([OwnedKind(WEB_APP, namespaced=True), OwnedKind(TENANT, namespaced=False)], reads or Reads())


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
