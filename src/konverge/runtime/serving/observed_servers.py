"""What leader election, certificates, webhooks and the engine's applies tell, counted."""

from __future__ import annotations

from konverge.runtime.serving import families
from konverge.runtime.serving.series import FamilySample, distributions, numbers

__all__ = ["CertificateMetrics", "LeaseMetrics", "ResourceMetrics", "WebhookMetrics", "WebhookPathMetrics"]


class LeaseMetrics:
    """The Leases that this process takes part in. May be told from another thread."""

    def __init__(self) -> None:
        self._status = numbers(families.LEADER)
        self._slow_paths = numbers(families.LEADER_SLOW_PATH)

    def changed(self, name: str, *, is_leader: bool) -> None:
        """This process holds the Lease of that name from now on, or does not; to be told once at the start too."""
        self._status.of(name).value = float(is_leader)
        self._slow_paths.of(name)

    def slow_path(self, name: str) -> None:
        """A renewal had to read the Lease before it could write it."""
        self._slow_paths.of(name).value += 1

    def read(self) -> list[FamilySample]:
        """All of them now."""
        return [self._status.read(), self._slow_paths.read()]


class CertificateMetrics:
    """The certificates that servers of this process read from files."""

    def __init__(self) -> None:
        self._reads = numbers(families.CERTIFICATE_READS)
        self._errors = numbers(families.CERTIFICATE_ERRORS)
        self._read, self._error = self._reads.of(), self._errors.of()

    def was_read(self) -> None:
        """A certificate was read; it need not be another than before."""
        self._read.value += 1

    def failed(self) -> None:
        """A certificate could not be read; the one before stays."""
        self._error.value += 1

    def read(self) -> list[FamilySample]:
        """All of them now."""
        return [self._reads.read(), self._errors.read()]


class WebhookMetrics:
    """The admission and conversion requests of all webhooks."""

    def __init__(self) -> None:
        self.seconds = distributions(families.WEBHOOK_SECONDS)
        self.requests = numbers(families.WEBHOOK_REQUESTS)
        self.in_flight = numbers(families.WEBHOOK_IN_FLIGHT)

    def of(self, path: str) -> WebhookPathMetrics:
        """Where the webhook of that path tells its requests; its series exist from then on."""
        return WebhookPathMetrics(path, self)

    def read(self) -> list[FamilySample]:
        """All of them now."""
        return [self.seconds.read(), self.requests.read(), self.in_flight.read()]


class WebhookPathMetrics:
    """The requests of one webhook.

    Args:
        path: The webhook's path as it is registered, never one that a request came with.
        metrics: Where they are counted.
    """

    def __init__(self, path: str, metrics: WebhookMetrics) -> None:
        self._path = path
        self._requests = metrics.requests
        for code in ("200", "500"):
            metrics.requests.of(path, code)
        self._seconds = metrics.seconds.of(path)
        self._in_flight = metrics.in_flight.of(path)

    def started(self) -> None:
        """A request has come."""
        self._in_flight.value += 1

    def finished(self, code: int, *, seconds: float) -> None:
        """It was answered with that HTTP status after so long; 499 when its sender did not wait."""
        self._in_flight.value -= 1
        self._requests.of(self._path, str(code)).value += 1
        self._seconds.observe(seconds)


class ResourceMetrics:
    """What became of each resource that a component wanted in a pass."""

    def __init__(self) -> None:
        self._applies = numbers(families.APPLIES)
        self._errors = numbers(families.APPLY_ERRORS)

    def applied(
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
        self._applies.of(controller, owner_kind, component, resource, kind, operation).value += 1

    def failed(self, controller: str, *, owner_kind: str, component: str, resource: str, kind: str) -> None:
        """The resource could not be brought to the state wanted."""
        self._errors.of(controller, owner_kind, component, resource, kind).value += 1

    def read(self) -> list[FamilySample]:
        """All of them now."""
        return [self._applies.read(), self._errors.read()]
