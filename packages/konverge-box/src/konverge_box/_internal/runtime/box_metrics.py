"""The metrics of a box, in addition to those of every operator.

    konverge_box_passes_total{box,crd,result}              reconciles by result: success, denied, waiting, error
    konverge_box_step_seconds{box,crd,step}                duration of each step of a reconcile
    konverge_box_validation_total{box,crd,result}          validated custom resources: passed, warned, rejected
    konverge_box_consecutive_failures{box,crd}             reconciles in a row that have failed
    konverge_box_degraded{box,crd}                         1 while failureThreshold or more in a row have failed
    konverge_box_reloads_total{box,result}                 changed files: applied, refused
    konverge_box_file_refused{box}                         1 while the file cannot be used

``crd`` is the file's name for the custom resource. No label contains the name of an object.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from konverge_box._internal.runtime.box_health import BoxHealth, BoxReconcileResult
from konverge_box._internal.runtime.reconcile_state import ReconcileState

if TYPE_CHECKING:
    from konverge._internal.runtime.observability import Metrics

__all__ = ["BoxMetrics", "StepTimer"]

_SECONDS = (0.0001, 0.0005, 0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 10.0, 60.0)


class BoxMetrics:
    """The metrics of one box in one run.

    Args:
        box: The box's name.
        metrics: The metrics of the run, which exports them.
    """

    def __init__(self, box: str, metrics: Metrics) -> None:
        from prometheus_client import Counter, Gauge, Histogram

        registry = metrics.registry
        self._box = box
        crd_labels = ["box", "crd"]
        self._passes = Counter(
            "konverge_box_passes_total", "Reconciles by result", [*crd_labels, "result"], registry=registry
        )
        self._seconds = Histogram(
            "konverge_box_step_seconds",
            "Duration of the steps of reconciles in seconds",
            [*crd_labels, "step"],
            buckets=_SECONDS,
            registry=registry,
        )
        self._validation = Counter(
            "konverge_box_validation_total",
            "Validated custom resources by result",
            [*crd_labels, "result"],
            registry=registry,
        )
        self._failures = Gauge(
            "konverge_box_consecutive_failures", "Reconciles in a row that have failed", crd_labels, registry=registry
        )
        self._degraded = Gauge(
            "konverge_box_degraded",
            "1 while failureThreshold or more reconciles in a row have failed",
            crd_labels,
            registry=registry,
        )
        self._reloads = Counter(
            "konverge_box_reloads_total",
            "Changed box files by result",
            ["box", "result"],
            registry=registry,
        )
        self._refused = Gauge(
            "konverge_box_file_refused", "1 while the box file cannot be used", ["box"], registry=registry
        )
        self._refused.labels(box).set(0)

    def record_step(self, crd: str, step: str, seconds: float) -> None:
        """Record the duration of a step."""
        self._seconds.labels(self._box, crd, step).observe(seconds)

    def record_validation(self, crd: str, *, denied: bool, warned: bool) -> None:
        """Record the result of validating a custom resource."""
        result = "rejected" if denied else "warned" if warned else "passed"
        self._validation.labels(self._box, crd, result).inc()

    def record_reconcile(self, crd: str, result: BoxReconcileResult, health: BoxHealth) -> None:
        """Record the end of a reconcile."""
        self._passes.labels(self._box, crd, result.value).inc()
        self._failures.labels(self._box, crd).set(health.resources[crd].failures)
        self._degraded.labels(self._box, crd).set(int(health.resources[crd].is_degraded))

    def record_reload(self, *, applied: bool) -> None:
        """Record whether a changed file is in use now."""
        self._reloads.labels(self._box, "applied" if applied else "refused").inc()
        self._refused.labels(self._box).set(int(not applied))


@dataclass(frozen=True, slots=True)
class StepTimer:
    """The observer that records the duration of each step (`runtime.box_reconciler.StepObserver`).

    Args:
        metrics: The metrics of the box.
        crd: The file's name for the custom resource.
    """

    metrics: BoxMetrics
    crd: str

    def on_step(self, step: str, seconds: float, state: ReconcileState) -> None:
        """Record the duration of a step."""
        self.metrics.record_step(self.crd, step, seconds)
