"""How an operator is run: what differs between a laptop, a test and production."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from konverge.operator.permissions import Facilities
from konverge.runtime.election import LeaderElection, Sharding

if TYPE_CHECKING:  # the servers bring the HTTP library with them, which whoever only declares an operator never needs
    from konverge.runtime.serving import ServingOptions
    from konverge.runtime.webhooks import WebhookOptions

__all__ = ["RunOptions"]


@dataclass(frozen=True, slots=True)
class RunOptions:
    """How an operator is run.

    Args:
        namespaces: Only owners and objects of these namespaces; all when empty.
        grace: How long passes under way may take to end after the first signal.
        leases: Several replicas: one works and the others stand by (`LeaderElection`), or each works on a part of the
            owners (`Sharding`). None for a single process.
        serving: Metrics, probes and the debug page; None serves nothing.
        webhooks: Where the handlers of `Operator.validates`, `defaults` and `converts` are served; None serves none.
        registers_webhooks: Tell the API server of the webhooks; otherwise whoever deploys the operator does.
        records_events: Record what happens to owners' objects as Kubernetes events.
        traces: Make OpenTelemetry spans, for the program's global tracer provider.
        checks_permissions: Ask the API server at start what it would refuse, and log each missing rule.
        home: The operator's own namespace, where Leases are.
    """

    namespaces: tuple[str, ...] = ()
    grace: timedelta = timedelta(seconds=30)
    leases: LeaderElection | Sharding | None = None
    serving: ServingOptions | None = None
    webhooks: WebhookOptions | None = None
    registers_webhooks: bool = False
    records_events: bool = True
    traces: bool = False
    checks_permissions: bool = False
    home: str = "default"

    @property
    def facilities(self) -> Facilities:
        """What of this needs permissions."""
        return Facilities(
            records_events=self.records_events,
            elects_leader=isinstance(self.leases, LeaderElection),
            shards=isinstance(self.leases, Sharding),
            authenticates_metrics=self.serving is not None and self.serving.authenticate_with_cluster,
            registers_webhooks=self.webhooks is not None and self.registers_webhooks,
            keeps_certificate=self.webhooks is not None and self.webhooks.certificate_secret is not None,
        )
