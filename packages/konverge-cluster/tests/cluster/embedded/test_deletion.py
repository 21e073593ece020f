from __future__ import annotations

import pytest

from konverge.errors import ConflictError, ForbiddenError, InvalidError, NotFoundError
from konverge.kube import ObjectKey
from konverge_cluster._internal.embedded.apiserver import ApiServer
from konverge_cluster._internal.embedded.deletion import parse_propagation
from konverge_cluster._internal.embedded.storage import StorageChange
from tests.cluster.embedded.conftest import ManualClock
from tests.cluster.embedded.objects import (
    CONFIG_MAP,
    DEPLOYMENT,
    JOB,
    NAMESPACE,
    POD,
    config_map,
    deployment,
    key,
    pod,
)


def test_an_object_that_nothing_holds_goes_at_once(api: ApiServer) -> None:
    api.create(CONFIG_MAP, config_map())
    heard: list[StorageChange] = []
    api.subscribe(heard.append)

    api.delete(CONFIG_MAP, key("settings"))

    assert api.find(CONFIG_MAP, key("settings")) is None
    assert [change.type for change in heard] == ["DELETED"]
    assert "deletionTimestamp" not in heard[0].new["metadata"]


def test_a_finalizer_holds_an_object_until_it_is_taken_off(api: ApiServer) -> None:
    body = deployment()
    body["metadata"]["finalizers"] = ["example.com/hold"]
    api.create(DEPLOYMENT, body)

    marked = api.delete(DEPLOYMENT, key("web"))
    again = api.delete(DEPLOYMENT, key("web"))
    api.patch(DEPLOYMENT, key("web"), {"metadata": {"finalizers": None}})

    assert marked["metadata"]["deletionTimestamp"] == "2026-01-01T00:00:00Z"
    assert marked["metadata"]["generation"] == 2
    assert again == marked
    assert api.find(DEPLOYMENT, key("web")) is None


def test_an_object_on_its_way_out_takes_no_new_finalizer(api: ApiServer) -> None:
    body = config_map()
    body["metadata"]["finalizers"] = ["example.com/hold"]
    api.create(CONFIG_MAP, body)
    api.delete(CONFIG_MAP, key("settings"))

    with pytest.raises(InvalidError, match="no new finalizers can be added"):
        api.patch(CONFIG_MAP, key("settings"), {"metadata": {"finalizers": ["example.com/hold", "example.com/more"]}})


def test_preconditions_guard_a_delete(api: ApiServer) -> None:
    created = api.create(CONFIG_MAP, config_map())
    metadata = created["metadata"]

    with pytest.raises(ConflictError, match="does not match the UID in record"):
        api.delete(CONFIG_MAP, key("settings"), uid="another-uid")
    with pytest.raises(ConflictError, match="does not match the ResourceVersion in record"):
        api.delete(CONFIG_MAP, key("settings"), resource_version="1")
    api.delete(CONFIG_MAP, key("settings"), uid=metadata["uid"], resource_version=metadata["resourceVersion"])

    with pytest.raises(NotFoundError):
        api.delete(CONFIG_MAP, key("settings"))


@pytest.mark.parametrize(("propagation", "finalizer"), [("Foreground", "foregroundDeletion"), ("Orphan", "orphan")])
def test_a_propagation_that_needs_the_garbage_collector_waits_for_it(
    api: ApiServer, propagation: str, finalizer: str
) -> None:
    api.create(DEPLOYMENT, deployment())

    marked = api.delete(DEPLOYMENT, key("web"), propagation=parse_propagation(propagation))

    assert marked["metadata"]["finalizers"] == [finalizer]
    assert api.find(DEPLOYMENT, key("web")) == marked


def test_background_takes_an_earlier_propagation_back(api: ApiServer) -> None:
    api.create(DEPLOYMENT, deployment())
    api.delete(DEPLOYMENT, key("web"), propagation="Foreground")

    api.delete(DEPLOYMENT, key("web"), propagation="Background")

    assert api.find(DEPLOYMENT, key("web")) is None


def test_a_job_leaves_its_pods_unless_told_otherwise(api: ApiServer) -> None:
    template = {"spec": {"restartPolicy": "Never", "containers": [{"name": "app", "image": "konverge.test/app:1"}]}}
    api.create(JOB, {"metadata": {"name": "once", "namespace": "default"}, "spec": {"template": template}})

    marked = api.delete(JOB, key("once"))

    assert marked["metadata"]["finalizers"] == ["orphan"]


def test_an_unknown_propagation_is_refused() -> None:
    with pytest.raises(InvalidError, match='Unsupported value: "Later"'):
        parse_propagation("Later")


def test_a_pod_on_no_node_goes_at_once(api: ApiServer) -> None:
    api.create(POD, pod())

    last = api.delete(POD, key("web"))

    assert last["metadata"]["deletionGracePeriodSeconds"] == 0
    assert api.find(POD, key("web")) is None


def test_a_pod_on_a_node_has_its_grace(api: ApiServer, clock: ManualClock) -> None:
    bound = api.create(POD, pod(terminationGracePeriodSeconds=20, nodeName="node-0"))

    marked = api.delete(POD, key("web"))
    clock.advance(5)
    longer = api.delete(POD, key("web"), grace_seconds=30)
    shorter = api.delete(POD, key("web"), grace_seconds=2)

    assert bound["metadata"].get("deletionTimestamp") is None
    assert marked["metadata"]["deletionTimestamp"] == "2026-01-01T00:00:20Z"
    assert longer == marked
    assert shorter["metadata"]["deletionTimestamp"] == "2026-01-01T00:00:07Z"


def test_a_kubelet_ends_a_pods_grace(api: ApiServer) -> None:
    api.create(POD, pod(nodeName="node-0"))
    api.delete(POD, key("web"))

    api.delete(POD, key("web"), grace_seconds=0)

    assert api.find(POD, key("web")) is None


def test_a_pod_that_has_ended_needs_no_grace(api: ApiServer) -> None:
    api.create(POD, pod(nodeName="node-0"))
    api.patch(POD, key("web"), {"status": {"phase": "Succeeded"}}, subresource="status")

    api.delete(POD, key("web"))

    assert api.find(POD, key("web")) is None


def test_a_namespace_terminates_until_it_is_finalized(api: ApiServer) -> None:
    where = ObjectKey("", "team")
    api.create(NAMESPACE, {"metadata": {"name": "team"}})

    marked = api.delete(NAMESPACE, where)
    api.update(NAMESPACE, {**marked, "spec": {"finalizers": []}}, subresource="finalize")

    assert marked["status"]["phase"] == "Terminating"
    assert api.find(NAMESPACE, where) is None


def test_an_update_does_not_finalize_a_namespace(api: ApiServer) -> None:
    where = ObjectKey("", "team")
    api.create(NAMESPACE, {"metadata": {"name": "team"}})
    marked = api.delete(NAMESPACE, where)

    api.update(NAMESPACE, {**marked, "spec": {}})

    assert api.get(NAMESPACE, where)["spec"] == {"finalizers": ["kubernetes"]}


def test_the_default_namespace_stays(api: ApiServer) -> None:
    with pytest.raises(ForbiddenError, match="this namespace may not be deleted"):
        api.delete(NAMESPACE, ObjectKey("", "default"))
