"""A Pod's health, grace and suspension, by the situations that a cluster shows."""

from __future__ import annotations

from typing import Any

import pytest

from konverge.kube import Object
from konverge.mutation import Mutation
from konverge.primitives import (
    Convergence,
    ConvergingStatus,
    Grace,
    GraceStatus,
    Operation,
    Pod,
    PodMutator,
    Suspension,
    SuspensionStatus,
)
from tests.primitives.objects import build_named

CREATED, UPDATED, NONE = Operation.CREATED, Operation.UPDATED, Operation.NONE
CREATING, UPDATING, FAILING, HEALTHY = (
    ConvergingStatus.CREATING,
    ConvergingStatus.UPDATING,
    ConvergingStatus.FAILING,
    ConvergingStatus.HEALTHY,
)


def live(phase: str, *containers: Object, **status: Any) -> Object:
    """A Pod as the server has it."""
    return {"status": {"phase": phase, "containerStatuses": list(containers), **status}}


def container(name: str = "app", *, ready: bool = False, **state: Any) -> Object:
    """What a kubelet says of a container."""
    return {"name": name, "ready": ready, "state": state or {"running": {"startedAt": "2026-11-22T00:00:00Z"}}}


def waiting(reason: str, name: str = "app") -> Object:
    return container(name, waiting={"reason": reason, "message": "back-off 10s restarting failed container"})


def build_exited_status(code: int, name: str = "app") -> Object:
    return container(name, terminated={"exitCode": code})


UNSCHEDULABLE = live(
    "Pending",
    conditions=[
        {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/1 nodes are available"}
    ],
)
NOT_PULLED = live("Pending", waiting("ImagePullBackOff"))
INITIALIZING = live("Pending", waiting("PodInitializing"), initContainerStatuses=[container("setup")])
PARTLY_READY = live("Running", container(ready=True), container("proxy"))
CRASHING = live("Running", waiting("CrashLoopBackOff"))
JUST_CRASHED = live("Running", build_exited_status(137), container("proxy", ready=True))
INIT_CRASHING = live(
    "Pending", waiting("PodInitializing"), initContainerStatuses=[waiting("CrashLoopBackOff", "setup")]
)
SIDECAR_CRASHING = live("Running", container(ready=True), initContainerStatuses=[waiting("CrashLoopBackOff", "mesh")])
EVICTED = live("Failed", reason="Evicted")
FINISHED = live("Succeeded", build_exited_status(0))
NO_CONTAINERS = live("Running")
RESTARTED = live("Running", {**container(ready=True), "lastState": {"terminated": {"exitCode": 1}}})
READY = live("Running", container(ready=True), initContainerStatuses=[build_exited_status(0, "setup")])


@pytest.mark.parametrize(
    ("found", "operation", "status", "reason"),
    [
        pytest.param({}, CREATED, CREATING, "Waiting for pod to run: phase is Pending", id="created"),
        pytest.param(
            UNSCHEDULABLE,
            NONE,
            CREATING,
            "Waiting for pod to run: phase is Pending (Unschedulable: 0/1 nodes are available)",
            id="unschedulable",
        ),
        pytest.param(
            NOT_PULLED,
            NONE,
            CREATING,
            "Waiting for pod to run: phase is Pending (app: ImagePullBackOff)",
            id="image not pulled",
        ),
        pytest.param(
            INITIALIZING,
            NONE,
            CREATING,
            "Waiting for pod to run: phase is Pending (app: PodInitializing)",
            id="initializing",
        ),
        pytest.param(PARTLY_READY, NONE, CREATING, "Waiting for containers: 1/2 ready", id="partly ready"),
        pytest.param(PARTLY_READY, UPDATED, UPDATING, "Waiting for containers: 1/2 ready", id="partly ready, updated"),
        pytest.param(NO_CONTAINERS, NONE, CREATING, "Waiting for containers: 0/0 ready", id="no container reported"),
        pytest.param(CRASHING, NONE, FAILING, "Container app is in CrashLoopBackOff", id="crashing"),
        pytest.param(CRASHING, UPDATED, FAILING, "Container app is in CrashLoopBackOff", id="crashing, updated"),
        pytest.param(JUST_CRASHED, NONE, FAILING, "Container app terminated with exit code 137", id="just crashed"),
        pytest.param(INIT_CRASHING, NONE, FAILING, "Container setup is in CrashLoopBackOff", id="init crashing"),
        pytest.param(SIDECAR_CRASHING, NONE, FAILING, "Container mesh is in CrashLoopBackOff", id="sidecar crashing"),
        pytest.param(EVICTED, NONE, CREATING, "Waiting for pod to run: phase is Failed (Evicted)", id="evicted"),
        pytest.param(FINISHED, NONE, CREATING, "Waiting for pod to run: phase is Succeeded", id="finished"),
        pytest.param(RESTARTED, NONE, HEALTHY, "Pod is ready", id="an earlier crash does not count"),
        pytest.param(READY, CREATED, HEALTHY, "Pod is ready", id="ready"),
    ],
)
def test_health(found: Object, operation: Operation, status: ConvergingStatus, reason: str) -> None:
    assert Pod(build_named()).converging_status(found, operation) == Convergence(status, reason)


@pytest.mark.parametrize(
    ("found", "status", "reason"),
    [
        pytest.param({}, GraceStatus.DOWN, "Waiting for pod to run: phase is Pending", id="created"),
        pytest.param(EVICTED, GraceStatus.DOWN, "Waiting for pod to run: phase is Failed (Evicted)", id="evicted"),
        pytest.param(INIT_CRASHING, GraceStatus.DOWN, "Container setup is in CrashLoopBackOff", id="init crashing"),
        pytest.param(PARTLY_READY, GraceStatus.DEGRADED, "Waiting for containers: 1/2 ready", id="partly ready"),
        pytest.param(CRASHING, GraceStatus.DEGRADED, "Container app is in CrashLoopBackOff", id="crashing"),
        pytest.param(
            SIDECAR_CRASHING, GraceStatus.DEGRADED, "Container mesh is in CrashLoopBackOff", id="sidecar crashing"
        ),
        pytest.param(READY, GraceStatus.HEALTHY, "Pod is ready", id="ready"),
    ],
)
def test_grace(found: Object, status: GraceStatus, reason: str) -> None:
    assert Pod(build_named()).grace_status(found) == Grace(status, reason)


def test_suspension_deletes_it_at_once() -> None:
    pod = Pod(build_named())
    assert pod.deletes_on_suspend
    assert pod.render(suspended=True) == pod.render()
    assert pod.suspension_status(READY) == Suspension(SuspensionStatus.SUSPENDED, "Pod deleted on suspend")


def test_the_spec_itself_is_the_pod_s() -> None:
    def shape(m: PodMutator) -> None:
        m.ensure_container({"name": "app"})
        m.ensure_container_env_var({"name": "MODE", "value": "fast"})
        m.ensure_init_container({"name": "setup"})
        m.edit_pod_spec(lambda spec: spec.set(serviceAccountName="web"))
        m.edit_object_metadata(lambda metadata: metadata.ensure_label("app", "web"))

    desired = Pod(build_named(), mutations=Mutation("shape", shape)).render()
    assert desired["metadata"]["labels"] == {"app": "web"}
    assert desired["spec"] == {
        "containers": [{"name": "app", "env": [{"name": "MODE", "value": "fast"}]}],
        "initContainers": [{"name": "setup"}],
        "serviceAccountName": "web",
    }
