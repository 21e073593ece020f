"""Conversion of metrics to the text that Prometheus scrapes, by prometheus-client.

It has two steps, because writing ten thousand lines takes as long as sixty thousand watch events. The numbers are
copied in the event loop, which is fast and the only place where they do not change. A thread writes the text.
"""

from __future__ import annotations

import gzip
import logging
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import accumulate
from typing import TYPE_CHECKING, Any

from konverge._internal.runtime.observability.metric_series import FamilySample, HistogramSample
from konverge.errors import ConfigurationError

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry
    from prometheus_client.metrics_core import Metric

__all__ = ["Exposition", "MetricsSnapshot", "build_registries"]

_log = logging.getLogger("konverge.runtime")

_WITH_CREATION = frozenset({"counter", "histogram", "summary"})
# The format that every scraper accepts, and the only one of controller-runtime.
_CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


# The metrics of prometheus-client about the process, which its default registry has as well.
_PROCESS_PREFIXES = ("process_", "python_")


def build_registries() -> tuple[CollectorRegistry, CollectorRegistry, CollectorRegistry]:
    """Return three registries: with prometheus-client's process metrics, an empty one, and prometheus-client's default.

    The default registry has the metrics that an author's modules declare without a registry.

    Raises:
        ConfigurationError: prometheus-client is not installed.
    """
    try:
        import prometheus_client
    except ImportError as error:
        raise ConfigurationError(
            "metrics: expected the package prometheus-client, found none; run pip install 'konverge[metrics]'"
        ) from error
    registry = prometheus_client.CollectorRegistry()
    prometheus_client.ProcessCollector(registry=registry)
    prometheus_client.PlatformCollector(registry=registry)
    prometheus_client.GCCollector(registry=registry)
    return registry, prometheus_client.CollectorRegistry(), prometheus_client.REGISTRY


@dataclass(frozen=True, slots=True)
class Exposition:
    """The response to one scrape."""

    body: bytes
    content_type: str
    is_compressed: bool


class MetricsSnapshot:
    """All metrics at one moment; a collector in prometheus-client's sense, for one collection.

    Args:
        samples: The samples of konverge's own metrics.
        registries: Collected when the text is written, in that order; of two families with one name the first stays.
    """

    def __init__(self, samples: Sequence[FamilySample], registries: Sequence[CollectorRegistry]) -> None:
        self._samples = samples
        self._registries = registries

    def collect(self) -> Iterator[Metric]:
        """Yield the families as prometheus-client's metrics."""
        names: set[str] = set()
        for metric in self._iter_metrics():
            if metric.name in names:
                if not metric.name.startswith(_PROCESS_PREFIXES):
                    _log.warning(
                        "metric %s: expected one family of this name, found two; the second one is dropped", metric.name
                    )
            elif metric.samples:
                names.add(metric.name)
                yield metric

    def _iter_metrics(self) -> Iterator[Metric]:
        yield from map(_build_metric, self._samples)
        for registry in self._registries:
            try:
                metrics = list(registry.collect())
            except Exception:  # noqa: BLE001  # an author's collector must not hide all other metrics
                _log.exception("a metrics collector failed; its registry is dropped from this scrape")
                continue
            for metric in metrics:
                if metric.type in _WITH_CREATION:
                    # The creation time of a series has no use here, and would add a second line for each series.
                    created = f"{metric.name}_created"
                    metric.samples = [sample for sample in metric.samples if sample.name != created]
                yield metric

    def write(self, *, compressed: bool = False) -> Exposition:
        """Return the text format, version 0.0.4. A thousand lines take some 7 ms; it accesses no changing data.

        Args:
            compressed: Whether to compress the text with gzip.
        """
        from prometheus_client import exposition

        body = exposition.generate_latest(self)
        return Exposition(gzip.compress(body, 1) if compressed else body, _CONTENT_TYPE, compressed)


def _build_metric(sample: FamilySample) -> Metric:
    from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily

    family = sample.family
    if family.kind == "histogram":
        histogram = HistogramMetricFamily(family.name, family.help, labels=family.labels)
        bounds = [*(_format_bound(bound) for bound in family.bounds), "+Inf"]
        for labels, reading in sample.series:
            assert isinstance(reading, HistogramSample)
            histogram.add_metric(labels, _cumulate_buckets(bounds, reading.counts), reading.sum)
        return histogram
    built: Any = (CounterMetricFamily if family.kind == "counter" else GaugeMetricFamily)(
        family.name, family.help, labels=family.labels
    )
    for labels, reading in sample.series:
        built.add_metric(labels, reading)
    metric: Metric = built
    return metric


def _cumulate_buckets(bounds: Iterable[str], counts: Sequence[int]) -> list[tuple[str, float]]:
    return list(zip(bounds, map(float, accumulate(counts)), strict=True))


def _format_bound(bound: float) -> str:
    """Return a bound as Go formats it (``strconv``, format ``g``), so that the label ``le`` has the same text."""
    _, digits, exponent = Decimal(repr(bound)).normalize().as_tuple()
    assert isinstance(exponent, int), "a bound is a number"
    power = len(digits) - 1 + exponent
    if -4 <= power < 6:
        return f"{Decimal(repr(bound)).normalize():f}"
    mantissa = "".join(map(str, digits))
    return f"{mantissa[0]}{'.' + mantissa[1:] if mantissa[1:] else ''}e{'-' if power < 0 else '+'}{abs(power):02}"
