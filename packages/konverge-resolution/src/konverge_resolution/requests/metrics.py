"""What a run counts of resolution, beside what is counted of every operator.

    konverge_resolution_requests_total{resolver,reason,fetched_from}   requests by how they ended
    konverge_resolution_seconds{resolver,fetched_from}                 from the creation of a request to its end
    konverge_resolution_pending{resolver}                              requests that have not ended
    konverge_resolution_oldest_pending_seconds{resolver}               the age of the oldest of them
    konverge_resolution_fetches                                        fetches under way

``reason`` is ``Resolved`` or one of `konverge_resolution.Reason`; ``fetched_from`` is ``remote``, ``cache`` or
``none``; ``resolver`` is one that is known, or ``unknown``. No label holds anything that a request says.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from konverge.runtime.observability import Metrics

__all__ = ["UNKNOWN", "RequestMetrics"]

UNKNOWN = "unknown"
"""The label of a resolver that there is not."""

_SECONDS = (0.01, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0)


class RequestMetrics:
    """The metrics of one run.

    Args:
        metrics: Where they are exported.
    """

    def __init__(self, metrics: Metrics) -> None:
        from prometheus_client import Counter, Gauge, Histogram

        registry = metrics.registry
        self._ended = Counter(
            "konverge_resolution_requests_total",
            "Requests by how they ended",
            ["resolver", "reason", "fetched_from"],
            registry=registry,
        )
        self._seconds = Histogram(
            "konverge_resolution_seconds",
            "From the creation of a request to its end",
            ["resolver", "fetched_from"],
            buckets=_SECONDS,
            registry=registry,
        )
        self._pending = Gauge(
            "konverge_resolution_pending", "Requests that have not ended", ["resolver"], registry=registry
        )
        self._oldest = Gauge(
            "konverge_resolution_oldest_pending_seconds",
            "The age of the oldest request that has not ended",
            ["resolver"],
            registry=registry,
        )
        self._fetches = Gauge("konverge_resolution_fetches", "Fetches under way", registry=registry)

    def record_end(self, resolver: str, reason: str, fetched_from: str, seconds: float) -> None:
        """A request has ended."""
        self._ended.labels(resolver, reason, fetched_from).inc()
        self._seconds.labels(resolver, fetched_from).observe(max(0.0, seconds))

    def set_pending(self, ages: Iterable[tuple[str, float]], fetches: int) -> None:
        """This is pending now: the resolver and the age of each request."""
        by_resolver: dict[str, list[float]] = {}
        for resolver, age in ages:
            by_resolver.setdefault(resolver, []).append(age)
        self._pending.clear()
        self._oldest.clear()
        for resolver, found in by_resolver.items():
            self._pending.labels(resolver).set(len(found))
            self._oldest.labels(resolver).set(max(found))
        self._fetches.set(fetches)
