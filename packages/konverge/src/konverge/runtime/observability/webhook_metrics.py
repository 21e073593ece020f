"""What webhooks and the engine's applies tell, counted."""

from __future__ import annotations

from konverge.runtime.observability import metric_families
from konverge.runtime.observability.metric_series import FamilySample, build_histogram_series, build_number_series

__all__ = ["ResourceMetrics", "WebhookMetrics"]


class WebhookMetrics:
    """The admission and conversion requests: a `konverge.runtime.webhooks.WebhookObserver`.

    The label ``webhook`` is a path that is registered, never one that a request came with.
    """

    def __init__(self) -> None:
        self._seconds = build_histogram_series(metric_families.WEBHOOK_SECONDS)
        self._requests = build_number_series(metric_families.WEBHOOK_REQUESTS)
        self._in_flight = build_number_series(metric_families.WEBHOOK_IN_FLIGHT)
        self._refused = build_number_series(metric_families.WEBHOOK_REFUSED)

    def add_webhook(self, webhook: str) -> None:
        """Requests for that webhook may come: its series exist from now on, at 0."""
        for code in ("200", "500"):
            self._requests.get_child(webhook, code)
        self._seconds.get_child(webhook)
        self._in_flight.get_child(webhook)

    def on_start(self, webhook: str) -> None:
        """A request has come in."""
        self._in_flight.get_child(webhook).value += 1

    def on_finish(self, webhook: str, code: int, *, seconds: float) -> None:
        """Its answer went out with that HTTP status after so long; 499 when whoever asked went away."""
        self._in_flight.get_child(webhook).value -= 1
        self._requests.get_child(webhook, str(code)).value += 1
        self._seconds.get_child(webhook).observe(seconds)

    def on_refusal(self, reason: str) -> None:
        """A request was answered without anybody having been asked; the reason is one of few."""
        self._refused.get_child(reason).value += 1

    def read(self) -> list[FamilySample]:
        """All of them now."""
        return [self._seconds.read(), self._requests.read(), self._in_flight.read(), self._refused.read()]


class ResourceMetrics:
    """What became of each resource that a component wanted in a pass."""

    def __init__(self) -> None:
        self._applies = build_number_series(metric_families.APPLIES)
        self._errors = build_number_series(metric_families.APPLY_ERRORS)

    def record_apply(
        self, controller: str, *, owner_kind: str, component: str, resource: str, kind: str, operation: str
    ) -> None:
        """The resource is as it is wanted.

        Args:
            controller: The controller's name.
            owner_kind: The owner's kind.
            component: The component's name.
            resource: What the resource is called in the component; its kind in lower case where it has no name that
                is the same for all owners.
            kind: The resource's kind.
            operation: ``created``, ``updated``, or ``none`` when it matched and nothing was sent.
        """
        self._applies.get_child(controller, owner_kind, component, resource, kind, operation).value += 1

    def record_failure(self, controller: str, *, owner_kind: str, component: str, resource: str, kind: str) -> None:
        """The resource could not be brought to the state wanted."""
        self._errors.get_child(controller, owner_kind, component, resource, kind).value += 1

    def read(self) -> list[FamilySample]:
        """All of them now."""
        return [self._applies.read(), self._errors.read()]
