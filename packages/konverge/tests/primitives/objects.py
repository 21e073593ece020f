"""Baselines that the tests of all kinds share, and the kinds themselves."""

from __future__ import annotations

from typing import Any

from konverge import primitives as package
from konverge.kube import Object
from konverge.primitives import (
    ConfigMap,
    Convergence,
    ConvergingStatus,
    CronJob,
    Custom,
    DaemonSet,
    Deployment,
    Gateway,
    Generated,
    GeneratedCertificate,
    GeneratedSecret,
    HorizontalPodAutoscaler,
    HTTPRoute,
    Ingress,
    Integration,
    Job,
    NetworkPolicy,
    PersistentVolumeClaim,
    Pod,
    PodDisruptionBudget,
    Primitive,
    ReplicaSet,
    Role,
    Secret,
    Service,
    ServiceAccount,
    StatefulSet,
    Static,
    Task,
    Workload,
)


def build_named(name: str = "web", **fields: Any) -> Object:
    """A namespaced object without apiVersion and kind, which typed primitives fill in."""
    return {"metadata": {"name": name, "namespace": "default"}, **fields}


def build_widget(**fields: Any) -> Object:
    """An object of a kind that konverge does not know."""
    return {"apiVersion": "demo.konverge.dev/v1", "kind": "Widget", **build_named(), **fields}


def is_up(live: Object, operation: object) -> Convergence:
    """A health rule for widgets."""
    return Convergence(ConvergingStatus.HEALTHY if live.get("up") else ConvergingStatus.CREATING)


def build_primitives(obj: Object | None = None, **options: Any) -> list[Primitive[Any]]:
    """One primitive of each class, made alike."""
    return [
        Deployment(obj or build_named(), **options),
        StatefulSet(obj or build_named(), **options),
        DaemonSet(obj or build_named(), **options),
        ReplicaSet(obj or build_named(), **options),
        Pod(obj or build_named(), **options),
        Job(obj or build_named(), **options),
        CronJob(obj or build_named(), **options),
        Service(obj or build_named(), **options),
        ConfigMap(obj or build_named(), **options),
        Secret(obj or build_named(), **options),
        GeneratedSecret(obj or build_named(), values={"password": Generated.password()}, **options),
        GeneratedCertificate(obj or build_named(), dns_names=["web"], **options),
        Ingress(obj or build_named(), **options),
        PersistentVolumeClaim(obj or build_named(), **options),
        HorizontalPodAutoscaler(obj or build_named(), **options),
        ServiceAccount(obj or build_named(), **options),
        Role(obj or build_named(), **options),
        PodDisruptionBudget(obj or build_named(), **options),
        NetworkPolicy(obj or build_named(), **options),
        Gateway(obj or build_named(), **options),
        HTTPRoute(obj or build_named(), **options),
        Custom(obj or build_widget(), **options),
        Static(obj or build_widget(), **options),
        Workload(obj or build_widget(), converging_status=is_up, **options),
        Task(obj or build_widget(), converging_status=is_up, **options),
        Integration(obj or build_widget(), converging_status=is_up, **options),
    ]


def list_classes() -> dict[str, type[Primitive[Any]]]:
    """Every primitive that the package offers, by name."""
    public = {name: getattr(package, name) for name in package.__all__}
    return {
        name: found
        for name, found in public.items()
        if isinstance(found, type) and issubclass(found, Primitive) and not found.__abstractmethods__
    }


def kind_of(primitive: Primitive[Any]) -> str:
    """A name for a test's parameter."""
    return type(primitive).__name__
