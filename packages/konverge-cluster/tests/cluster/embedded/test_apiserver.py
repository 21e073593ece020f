from __future__ import annotations

import pytest

from konverge.errors import (
    AlreadyExistsError,
    ApiError,
    ConflictError,
    ForbiddenError,
    InvalidError,
    KindNotServedError,
    NotFoundError,
)
from konverge.kube import GroupVersionKind, ObjectKey
from konverge_cluster._internal.embedded.apiserver import ApiServer
from konverge_cluster._internal.embedded.storage import StorageChange
from tests.cluster.embedded.conftest import ManualClock
from tests.cluster.embedded.objects import (
    CONFIG_MAP,
    CORE_EVENT,
    DAEMON_SET,
    DEPLOYMENT,
    EVENT,
    JOB,
    LEASE,
    NAMESPACE,
    POD,
    SECRET,
    config_map,
    deployment,
    key,
    pod,
    workload,
)


def test_a_new_object_gets_what_only_the_server_can_give(api: ApiServer) -> None:
    created = api.create(DEPLOYMENT, deployment(), manager="me")

    metadata = created["metadata"]
    assert (created["kind"], created["apiVersion"]) == ("Deployment", "apps/v1")
    assert metadata["creationTimestamp"] == "2026-01-01T00:00:00Z"
    assert metadata["generation"] == 1
    assert metadata["uid"]
    assert metadata["resourceVersion"]
    assert metadata["managedFields"][0]["manager"] == "me"
    assert created["spec"]["strategy"]["type"] == "RollingUpdate"
    assert created["status"] == {}


def test_the_status_that_a_create_brings_along_is_dropped(api: ApiServer) -> None:
    created = api.create(DEPLOYMENT, {**deployment(), "status": {"replicas": 3}})

    assert created["status"] == {}


def test_a_pod_starts_pending_with_what_admission_adds(api: ApiServer) -> None:
    created = api.create(POD, pod())

    assert created["status"] == {"phase": "Pending", "qosClass": "BestEffort"}
    assert created["spec"]["priority"] == 0
    assert len(created["spec"]["tolerations"]) == 2


@pytest.mark.parametrize(
    ("resources", "quality"),
    [
        ({}, "BestEffort"),
        ({"requests": {"cpu": "1"}}, "Burstable"),
        ({"limits": {"cpu": "1", "memory": "1Gi"}}, "Guaranteed"),
        ({"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "500m"}}, "Burstable"),
    ],
)
def test_the_quality_of_service_follows_from_the_resources(
    api: ApiServer, resources: dict[str, dict[str, str]], quality: str
) -> None:
    container = {"name": "app", "image": "konverge.test/app:1", "resources": resources}

    created = api.create(POD, pod(containers=[container]))

    assert created["status"]["qosClass"] == quality


def test_a_job_gets_a_selector_of_its_own(api: ApiServer) -> None:
    template = {"spec": {"restartPolicy": "Never", "containers": [{"name": "app", "image": "konverge.test/app:1"}]}}

    created = api.create(JOB, {"metadata": {"name": "once", "namespace": "default"}, "spec": {"template": template}})

    uid = created["metadata"]["uid"]
    assert created["spec"]["selector"] == {"matchLabels": {"batch.kubernetes.io/controller-uid": uid}}
    assert created["spec"]["template"]["metadata"]["labels"]["job-name"] == "once"


def test_a_name_can_be_taken_once(api: ApiServer) -> None:
    api.create(CONFIG_MAP, config_map())

    with pytest.raises(AlreadyExistsError, match='configmaps "settings" already exists'):
        api.create(CONFIG_MAP, config_map())


def test_a_generated_name_continues_its_prefix(api: ApiServer) -> None:
    first, second = (
        api.create(CONFIG_MAP, {"metadata": {"generateName": "run-", "namespace": "default"}}) for _ in range(2)
    )

    names = {first["metadata"]["name"], second["metadata"]["name"]}
    assert len(names) == 2
    assert all(name.startswith("run-") and len(name) == len("run-") + 5 for name in names)


def test_a_namespace_must_exist_and_stay(api: ApiServer) -> None:
    api.create(NAMESPACE, {"metadata": {"name": "going"}})
    api.delete(NAMESPACE, ObjectKey("", "going"))

    with pytest.raises(NotFoundError, match='namespaces "nowhere" not found'):
        api.create(CONFIG_MAP, config_map("a", "nowhere"))
    with pytest.raises(ForbiddenError, match="because it is being terminated"):
        api.create(CONFIG_MAP, config_map("a", "going"))


def test_a_kind_that_is_not_served_is_told_apart_from_a_missing_object(api: ApiServer) -> None:
    with pytest.raises(KindNotServedError):
        api.get(GroupVersionKind("example.com", "v1", "Nothing"), key("a"))


def test_an_object_to_be_created_has_no_resource_version(api: ApiServer) -> None:
    body = config_map()
    body["metadata"]["resourceVersion"] = "5"

    with pytest.raises(ApiError, match="resourceVersion should not be set"):
        api.create(CONFIG_MAP, body)


def test_what_a_caller_does_to_an_answer_stays_with_it(api: ApiServer) -> None:
    created = api.create(CONFIG_MAP, config_map(a="1"))

    created["data"]["a"] = "changed"

    assert api.get(CONFIG_MAP, key("settings"))["data"] == {"a": "1"}


def test_an_update_from_an_old_read_conflicts(api: ApiServer) -> None:
    read = api.create(CONFIG_MAP, config_map(a="1"))
    api.update(CONFIG_MAP, {**read, "data": {"a": "2"}})

    with pytest.raises(ConflictError, match="the object has been modified"):
        api.update(CONFIG_MAP, {**read, "data": {"a": "3"}})


def test_an_update_of_another_object_of_the_name_conflicts(api: ApiServer) -> None:
    api.create(CONFIG_MAP, config_map())
    body = config_map(a="1")
    body["metadata"]["uid"] = "another-uid"

    with pytest.raises(ConflictError, match="UID in precondition: another-uid"):
        api.update(CONFIG_MAP, body)


def test_a_write_that_changes_nothing_keeps_the_resource_version(api: ApiServer, clock: ManualClock) -> None:
    created = api.create(CONFIG_MAP, config_map(a="1"), manager="me")
    heard: list[StorageChange] = []
    api.subscribe(heard.append)
    clock.advance(60)

    updated = api.update(CONFIG_MAP, config_map(a="1"), manager="me")
    patched = api.patch(CONFIG_MAP, key("settings"), {"data": {"a": "1"}}, manager="me")

    assert updated == patched == created
    assert heard == []


def test_only_some_kinds_take_an_update_without_a_resource_version(api: ApiServer) -> None:
    lease = {"metadata": {"name": "leader", "namespace": "default"}, "spec": {"holderIdentity": "me"}}
    api.create(LEASE, lease)

    with pytest.raises(InvalidError, match="must be specified for an update"):
        api.update(LEASE, lease)


def test_an_update_of_some_kinds_creates(api: ApiServer) -> None:
    lease = {"metadata": {"name": "leader", "namespace": "default"}, "spec": {"holderIdentity": "me"}}

    api.update(LEASE, lease)

    assert api.get(LEASE, key("leader"))["spec"] == {"holderIdentity": "me"}
    with pytest.raises(NotFoundError):
        api.update(CONFIG_MAP, config_map())


def test_the_generation_counts_changes_of_what_is_wanted(api: ApiServer) -> None:
    created = api.create(DEPLOYMENT, deployment(replicas=1))

    relabeled = api.patch(DEPLOYMENT, key("web"), {"metadata": {"labels": {"a": "b"}}})
    scaled = api.patch(DEPLOYMENT, key("web"), {"spec": {"replicas": 2}})
    reported = api.patch(DEPLOYMENT, key("web"), {"status": {"replicas": 2}}, subresource="status")

    generations = [each["metadata"]["generation"] for each in (created, relabeled, scaled, reported)]
    assert generations == [1, 1, 2, 2]


def test_a_deployments_annotations_are_wanted_too(api: ApiServer) -> None:
    api.create(DEPLOYMENT, deployment())

    annotated = api.patch(DEPLOYMENT, key("web"), {"metadata": {"annotations": {"a": "b"}}})

    assert annotated["metadata"]["generation"] == 2


def test_a_daemon_set_counts_the_changes_of_its_template(api: ApiServer) -> None:
    api.create(DAEMON_SET, {"metadata": {"name": "agent", "namespace": "default"}, "spec": workload()})
    image = [{"op": "replace", "path": "/spec/template/spec/containers/0/image", "value": "konverge.test/app:2"}]

    changed = api.patch(DAEMON_SET, key("agent"), image, patch_type="json")

    assert changed["metadata"]["annotations"] == {"deprecated.daemonset.template.generation": "2"}


def test_the_object_and_its_status_are_written_apart(api: ApiServer) -> None:
    created = api.create(DEPLOYMENT, deployment(replicas=1))
    wanted = {**created, "spec": {**created["spec"], "replicas": 5}, "status": {"replicas": 5}}

    reported = api.update(DEPLOYMENT, wanted, subresource="status")

    assert (reported["spec"]["replicas"], reported["status"]) == (1, {"replicas": 5})
    scaled = api.update(DEPLOYMENT, {**reported, "spec": wanted["spec"], "status": {}})
    assert (scaled["spec"]["replicas"], scaled["status"]) == (5, {"replicas": 5})


def test_writers_are_recorded_with_what_they_wrote(api: ApiServer) -> None:
    api.create(DEPLOYMENT, deployment(), manager="author")

    api.patch(DEPLOYMENT, key("web"), {"status": {"replicas": 1}}, subresource="status", manager="controller")

    entries = api.get(DEPLOYMENT, key("web"))["metadata"]["managedFields"]
    status = next(entry for entry in entries if entry["manager"] == "controller")
    assert (status["operation"], status["subresource"]) == ("Update", "status")
    assert status["fieldsV1"] == {"f:status": {"f:replicas": {}}}


def test_a_dry_run_answers_and_stores_nothing(api: ApiServer) -> None:
    revision = api.storage.revision

    created = api.create(CONFIG_MAP, config_map(a="1"), dry_run=True)
    api.create(CONFIG_MAP, config_map("kept"))
    api.update(CONFIG_MAP, config_map("kept", a="1"), dry_run=True)
    api.patch(CONFIG_MAP, key("kept"), {"data": {"a": "1"}}, dry_run=True)
    api.delete(CONFIG_MAP, key("kept"), dry_run=True)

    assert created["metadata"]["uid"]
    assert api.find(CONFIG_MAP, key("settings")) is None
    assert "data" not in api.get(CONFIG_MAP, key("kept"))
    assert api.storage.revision == revision + 1


def test_scaling_goes_through_one_form_for_all_kinds(api: ApiServer) -> None:
    api.create(DEPLOYMENT, deployment(replicas=1))

    scale = api.get_scale(DEPLOYMENT, key("web"))
    scaled = api.update(DEPLOYMENT, {**scale, "spec": {"replicas": 4}}, subresource="scale", manager="me")

    assert (scale["kind"], scale["spec"], scale["status"]) == (
        "Scale",
        {"replicas": 1},
        {"replicas": 0, "selector": "app=web"},
    )
    assert scaled["spec"] == {"replicas": 4}
    assert api.get(DEPLOYMENT, key("web"))["spec"]["replicas"] == 4


def test_nothing_scales_below_zero(api: ApiServer) -> None:
    api.create(DEPLOYMENT, deployment())

    with pytest.raises(InvalidError, match="must be greater than or equal to 0"):
        api.patch(DEPLOYMENT, key("web"), {"spec": {"replicas": -1}}, subresource="scale")


def test_secrets_store_text_as_data(api: ApiServer) -> None:
    body = {"metadata": {"name": "key", "namespace": "default"}, "stringData": {"token": "abc"}}

    created = api.create(SECRET, body)

    assert (created["data"], created["type"]) == ({"token": "YWJj"}, "Opaque")
    assert "stringData" not in created


def test_an_event_has_two_forms_and_is_stored_once(api: ApiServer) -> None:
    metadata = {"name": "e", "namespace": "default"}
    regarding = {"kind": "Pod", "name": "web"}
    api.create(CORE_EVENT, {"metadata": metadata, "involvedObject": regarding, "message": "hello", "type": "Normal"})

    served = api.get(EVENT, key("e"))

    assert (served["apiVersion"], served["regarding"], served["note"]) == ("events.k8s.io/v1", regarding, "hello")
    assert [each["metadata"]["name"] for each in api.list(EVENT, field_selector="regarding.name=web")] == ["e"]


def test_apply_creates_then_merges_and_takes_back_what_is_no_longer_applied(api: ApiServer) -> None:
    body = {"apiVersion": "v1", "kind": "ConfigMap", **config_map(a="1", b="2")}

    created = api.apply(CONFIG_MAP, body, manager="me")
    api.patch(CONFIG_MAP, key("settings"), {"data": {"c": "3"}}, manager="other")
    merged = api.apply(CONFIG_MAP, {**body, "data": {"a": "9"}}, manager="me")

    assert created["data"] == {"a": "1", "b": "2"}
    assert merged["data"] == {"a": "9", "c": "3"}


def test_apply_that_changes_nothing_stores_nothing(api: ApiServer, clock: ManualClock) -> None:
    body = {"apiVersion": "v1", "kind": "ConfigMap", **config_map(a="1")}
    created = api.apply(CONFIG_MAP, body, manager="me")
    clock.advance(60)

    assert api.apply(CONFIG_MAP, body, manager="me") == created


def test_apply_conflicts_with_another_owner_unless_forced(api: ApiServer) -> None:
    body = {"apiVersion": "v1", "kind": "ConfigMap", **config_map(a="1")}
    api.apply(CONFIG_MAP, body, manager="first")

    with pytest.raises(ConflictError, match='conflict with "first": .data.a'):
        api.apply(CONFIG_MAP, {**body, "data": {"a": "2"}}, manager="second")
    forced = api.apply(CONFIG_MAP, {**body, "data": {"a": "2"}}, manager="second", force=True)
    assert forced["data"] == {"a": "2"}


def test_apply_to_the_status_of_nothing_is_not_found(api: ApiServer) -> None:
    body = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": deployment()["metadata"], "status": {}}

    with pytest.raises(NotFoundError):
        api.apply(DEPLOYMENT, body, manager="me", subresource="status")


def test_lists_are_narrowed_by_namespace_labels_and_fields(api: ApiServer) -> None:
    api.create(NAMESPACE, {"metadata": {"name": "other"}})
    for name, namespace, tier in (("a", "default", "web"), ("b", "default", "db"), ("c", "other", "web")):
        body = config_map(name, namespace)
        body["metadata"]["labels"] = {"tier": tier}
        api.create(CONFIG_MAP, body)

    def names(**selectors: str) -> list[str]:
        return [each["metadata"]["name"] for each in api.list(CONFIG_MAP, **selectors)]

    assert names() == ["a", "b", "c"]
    assert names(namespace="default") == ["a", "b"]
    assert names(label_selector="tier in (web)") == ["a", "c"]
    assert names(namespace="default", label_selector="tier!=web") == ["b"]
    assert names(field_selector="metadata.name=c") == ["c"]
