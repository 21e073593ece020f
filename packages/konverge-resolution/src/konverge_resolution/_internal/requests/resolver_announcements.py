"""Announcements of resolvers to other processes: a Lease for each process, renewed while one of its replicas runs.

A Lease is the Kubernetes object for liveness; any other object would need a timestamp and a controller that removes it.
All replicas of a process share one Lease, named after the operator. So there are as many Leases as operators, none has
to be removed, and a rolling restart leaves no gap. A Lease that is not renewed for a minute expires. A process that
restarts therefore loses no request, and a resolver that is gone is refused after a minute. The manifests of a process
contain its Lease, so requests also wait for its first start. Clocks are never compared:
the time when a renewal was *seen* counts. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta

from konverge._internal.kube import Object, format_micro_time
from konverge._internal.kube.metadata import ObjectMeta
from konverge_resolution._internal.requests.api_types import GROUP

__all__ = [
    "ANNOUNCES",
    "LIFETIME",
    "RENEWAL",
    "AnnouncementTracker",
    "build_announcement",
    "build_first_announcement",
]

ANNOUNCES = f"{GROUP}/announces-resolvers"
"""Label of the Leases that announce resolvers."""

_RESOLVER = f"resolver.{GROUP}/"

LIFETIME = timedelta(minutes=1)
"""Lifetime of an announcement after its last observed renewal."""

RENEWAL = timedelta(seconds=15)
"""Interval between renewals of an announcement."""

_YES = "true"


def build_announcement(operator: str, namespace: str, resolvers: Iterable[str], now: datetime) -> Object:
    """Return the Lease with the resolvers that the processes of an operator serve, for an apply.

    Args:
        operator: The name of the operator.
        namespace: The namespace of the Leases of all resolution operators.
        resolvers: The names of the resolvers.
        now: The time of this renewal.
    """
    return {
        **build_first_announcement(operator, namespace, resolvers),
        "spec": {
            "holderIdentity": operator,
            "leaseDurationSeconds": int(LIFETIME.total_seconds()),
            "renewTime": format_micro_time(now),
        },
    }


def build_first_announcement(operator: str, namespace: str, resolvers: Iterable[str]) -> Object:
    """Return the Lease before its first renewal: requests that are created with it wait for the process to start.

    Args:
        operator: The name of the operator.
        namespace: The namespace of the Leases of all resolution operators.
        resolvers: The names of the resolvers.
    """
    return {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {
            "name": f"resolvers-of-{operator}",
            "namespace": namespace,
            "labels": {ANNOUNCES: _YES, **{f"{_RESOLVER}{name}": _YES for name in resolvers}},
        },
    }


class AnnouncementTracker:
    """Tracker of the announcements of other processes, from a watch of their Leases."""

    def __init__(self) -> None:
        self._seen: dict[str, tuple[float, frozenset[str]]] = {}

    def on_lease_change(self, old: ObjectMeta | None, new: ObjectMeta | None, monotonic: float) -> None:
        """Record a Lease that was created, renewed or deleted.

        Args:
            old: The Lease before; None for a new one.
            new: The Lease now; None for a deleted one.
            monotonic: The time of the observation.
        """
        if new is None:
            if old is not None:
                self._seen.pop(old.name, None)
            return
        names = (label.removeprefix(_RESOLVER) for label in new.labels if label.startswith(_RESOLVER))
        self._seen[new.name] = monotonic, frozenset(names)

    @property
    def known(self) -> frozenset[str]:
        """The announced resolvers, including those with an expired announcement."""
        return frozenset(name for _, names in self._seen.values() for name in names)

    def list_live(self, monotonic: float) -> frozenset[str]:
        """Return the resolvers that some process serves now."""
        lifetime = LIFETIME.total_seconds()
        live: set[str] = set()
        for seen, names in self._seen.values():
            if monotonic - seen < lifetime:
                live |= names
        return frozenset(live)
