"""Each kind outside workloads, in a separate component, becomes ready, is suspended and resumes."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from typing import Any

import pytest

from konverge.component import Component, ComponentBuilder
from konverge.errors import ConflictError, NotFoundError, ReconcileError
from konverge.kube import Condition, Object
from konverge.options import delete
from konverge.primitives import (
    ClusterRole,
    ClusterRoleBinding,
    HorizontalPodAutoscaler,
    Ingress,
    NetworkPolicy,
    PersistentVolume,
    PersistentVolumeClaim,
    PodDisruptionBudget,
    Primitive,
    Role,
    RoleBinding,
    ServiceAccount,
)
from tests.component.app import ComponentHarness

pytestmark = pytest.mark.anyio

RBAC = "rbac.authorization.k8s.io"
READ = {"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}
BACKEND = {"service": {"name": "web", "port": {"number": 80}}}


def autoscaler_conditions(active: str) -> Object:
    moment = "2026-01-01T00:00:00Z"
    found = {"type": "ScalingActive", "status": active, "lastTransitionTime": moment, "reason": "Tested"}
    return {"desiredReplicas": 1, "currentMetrics": None, "conditions": [{**found, "message": "as the test says"}]}


@dataclass(frozen=True)
class Case:
    """A kind with what is desired, and what the controllers say of it that are not in the cluster.

    Args:
        kind: The primitive's class.
        content: The desired object without its metadata.
        ready: The reason of the component's condition when it is ready.
        late: The one before, where the outside has to do something.
        status: What that does; None for nothing.
        stays: Suspension leaves it in place.
    """

    kind: Callable[[Object], Primitive[Any]]
    content: Object
    ready: str = "Healthy"
    late: str = ""
    status: Object | None = None
    stays: bool = True

    def primitive(self, app: ComponentHarness) -> Primitive[Any]:
        if getattr(self.kind, "is_cluster_scoped", False):
            return self.kind({"metadata": {"name": f"web-{app.key.namespace}"}, **self.content})
        return self.kind({"metadata": {"name": "web", "namespace": app.key.namespace}, **self.content})


CASES = {
    "Ingress": Case(
        Ingress,
        {"spec": {"defaultBackend": BACKEND}},
        ready="Operational",
        late="OperationPending",
        status={"loadBalancer": {"ingress": [{"ip": "192.0.2.1"}]}},
    ),
    "PersistentVolume": Case(
        PersistentVolume,
        {
            "spec": {
                "capacity": {"storage": "1Gi"},
                "accessModes": ["ReadWriteOnce"],
                "storageClassName": "none",
                "hostPath": {"path": "/x"},
            }
        },
        ready="Operational",
        late="OperationPending",
        status={"phase": "Available"},
    ),
    "HorizontalPodAutoscaler": Case(
        HorizontalPodAutoscaler,
        {"spec": {"maxReplicas": 3, "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}}},
        ready="Operational",
        late="OperationPending",
        status=autoscaler_conditions("True"),
        stays=False,
    ),
    "ServiceAccount": Case(ServiceAccount, {"automountServiceAccountToken": False}),
    "Role": Case(Role, {"rules": [READ]}),
    "ClusterRole": Case(ClusterRole, {"rules": [READ]}),
    "RoleBinding": Case(RoleBinding, {"roleRef": {"apiGroup": RBAC, "kind": "Role", "name": "web"}}),
    "ClusterRoleBinding": Case(ClusterRoleBinding, {"roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": "w"}}),
    "PodDisruptionBudget": Case(PodDisruptionBudget, {"spec": {"maxUnavailable": "50%"}}),
    "NetworkPolicy": Case(NetworkPolicy, {"spec": {"podSelector": {}}}),
}


@pytest.fixture
async def leftovers(app: ComponentHarness) -> AsyncIterator[list[Primitive[Any]]]:
    """The objects to delete at the end: those of a namespaced owner outside its namespace are not collected."""
    listed: list[Primitive[Any]] = []
    yield listed
    for primitive in listed:
        await app.reconcile(component_of(primitive, options=(delete(),)))


def component_of(*primitives: Primitive[Any], options: tuple[Any, ...] = (), suspended: bool = False) -> Component:
    builder = ComponentBuilder("web", condition_type="WebReady")
    for primitive in primitives:
        builder = builder.with_resource(primitive, *options)
    return builder.suspend(suspended).build()


async def say(app: ComponentHarness, primitive: Primitive[Any], status: Object | None) -> None:
    """Write an object's status as its absent controller would; a present one may be quicker."""
    if status is None:
        return
    with contextlib.suppress(NotFoundError, ConflictError):
        live = await app.cluster.client.get(primitive.gvk, primitive.key)
        await app.cluster.client.update({**live, "status": status}, subresource="status")


async def until(
    app: ComponentHarness, reason: str, component: Component, primitive: Primitive[Any], status: Object | None
) -> Condition:
    """Passes until the condition has that reason, with the absent controller's word before each."""

    async def attempt() -> Condition | None:
        await say(app, primitive, status)
        condition = await app.reconcile(component)
        return condition if condition.reason == reason else None

    return await app.cluster.eventually(attempt, describe=f"the condition becomes {reason}")


async def is_there(app: ComponentHarness, primitive: Primitive[Any]) -> bool:
    try:
        await app.client.get(primitive.gvk, primitive.key)
    except NotFoundError:
        return False
    return True


@pytest.mark.parametrize("name", CASES)
async def test_it_becomes_ready_is_suspended_and_resumes(
    app: ComponentHarness, leftovers: list[Primitive[Any]], name: str
) -> None:
    case = CASES[name]
    primitive = case.primitive(app)
    leftovers.append(primitive)
    component = component_of(primitive)

    first = await app.reconcile(component)
    ready = await until(app, case.ready, component, primitive, case.status)
    suspended = await until(app, "Suspended", component_of(primitive, suspended=True), primitive, None)
    stayed = await is_there(app, primitive)
    resumed = await until(app, case.ready, component, primitive, case.status)

    assert first.reason == (case.late or case.ready)
    assert (ready.status, suspended.status, resumed.status) == ("True", "True", "True")
    assert stayed is case.stays
    assert await is_there(app, primitive)


def volume_and_claim(app: ComponentHarness) -> tuple[PersistentVolume, PersistentVolumeClaim]:
    """A volume, and a claim that asks for just this one."""
    name = f"disk-{app.key.namespace}"
    shared: Object = {"accessModes": ["ReadWriteOnce"]}
    volume = {**shared, "storageClassName": "", "capacity": {"storage": "1Gi"}, "hostPath": {"path": "/x"}}
    claim = {**shared, "storageClassName": "", "volumeName": name}
    return (
        PersistentVolume({"metadata": {"name": name}, "spec": volume}),
        PersistentVolumeClaim(
            {
                "metadata": {"name": "data", "namespace": app.key.namespace},
                "spec": {**claim, "resources": {"requests": {"storage": "1024Mi"}}},
            }
        ),
    )


async def test_a_claim_is_bound_to_its_volume_and_stays_with_it_through_a_suspension(
    app: ComponentHarness, leftovers: list[Primitive[Any]]
) -> None:
    volume, claim = volume_and_claim(app)
    leftovers.append(volume)
    component = component_of(volume, claim)

    await until(app, "Operational", component, volume, {"phase": "Available"})
    await until(app, "Suspended", component_of(volume, claim, suspended=True), volume, None)
    kept = await app.client.get(claim.gvk, claim.key)
    await until(app, "Operational", component, volume, {"phase": "Available"})

    assert kept["status"]["phase"] == "Bound"
    assert kept["spec"]["volumeName"] == volume.key.name


ROLE_REF = {"apiGroup": RBAC, "kind": "ClusterRole", "name": "view"}
HOST_PATH = {"accessModes": ["ReadWriteOnce"], "capacity": {"storage": "1Gi"}, "hostPath": {"path": "/x"}}
CLAIM = {"accessModes": ["ReadWriteOnce"], "storageClassName": "slow", "resources": {"requests": {"storage": "1Gi"}}}


@pytest.mark.parametrize(
    ("kind", "content", "changed", "told"),
    [
        pytest.param(
            PersistentVolumeClaim,
            {"spec": CLAIM},
            {"spec": {**CLAIM, "storageClassName": "fast"}},
            "spec is immutable",
            id="the class of a claim",
        ),
        pytest.param(
            PersistentVolume,
            {"spec": HOST_PATH},
            {"spec": {**HOST_PATH, "hostPath": {"path": "/y"}}},
            "persistentvolumesource is immutable",
            id="the source of a volume",
        ),
        pytest.param(
            PersistentVolume,
            {"spec": HOST_PATH},
            {"spec": {**HOST_PATH, "volumeMode": "Block"}},
            "volumeMode",
            id="the mode of a volume",
        ),
        pytest.param(
            RoleBinding,
            {"roleRef": ROLE_REF},
            {"roleRef": {**ROLE_REF, "name": "edit"}},
            "roleRef",
            id="the role of a binding",
        ),
        pytest.param(
            ClusterRoleBinding,
            {"roleRef": ROLE_REF},
            {"roleRef": {**ROLE_REF, "name": "edit"}},
            "roleRef",
            id="the role of a cluster-wide binding",
        ),
    ],
)
async def test_a_change_of_what_cannot_change_is_an_error_that_says_what(
    app: ComponentHarness,
    leftovers: list[Primitive[Any]],
    kind: Callable[[Object], Primitive[Any]],
    content: Object,
    changed: Object,
    told: str,
) -> None:
    primitive = Case(kind, content).primitive(app)
    leftovers.append(primitive)
    await app.reconcile(component_of(primitive))

    with pytest.raises(ReconcileError):
        await app.reconcile(component_of(Case(kind, changed).primitive(app)))

    condition = await app.condition("WebReady")
    assert (condition.status, condition.reason) == ("False", "Error")
    assert f"failed to apply resource {primitive.identity}" in condition.message
    assert told in condition.message
