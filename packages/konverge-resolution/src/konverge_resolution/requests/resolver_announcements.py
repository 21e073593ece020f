"""Which resolvers there are in other processes: a Lease for each process, renewed as long as one of its replicas lives.

A Lease is what Kubernetes has for liveness; an object whose last writer may be dead would have to be given a time and
somebody who looks at it, which is the same with more to do. All replicas of a process share one, named after the
operator: there are as many as operators, nobody has to clear them away, and a rolling restart is no gap. One that is
not renewed for a minute counts no more, so a process that restarts loses no request, and a resolver that is really gone
is refused at once a minute later. Nobody compares clocks: what counts is when a renewal was *seen*. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta

from konverge.kube import Object, format_micro_time
from konverge.kube.metadata import ObjectMeta
from konverge_resolution.requests.api_types import GROUP

__all__ = ["ANNOUNCES", "LIFETIME", "RENEWAL", "AnnouncementTracker", "build_announcement"]

ANNOUNCES = f"{GROUP}/announces-resolvers"
"""The label of such Leases."""

_RESOLVER = f"resolver.{GROUP}/"

LIFETIME = timedelta(minutes=1)
"""How long an announcement counts after its last renewal was seen."""

RENEWAL = timedelta(seconds=15)
"""How often one is renewed."""

_YES = "true"


def build_announcement(operator: str, namespace: str, resolvers: Iterable[str], now: datetime) -> Object:
    """The Lease that says which resolvers the processes of an operator serve, to be applied.

    Args:
        operator: The operator's name.
        namespace: Where all operators of resolution have their Leases.
        resolvers: Their names.
        now: The time of this renewal.
    """
    return {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {
            "name": f"resolvers-of-{operator}",
            "namespace": namespace,
            "labels": {ANNOUNCES: _YES, **{f"{_RESOLVER}{name}": _YES for name in resolvers}},
        },
        "spec": {
            "holderIdentity": operator,
            "leaseDurationSeconds": int(LIFETIME.total_seconds()),
            "renewTime": format_micro_time(now),
        },
    }


class AnnouncementTracker:
    """What other processes announce, as one that watches their Leases sees it."""

    def __init__(self) -> None:
        self._seen: dict[str, tuple[float, frozenset[str]]] = {}

    def on_lease_change(self, old: ObjectMeta | None, new: ObjectMeta | None, monotonic: float) -> None:
        """A Lease came, was renewed or went.

        Args:
            old: The Lease before; None for one that came.
            new: The Lease now; None for one that went.
            monotonic: When that was seen.
        """
        if new is None:
            if old is not None:
                self._seen.pop(old.name, None)
            return
        names = (label.removeprefix(_RESOLVER) for label in new.labels if label.startswith(_RESOLVER))
        self._seen[new.name] = monotonic, frozenset(names)

    @property
    def known(self) -> frozenset[str]:
        """The resolvers that somebody has announced, also where nobody renews it any more."""
        return frozenset(name for _, names in self._seen.values() for name in names)

    def list_live(self, monotonic: float) -> frozenset[str]:
        """The resolvers that somebody serves."""
        lifetime = LIFETIME.total_seconds()
        found: set[str] = set()
        for seen, names in self._seen.values():
            if monotonic - seen < lifetime:
                found |= names
        return frozenset(found)
