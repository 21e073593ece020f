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


def named(name: str = "web", **fields: Any) -> Object:
    """A namespaced object without apiVersion and kind, which typed primitives fill in."""
    return {"metadata": {"name": name, "namespace": "default"}, **fields}


def widget(**fields: Any) -> Object:
    """An object of a kind that konverge does not know."""
    return {"apiVersion": "demo.konverge.dev/v1", "kind": "Widget", **named(), **fields}


def is_up(live: Object, operation: object) -> Convergence:
    """A health rule for widgets."""
    return Convergence(ConvergingStatus.HEALTHY if live.get("up") else ConvergingStatus.CREATING)


def primitives(obj: Object | None = None, **options: Any) -> list[Primitive[Any]]:
    """One primitive of each class, made alike."""
    return [
        Deployment(obj or named(), **options),
        StatefulSet(obj or named(), **options),
        DaemonSet(obj or named(), **options),
        ReplicaSet(obj or named(), **options),
        Pod(obj or named(), **options),
        Job(obj or named(), **options),
        CronJob(obj or named(), **options),
        Service(obj or named(), **options),
        ConfigMap(obj or named(), **options),
        Secret(obj or named(), **options),
        Ingress(obj or named(), **options),
        PersistentVolumeClaim(obj or named(), **options),
        HorizontalPodAutoscaler(obj or named(), **options),
        ServiceAccount(obj or named(), **options),
        Role(obj or named(), **options),
        PodDisruptionBudget(obj or named(), **options),
        NetworkPolicy(obj or named(), **options),
        Gateway(obj or named(), **options),
        HTTPRoute(obj or named(), **options),
        Custom(obj or widget(), **options),
        Static(obj or widget(), **options),
        Workload(obj or widget(), converging_status=is_up, **options),
        Task(obj or widget(), converging_status=is_up, **options),
        Integration(obj or widget(), converging_status=is_up, **options),
    ]


def classes() -> dict[str, type[Primitive[Any]]]:
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
