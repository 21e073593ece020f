"""Metrics of resolution, in addition to those of every operator.

    konverge_resolution_requests_total{resolver,reason,fetched_from}   finished requests
    konverge_resolution_seconds{resolver,fetched_from}                 from the creation of a request to its end
    konverge_resolution_pending{resolver}                              unfinished requests
    konverge_resolution_oldest_pending_seconds{resolver}               age of the oldest unfinished request
    konverge_resolution_fetches                                        running fetches

``reason`` is ``Resolved`` or one of `konverge_resolution.Reason`; ``fetched_from`` is ``remote``, ``cache`` or
``none``; ``resolver`` is a known resolver, or ``unknown``. No label contains text of a request.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from konverge._internal.runtime.observability import Metrics

__all__ = ["UNKNOWN", "RequestMetrics"]

UNKNOWN = "unknown"
"""Label for resolvers that do not exist."""

_SECONDS = (0.01, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0)


class RequestMetrics:
    """Metrics of one run of the operator.

    Args:
        metrics: Exports them.
    """

    def __init__(self, metrics: Metrics) -> None:
        from prometheus_client import Counter, Gauge, Histogram

        registry = metrics.registry
        self._ended = Counter(
            "konverge_resolution_requests_total",
            "Finished requests by result",
            ["resolver", "reason", "fetched_from"],
            registry=registry,
        )
        self._seconds = Histogram(
            "konverge_resolution_seconds",
            "Time from the creation of a request to its end",
            ["resolver", "fetched_from"],
            buckets=_SECONDS,
            registry=registry,
        )
        self._pending = Gauge("konverge_resolution_pending", "Unfinished requests", ["resolver"], registry=registry)
        self._oldest = Gauge(
            "konverge_resolution_oldest_pending_seconds",
            "Age of the oldest unfinished request",
            ["resolver"],
            registry=registry,
        )
        self._fetches = Gauge("konverge_resolution_fetches", "Running fetches", registry=registry)

    def record_end(self, resolver: str, reason: str, fetched_from: str, seconds: float) -> None:
        """Count a request that has ended."""
        self._ended.labels(resolver, reason, fetched_from).inc()
        self._seconds.labels(resolver, fetched_from).observe(max(0.0, seconds))

    def set_pending(self, ages: Iterable[tuple[str, float]], fetches: int) -> None:
        """Set the metrics of unfinished requests from the resolver and the age of each."""
        by_resolver: dict[str, list[float]] = {}
        for resolver, age in ages:
            by_resolver.setdefault(resolver, []).append(age)
        self._pending.clear()
        self._oldest.clear()
        for resolver, resolver_ages in by_resolver.items():
            self._pending.labels(resolver).set(len(resolver_ages))
            self._oldest.labels(resolver).set(max(resolver_ages))
        self._fetches.set(fetches)
