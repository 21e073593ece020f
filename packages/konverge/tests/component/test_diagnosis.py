"""The causes of a late component: its pods, claims and events, on both clusters."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import msgspec
import pytest

from konverge._internal.client.object_list import ListPage
from konverge.component import Component, ComponentBuilder, Diagnosis
from konverge.dry_run import DryRun, DryRunReport, dry_run_component
from konverge.errors import ConnectionFailedError, ForbiddenError
from konverge.guards import blocked
from konverge.kube import GroupVersionKind, Object, ObjectKey, format_time
from konverge.primitives import ConfigMap, DaemonSet, Deployment, Job, Pod, Primitive, ReplicaSet, StatefulSet
from tests.component.app import AGENT, SECRET, ComponentHarness, LaterClock

pytestmark = pytest.mark.anyio

EVENT = GroupVersionKind("events.k8s.io", "v1", "Event")
NEVER_READY = "konverge.test/never-ready:1"
FAILING = "konverge.test/failing:1"


@pytest.fixture
def late(app: ComponentHarness) -> ComponentHarness:
    """The owner, whose reconciles examine what is late."""
    app.diagnosis = Diagnosis(app.client, clock=app.clock)
    return app


def pass_time(app: ComponentHarness, seconds: float) -> None:
    app.clock = LaterClock(app.cluster.clock, timedelta(seconds=seconds))
    app.diagnosis = Diagnosis(app.client, clock=app.clock)


def frontend(*resources: Primitive[Any], grace: float = 0) -> Component:
    builder = ComponentBuilder("frontend", condition_type="FrontendReady")
    for resource in resources:
        builder.with_resource(resource)
    return builder.with_grace_period(timedelta(seconds=grace)).build()


def build_stateful_set(app: ComponentHarness, **spec: Any) -> Object:
    obj = app.build_deployment()
    obj["spec"] |= {"serviceName": "web", **spec}
    return obj


def list_reads(app: ComponentHarness) -> list[str]:
    """The reads of pods, claims and events so far."""
    kinds = ("/pods", "/persistentvolumeclaims", "/events")
    requests = app.cluster.list_requests(AGENT)
    return [f"{entry.verb} {entry.path}" for entry in requests if any(kind in entry.path for kind in kinds)]


async def wait_for_message(app: ComponentHarness, component: Component, holds: Callable[[str], bool]) -> str:
    """Reconcile a minute later, until the condition's message says why."""
    await app.reconcile(component)
    ahead = 60.0

    async def attempt() -> str | None:
        nonlocal ahead
        ahead += 1
        pass_time(app, ahead)
        message = (await app.reconcile(component)).message
        return message if holds(message) else None

    return await app.cluster.eventually(attempt, describe="the message has the cause")


async def test_a_late_deployment_names_the_image_that_cannot_be_pulled(late: ComponentHarness) -> None:
    component = frontend(Deployment(late.build_deployment(image=NEVER_READY, replicas=2)))

    message = await wait_for_message(late, component, lambda text: "and 1 more" in text)

    assert message.startswith("Waiting for replicas: 0/2 ready (Pod web-")
    assert f'container main: ImagePullBackOff, image "{NEVER_READY}"' in message


async def test_a_late_deployment_names_the_exit_code_of_a_crash_loop(late: ComponentHarness) -> None:
    component = frontend(Deployment(late.build_deployment(image=FAILING)))

    message = await wait_for_message(late, component, lambda text: "Pod web-" in text)

    assert message.endswith("container main: CrashLoopBackOff, last exit code 1 (Error))")


@pytest.mark.parametrize("kind", [StatefulSet, DaemonSet, ReplicaSet, Job], ids=lambda kind: kind.__name__)
async def test_each_kind_of_workload_names_the_cause(late: ComponentHarness, kind: Any) -> None:
    obj = late.build_deployment(image=NEVER_READY)
    if kind in (DaemonSet, Job):
        del obj["spec"]["replicas"]
    if kind is Job:
        del obj["spec"]["selector"]
        obj["spec"]["template"]["spec"]["restartPolicy"] = "Never"

    message = await wait_for_message(late, frontend(kind(obj)), lambda text: "ImagePullBackOff" in text)

    assert "(Pod web-" in message


async def test_a_pod_of_its_own_names_its_exit_code(late: ComponentHarness) -> None:
    obj = late.build_deployment(image=FAILING)
    pod = Pod({"metadata": obj["metadata"], "spec": obj["spec"]["template"]["spec"]})

    message = await wait_for_message(late, frontend(pod), lambda text: "exit code" in text)

    assert message == (
        "Container main is in CrashLoopBackOff (container main: CrashLoopBackOff, last exit code 1 (Error))"
    )


async def test_a_late_stateful_set_names_why_its_pod_has_no_node(late: ComponentHarness) -> None:
    obj = build_stateful_set(late)
    obj["spec"]["template"]["spec"]["nodeSelector"] = {"disk": "none"}

    message = await wait_for_message(late, frontend(StatefulSet(obj)), lambda text: "Unschedulable" in text)

    assert "(Pod web-0: Unschedulable: 0/1 nodes are available" in message
    assert "didn't match Pod's node affinity/selector" in message


async def test_a_pod_that_waits_for_a_claim_names_the_claim(late: ComponentHarness) -> None:
    obj = build_stateful_set(late)
    volume = {"name": "data", "persistentVolumeClaim": {"claimName": "archive"}}
    obj["spec"]["template"]["spec"]["volumes"] = [volume]

    message = await wait_for_message(late, frontend(StatefulSet(obj)), lambda text: "does not exist" in text)

    assert 'persistentvolumeclaim "archive" not found' in message
    assert message.endswith("PersistentVolumeClaim archive does not exist)")


async def test_an_unbound_claim_shows_its_event(late: ComponentHarness) -> None:
    resources = {"requests": {"storage": "1Gi"}}
    claim = {"accessModes": ["ReadWriteOnce"], "storageClassName": "none", "resources": resources}
    obj = {"metadata": {"name": "archive", "namespace": late.key.namespace}, "spec": claim}
    live = await late.cluster.client.create({"apiVersion": "v1", "kind": "PersistentVolumeClaim", **obj})
    await record_event(late, live, "ProvisioningFailed", 'storageclass.storage.k8s.io "none" not found')
    assert late.diagnosis is not None

    causes = await late.diagnosis.examine(live | {"status": {"phase": "Pending"}})

    assert causes == ('ProvisioningFailed: storageclass.storage.k8s.io "none" not found',)


async def test_a_stateful_set_without_pods_shows_why_none_is_created(late: ComponentHarness) -> None:
    live = await late.cluster.client.create(
        {"apiVersion": "apps/v1", "kind": "StatefulSet", **build_stateful_set(late, replicas=0)}
    )
    note = 'create Pod web-0 in StatefulSet web failed error: pods "web-0" is forbidden: exceeded quota: none'
    await record_event(late, live, "FailedCreate", note)
    assert late.diagnosis is not None

    assert await late.diagnosis.examine(live) == (f"FailedCreate: {note}",)


@pytest.mark.parametrize("cluster_kind", [pytest.param("real", marks=pytest.mark.real)])
async def test_an_unbound_claim_of_the_real_server_is_the_cause_of_a_late_stateful_set(late: ComponentHarness) -> None:
    resources = {"requests": {"storage": "1Gi"}}
    claim = {"accessModes": ["ReadWriteOnce"], "storageClassName": "none", "resources": resources}
    obj = build_stateful_set(late, volumeClaimTemplates=[{"metadata": {"name": "data"}, "spec": claim}])

    message = await wait_for_message(late, frontend(StatefulSet(obj)), lambda text: "ProvisioningFailed" in text)

    assert "unbound immediate PersistentVolumeClaims" in message
    assert "PersistentVolumeClaim data-web-0 is not bound (phase Pending): ProvisioningFailed: " in message
    assert 'storageclass.storage.k8s.io "none" not found' in message


@pytest.mark.parametrize("cluster_kind", [pytest.param("real", marks=pytest.mark.real)])
async def test_a_quota_of_the_real_server_is_the_cause_of_a_late_stateful_set(late: ComponentHarness) -> None:
    quota = {"metadata": {"name": "none", "namespace": late.key.namespace}, "spec": {"hard": {"pods": "0"}}}
    await late.cluster.client.create({"apiVersion": "v1", "kind": "ResourceQuota", **quota})
    component = frontend(StatefulSet(build_stateful_set(late)))

    message = await wait_for_message(late, component, lambda text: "quota" in text)

    assert "(FailedCreate: Create Pod web-0 in StatefulSet web failed error" in message
    assert "exceeded quota: none" in message


async def record_event(app: ComponentHarness, regarding: Object, reason: str, note: str) -> None:
    """Record a Warning event, as a controller of the cluster does."""
    now = format_time(app.clock.now())
    await app.cluster.client.create(
        {
            "apiVersion": EVENT.api_version,
            "kind": EVENT.kind,
            "metadata": {"name": f"{regarding['metadata']['name']}.{reason.lower()}", "namespace": app.key.namespace},
            "eventTime": f"{now[:-1]}.000000Z",
            "reportingController": "konverge.test/controller",
            "reportingInstance": "controller-1",
            "action": "Create",
            "type": "Warning",
            "reason": reason,
            "note": note,
            "regarding": {
                "apiVersion": regarding["apiVersion"],
                "kind": regarding["kind"],
                "namespace": app.key.namespace,
                "name": regarding["metadata"]["name"],
                "uid": regarding["metadata"]["uid"],
            },
        }
    )


async def test_a_component_that_is_ready_or_not_late_costs_no_read(late: ComponentHarness) -> None:
    ready = frontend(Deployment(late.build_deployment()))
    await late.reconcile_until("Healthy", ready)
    pass_time(late, 3600)
    await late.reconcile(ready)
    assert list_reads(late) == []

    await late.reconcile(frontend(Deployment(late.build_deployment(image=NEVER_READY))))
    assert list_reads(late) == []
    assert late.wake_after is not None
    assert timedelta(seconds=14) <= late.wake_after <= timedelta(seconds=15)


async def test_an_examination_has_few_requests_and_is_not_repeated_at_once(late: ComponentHarness) -> None:
    component = frontend(Deployment(late.build_deployment(image=NEVER_READY, replicas=5)))
    message = await wait_for_message(late, component, lambda text: "and 4 more" in text)
    before = len(list_reads(late))

    again = await late.reconcile(component)

    assert (again.message, len(list_reads(late))) == (message, before)
    pass_time(late, 1000)
    await late.reconcile(component)
    assert len(list_reads(late)) == before + 1
    assert late.wake_after is not None
    assert late.wake_after > timedelta(minutes=10)


async def test_the_same_cause_writes_no_status_again(late: ComponentHarness) -> None:
    component = frontend(Deployment(late.build_deployment(image=FAILING)))
    await wait_for_message(late, component, lambda text: "Pod web-" in text)
    assert await late.list_steady_writes(component) == []


async def test_the_grade_after_the_grace_period_has_the_cause(late: ComponentHarness) -> None:
    component = frontend(Deployment(late.build_deployment(image=NEVER_READY)), grace=30)

    message = await wait_for_message(late, component, lambda text: "ImagePullBackOff" in text)

    assert message.startswith("Component is down: No replicas are ready (Pod web-")


async def test_the_message_of_a_blocked_component_is_the_reason_of_its_guard_alone(late: ComponentHarness) -> None:
    component = frontend(
        Deployment(late.build_deployment(image=NEVER_READY)),
        ConfigMap(late.build_config_map(), guard=lambda _: blocked("waiting for web")),
    )
    await late.reconcile(component)
    pass_time(late, 60)

    assert (await late.reconcile(component)).message == "waiting for web"
    assert list_reads(late) == []


async def test_the_value_of_a_secret_in_an_event_is_hidden(late: ComponentHarness) -> None:
    secret = {"metadata": {"name": "access", "namespace": late.key.namespace}, "stringData": {"token": "hunter2-horse"}}
    await late.cluster.client.create({"apiVersion": "v1", "kind": "Secret", **secret})
    await late.client.get(SECRET, ObjectKey(late.key.namespace, "access"))
    component = frontend(Deployment(late.build_deployment(image=NEVER_READY)))
    await late.reconcile(component)
    pass_time(late, 60)
    event = {"metadata": {}, "reason": "FailedMount", "note": "login with hunter2-horse failed"}
    event["eventTime"] = format_time(late.clock.now())
    late.diagnosis = Diagnosis(PodServer([], [event]), clock=late.clock)

    message = (await late.reconcile(component)).message

    assert message.endswith("(FailedMount: login with *** failed)")


class RefusingReader:
    """A server that refuses every list."""

    def __init__(self, error: Exception) -> None:
        self.error = error
        self.requests = 0

    async def get(self, gvk: GroupVersionKind, key: ObjectKey) -> Object:
        raise self.error

    async def list_page(self, gvk: GroupVersionKind, **options: Any) -> ListPage:
        self.requests += 1
        raise self.error


@pytest.mark.parametrize("error", [ForbiddenError("pods is forbidden"), ConnectionFailedError("no answer")])
async def test_an_examination_that_the_server_refuses_leaves_the_condition_as_it_is(
    late: ComponentHarness, error: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    component = frontend(Deployment(late.build_deployment(image=NEVER_READY)))
    await late.reconcile(component)
    pass_time(late, 60)
    reader = RefusingReader(error)
    late.diagnosis = Diagnosis(reader, clock=late.clock)

    with caplog.at_level(logging.INFO, "konverge.component"):
        message = (await late.reconcile(component)).message

    assert message.startswith("Waiting for ")
    assert ("(" in message, reader.requests) == (False, 1)
    assert ("--no-diagnosis" in caplog.text) is isinstance(error, ForbiddenError)


async def test_a_failed_examination_keeps_the_causes_of_the_one_before(app: ComponentHarness) -> None:
    clock = LaterClock(app.cluster.clock)
    server = PodServer([build_pod(reason="Evicted")], [])
    diagnosis = Diagnosis(server, clock=clock)
    causes = await diagnosis.examine(LIVE)
    assert causes == ("Pod web-1: Evicted",)

    server.error = ConnectionFailedError("no answer")
    clock.ahead = timedelta(minutes=1)
    assert await diagnosis.examine(LIVE) == causes

    server.error, server.pods = None, []
    clock.ahead = timedelta(minutes=2)
    assert await diagnosis.examine(LIVE) == ()


class HangingReader(RefusingReader):
    """A server that does not answer."""

    async def list_page(self, gvk: GroupVersionKind, **options: Any) -> ListPage:
        await asyncio.Event().wait()
        raise AssertionError


async def test_a_server_that_does_not_answer_delays_a_reconcile_for_five_seconds_at_most(app: ComponentHarness) -> None:
    diagnosis = Diagnosis(HangingReader(ValueError()), clock=app.clock)
    start = app.clock.monotonic()

    assert await diagnosis.examine(LIVE) == ()
    assert 4.9 < app.clock.monotonic() - start < 7.0


async def test_a_missing_permission_is_logged_once(app: ComponentHarness, caplog: pytest.LogCaptureFixture) -> None:
    diagnosis = Diagnosis(RefusingReader(ForbiddenError("pods is forbidden")), clock=app.clock)

    with caplog.at_level(logging.INFO, "konverge.component"):
        for uid in ("1", "2", "3"):
            await diagnosis.examine({**LIVE, "metadata": {**LIVE["metadata"], "uid": uid}})

    assert len(caplog.records) == 1


class PodServer:
    """A server with these pods and events, for states that no test cluster has."""

    def __init__(self, pods: list[Object], events: list[Object]) -> None:
        self.pods = pods
        self.events = events
        self.error: Exception | None = None

    async def get(self, gvk: GroupVersionKind, key: ObjectKey) -> Object:
        raise NotImplementedError

    async def list_page(self, gvk: GroupVersionKind, **options: Any) -> ListPage:
        if self.error is not None:
            raise self.error
        found = self.events if gvk == EVENT else self.pods
        return ListPage([msgspec.Raw(msgspec.json.encode(obj)) for obj in found], "1", "")


def build_pod(name: str = "web-1", **status: Any) -> Object:
    controller = {"kind": "ReplicaSet", "name": "web-7d", "uid": "2", "controller": True}
    metadata = {"name": name, "namespace": "shop", "uid": name, "ownerReferences": [controller]}
    return {"metadata": metadata, "spec": {}, "status": {"phase": "Pending", **status}}


LIVE: Object = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "web", "namespace": "shop", "uid": "1"},
    "spec": {"selector": {"matchLabels": {"app": "web"}}},
}


async def test_a_pod_without_a_cause_in_its_status_shows_its_latest_event(app: ComponentHarness) -> None:
    now = app.clock.now()

    def build_event(reason: str, note: str, ago: float) -> Object:
        return {"metadata": {}, "reason": reason, "note": note, "eventTime": format_time(now - timedelta(seconds=ago))}

    events = [
        build_event("FailedMount", 'configmap "settings" not found', 60),
        build_event("FailedScheduling", "no nodes", 5),
        build_event("Killing", "an event of long ago", 7200),
        {"metadata": {}, "reason": "FailedMount", "note": "without a time"},
    ]
    diagnosis = Diagnosis(PodServer([build_pod()], events), clock=app.clock)

    assert await diagnosis.examine(LIVE) == ('Pod web-1: FailedMount: configmap "settings" not found',)


async def test_pods_of_other_workloads_and_deleted_objects_are_no_cause(app: ComponentHarness) -> None:
    stranger = build_pod("other", reason="Evicted")
    stranger["metadata"]["ownerReferences"][0]["name"] = "webshop-7d"
    going = build_pod("going")
    going["metadata"]["deletionTimestamp"] = format_time(app.clock.now())
    diagnosis = Diagnosis(PodServer([stranger, going], []), clock=app.clock)

    assert await diagnosis.examine(LIVE) == ()
    assert await diagnosis.examine({**LIVE, "metadata": {"name": "web"}}) == ()


@pytest.mark.parametrize(
    "broken",
    [{}, {"metadata": 3}, {"metadata": {"name": None}}, {"metadata": {"name": "web-1"}, "status": [], "spec": 4}],
)
async def test_an_object_of_any_form_is_examined_without_an_error(app: ComponentHarness, broken: Object) -> None:
    diagnosis = Diagnosis(PodServer([broken], [broken]), clock=app.clock)
    for kind in ("Deployment", "StatefulSet"):
        assert await diagnosis.examine({**LIVE, "kind": kind}) == ()


async def test_a_dry_run_shows_the_cause_before_the_component_is_late(app: ComponentHarness) -> None:
    component = frontend(Deployment(app.build_deployment(image=NEVER_READY)))
    await app.reconcile(component)

    async def explained() -> DryRunReport | None:
        owner, diagnosis = await app.owner(), Diagnosis(app.client, clock=app.clock)
        report = await dry_run_component(component, app.client, owner, clock=app.clock, diagnosis=diagnosis)
        return report if report.resources[0].causes else None

    report = await app.cluster.eventually(explained, describe="the pod has a status")

    (cause,) = report.resources[0].causes
    assert "container main: ImagePullBackOff" in cause
    assert report.after is not None
    assert "ImagePullBackOff" not in report.after.message


async def test_a_dry_run_names_a_missing_permission(app: ComponentHarness) -> None:
    component = frontend(Deployment(app.build_deployment(image=NEVER_READY)))
    await app.reconcile(component)
    diagnosis = Diagnosis(RefusingReader(ForbiddenError("pods is forbidden")), clock=app.clock)
    dry_run = DryRun(app.client, await app.owner(), clock=app.clock, diagnosis=diagnosis)

    await component.reconcile(dry_run.create_context())

    causes = dry_run.reports[0].resources[0].causes
    assert causes == ("its pods and events cannot be examined: pods is forbidden",)
