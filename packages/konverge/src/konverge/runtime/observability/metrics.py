"""`Metrics`: all that one run of an operator counts, and the ports through which it is told."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from konverge.clock import Clock, SystemClock
from konverge.runtime.background import background_task
from konverge.runtime.observability.condition_metrics import ConditionCounts
from konverge.runtime.observability.exposition import Exposition, MetricsSnapshot, build_registries
from konverge.runtime.observability.process_metrics import ProcessMetrics
from konverge.runtime.observability.reconcile_metrics import (
    BreakerOpening,
    ControllerMetrics,
    ReconcileMetrics,
    RequestMetrics,
)
from konverge.runtime.observability.source_collector import SourceCollector
from konverge.runtime.observability.sources import ObservedCertificate, RuntimeSources
from konverge.runtime.observability.webhook_metrics import ResourceMetrics, WebhookMetrics

if TYPE_CHECKING:
    from prometheus_client.metrics_core import Metric

__all__ = ["Metrics"]


class Metrics:
    """What one run of an operator counts. Nothing of it is global: two operators in one process count apart.

    Names, labels and buckets are controller-runtime's where it has them, so that its dashboards and alerts work; ours
    begin with ``konverge_``. No label holds the name of an object, unless `per_owner_conditions` asks for it.

    It is itself a collector in prometheus-client's sense: ``push_to_gateway(..., registry=metrics)`` works.

    Args:
        sources: What is read at the moment of a scrape; may be given later (`set_sources`).
        clock: The time.
        per_owner_conditions: Export the conditions of each owner as series of their own too.

    Attributes:
        registry: For metrics of the author's own: ``Counter("orders_total", "Orders", registry=metrics.registry)``.
            They are read in a thread when somebody scrapes.
        conditions: A `konverge.component.reporting.ConditionMetrics`; call `forget` when an owner is gone.
        webhooks: A `konverge.runtime.webhooks.WebhookObserver`.
        resources: Told of what became of components' resources.
        process: The process itself.

    Raises:
        ConfigurationError: prometheus-client is not installed.
    """

    def __init__(
        self, sources: RuntimeSources | None = None, *, clock: Clock | None = None, per_owner_conditions: bool = False
    ) -> None:
        clock = clock or SystemClock()
        self._process_registry, self.registry = build_registries()
        self.conditions = ConditionCounts(per_owner=per_owner_conditions)
        self.webhooks = WebhookMetrics()
        self.resources = ResourceMetrics()
        self.process = ProcessMetrics(clock)
        self._reconciles = ReconcileMetrics(clock)
        self._source_collector = SourceCollector(sources or RuntimeSources())

    def set_sources(self, sources: RuntimeSources) -> None:
        """Read those sources from now on."""
        self._source_collector.sources = sources

    def add_certificate(self, certificate: ObservedCertificate) -> None:
        """Export the reads of that certificate too."""
        self._source_collector.certificates.append(certificate)

    def observe_controller(self, name: str) -> ControllerMetrics:
        """The observer of the controller of that name; all its series exist from then on, at 0."""
        return ControllerMetrics(name, self._reconciles)

    def observe_requests(self, host: str) -> RequestMetrics:
        """The observer of a client.

        Args:
            host: The API server's host and port, for the label ``host``.
        """
        return RequestMetrics(host, self._reconciles)

    @property
    def breaker_openings(self) -> tuple[BreakerOpening, ...]:
        """The last hundred times a breaker opened, oldest first."""
        return tuple(self._reconciles.openings)

    @asynccontextmanager
    async def measure_process(self) -> AsyncIterator[None]:
        """Count the collector's pauses and the event loop's lateness while the block runs."""
        with self.process.measure_pauses():
            async with background_task(self.process.watch_lag(), name="event loop lag"):
                yield

    def take_snapshot(self) -> MetricsSnapshot:
        """A copy of everything as it is now; in the event loop. What it costs grows with series, not with objects."""
        samples = self._reconciles.read()
        for part in (
            *(self.conditions, self.webhooks, self.resources, self.process),
            self._source_collector,
        ):
            samples += part.read()
        return MetricsSnapshot(samples, (self._process_registry, self.registry))

    def collect(self) -> Iterator[Metric]:
        """Everything as it is now, for prometheus-client's functions; in the event loop."""
        return self.take_snapshot().collect()

    async def render_exposition(self, *, compressed: bool = False) -> Exposition:
        """The text for a scrape, written in a thread.

        When it is cancelled, the thread ends by itself soon after.
        """
        return await asyncio.to_thread(self.take_snapshot().write, compressed=compressed)
