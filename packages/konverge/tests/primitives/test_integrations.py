"""Health, grace and suspension of the kinds that wait for something outside the component."""

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
    HorizontalPodAutoscaler,
    HorizontalPodAutoscalerMutator,
    Ingress,
    IngressMutator,
    Operation,
    PersistentVolume,
    PersistentVolumeClaim,
    PersistentVolumeClaimMutator,
    PersistentVolumeMutator,
    Primitive,
    SuspensionStatus,
)
from tests.primitives.objects import build_named, kind_of

READY = (ConvergingStatus.OPERATIONAL, GraceStatus.HEALTHY)
LATE = (ConvergingStatus.OPERATION_PENDING, GraceStatus.DEGRADED)
FAILED = (ConvergingStatus.OPERATION_FAILING, GraceStatus.DOWN)

AWAITING = "Awaiting load balancer IP/hostname assignment"


def volume(**fields: Any) -> PersistentVolume:
    return PersistentVolume({"metadata": {"name": "disk"}, **fields})


def balancer(*ingress: Object) -> Object:
    return {"loadBalancer": {"ingress": list(ingress)}}


def conditions(**statuses: tuple[str, str]) -> Object:
    """A status with a condition of each type, given as its status and message."""
    listed = [{"type": name, "status": status, "message": message} for name, (status, message) in statuses.items()]
    return {"conditions": listed}


@pytest.mark.parametrize(
    ("primitive", "status", "expected", "reason"),
    [
        pytest.param(Ingress(build_named()), {}, LATE, AWAITING, id="ingress, no status"),
        pytest.param(Ingress(build_named()), balancer(), LATE, AWAITING, id="ingress, nothing assigned"),
        pytest.param(Ingress(build_named()), balancer({"ip": ""}), LATE, AWAITING, id="ingress, an empty address"),
        pytest.param(
            Ingress(build_named()),
            balancer({}, {"ip": "192.0.2.1"}),
            READY,
            "Load balancer IP/hostname assigned",
            id="ingress with an IP",
        ),
        pytest.param(
            Ingress(build_named()),
            balancer({"hostname": "lb.test"}),
            READY,
            "Load balancer IP/hostname assigned",
            id="ingress with a hostname",
        ),
        pytest.param(
            PersistentVolumeClaim(build_named()),
            {"phase": "Bound"},
            READY,
            "PersistentVolumeClaim is bound",
            id="claim, bound",
        ),
        pytest.param(
            PersistentVolumeClaim(build_named()),
            {"phase": "Pending"},
            LATE,
            "Waiting for PersistentVolumeClaim to be bound (phase Pending)",
            id="claim, pending",
        ),
        pytest.param(
            PersistentVolumeClaim(build_named()),
            {},
            LATE,
            "Waiting for PersistentVolumeClaim to be bound (phase unknown)",
            id="claim, no status",
        ),
        pytest.param(
            PersistentVolumeClaim(build_named()),
            {"phase": "Lost"},
            FAILED,
            "PersistentVolumeClaim has lost its volume",
            id="claim, lost",
        ),
        pytest.param(volume(), {"phase": "Available"}, READY, "PersistentVolume is available", id="volume, available"),
        pytest.param(volume(), {"phase": "Bound"}, READY, "PersistentVolume is bound", id="volume, bound"),
        pytest.param(volume(), {"phase": "Pending"}, LATE, "PersistentVolume is pending", id="volume, pending"),
        pytest.param(volume(), {}, LATE, "PersistentVolume is in no phase yet", id="volume, no status"),
        pytest.param(volume(), {"phase": "Released"}, FAILED, "PersistentVolume is released", id="volume, released"),
        pytest.param(
            volume(),
            {"phase": "Failed", "message": "no plugin"},
            FAILED,
            "PersistentVolume is failed: no plugin",
            id="volume, failed",
        ),
        pytest.param(
            HorizontalPodAutoscaler(build_named()),
            {},
            LATE,
            "Waiting for autoscaler to report on its metrics",
            id="autoscaler, no conditions",
        ),
        pytest.param(
            HorizontalPodAutoscaler(build_named()),
            conditions(AbleToScale=("True", "ready")),
            LATE,
            "Waiting for autoscaler to report on its metrics",
            id="autoscaler, nothing of metrics",
        ),
        pytest.param(
            HorizontalPodAutoscaler(build_named()),
            conditions(AbleToScale=("True", ""), ScalingActive=("True", "valid metric found")),
            READY,
            "valid metric found",
            id="autoscaler, active",
        ),
        pytest.param(
            HorizontalPodAutoscaler(build_named()),
            conditions(ScalingActive=("True", "")),
            READY,
            "Autoscaler is active",
            id="autoscaler, active without a word",
        ),
        pytest.param(
            HorizontalPodAutoscaler(build_named()),
            conditions(ScalingActive=("False", "no metrics returned")),
            FAILED,
            "no metrics returned",
            id="autoscaler, inactive",
        ),
        pytest.param(
            HorizontalPodAutoscaler(build_named()),
            conditions(ScalingActive=("Unknown", "")),
            LATE,
            "Autoscaler does not know its metrics",
            id="autoscaler, unknown",
        ),
        pytest.param(
            HorizontalPodAutoscaler(build_named()),
            conditions(ScalingActive=("True", "fine"), AbleToScale=("False", "target not found")),
            FAILED,
            "target not found",
            id="autoscaler, unable comes first",
        ),
    ],
)
def test_health_and_grace(
    primitive: Primitive[Any], status: Object, expected: tuple[ConvergingStatus, GraceStatus], reason: str
) -> None:
    live = {"status": status}
    converging, grace = expected
    assert primitive.converging_status(live, Operation.NONE) == Convergence(converging, reason)
    assert primitive.grace_status(live) == Grace(grace, reason)


@pytest.mark.parametrize(
    ("primitive", "reason", "is_deleted"),
    [
        (Ingress(build_named()), "Ingress suspended (backend unavailable)", False),
        (PersistentVolumeClaim(build_named()), "PersistentVolumeClaim stays in place while suspended", False),
        (volume(), "Resource needs no suspension", False),
        (HorizontalPodAutoscaler(build_named()), "HorizontalPodAutoscaler deleted on suspend", True),
    ],
    ids=lambda value: kind_of(value) if isinstance(value, Primitive) else "",
)
def test_suspension_changes_nothing_and_deletes_only_what_would_act(
    primitive: Primitive[Any], reason: str, is_deleted: bool
) -> None:
    suspension = primitive.suspension_status({})
    assert primitive.render(suspended=True) == primitive.render()
    assert (suspension.status, suspension.reason) == (SuspensionStatus.SUSPENDED, reason)
    assert primitive.deletes_on_suspend is is_deleted


def expose(m: IngressMutator) -> None:
    m.edit_ingress_spec(lambda spec: spec.ensure_rule({"host": "shop.test"}))


def ask_for_space(m: PersistentVolumeClaimMutator) -> None:
    m.set_storage_request("1Gi")
    m.edit_persistent_volume_claim_spec(lambda spec: spec.set(volumeMode="Block"))


def keep(m: PersistentVolumeMutator) -> None:
    m.set_storage_class_name("fast")
    m.set_reclaim_policy("Retain")
    m.set_mount_options(["hard"])
    m.edit_persistent_volume_spec(lambda spec: spec.set_capacity("1Gi"))


def widen(m: HorizontalPodAutoscalerMutator) -> None:
    m.edit_horizontal_pod_autoscaler_spec(lambda spec: spec.set(maxReplicas=9))


@pytest.mark.parametrize(
    ("primitive", "spec"),
    [
        (Ingress(build_named(), mutations=Mutation("expose", expose)), {"rules": [{"host": "shop.test"}]}),
        (
            PersistentVolumeClaim(build_named(), mutations=Mutation("ask", ask_for_space)),
            {"resources": {"requests": {"storage": "1Gi"}}, "volumeMode": "Block"},
        ),
        (
            PersistentVolume({"metadata": {"name": "disk"}}, mutations=Mutation("keep", keep)),
            {
                "storageClassName": "fast",
                "persistentVolumeReclaimPolicy": "Retain",
                "mountOptions": ["hard"],
                "capacity": {"storage": "1Gi"},
            },
        ),
        (HorizontalPodAutoscaler(build_named(), mutations=Mutation("widen", widen)), {"maxReplicas": 9}),
    ],
    ids=lambda value: kind_of(value) if isinstance(value, Primitive) else "",
)
def test_mutations_edit_the_spec(primitive: Primitive[Any], spec: Object) -> None:
    assert primitive.render()["spec"] == spec


def test_a_volume_has_no_namespace() -> None:
    assert volume().errors == ()
    assert PersistentVolume(build_named()).errors == (
        "metadata.namespace: expected none for a cluster-scoped PersistentVolume, found 'default'",
    )
