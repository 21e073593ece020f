"""Collection of the state that is read at each scrape, so that no component must keep a gauge up to date.

A source that fails costs its own series and a log line; the others are exported as usual.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable
from typing import TypeVar

from konverge._internal.kube.metadata import parse_revision
from konverge._internal.runtime.observability import metric_families
from konverge._internal.runtime.observability.metric_families import EXCEEDED, MetricFamily
from konverge._internal.runtime.observability.metric_series import FamilySample
from konverge._internal.runtime.observability.sources import (
    ObservedCertificate,
    ObservedController,
    ObservedInformer,
    RuntimeSources,
)

__all__ = ["SourceCollector"]

T = TypeVar("T")

_log = logging.getLogger("konverge.runtime")

_MAX_PRIORITIES = 25


class SourceCollector:
    """Reads the sources at a scrape.

    Args:
        sources: The state to read.
    """

    def __init__(self, sources: RuntimeSources) -> None:
        self.sources = sources
        """The state to read."""
        self.certificates: list[ObservedCertificate] = []
        """The certificates of servers; each is added when its server starts."""
        self._priorities: dict[str, set[int] | None] = {}

    def read(self) -> list[FamilySample]:
        """Return the present samples of all sources."""
        rows = _SeriesRows()
        _collect_each(self.sources.controllers, lambda controller: self._collect_controller(controller, rows))
        _collect_each(self.sources.informers, lambda informer: _collect_informer(informer, rows))
        _collect_each(lambda: self.sources.deletion_seconds().items(), lambda item: _collect_deletions(*item, rows))
        _collect_each(
            lambda: self.sources.leases().items(), lambda lease: rows.add(metric_families.LEADER, (lease[0],), lease[1])
        )
        for family in (metric_families.CERTIFICATE_READS, metric_families.CERTIFICATE_ERRORS):
            rows.add(family, (), 0)
        _collect_each(lambda: self.certificates, lambda certificate: _collect_certificate(certificate, rows))
        return rows.build_samples()

    def _collect_controller(self, controller: ObservedController, rows: _SeriesRows) -> None:
        name, queue = controller.name, controller.queue
        running = controller.list_run_seconds().values()
        rows.add(metric_families.MAX_CONCURRENT, (name,), controller.workers)
        rows.add(metric_families.ACTIVE_WORKERS, (name,), len(running))
        rows.add(metric_families.UNFINISHED_SECONDS, (name, name), sum(running))
        rows.add(metric_families.LONGEST_SECONDS, (name, name), max(running, default=0.0))
        depths = dict(queue.count_due())
        # A key that waits but is not due is future work, which more workers would not reduce.
        rows.add(metric_families.DELAYED, (name, name), max(0, len(queue) - sum(depths.values())))
        by_label: dict[str, int] = {"0": 0}
        for priority, depth in depths.items():
            label = self._format_priority(name, priority)
            by_label[label] = by_label.get(label, 0) + depth
        for label, depth in by_label.items():
            rows.add(metric_families.DEPTH, (name, name, label), depth)

    def _format_priority(self, name: str, priority: int) -> str:
        """Return a priority as a label; more than 25 different ones merge for good, as in controller-runtime."""
        seen = self._priorities.setdefault(name, set())
        if seen is None:
            return EXCEEDED
        seen.add(priority)
        if len(seen) > _MAX_PRIORITIES:
            self._priorities[name] = None
            return EXCEEDED
        return str(priority)


class _SeriesRows:
    """Collects series by family; two series with the same labels (one kind in several namespaces) are merged."""

    def __init__(self) -> None:
        self._series: dict[MetricFamily, dict[tuple[str, ...], float]] = {}

    def add(
        self,
        family: MetricFamily,
        labels: tuple[str, ...],
        value: float,
        merge: Callable[[tuple[float, float]], float] = sum,
    ) -> None:
        series = self._series.setdefault(family, {})
        series[labels] = merge((series[labels], value)) if labels in series else float(value)

    def build_samples(self) -> list[FamilySample]:
        return [FamilySample(family, tuple(series.items())) for family, series in self._series.items()]


def _collect_informer(informer: ObservedInformer, rows: _SeriesRows) -> None:
    gvk, statistics = informer.gvk, informer.statistics
    labels = (gvk.group, gvk.version, gvk.kind)
    rows.add(metric_families.INFORMER_SYNCED, labels, informer.synced, min)
    ages = {
        metric_families.INFORMER_AGE: informer.age_seconds,
        metric_families.INFORMER_LISTED: informer.list_age_seconds,
        metric_families.INFORMER_WRITE_LAG: informer.own_write_lag_seconds,
    }
    for family, age in ages.items():
        if age is not None:
            rows.add(family, labels, age, max)
    counts = {
        metric_families.INFORMER_OBJECTS: len(informer.store),
        metric_families.INFORMER_DROPPED: informer.dropped,
        metric_families.INFORMER_UNCONFIRMED: informer.unconfirmed_writes,
        metric_families.INFORMER_LISTS: statistics.lists,
        metric_families.INFORMER_LIST_SECONDS: statistics.list_seconds,
        metric_families.INFORMER_ITEMS: statistics.items_listed,
        metric_families.INFORMER_WATCHES: statistics.watches,
        metric_families.INFORMER_SHORT_WATCHES: statistics.short_watches,
        metric_families.INFORMER_WATCH_SECONDS: statistics.watch_seconds,
        metric_families.INFORMER_EVENTS: statistics.events,
        metric_families.INFORMER_STALE_EVENTS: statistics.stale_events,
        metric_families.INFORMER_LEFT_OUT: statistics.left_out,
    }
    for family, count in counts.items():
        rows.add(family, labels, count)
    # A Prometheus number is exact up to 15 digits.
    rows.add(metric_families.INFORMER_REVISION, labels, parse_revision(statistics.last_resource_version) % 10**15, max)


def _collect_deletions(controller: str, seconds: Collection[float], rows: _SeriesRows) -> None:
    rows.add(metric_families.DELETIONS, (controller,), len(seconds))
    rows.add(metric_families.OLDEST_DELETION, (controller,), max((0.0, *seconds)))


def _collect_certificate(certificate: ObservedCertificate, rows: _SeriesRows) -> None:
    rows.add(metric_families.CERTIFICATE_READS, (), certificate.reads)
    rows.add(metric_families.CERTIFICATE_ERRORS, (), certificate.read_errors)


def _collect_each(items: Callable[[], Iterable[T]], read: Callable[[T], None]) -> None:
    try:
        for item in items():
            _collect_safely(read, item)
    except Exception:  # noqa: BLE001  # the same reason as below
        _log.exception("listing the sources of metrics failed")


def _collect_safely(read: Callable[[T], None], item: T) -> None:
    try:
        read(item)
    except Exception:  # noqa: BLE001  # a source may be author code; a failed scrape would hide all other metrics
        _log.exception("%s: reading it for metrics failed", type(item).__name__)
