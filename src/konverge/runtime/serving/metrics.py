"""`Metrics`: all that one run of an operator counts, and the ports through which it is told."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from konverge.clock import Clock, SystemClock
from konverge.runtime.beside import beside
from konverge.runtime.serving.exposition import Exposition, Snapshot, new_registries
from konverge.runtime.serving.observed_conditions import ConditionCounts
from konverge.runtime.serving.observed_passes import BreakerOpening, ControllerMetrics, PassMetrics, RequestMetrics
from konverge.runtime.serving.observed_servers import ResourceMetrics, WebhookMetrics
from konverge.runtime.serving.process_figures import ProcessFigures
from konverge.runtime.serving.readings import Readings
from konverge.runtime.serving.sources import ObservedCertificate, Sources

if TYPE_CHECKING:
    from prometheus_client.metrics_core import Metric

__all__ = ["Metrics"]


class Metrics:
    """What one run of an operator counts. Nothing of it is global: two operators in one process count apart.

    Names, labels and buckets are controller-runtime's where it has them, so that its dashboards and alerts work; ours
    begin with ``konverge_``. No label holds the name of an object, unless `per_owner_conditions` asks for it.

    It is itself a collector in prometheus-client's sense: ``push_to_gateway(..., registry=metrics)`` works.

    Args:
        sources: What is read at the moment of a scrape; may be given later (`read_from`).
        clock: The time.
        per_owner_conditions: Export the conditions of each owner as series of their own too.

    Attributes:
        registry: For metrics of the author's own: ``Counter("orders_total", "Orders", registry=metrics.registry)``.
            They are read in a thread when somebody scrapes.
        conditions: A `konverge.component.recording.ConditionMetrics`; call `forget` when an owner is gone.
        webhooks: A `konverge.runtime.webhooks.WebhookObserver`.
        resources: Told of what became of components' resources.
        process: The process itself.

    Raises:
        ConfigurationError: prometheus-client is not installed.
    """

    def __init__(
        self, sources: Sources | None = None, *, clock: Clock | None = None, per_owner_conditions: bool = False
    ) -> None:
        clock = clock or SystemClock()
        self._process_registry, self.registry = new_registries()
        self.conditions = ConditionCounts(per_owner=per_owner_conditions)
        self.webhooks = WebhookMetrics()
        self.resources = ResourceMetrics()
        self.process = ProcessFigures(clock)
        self._passes = PassMetrics(clock)
        self._readings = Readings(sources or Sources())

    def read_from(self, sources: Sources) -> None:
        """Read those sources from now on."""
        self._readings.sources = sources

    def add_certificate(self, certificate: ObservedCertificate) -> None:
        """Export the reads of that certificate too."""
        self._readings.certificates.append(certificate)

    def controller(self, name: str) -> ControllerMetrics:
        """The observer of the controller of that name; all its series exist from then on, at 0."""
        return ControllerMetrics(name, self._passes)

    def requests(self, host: str) -> RequestMetrics:
        """The observer of a client.

        Args:
            host: The API server's host and port, for the label ``host``.
        """
        return RequestMetrics(host, self._passes)

    @property
    def breaker_openings(self) -> tuple[BreakerOpening, ...]:
        """The last hundred times a breaker opened, oldest first."""
        return tuple(self._passes.openings)

    @asynccontextmanager
    async def measuring(self) -> AsyncIterator[None]:
        """Count the collector's pauses and the event loop's lateness while the block runs."""
        with self.process.counting_pauses():
            async with beside(self.process.watch_lag(), name="event loop lag"):
                yield

    def snapshot(self) -> Snapshot:
        """A copy of everything as it is now; in the event loop. What it costs grows with series, not with objects."""
        samples = self._passes.read()
        for part in (
            *(self.conditions, self.webhooks, self.resources, self.process),
            self._readings,
        ):
            samples += part.read()
        return Snapshot(samples, (self._process_registry, self.registry))

    def collect(self) -> Iterator[Metric]:
        """Everything as it is now, for prometheus-client's functions; in the event loop."""
        return self.snapshot().collect()

    async def exposition(self, *, compressed: bool = False) -> Exposition:
        """The text for a scrape, written in a thread.

        When it is cancelled, the thread ends by itself soon after.
        """
        return await asyncio.to_thread(self.snapshot().write, compressed=compressed)
