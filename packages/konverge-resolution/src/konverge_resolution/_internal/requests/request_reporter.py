"""Events, metrics and log messages about requests and ConfigMaps.

A failure causes one event, and so does a slow request; a success causes none.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from konverge._internal.kube import Object
from konverge._internal.operator.owner_context import OperatorRun
from konverge.clock import Clock
from konverge_resolution._internal.engine import ResolutionResult
from konverge_resolution._internal.errors import ResolutionError
from konverge_resolution._internal.reasons import Reason
from konverge_resolution._internal.reference import Digest
from konverge_resolution._internal.requests.metrics import RequestMetrics
from konverge_resolution._internal.requests.resolution_config import ResolutionConfig
from konverge_resolution._internal.requests.tekton_settings import CONFIG_MAPS

__all__ = ["RequestReporter"]

_log = logging.getLogger("konverge.resolution")

_IGNORED = "SettingsIgnored"
_SLOW = "SlowResolution"


@dataclass(frozen=True, slots=True)
class _PendingRequest:
    resolver: str
    created: datetime


class RequestReporter:
    """Reporter of one run; it reports each thing once.

    Args:
        run: The run with its events and metrics, if any.
        clock: The clock.
    """

    def __init__(self, run: OperatorRun, clock: Clock) -> None:
        self._events = run.events
        self._clock = clock
        self._metrics = None if run.metrics is None else RequestMetrics(run.metrics)
        self._pending: dict[str, _PendingRequest] = {}
        self._reported_slow: set[str] = set()
        self._reported_errors: dict[str, tuple[str, ...]] = {}

    def report_config(self, config_maps: Mapping[str, Object], config: ResolutionConfig) -> None:
        """Report the errors and the unused settings of changed ConfigMaps, unless they were reported before.

        Args:
            config_maps: The ConfigMaps by name.
            config: The configuration that was parsed from them.
        """
        findings = {**config.ignored, **config.errors}
        for name, problems in findings.items():
            if self._reported_errors.get(name) == problems:
                continue
            text = "; ".join(problems)
            if name in config.errors:
                reason = Reason.INVALID_CONFIGURATION.value
                _log.error("ConfigMap %s is invalid: %s", name, text)
            else:
                reason = _IGNORED
                _log.warning("ConfigMap %s has settings without effect: %s", name, text)
            # An error in Tekton's ConfigMap is listed under the name of konverge's ConfigMap, which may not exist.
            about = config_maps.get(name) or config_maps.get(CONFIG_MAPS.get(name.rpartition("-")[2], ""))
            if about is not None:
                self._warn(about, reason, text, "Configure")
        self._reported_errors = findings

    def track_pending(self, uid: str, resolver: str, created: datetime) -> None:
        """Record a request that has not ended."""
        self._pending[uid] = _PendingRequest(resolver, created)

    def report_slow(self, request: Object, resolver: str, deadline: datetime) -> None:
        """Report once that half of a request's time has passed."""
        uid = str(request["metadata"]["uid"])
        if uid in self._reported_slow:
            return
        self._reported_slow.add(uid)
        left = max(0.0, (deadline - self._clock.now()).total_seconds())
        message = f"resolver {resolver!r}: no result after half of the time limit: {left:.3g} s are left"
        self._warn(request, _SLOW, message, "Resolve")

    def report_failure(self, request: Object, error: ResolutionError) -> None:
        """Report a request that ended without a result; `record_end` counts it in the metrics."""
        self._warn(request, error.reason.value, error.message, "Resolve")

    def record_end(self, resolver: str, reason: str, fetched_from: str, created: datetime) -> None:
        """Count a request that has ended.

        Args:
            resolver: The label of the resolver.
            reason: The reason in the metrics.
            fetched_from: The origin of the content in the metrics.
            created: The creation time.
        """
        if self._metrics is not None:
            self._metrics.record_end(resolver, reason, fetched_from, self._compute_age(created))

    def log_end(
        self, request: Object, resolver: str, reason: str, created: datetime, result: ResolutionResult | ResolutionError
    ) -> None:
        """Write the log line of a request that has ended.

        Args:
            request: The request.
            resolver: The resolver of its reference.
            reason: The reason of its end.
            created: The creation time.
            result: The result, or the error.
        """
        seconds = round(self._compute_age(created), 3)
        fields: dict[str, object] = {"resolver": resolver, "reason": reason, "seconds": seconds}
        if isinstance(result, ResolutionError):
            fields["error"] = result.message
        else:
            data, source = result.resolved.data, result.resolved.source
            fields |= {"source": str(source), "digest": str(Digest.of(data)), "fetched_from": result.fetched_from}
            fields["attempts"] = result.attempts
        metadata = request["metadata"]
        _log.info("request %s/%s has ended", metadata.get("namespace", ""), metadata["name"], extra=fields)

    def forget(self, uid: str) -> None:
        """Forget a request that is finished, deleted or served by another process."""
        self._pending.pop(uid, None)
        self._reported_slow.discard(uid)

    def update_metrics(self, fetches: int) -> None:
        """Update the metrics of running fetches and unfinished requests."""
        if self._metrics is not None:
            ages = [(request.resolver, self._compute_age(request.created)) for request in self._pending.values()]
            self._metrics.set_pending(ages, fetches)

    def _compute_age(self, created: datetime) -> float:
        return (self._clock.now() - created).total_seconds()

    def _warn(self, about: Object, reason: str, message: str, action: str) -> None:
        if self._events is not None:
            self._events.warning(about, reason=reason, message=message, action=action)
