"""What a run counts of a box, beside what is counted of every operator.

    konverge_box_passes_total{box,crd,result}              passes by how they ended: success, denied, waiting, error
    konverge_box_step_seconds{box,crd,step}                how long each step of a pass took
    konverge_box_validation_total{box,crd,result}          custom resources that were passed, warned of, rejected
    konverge_box_consecutive_failures{box,crd}             how many passes in a row have failed
    konverge_box_degraded{box,crd}                         1 while too many have
    konverge_box_reloads_total{box,result}                 changed files by what became of them: applied, refused
    konverge_box_file_refused{box}                         1 while the file is one that cannot be used

``crd`` is the file's name for the custom resource. No label holds the name of an object.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from konverge_box.runtime.box_health import BoxHealth, BoxReconcileResult

if TYPE_CHECKING:
    from konverge.runtime.observability import Metrics

__all__ = ["BoxMetrics"]

_SECONDS = (0.0001, 0.0005, 0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 10.0, 60.0)


class BoxMetrics:
    """The metrics of one box in one run.

    Args:
        box: The box's name.
        metrics: Where they are exported.
    """

    def __init__(self, box: str, metrics: Metrics) -> None:
        from prometheus_client import Counter, Gauge, Histogram

        registry = metrics.registry
        self._box = box
        of_crd = ["box", "crd"]
        self._passes = Counter(
            "konverge_box_passes_total", "Passes by how they ended", [*of_crd, "result"], registry=registry
        )
        self._seconds = Histogram(
            "konverge_box_step_seconds",
            "How long the steps of passes took",
            [*of_crd, "step"],
            buckets=_SECONDS,
            registry=registry,
        )
        self._validation = Counter(
            "konverge_box_validation_total",
            "Custom resources by what validation said",
            [*of_crd, "result"],
            registry=registry,
        )
        self._failures = Gauge(
            "konverge_box_consecutive_failures", "Passes in a row that have failed", of_crd, registry=registry
        )
        self._degraded = Gauge(
            "konverge_box_degraded", "1 while too many passes in a row have failed", of_crd, registry=registry
        )
        self._reloads = Counter(
            "konverge_box_reloads_total",
            "Changed box files by what became of them",
            ["box", "result"],
            registry=registry,
        )
        self._refused = Gauge(
            "konverge_box_file_refused", "1 while the box's file cannot be used", ["box"], registry=registry
        )
        self._refused.labels(box).set(0)

    def record_step(self, crd: str, step: str, seconds: float) -> None:
        """A step took so long."""
        self._seconds.labels(self._box, crd, step).observe(seconds)

    def record_validation(self, crd: str, *, denied: bool, warned: bool) -> None:
        """Validation said something of a custom resource."""
        result = "rejected" if denied else "warned" if warned else "passed"
        self._validation.labels(self._box, crd, result).inc()

    def record_reconcile(self, crd: str, result: BoxReconcileResult, health: BoxHealth) -> None:
        """A pass has ended."""
        self._passes.labels(self._box, crd, result.value).inc()
        self._failures.labels(self._box, crd).set(health.resources[crd].failures)
        self._degraded.labels(self._box, crd).set(int(health.resources[crd].is_degraded))

    def record_reload(self, *, applied: bool) -> None:
        """A changed file was looked at."""
        self._reloads.labels(self._box, "applied" if applied else "refused").inc()
        self._refused.labels(self._box).set(int(not applied))
