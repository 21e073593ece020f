"""What a run tells of requests and of its ConfigMaps: events, metrics and, of mistakes in a ConfigMap, the log.

A failure is one event, and so is a request that is slow; success is none.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from konverge.clock import Clock
from konverge.kube import Object
from konverge.operator.owner_context import OperatorRun
from konverge_resolution.errors import ResolutionError
from konverge_resolution.reasons import Reason
from konverge_resolution.requests.metrics import RequestMetrics
from konverge_resolution.requests.resolution_config import ResolutionConfig
from konverge_resolution.requests.tekton_settings import CONFIG_MAPS

__all__ = ["RequestReporter"]

_log = logging.getLogger("konverge.resolution")

_IGNORED = "SettingsIgnored"
_SLOW = "SlowResolution"


@dataclass(frozen=True, slots=True)
class _PendingRequest:
    resolver: str
    created: datetime


class RequestReporter:
    """What is told in one run, each thing once.

    Args:
        run: The run, with its events and metrics, if it has any.
        clock: The time.
    """

    def __init__(self, run: OperatorRun, clock: Clock) -> None:
        self._events = run.events
        self._clock = clock
        self._metrics = None if run.metrics is None else RequestMetrics(run.metrics)
        self._pending: dict[str, _PendingRequest] = {}
        self._reported_slow: set[str] = set()
        self._reported_errors: dict[str, tuple[str, ...]] = {}

    def report_config(self, config_maps: Mapping[str, Object], found: ResolutionConfig) -> None:
        """The ConfigMaps have changed: tell what is wrong with one, or of no use in it, unless that was told before.

        Args:
            config_maps: They, by name.
            found: What they come to.
        """
        message = {**found.ignored, **found.errors}
        for name, problems in message.items():
            if self._reported_errors.get(name) == problems:
                continue
            text = "; ".join(problems)
            if name in found.errors:
                reason = Reason.INVALID_CONFIGURATION.value
                _log.error("ConfigMap %s cannot be used: %s", name, text)
            else:
                reason = _IGNORED
                _log.warning("ConfigMap %s has settings that change nothing: %s", name, text)
            # A mistake in Tekton's ConfigMap is listed under the name of ours, which need not be there.
            about = config_maps.get(name) or config_maps.get(CONFIG_MAPS.get(name.rpartition("-")[2], ""))
            if about is not None:
                self._warn(about, reason, text, "Configure")
        self._reported_errors = message

    def track_pending(self, uid: str, resolver: str, created: datetime) -> None:
        """A request has not ended."""
        self._pending[uid] = _PendingRequest(resolver, created)

    def report_slow(self, request: Object, resolver: str, deadline: datetime) -> None:
        """Half of a request's time is over."""
        uid = str(request["metadata"]["uid"])
        if uid in self._reported_slow:
            return
        self._reported_slow.add(uid)
        left = max(0.0, (deadline - self._clock.now()).total_seconds())
        message = f"resolver {resolver!r} has no result yet, and half of the time is over: {left:.3g} s are left"
        self._warn(request, _SLOW, message, "Resolve")

    def report_failure(self, request: Object, error: ResolutionError) -> None:
        """A request has ended without a result; its metrics are told by `ended`."""
        self._warn(request, error.reason.value, error.message, "Resolve")

    def record_end(self, resolver: str, reason: str, fetched_from: str, created: datetime) -> None:
        """A request has ended.

        Args:
            resolver: Its label.
            reason: Why, as the metrics have it.
            fetched_from: Where its content is from.
            created: When it was created.
        """
        if self._metrics is not None:
            self._metrics.record_end(resolver, reason, fetched_from, self._compute_age(created))

    def forget(self, uid: str) -> None:
        """A request is finished, gone or somebody else's: nothing more is told of it."""
        self._pending.pop(uid, None)
        self._reported_slow.discard(uid)

    def update_metrics(self, fetches: int) -> None:
        """So many fetches are under way now; the metrics of what is pending are of now, too."""
        if self._metrics is not None:
            ages = [(each.resolver, self._compute_age(each.created)) for each in self._pending.values()]
            self._metrics.set_pending(ages, fetches)

    def _compute_age(self, created: datetime) -> float:
        return (self._clock.now() - created).total_seconds()

    def _warn(self, about: Object, reason: str, message: str, action: str) -> None:
        if self._events is not None:
            self._events.warning(about, reason=reason, message=message, action=action)
