"""Each kind with pods in a component: created, suspended, resumed, failing, and without writes when steady."""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest

from konverge import primitives
from konverge.component import AppliedCache, Component, ComponentBuilder
from konverge.kube import Condition, GroupVersionKind, Object
from konverge.primitives import (
    CronJob,
    DaemonSet,
    Deployment,
    Job,
    Pod,
    Primitive,
    ReplicaSet,
    StatefulSet,
)
from tests.component.app import ComponentHarness
from tests.component.rich_primitives import WORKLOADS, build_contents

pytestmark = pytest.mark.anyio

IMAGE = "konverge.test/app:1"
FAILING_IMAGE = "konverge.test/failing:1"
NEVER_READY_IMAGE = "konverge.test/never-ready:1"
RESOURCE_QUOTA = GroupVersionKind("", "v1", "ResourceQuota")


def pod_spec(image: str = IMAGE, **fields: Any) -> Object:
    return {"containers": [{"name": "main", "image": image}], **fields}


def build_spec(image: str = IMAGE, **fields: Any) -> Object:
    labels = {"app": "web"}
    template = {"metadata": {"labels": labels}, "spec": pod_spec(image)}
    return {"selector": {"matchLabels": labels}, "template": template, **fields}


def task(image: str = IMAGE, **fields: Any) -> Object:
    return {"template": {"spec": pod_spec(image, restartPolicy="Never")}, **fields}


def component(app: ComponentHarness, kind: type[Primitive[Any]], spec: Object, *, suspended: bool = False) -> Component:
    """A component of one object named ``web``."""
    made: Any = kind
    web = made({"metadata": {"name": "web", "namespace": app.key.namespace}, "spec": spec})
    builder = ComponentBuilder("frontend", condition_type="FrontendReady").with_resource(web)
    return builder.suspend(suspended).build()


class Case(NamedTuple):
    """The states of a kind in a component.

    Args:
        spec: What is wanted.
        ready: The condition's reason when it is ready.
        asleep: Fields of its spec while it is suspended; None when it is deleted.
    """

    spec: Object
    ready: str
    asleep: Object | None


CASES: dict[type[Primitive[Any]], Case] = {
    Deployment: Case(build_spec(replicas=2), "Healthy", {"replicas": 0}),
    StatefulSet: Case(build_spec(replicas=2, serviceName="web"), "Healthy", {"replicas": 0}),
    ReplicaSet: Case(build_spec(replicas=2), "Healthy", {"replicas": 0}),
    DaemonSet: Case(build_spec(), "Healthy", None),
    Pod: Case(pod_spec(), "Healthy", None),
    Job: Case(task(), "Completed", None),
    CronJob: Case({"schedule": "0 0 1 1 *", "jobTemplate": {"spec": task()}}, "Operational", {"suspend": True}),
}
kinds = pytest.mark.parametrize("kind", CASES, ids=lambda kind: kind.__name__)


@kinds
async def test_it_becomes_ready_sleeps_and_wakes(app: ComponentHarness, kind: type[Primitive[Any]]) -> None:
    case = CASES[kind]
    awake, asleep = component(app, kind, case.spec), component(app, kind, case.spec, suspended=True)

    await app.reconcile_until(case.ready, awake)
    ready = await app.find(kind.gvk, "web")
    suspended = await app.reconcile_until("Suspended", asleep)
    if case.asleep is None:
        await app.wait_until_gone(kind.gvk, "web")
    sleeping = await app.find(kind.gvk, "web")
    await app.reconcile_until(case.ready, awake)
    resumed = await app.find(kind.gvk, "web")

    assert ready is not None
    assert resumed is not None
    assert (suspended.status, suspended.message) == ("True", "All resources are suspended.")
    assert fields_of(sleeping, case.asleep) == case.asleep
    assert (resumed["metadata"]["uid"] == ready["metadata"]["uid"]) is (case.asleep is not None)
    assert fields_of(resumed, case.asleep) == fields_of(ready, case.asleep)


def fields_of(obj: Object | None, like: Object | None) -> Object | None:
    """Those fields of its spec that the other has."""
    return None if obj is None or like is None else {field: obj["spec"].get(field) for field in like}


@kinds
async def test_absent_and_suspended_it_does_not_run(app: ComponentHarness, kind: type[Primitive[Any]]) -> None:
    case = CASES[kind]
    await app.reconcile_until("Suspended", component(app, kind, case.spec, suspended=True))
    assert fields_of(await app.find(kind.gvk, "web"), case.asleep) == case.asleep


async def wait_for_message(app: ComponentHarness, of: Component, *texts: str) -> Condition:
    """Passes until the condition's message has these texts."""

    async def read_matching() -> Condition:
        condition = await app.reconcile(of)
        for text in texts:
            assert text in condition.message
        return condition

    return await app.cluster.eventually(read_matching, describe=f"the message has {texts}")


async def test_a_pod_that_crashes_fails(app: ComponentHarness) -> None:
    condition = await app.reconcile_until("Failing", component(app, Pod, pod_spec(FAILING_IMAGE)))
    assert condition.message == "Container main is in CrashLoopBackOff"


async def test_a_pod_that_does_not_start_says_why(app: ComponentHarness) -> None:
    condition = await wait_for_message(app, component(app, Pod, pod_spec(NEVER_READY_IMAGE)), "ImagePullBackOff")
    assert condition.reason == "Creating"


async def test_a_job_that_fails_says_why(app: ComponentHarness) -> None:
    condition = await app.reconcile_until("TaskFailing", component(app, Job, task(FAILING_IMAGE, backoffLimit=0)))
    assert condition.message == "Job failed: Job has reached the specified backoff limit"


async def test_a_job_that_runs_says_so_and_is_stopped_before_it_is_deleted(app: ComponentHarness) -> None:
    running = await app.reconcile_until("TaskRunning", component(app, Job, task(NEVER_READY_IMAGE)))
    await app.reconcile_until("Suspended", component(app, Job, task(NEVER_READY_IMAGE), suspended=True))
    await app.wait_until_gone(Job.gvk, "web")
    assert running.message == "Job has 1 active pod(s)"


async def test_a_pod_that_fits_no_node_says_so(app: ComponentHarness) -> None:
    nowhere = component(app, Pod, pod_spec(nodeSelector={"no": "where"}))
    condition = await wait_for_message(
        app, nowhere, "Waiting for pod to run: phase is Pending (Unschedulable: 0/1 nodes "
    )
    assert condition.reason == "Creating"


def daemons(app: ComponentHarness, image: str, **strategy: Any) -> Component:
    return component(app, DaemonSet, build_spec(image, updateStrategy=strategy) if strategy else build_spec(image))


async def test_a_daemon_set_is_healthy_only_when_its_rollout_is_finished(app: ComponentHarness) -> None:
    await app.reconcile_until("Healthy", daemons(app, IMAGE))
    changed = await app.reconcile(daemons(app, "konverge.test/app:2"))
    await app.reconcile_until("Healthy", daemons(app, "konverge.test/app:2"))
    rolled_out = await app.find(DaemonSet.gvk, "web")

    assert (changed.status, changed.reason) == ("False", "Updating")
    assert rolled_out is not None
    assert rolled_out["status"]["updatedNumberScheduled"] == 1
    assert rolled_out["status"]["observedGeneration"] == 2


async def test_a_daemon_set_that_is_updated_on_delete_does_not_wait_for_it(app: ComponentHarness) -> None:
    """And a live one can be made so, whatever the server filled in: a StatefulSet cannot."""
    await app.reconcile_until("Healthy", daemons(app, IMAGE))
    await app.reconcile_until("Healthy", daemons(app, "konverge.test/app:2", type="OnDelete"))
    held = await app.find(DaemonSet.gvk, "web")

    assert held is not None
    assert held["status"]["observedGeneration"] == 2
    assert held["status"].get("updatedNumberScheduled", 0) == 0


async def test_a_daemon_set_without_nodes_is_healthy(app: ComponentHarness) -> None:
    nowhere = build_spec()
    nowhere["template"]["spec"]["nodeSelector"] = {"no": "where"}
    condition = await app.reconcile_until("Healthy", component(app, DaemonSet, nowhere))
    assert condition.status == "True"


async def test_a_deployment_whose_deadline_is_over_says_so(app: ComponentHarness) -> None:
    late = component(app, Deployment, build_spec(NEVER_READY_IMAGE, progressDeadlineSeconds=1))
    condition = await wait_for_message(
        app, late, "Waiting for replicas: 0/1 ready (ProgressDeadlineExceeded: ReplicaSet "
    )
    assert condition.reason == "Creating"


# The embedded cluster enforces no quotas.
@pytest.mark.parametrize("cluster_kind", [pytest.param("real", marks=pytest.mark.real)])
@pytest.mark.parametrize("kind", [Deployment, ReplicaSet], ids=lambda kind: kind.__name__)
async def test_replicas_that_a_quota_forbids_are_told_with_the_reason(
    app: ComponentHarness, kind: type[Primitive[Any]]
) -> None:
    quota = {"apiVersion": "v1", "kind": "ResourceQuota", "spec": {"hard": {"pods": "1"}}}
    await app.cluster.client.create({**quota, "metadata": {"name": "few", "namespace": app.key.namespace}})

    async def counted() -> bool:
        quotas = await app.cluster.client.list(RESOURCE_QUOTA, namespace=app.key.namespace)
        return "used" in quotas.items[0].get("status", {})

    await app.cluster.eventually(counted, describe="the quota counts")
    web = component(app, kind, build_spec(replicas=2))
    condition = await wait_for_message(app, web, "Waiting for replicas: 1/2 ready (FailedCreate: pods ", "quota: few")

    assert await app.list_steady_writes(web) == []
    assert await app.condition(condition.type) == condition


@pytest.mark.parametrize(("kind", "variant"), WORKLOADS)
async def test_one_apply_is_all_that_it_takes(app: ComponentHarness, kind: str, variant: str) -> None:
    """While its controllers work on it, too, and with a restart before each pass."""
    of_kind: type[Primitive[Any]] = getattr(primitives, kind)
    content = build_contents(app.key.namespace, app.cluster.name, 77)[kind][variant]
    rich = component(app, of_kind, content["spec"])

    async def settled() -> bool:
        before = len(app.writes())
        app.memory = AppliedCache()
        await app.reconcile(rich)
        return app.writes()[before:] == []

    await app.cluster.eventually(settled, describe="a pass after a restart writes nothing")
    assert [entry.verb for entry in app.writes() if entry.path.endswith("/web")] == ["patch"]
