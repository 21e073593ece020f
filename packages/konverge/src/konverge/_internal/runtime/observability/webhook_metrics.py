"""Metrics of webhooks and of the engine's applies."""

from __future__ import annotations

from konverge._internal.runtime.observability import metric_families
from konverge._internal.runtime.observability.metric_series import (
    FamilySample,
    build_histogram_series,
    build_number_series,
)

__all__ = ["ResourceMetrics", "WebhookMetrics"]


class WebhookMetrics:
    """Metrics of admission and conversion requests: a `runtime.webhooks.WebhookObserver`.

    The label ``webhook`` is a registered path, never the path of an arbitrary request.
    """

    def __init__(self) -> None:
        self._seconds = build_histogram_series(metric_families.WEBHOOK_SECONDS)
        self._requests = build_number_series(metric_families.WEBHOOK_REQUESTS)
        self._in_flight = build_number_series(metric_families.WEBHOOK_IN_FLIGHT)
        self._refused = build_number_series(metric_families.WEBHOOK_REFUSED)

    def add_webhook(self, webhook: str) -> None:
        """Create the series of a webhook, at 0."""
        for code in ("200", "500"):
            self._requests.get_child(webhook, code)
        self._seconds.get_child(webhook)
        self._in_flight.get_child(webhook)

    def on_start(self, webhook: str) -> None:
        """Count a request that has arrived."""
        self._in_flight.get_child(webhook).value += 1

    def on_finish(self, webhook: str, code: int, *, seconds: float) -> None:
        """Record the response to a request with its HTTP status and duration; 499 for a client that disconnected."""
        self._in_flight.get_child(webhook).value -= 1
        self._requests.get_child(webhook, str(code)).value += 1
        self._seconds.get_child(webhook).observe(seconds)

    def on_refusal(self, reason: str) -> None:
        """Count a request that was refused before any handler ran; the reason is one of few."""
        self._refused.get_child(reason).value += 1

    def read(self) -> list[FamilySample]:
        """Return the present samples of all families."""
        return [self._seconds.read(), self._requests.read(), self._in_flight.read(), self._refused.read()]


class ResourceMetrics:
    """Metrics of the resources that components apply in reconciles."""

    def __init__(self) -> None:
        self._applies = build_number_series(metric_families.APPLIES)
        self._errors = build_number_series(metric_families.APPLY_ERRORS)

    def record_apply(
        self, controller: str, *, owner_kind: str, component: str, resource: str, kind: str, operation: str
    ) -> None:
        """Count a resource that is in its desired state.

        Args:
            controller: The controller's name.
            owner_kind: The owner's kind.
            component: The component's name.
            resource: The resource's name in the component; its kind in lower case if its name differs between owners.
            kind: The resource's kind.
            operation: ``created``, ``updated``, or ``none`` if it matched and no request was sent.
        """
        self._applies.get_child(controller, owner_kind, component, resource, kind, operation).value += 1

    def record_failure(self, controller: str, *, owner_kind: str, component: str, resource: str, kind: str) -> None:
        """Count a resource whose desired state could not be applied."""
        self._errors.get_child(controller, owner_kind, component, resource, kind).value += 1

    def read(self) -> list[FamilySample]:
        """Return the present samples of all families."""
        return [self._applies.read(), self._errors.read()]
