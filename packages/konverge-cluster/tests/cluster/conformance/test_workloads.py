"""The objects and the status that the cluster's controllers create for workloads."""

from __future__ import annotations

from typing import Any

import pytest

from konverge.errors import NotFoundError
from konverge.kube import GroupVersionKind, Object, ObjectKey
from konverge_cluster.testing import Cluster
from tests.cluster.conformance.objects import (
    DAEMON_SET,
    DEPLOYMENT,
    ENDPOINT_SLICE,
    FAILING_IMAGE,
    JOB,
    NEVER_READY_IMAGE,
    POD,
    REPLICA_SET,
    SERVICE,
    SLOW_IMAGE,
    STATEFUL_SET,
    daemon_set,
    deployment,
    job,
    new,
    pod_spec,
    service,
    stateful_set,
)

pytestmark = pytest.mark.anyio


def conditions(obj: Object) -> dict[str, tuple[str, str]]:
    """Return (status, reason) by type."""
    found = obj.get("status", {}).get("conditions", ())
    return {condition["type"]: (condition["status"], condition.get("reason", "")) for condition in found}


def is_observed(obj: Object) -> bool:
    return bool(obj.get("status", {}).get("observedGeneration") == obj["metadata"]["generation"])


async def until_status(cluster: Cluster, gvk: GroupVersionKind, name: str, **expected: Any) -> Object:
    """Return the object once its controller has observed its spec and its status has those fields; None is absent."""

    async def check() -> Object | None:
        obj = await cluster.client.get(gvk, ObjectKey(cluster.namespace, name))
        status = obj.get("status", {})
        settled = is_observed(obj) and {field: status.get(field) for field in expected} == expected
        assert settled, status
        return obj

    return await cluster.eventually(check, describe=f"{gvk.kind} {name} has {expected}")


async def pods_of(cluster: Cluster, app: str) -> list[Object]:
    """Return the pods with the label ``app``, by name."""
    return (await cluster.client.list(POD, namespace=cluster.namespace, label_selector=f"app={app}")).items


async def until_pods(cluster: Cluster, app: str, count: int) -> list[Object]:
    async def check() -> bool:
        return len(await pods_of(cluster, app)) == count

    await cluster.eventually(check, describe=f"{count} pods of {app}")
    return await pods_of(cluster, app)


# Pods


async def test_a_pod_is_scheduled_runs_and_is_ready(cluster: Cluster) -> None:
    await cluster.client.create(new(POD, cluster.namespace, "alone", spec=pod_spec()))

    async def running() -> Object | None:
        pod = await cluster.client.get(POD, ObjectKey(cluster.namespace, "alone"))
        return pod if conditions(pod).get("Ready", ("",))[0] == "True" else None

    pod = await cluster.eventually(running)
    assert pod["status"]["phase"] == "Running"
    assert pod["spec"]["nodeName"]
    assert pod["status"]["podIP"]
    assert pod["status"]["containerStatuses"][0]["ready"] is True
    assert {kind: state for kind, (state, _) in conditions(pod).items()} == {
        "PodScheduled": "True",
        "PodReadyToStartContainers": "True",
        "Initialized": "True",
        "ContainersReady": "True",
        "Ready": "True",
    }


async def test_an_image_that_cannot_be_pulled_leaves_the_pod_waiting(cluster: Cluster) -> None:
    await cluster.client.create(new(POD, cluster.namespace, "stuck", spec=pod_spec(NEVER_READY_IMAGE)))
    key = ObjectKey(cluster.namespace, "stuck")

    async def waiting() -> bool:
        return "containerStatuses" in (await cluster.client.get(POD, key))["status"]

    await cluster.eventually(waiting)
    await cluster.clock.sleep(4)
    pod = await cluster.client.get(POD, key)
    (container,) = pod["status"]["containerStatuses"]
    assert pod["status"]["phase"] == "Pending"
    assert conditions(pod)["Ready"] == ("False", "ContainersNotReady")
    assert container["ready"] is False
    assert container["state"]["waiting"]["reason"] == "ImagePullBackOff"


async def test_a_slow_image_runs_before_it_is_ready(cluster: Cluster) -> None:
    await cluster.client.create(new(POD, cluster.namespace, "slow", spec=pod_spec(SLOW_IMAGE)))

    async def running() -> Object | None:
        pod = await cluster.client.get(POD, ObjectKey(cluster.namespace, "slow"))
        return pod if pod["status"]["phase"] == "Running" else None

    pod = await cluster.eventually(running)
    assert conditions(pod)["Ready"] == ("False", "ContainersNotReady")
    assert pod["status"]["containerStatuses"][0]["ready"] is False


async def test_an_image_that_fails_crashes_again_and_again(cluster: Cluster) -> None:
    await cluster.client.create(new(POD, cluster.namespace, "broken", spec=pod_spec(FAILING_IMAGE)))
    key = ObjectKey(cluster.namespace, "broken")

    async def running() -> bool:
        return bool((await cluster.client.get(POD, key))["status"]["phase"] == "Running")

    await cluster.eventually(running)
    await cluster.clock.sleep(4)
    pod = await cluster.client.get(POD, key)
    (container,) = pod["status"]["containerStatuses"]
    assert conditions(pod)["Ready"] == ("False", "ContainersNotReady")
    assert container["state"]["waiting"]["reason"] == "CrashLoopBackOff"
    assert container["lastState"]["terminated"]["exitCode"] == 1


async def test_a_deleted_pod_is_gone_soon(cluster: Cluster) -> None:
    created = await cluster.client.create(new(POD, cluster.namespace, "alone", spec=pod_spec()))

    async def running() -> bool:
        pod = await cluster.client.get(POD, ObjectKey.of(created))
        return bool(pod["status"]["phase"] == "Running")

    async def is_gone() -> bool:
        try:
            await cluster.client.get(POD, ObjectKey.of(created))
        except NotFoundError:
            return True
        return False

    await cluster.eventually(running)
    answer = await cluster.client.delete(POD, ObjectKey.of(created))
    assert answer is not None
    assert answer["metadata"]["deletionGracePeriodSeconds"] == 30
    await cluster.eventually(is_gone)


# Deployments


async def test_a_deployment_rolls_out(cluster: Cluster) -> None:
    await cluster.client.create(deployment(cluster.namespace, replicas=2))

    live = await until_status(cluster, DEPLOYMENT, "web", availableReplicas=2)

    assert {field: live["status"][field] for field in ("replicas", "updatedReplicas", "readyReplicas")} == {
        "replicas": 2,
        "updatedReplicas": 2,
        "readyReplicas": 2,
    }
    assert conditions(live)["Available"] == ("True", "MinimumReplicasAvailable")
    assert "unavailableReplicas" not in live["status"]
    assert live["metadata"]["annotations"]["deployment.kubernetes.io/revision"] == "1"


async def test_a_finished_rollout_says_so(cluster: Cluster) -> None:
    await cluster.client.create(deployment(cluster.namespace))

    async def is_finished() -> bool:
        live = await cluster.client.get(DEPLOYMENT, ObjectKey(cluster.namespace, "web"))
        return conditions(live).get("Progressing") == ("True", "NewReplicaSetAvailable")

    await cluster.eventually(is_finished)


async def test_a_deployment_owns_a_replica_set_that_owns_its_pods(cluster: Cluster) -> None:
    created = await cluster.client.create(deployment(cluster.namespace))
    await until_status(cluster, DEPLOYMENT, "web", availableReplicas=1)

    (replica_set,) = (await cluster.client.list(REPLICA_SET, namespace=cluster.namespace)).items
    (pod,) = await pods_of(cluster, "web")

    (owner,) = replica_set["metadata"]["ownerReferences"]
    assert owner == {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "name": "web",
        "uid": created["metadata"]["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }
    assert pod["metadata"]["ownerReferences"][0]["uid"] == replica_set["metadata"]["uid"]
    digest = replica_set["metadata"]["labels"]["pod-template-hash"]
    assert replica_set["metadata"]["name"] == f"web-{digest}"
    assert pod["metadata"]["labels"] == {"app": "web", "pod-template-hash": digest}
    assert pod["metadata"]["name"].startswith(f"web-{digest}-")


async def test_a_deployment_is_scaled_up_and_down_to_nothing(cluster: Cluster) -> None:
    await cluster.client.create(deployment(cluster.namespace, replicas=1))
    key = ObjectKey(cluster.namespace, "web")
    await until_status(cluster, DEPLOYMENT, "web", availableReplicas=1)

    await cluster.client.patch(DEPLOYMENT, key, {"spec": {"replicas": 3}}, patch_type="merge")
    await until_status(cluster, DEPLOYMENT, "web", replicas=3, availableReplicas=3)
    await cluster.client.patch(DEPLOYMENT, key, {"spec": {"replicas": 0}}, patch_type="merge")
    live = await until_status(cluster, DEPLOYMENT, "web", replicas=None, availableReplicas=None)

    assert conditions(live)["Available"][0] == "True"
    await until_pods(cluster, "web", 0)


async def test_a_new_image_rolls_out_through_a_new_replica_set(cluster: Cluster) -> None:
    await cluster.client.create(deployment(cluster.namespace, replicas=2))
    await until_status(cluster, DEPLOYMENT, "web", availableReplicas=2)

    change = {"spec": {"template": {"spec": {"containers": [{"name": "app", "image": "konverge.test/app:2"}]}}}}
    await cluster.client.patch(DEPLOYMENT, ObjectKey(cluster.namespace, "web"), change, patch_type="strategic")
    live = await until_status(cluster, DEPLOYMENT, "web", replicas=2, updatedReplicas=2, availableReplicas=2)

    sets = (await cluster.client.list(REPLICA_SET, namespace=cluster.namespace)).items
    images = {item["spec"]["template"]["spec"]["containers"][0]["image"]: item["spec"]["replicas"] for item in sets}
    assert images == {"konverge.test/app:1": 0, "konverge.test/app:2": 2}
    assert live["metadata"]["annotations"]["deployment.kubernetes.io/revision"] == "2"


async def test_a_rollout_that_never_gets_ready_keeps_the_old_pods(cluster: Cluster) -> None:
    await cluster.client.create(deployment(cluster.namespace, replicas=2))
    await until_status(cluster, DEPLOYMENT, "web", availableReplicas=2)

    change = {"spec": {"template": {"spec": {"containers": [{"name": "app", "image": NEVER_READY_IMAGE}]}}}}
    await cluster.client.patch(DEPLOYMENT, ObjectKey(cluster.namespace, "web"), change, patch_type="strategic")
    live = await until_status(
        cluster, DEPLOYMENT, "web", replicas=3, updatedReplicas=1, availableReplicas=2, unavailableReplicas=1
    )

    assert conditions(live)["Available"] == ("True", "MinimumReplicasAvailable")
    assert conditions(live)["Progressing"][0] == "True"
    assert len(await until_pods(cluster, "web", 3)) == 3


async def test_a_deployment_that_never_gets_ready_is_not_available(cluster: Cluster) -> None:
    await cluster.client.create(deployment(cluster.namespace, image=NEVER_READY_IMAGE))

    live = await until_status(
        cluster, DEPLOYMENT, "web", replicas=1, updatedReplicas=1, unavailableReplicas=1, readyReplicas=None
    )

    assert conditions(live)["Available"] == ("False", "MinimumReplicasUnavailable")


async def test_a_deployment_without_progress_says_so_after_its_deadline(cluster: Cluster) -> None:
    await cluster.client.create(deployment(cluster.namespace, image=NEVER_READY_IMAGE, progressDeadlineSeconds=2))

    async def has_given_up() -> bool:
        live = await cluster.client.get(DEPLOYMENT, ObjectKey(cluster.namespace, "web"))
        return conditions(live).get("Progressing") == ("False", "ProgressDeadlineExceeded")

    await cluster.eventually(has_given_up)


async def test_a_slow_image_is_available_after_its_time(cluster: Cluster) -> None:
    begin = cluster.clock.monotonic()
    await cluster.client.create(deployment(cluster.namespace, image=SLOW_IMAGE))

    await until_status(cluster, DEPLOYMENT, "web", unavailableReplicas=1)
    await until_status(cluster, DEPLOYMENT, "web", availableReplicas=1)

    assert 2.5 < cluster.clock.monotonic() - begin < 60


async def test_a_deleted_pod_of_a_deployment_is_replaced(cluster: Cluster) -> None:
    await cluster.client.create(deployment(cluster.namespace))
    await until_status(cluster, DEPLOYMENT, "web", availableReplicas=1)
    (pod,) = await pods_of(cluster, "web")

    await cluster.client.delete(POD, ObjectKey.of(pod))

    async def is_replaced() -> bool:
        return [other["metadata"]["uid"] for other in await pods_of(cluster, "web")] != [pod["metadata"]["uid"]]

    await cluster.eventually(is_replaced)
    await until_status(cluster, DEPLOYMENT, "web", availableReplicas=1)


async def test_a_paused_deployment_does_not_roll_out(cluster: Cluster) -> None:
    await cluster.client.create(deployment(cluster.namespace, paused=True))

    async def is_paused() -> bool:
        live = await cluster.client.get(DEPLOYMENT, ObjectKey(cluster.namespace, "web"))
        return conditions(live).get("Progressing") == ("Unknown", "DeploymentPaused")

    await cluster.eventually(is_paused)
    assert (await cluster.client.list(REPLICA_SET, namespace=cluster.namespace)).items == []


async def test_a_deployment_takes_replica_sets_and_pods_along(cluster: Cluster) -> None:
    await cluster.client.create(deployment(cluster.namespace))
    await until_status(cluster, DEPLOYMENT, "web", availableReplicas=1)

    await cluster.client.delete(DEPLOYMENT, ObjectKey(cluster.namespace, "web"))

    await until_pods(cluster, "web", 0)
    assert (await cluster.client.list(REPLICA_SET, namespace=cluster.namespace)).items == []


async def test_recreate_ends_the_old_pods_before_it_starts_new_ones(cluster: Cluster) -> None:
    await cluster.client.create(deployment(cluster.namespace, replicas=2, strategy={"type": "Recreate"}))
    await until_status(cluster, DEPLOYMENT, "web", availableReplicas=2)

    change = {"spec": {"template": {"spec": {"containers": [{"name": "app", "image": NEVER_READY_IMAGE}]}}}}
    await cluster.client.patch(DEPLOYMENT, ObjectKey(cluster.namespace, "web"), change, patch_type="strategic")
    live = await until_status(cluster, DEPLOYMENT, "web", replicas=2, updatedReplicas=2, unavailableReplicas=2)

    assert conditions(live)["Available"] == ("False", "MinimumReplicasUnavailable")


# StatefulSets


async def test_a_stateful_set_starts_its_pods_in_order(cluster: Cluster) -> None:
    await cluster.client.create(stateful_set(cluster.namespace, replicas=2))

    live = await until_status(cluster, STATEFUL_SET, "db", replicas=2, readyReplicas=2, availableReplicas=2)

    pods = await pods_of(cluster, "db")
    assert [pod["metadata"]["name"] for pod in pods] == ["db-0", "db-1"]
    assert pods[0]["metadata"]["labels"]["statefulset.kubernetes.io/pod-name"] == "db-0"
    assert live["status"]["currentRevision"] == live["status"]["updateRevision"]
    assert live["status"]["updateRevision"] == pods[0]["metadata"]["labels"]["controller-revision-hash"]
    assert int(pods[0]["metadata"]["resourceVersion"]) > 0


async def test_a_stateful_set_waits_for_a_pod_that_is_not_ready(cluster: Cluster) -> None:
    await cluster.client.create(stateful_set(cluster.namespace, replicas=2, image=NEVER_READY_IMAGE))

    await until_status(cluster, STATEFUL_SET, "db", replicas=1)
    await cluster.clock.sleep(2)

    assert [pod["metadata"]["name"] for pod in await pods_of(cluster, "db")] == ["db-0"]


async def test_a_stateful_set_that_starts_in_parallel_does_not_wait(cluster: Cluster) -> None:
    await cluster.client.create(
        stateful_set(cluster.namespace, replicas=2, image=NEVER_READY_IMAGE, podManagementPolicy="Parallel")
    )

    await until_status(cluster, STATEFUL_SET, "db", replicas=2)


async def test_a_stateful_set_gives_up_its_last_pod_first(cluster: Cluster) -> None:
    await cluster.client.create(stateful_set(cluster.namespace, replicas=2))
    await until_status(cluster, STATEFUL_SET, "db", readyReplicas=2)

    await cluster.client.patch(
        STATEFUL_SET, ObjectKey(cluster.namespace, "db"), {"spec": {"replicas": 1}}, patch_type="merge"
    )
    await until_status(cluster, STATEFUL_SET, "db", replicas=1)

    assert [pod["metadata"]["name"] for pod in await until_pods(cluster, "db", 1)] == ["db-0"]


async def test_a_stateful_set_rolls_a_new_image_out(cluster: Cluster) -> None:
    await cluster.client.create(stateful_set(cluster.namespace, replicas=2))
    before = await until_status(cluster, STATEFUL_SET, "db", readyReplicas=2)

    change = {"spec": {"template": {"spec": {"containers": [{"name": "app", "image": "konverge.test/app:2"}]}}}}
    await cluster.client.patch(STATEFUL_SET, ObjectKey(cluster.namespace, "db"), change, patch_type="strategic")

    async def find_rolled_out() -> Object | None:
        live = await cluster.client.get(STATEFUL_SET, ObjectKey(cluster.namespace, "db"))
        status = live["status"]
        done = status.get("updatedReplicas") == 2 and status.get("readyReplicas") == 2
        return live if done and is_observed(live) and status["currentRevision"] == status["updateRevision"] else None

    after = await cluster.eventually(find_rolled_out)
    images = {pod["spec"]["containers"][0]["image"] for pod in await pods_of(cluster, "db")}
    assert images == {"konverge.test/app:2"}
    assert after["status"]["currentRevision"] != before["status"]["currentRevision"]


# DaemonSets, Jobs, Services


async def test_a_daemon_set_runs_on_every_node(cluster: Cluster) -> None:
    await cluster.client.create(daemon_set(cluster.namespace))

    live = await until_status(cluster, DAEMON_SET, "agent", numberAvailable=1)

    assert live["status"]["desiredNumberScheduled"] == 1
    assert live["status"]["numberReady"] == 1
    assert live["status"]["updatedNumberScheduled"] == 1


async def test_a_job_runs_to_its_end(cluster: Cluster) -> None:
    await cluster.client.create(job(cluster.namespace))

    async def complete() -> Object | None:
        live = await cluster.client.get(JOB, ObjectKey(cluster.namespace, "import"))
        return live if conditions(live).get("Complete", ("",))[0] == "True" else None

    live = await cluster.eventually(complete)
    assert live["status"]["succeeded"] == 1
    assert live["status"]["completionTime"]
    assert "active" not in live["status"]


async def test_a_job_whose_pods_fail_is_given_up(cluster: Cluster) -> None:
    await cluster.client.create(job(cluster.namespace, image=FAILING_IMAGE, backoffLimit=0))

    async def find_failed() -> Object | None:
        live = await cluster.client.get(JOB, ObjectKey(cluster.namespace, "import"))
        return live if conditions(live).get("Failed") == ("True", "BackoffLimitExceeded") else None

    live = await cluster.eventually(find_failed)
    assert live["status"]["failed"] == 1
    assert "active" not in live["status"]


async def test_a_suspended_job_has_no_pods(cluster: Cluster) -> None:
    await cluster.client.create(job(cluster.namespace, suspend=True))

    async def is_suspended() -> bool:
        live = await cluster.client.get(JOB, ObjectKey(cluster.namespace, "import"))
        return conditions(live).get("Suspended") == ("True", "JobSuspended")

    await cluster.eventually(is_suspended)
    assert (await cluster.client.list(POD, namespace=cluster.namespace)).items == []


async def test_endpoints_of_a_service_are_its_pods_and_whether_they_are_ready(cluster: Cluster) -> None:
    await cluster.client.create(service(cluster.namespace))
    await cluster.client.create(deployment(cluster.namespace, replicas=2))
    await until_status(cluster, DEPLOYMENT, "web", availableReplicas=2)
    addresses = {pod["status"]["podIP"] for pod in await pods_of(cluster, "web")}

    async def has_endpoints() -> bool:
        slices = await cluster.client.list(
            ENDPOINT_SLICE, namespace=cluster.namespace, label_selector="kubernetes.io/service-name=web"
        )
        endpoints = [endpoint for item in slices.items for endpoint in item.get("endpoints") or ()]
        ready = [endpoint for endpoint in endpoints if endpoint["conditions"]["ready"]]
        return {address for endpoint in ready for address in endpoint["addresses"]} == addresses

    await cluster.eventually(has_endpoints)


async def test_a_load_balancer_without_a_provider_stays_pending(cluster: Cluster) -> None:
    created = await cluster.client.create(service(cluster.namespace, type="LoadBalancer"))

    await cluster.clock.sleep(1)

    live = await cluster.client.get(SERVICE, ObjectKey.of(created))
    assert live["status"] == {"loadBalancer": {}}
    assert live["spec"]["ports"][0]["nodePort"] >= 30000
