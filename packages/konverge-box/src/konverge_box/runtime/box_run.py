"""What is kept for one run of a box: how its custom resources do, what its passes share, who is told."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Any

from konverge.kube import Object, ObjectKey
from konverge.operator.owner_context import OperatorRun
from konverge.runtime import Process
from konverge_box.calls import Caller
from konverge_box.file import OperatorBox
from konverge_box.runtime.box_health import BoxHealth, BoxReconcileResult, Wanted
from konverge_box.runtime.box_metrics import BoxMetrics
from konverge_box.runtime.pipeline import Pipeline
from konverge_box.runtime.uniqueness import format_index_key, format_index_name, is_oldest

__all__ = ["BoxRun"]

_log = logging.getLogger("konverge.box")

_MAX_REMEMBERED = 100_000


class BoxRun:
    """One run.

    Args:
        box: The box as it is at the beginning.
        pipelines: Its custom resources by name; the kinds stay the same as long as it runs.
        run: The run of the operator.
        process: The process.
        caller: Makes external calls.
    """

    def __init__(
        self,
        box: OperatorBox,
        pipelines: Mapping[str, Pipeline],
        run: OperatorRun,
        process: Process,
        caller: Caller,
    ) -> None:
        self.name = box.metadata.name
        self.process = process
        self.caller = caller
        self.metrics = None if run.metrics is None else BoxMetrics(self.name, run.metrics)
        self.health = BoxHealth(*_read_health_settings(box))
        self.reload_problem = ""
        self._clock = run.clock
        self._gvks = {name: pipeline.gvk for name, pipeline in pipelines.items()}
        # Asked of the server once: by owner, which conditions are somebody else's.
        self._strangers: dict[tuple[str, str], set[str]] = {}
        run.sections[f"box {self.name}"] = self.build_debug_rows

    def replace_box(self, box: OperatorBox) -> None:
        """The box is another one now: queue all its owners."""
        self.health.configure(*_read_health_settings(box))
        for name, gvk in self._gvks.items():
            self.process.controllers[gvk].workers = box.spec.crds[name].reconcile.workers
            self.process.enqueue(gvk, self.process.list_owners(gvk), reason="the box changed")

    def describe_unmet(self, name: str, key: ObjectKey) -> str:
        """What the passes of this owner have to wait for; empty for nothing."""
        if not self.health.has_started:
            self.health.start({each: self.process.list_owners(gvk) for each, gvk in self._gvks.items()})
        found = self.health.find_unmet(name)
        if found is not None:
            other = found[0]
            self.health.remove_missing(other, self.process.list_owners(self._gvks[other]))
            found = self.health.find_unmet(name)
        if found is None:
            return ""
        self.health.record_waiting(name, key)
        if self.metrics is not None:
            self.metrics.record_reconcile(name, BoxReconcileResult.WAITING, self.health)
        return self.health.describe_unmet(*found)

    def record_reconcile(self, name: str, key: ObjectKey, result: BoxReconcileResult, error: str = "") -> None:
        """A pass has ended; who waited for that is woken."""
        health = self.health.resources[name]
        was_degraded = health.is_degraded
        self.health.record_reconcile(name, key, result, error=error, at=self._clock.now())
        if health.is_degraded != was_degraded:
            if health.is_degraded:
                _log.error("box %s: %s is degraded: %d passes in a row have failed", self.name, name, health.failures)
            else:
                _log.info("box %s: %s is not degraded any more", self.name, name)
        if self.metrics is not None:
            self.metrics.record_reconcile(name, result, self.health)
        for other, keys in self.health.take_unblocked().items():
            self.process.enqueue(self._gvks[other], keys, reason="what it waited for is ready")

    def find_foreign_conditions(self, name: str, uid: str) -> set[str]:
        """The types of conditions of an owner that are known to be somebody else's."""
        if len(self._strangers) >= _MAX_REMEMBERED:
            self._strangers.clear()
        return self._strangers.setdefault((name, uid), set())

    def build_uniqueness_check(self, pipeline: Pipeline, owner: Object) -> Callable[[str, Any], bool]:
        """Tells whether no older object of the custom resource has a value."""

        def check(path: str, value: Any) -> bool:
            keys = self.process.list_keys_by_index(pipeline.gvk, format_index_name(path), format_index_key(value))
            held = (self.process.get_cached(pipeline.gvk, key) for key in keys)
            return is_oldest(owner, [each for each in held if each is not None])

        return check

    def build_debug_rows(self) -> list[dict[str, Any]]:
        """The debug page's table."""
        rows = [
            {
                "custom resource": name,
                "state": health.state,
                "failures in a row": health.failures,
                "waiting": len(health.waiting),
                **{f"passes: {result.value}": health.results[result] for result in BoxReconcileResult},
                "last error": health.last_error,
                "at": "" if health.last_error_at is None else health.last_error_at.isoformat(timespec="seconds"),
            }
            for name, health in self.health.resources.items()
        ]
        return [*rows, *([{"custom resource": "(file)", "state": self.reload_problem}] if self.reload_problem else [])]


def _read_health_settings(box: OperatorBox) -> tuple[dict[str, Mapping[str, Wanted]], dict[str, int]]:
    crds = box.spec.crds
    return (
        {name: declared.depends_on for name, declared in crds.items()},
        {name: declared.reconcile.failure_threshold for name, declared in crds.items()},
    )
