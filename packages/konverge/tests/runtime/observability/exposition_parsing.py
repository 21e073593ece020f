"""Parsing of an exposition with prometheus-client's own parser."""

from __future__ import annotations

from prometheus_client.metrics_core import Metric
from prometheus_client.parser import text_string_to_metric_families

from konverge.observability import Metrics


def parse_exposition(text: str) -> dict[str, Metric]:
    """Return the families by their exposed names."""
    found: dict[str, Metric] = {}
    for metric in text_string_to_metric_families(text):
        name = f"{metric.name}_total" if metric.type == "counter" else metric.name
        assert name not in found, f"{name} is exposed twice"
        found[name] = metric
    return found


def scrape(metrics: Metrics) -> dict[str, Metric]:
    """Return the families of a scrape now."""
    return parse_exposition(metrics.take_snapshot().write().body.decode())


def read_sample(metrics: Metrics, sample: str, **labels: str) -> float:
    """Return the value of the one series with these labels."""
    found = [
        each.value
        for metric in scrape(metrics).values()
        for each in metric.samples
        if each.name == sample and each.labels == labels
    ]
    assert len(found) == 1, f"{sample}{labels} is there {len(found)} times"
    return found[0]
