"""The metrics of one run of an operator, and the ports through which it reports them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from konverge._internal.runtime.background import background_task
from konverge._internal.runtime.observability.condition_metrics import ConditionCounts
from konverge._internal.runtime.observability.exposition import Exposition, MetricsSnapshot, build_registries
from konverge._internal.runtime.observability.process_metrics import ProcessMetrics
from konverge._internal.runtime.observability.reconcile_metrics import (
    BreakerOpening,
    ControllerMetrics,
    ReconcileMetrics,
    RequestMetrics,
)
from konverge._internal.runtime.observability.source_collector import SourceCollector
from konverge._internal.runtime.observability.sources import ObservedCertificate, RuntimeSources
from konverge._internal.runtime.observability.webhook_metrics import ResourceMetrics, WebhookMetrics
from konverge.clock import Clock, SystemClock

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry
    from prometheus_client.metrics_core import Metric

__all__ = ["Metrics"]


class Metrics:
    """The metrics of one run of an operator. They are not global: two operators in one process count separately.

    Names, labels and buckets follow controller-runtime where it has them, so that its dashboards and alerts work; all
    others begin with ``konverge_``. No label contains the name of an object, unless `per_owner_conditions` requests it.

    The object is itself a collector in prometheus-client's sense: ``push_to_gateway(..., registry=metrics)`` works.

    Args:
        sources: State that is read at each scrape; can be set later (`set_sources`).
        clock: Source of time.
        per_owner_conditions: Export the conditions of each owner as separate series too.

    Attributes:
        registry: For metrics of the author in this run alone:
            ``Counter("orders_total", "Orders", registry=metrics.registry)``. Metrics in prometheus-client's default
            registry are exported too. A thread reads them at each scrape.
        conditions: A `component.reporting.ConditionMetrics`; call `forget` for a deleted owner.
        webhooks: A `runtime.webhooks.WebhookObserver`.
        resources: Receives the results of applying components' resources.
        process: Metrics of the process itself.

    Raises:
        ConfigurationError: prometheus-client is not installed.
    """

    def __init__(
        self, sources: RuntimeSources | None = None, *, clock: Clock | None = None, per_owner_conditions: bool = False
    ) -> None:
        clock = clock or SystemClock()
        self.registry: CollectorRegistry
        self._process_registry, self.registry, self._default_registry = build_registries()
        self.conditions: ConditionCounts = ConditionCounts(per_owner=per_owner_conditions)
        self.webhooks: WebhookMetrics = WebhookMetrics()
        self.resources: ResourceMetrics = ResourceMetrics()
        self.process: ProcessMetrics = ProcessMetrics(clock)
        self._reconciles = ReconcileMetrics(clock)
        self._source_collector = SourceCollector(sources or RuntimeSources())

    def set_sources(self, sources: RuntimeSources) -> None:
        """Read these sources from now on."""
        self._source_collector.sources = sources

    def add_certificate(self, certificate: ObservedCertificate) -> None:
        """Export the reads of the certificate too."""
        self._source_collector.certificates.append(certificate)

    def observe_controller(self, name: str) -> ControllerMetrics:
        """Return the observer of the controller with the name; all its series exist from then on, at 0."""
        return ControllerMetrics(name, self._reconciles)

    def observe_requests(self, host: str) -> RequestMetrics:
        """Return the observer of a client.

        Args:
            host: The API server's host and port, for the label ``host``.
        """
        return RequestMetrics(host, self._reconciles)

    @property
    def breaker_openings(self) -> tuple[BreakerOpening, ...]:
        """The last hundred breakers that opened, oldest first."""
        return tuple(self._reconciles.openings)

    @asynccontextmanager
    async def measure_process(self) -> AsyncIterator[None]:
        """Measure the garbage collector's pauses and the event loop's lag while the block runs."""
        with self.process.measure_pauses():
            async with background_task(self.process.watch_lag(), name="event loop lag"):
                yield

    def take_snapshot(self) -> MetricsSnapshot:
        """Return a copy of the present values; call it in the event loop. Its cost grows with the number of series."""
        samples = self._reconciles.read()
        for part in (
            *(self.conditions, self.webhooks, self.resources, self.process),
            self._source_collector,
        ):
            samples += part.read()
        return MetricsSnapshot(samples, (self._process_registry, self.registry, self._default_registry))

    def collect(self) -> Iterator[Metric]:
        """Yield the present metrics for prometheus-client's functions; call it in the event loop."""
        return self.take_snapshot().collect()

    async def render_exposition(self, *, compressed: bool = False) -> Exposition:
        """Return the text for a scrape, written in a thread.

        After a cancellation, the thread ends by itself soon.
        """
        return await asyncio.to_thread(self.take_snapshot().write, compressed=compressed)
