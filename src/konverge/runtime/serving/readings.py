"""What is read at the moment of a scrape: nobody has to keep a gauge up to date that can be asked for.

A source that fails costs its own series and a line in the log; the others are exported as ever.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable
from typing import TypeVar

from konverge.kube.metadata import revision_of
from konverge.runtime.serving import families
from konverge.runtime.serving.families import EXCEEDED, Family
from konverge.runtime.serving.series import FamilySample
from konverge.runtime.serving.sources import ObservedCertificate, ObservedController, ObservedInformer, Sources

__all__ = ["Readings"]

T = TypeVar("T")

_log = logging.getLogger("konverge.runtime.serving")

_MAX_PRIORITIES = 25


class Readings:
    """Reads the sources.

    Args:
        sources: What to read.
    """

    def __init__(self, sources: Sources) -> None:
        self.sources = sources
        """What is read."""
        self.certificates: list[ObservedCertificate] = []
        """Those of servers: each comes when its server does."""
        self._priorities: dict[str, set[int] | None] = {}

    def read(self) -> list[FamilySample]:
        """Everything that the sources say now."""
        rows = _Rows()
        _each(self.sources.controllers, lambda controller: self._controller(controller, rows))
        _each(self.sources.informers, lambda informer: _informer(informer, rows))
        _each(lambda: self.sources.deletion_seconds().items(), lambda found: _deletions(*found, rows))
        _each(lambda: self.sources.leases().items(), lambda lease: rows.add(families.LEADER, (lease[0],), lease[1]))
        for family in (families.CERTIFICATE_READS, families.CERTIFICATE_ERRORS):
            rows.add(family, (), 0)
        _each(lambda: self.certificates, lambda certificate: _certificate(certificate, rows))
        return rows.samples()

    def _controller(self, controller: ObservedController, rows: _Rows) -> None:
        name, queue = controller.name, controller.queue
        running = controller.run_seconds().values()
        rows.add(families.MAX_CONCURRENT, (name,), controller.workers)
        rows.add(families.ACTIVE_WORKERS, (name,), len(running))
        rows.add(families.UNFINISHED_SECONDS, (name, name), sum(running))
        rows.add(families.LONGEST_SECONDS, (name, name), max(running, default=0.0))
        depths = dict(queue.depths())
        # What waits but is not due is work for later, which no number of workers would make less.
        rows.add(families.DELAYED, (name, name), max(0, len(queue) - sum(depths.values())))
        by_label: dict[str, int] = {"0": 0}
        for priority, depth in depths.items():
            label = self._priority_label(name, priority)
            by_label[label] = by_label.get(label, 0) + depth
        for label, depth in by_label.items():
            rows.add(families.DEPTH, (name, name, label), depth)

    def _priority_label(self, name: str, priority: int) -> str:
        """A priority as a label; beyond 25 different ones all are one, for good, as controller-runtime has it."""
        seen = self._priorities.setdefault(name, set())
        if seen is None:
            return EXCEEDED
        seen.add(priority)
        if len(seen) > _MAX_PRIORITIES:
            self._priorities[name] = None
            return EXCEEDED
        return str(priority)


class _Rows:
    """Collects series by family; of two with the same labels (one kind in several namespaces) the sum, or the worst."""

    def __init__(self) -> None:
        self._found: dict[Family, dict[tuple[str, ...], float]] = {}

    def add(
        self, family: Family, labels: tuple[str, ...], value: float, merge: Callable[[tuple[float, float]], float] = sum
    ) -> None:
        series = self._found.setdefault(family, {})
        series[labels] = merge((series[labels], value)) if labels in series else float(value)

    def samples(self) -> list[FamilySample]:
        return [FamilySample(family, tuple(series.items())) for family, series in self._found.items()]


def _informer(informer: ObservedInformer, rows: _Rows) -> None:
    gvk, statistics = informer.gvk, informer.statistics
    labels = (gvk.group, gvk.version, gvk.kind)
    rows.add(families.INFORMER_SYNCED, labels, informer.synced, min)
    ages = {
        families.INFORMER_AGE: informer.age_seconds,
        families.INFORMER_LISTED: informer.list_age_seconds,
        families.INFORMER_WRITE_LAG: informer.own_write_lag_seconds,
    }
    for family, age in ages.items():
        if age is not None:
            rows.add(family, labels, age, max)
    counts = {
        families.INFORMER_OBJECTS: len(informer.store),
        families.INFORMER_DROPPED: informer.dropped,
        families.INFORMER_UNCONFIRMED: informer.unconfirmed_writes,
        families.INFORMER_LISTS: statistics.lists,
        families.INFORMER_LIST_SECONDS: statistics.list_seconds,
        families.INFORMER_ITEMS: statistics.items_listed,
        families.INFORMER_WATCHES: statistics.watches,
        families.INFORMER_SHORT_WATCHES: statistics.short_watches,
        families.INFORMER_WATCH_SECONDS: statistics.watch_seconds,
        families.INFORMER_EVENTS: statistics.events,
        families.INFORMER_STALE_EVENTS: statistics.stale_events,
        families.INFORMER_LEFT_OUT: statistics.left_out,
    }
    for family, count in counts.items():
        rows.add(family, labels, count)
    # A number of Prometheus' is exact up to 15 digits.
    rows.add(families.INFORMER_REVISION, labels, revision_of(statistics.last_resource_version) % 10**15, max)


def _deletions(controller: str, seconds: Collection[float], rows: _Rows) -> None:
    rows.add(families.DELETIONS, (controller,), len(seconds))
    rows.add(families.OLDEST_DELETION, (controller,), max((0.0, *seconds)))


def _certificate(certificate: ObservedCertificate, rows: _Rows) -> None:
    rows.add(families.CERTIFICATE_READS, (), certificate.reads)
    rows.add(families.CERTIFICATE_ERRORS, (), certificate.read_errors)


def _each(items: Callable[[], Iterable[T]], read: Callable[[T], None]) -> None:
    try:
        for item in items():
            _try(read, item)
    except Exception:  # noqa: BLE001  # as below
        _log.exception("the sources of metrics could not be listed")


def _try(read: Callable[[T], None], item: T) -> None:
    try:
        read(item)
    except Exception:  # noqa: BLE001  # a source is anybody's code; a scrape that fails as a whole hides all others
        _log.exception("%s could not be read for metrics", type(item).__name__)
