"""How an operator is run: what differs between a laptop, a test and production."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from konverge.errors import ConfigurationError
from konverge.kube import ObjectKey
from konverge.kube.names import dns_label_mistakes, dns_subdomain_mistakes
from konverge.operator.permissions import Facilities
from konverge.runtime.election import LeaderElection, Sharding
from konverge.runtime.start import DEFAULT_START_TIMEOUT

if TYPE_CHECKING:  # the servers bring the HTTP library with them, which whoever only declares an operator never needs
    from konverge.runtime.serving import ServingOptions
    from konverge.runtime.webhooks import WebhookOptions

__all__ = ["RunOptions"]

_LAST_PORT = 65535


@dataclass(frozen=True, slots=True)
class RunOptions:
    """How an operator is run.

    Args:
        namespaces: Only owners and objects of these namespaces; all when empty.
        grace: How long passes under way may take to end after the first signal.
        start_timeout: How long each step of the start (discovery, the first lists, webhooks) is tried again when the
            API server refuses it or does not answer, as it does right after its own start. Zero ends the run with the
            first failure.
        function_limit: How long each of an author's synchronous functions (what builds a component, mutations, guards,
            extractors, health, prerequisites, handlers of webhooks) may take: one that never returns would hold up all
            owners. What it cannot end (`konverge.component.time_limit`) is named in the log while it blocks the event
            loop for longer. Zero is without a limit, as it should be under a debugger.
        leases: Several replicas: one works and the others stand by (`LeaderElection`), or each works on a part of the
            owners (`Sharding`). None for a single process.
        serving: Metrics, probes and the debug page; None serves nothing.
        webhooks: Where the handlers of `Operator.validates`, `defaults` and `converts` are served; None serves none.
        registers_webhooks: Tell the API server of the webhooks; otherwise whoever deploys the operator does.
        records_events: Record what happens to owners' objects as Kubernetes events.
        traces: Make OpenTelemetry spans, for the program's global tracer provider.
        checks_permissions: Ask the API server at start what it would refuse, and log each missing rule.
        home: The operator's own namespace, where Leases are.

    Raises:
        ConfigurationError: A namespace or another name is none (an empty one is not "all"), `grace`, `start_timeout` or
            `function_limit` is below zero, or the address of the webhooks cannot be.
    """

    namespaces: tuple[str, ...] = ()
    grace: timedelta = timedelta(seconds=30)
    start_timeout: timedelta = DEFAULT_START_TIMEOUT
    function_limit: timedelta = timedelta(seconds=5)
    leases: LeaderElection | Sharding | None = None
    serving: ServingOptions | None = None
    webhooks: WebhookOptions | None = None
    registers_webhooks: bool = False
    records_events: bool = True
    traces: bool = False
    checks_permissions: bool = False
    home: str = "default"

    def __post_init__(self) -> None:
        if isinstance(self.namespaces, str):
            raise ConfigurationError(f"namespaces: expected a tuple of names, found the text {self.namespaces!r}")
        mistakes = [
            f"namespace {namespace!r}: {mistake}"
            for namespace in (*self.namespaces, self.home)
            for mistake in dns_label_mistakes(namespace)
        ]
        mistakes += [
            f"{name}: expected zero or more, found {getattr(self, name).total_seconds():g} s"
            for name in ("grace", "start_timeout", "function_limit")
            if getattr(self, name) < timedelta()
        ]
        if self.webhooks is not None:
            mistakes += _webhook_mistakes(self.webhooks)
            mistakes += _port_mistakes(self.webhooks, self.serving)
        if mistakes:
            raise ConfigurationError("; ".join(mistakes))

    @property
    def facilities(self) -> Facilities:
        """What of this needs permissions."""
        secret = None if self.webhooks is None else self.webhooks.certificate_secret
        return Facilities(
            records_events=self.records_events,
            elects_leader=isinstance(self.leases, LeaderElection),
            shards=isinstance(self.leases, Sharding),
            lease="" if self.leases is None else self.leases.name,
            authenticates_metrics=self.serving is not None and self.serving.authenticate_with_cluster,
            registers_webhooks=self.webhooks is not None and self.registers_webhooks,
            certificate_secret="" if secret is None else secret.name,
        )


def _webhook_mistakes(options: WebhookOptions) -> list[str]:
    """What of it cannot be: asyncio takes a port modulo 65,536, and the API server would call another host."""
    mistakes = []
    if not 0 <= options.port <= _LAST_PORT:
        mistakes.append(f"the port of the webhooks: expected 0 to {_LAST_PORT}, found {options.port}")
    if any(letter.isspace() or letter in "/[]" for letter in options.host):
        mistakes.append(f"the host of the webhooks: expected a name or an IP address, found {options.host!r}")
    if (service := options.service) is not None:
        mistakes += _name_mistakes("Service", ObjectKey(service.namespace, service.name), dns_label_mistakes)
    if (secret := options.certificate_secret) is not None:
        mistakes += _name_mistakes("Secret", secret, dns_subdomain_mistakes)
        if options.certificate_folder is not None:
            mistakes.append("the certificate of the webhooks: a folder and a Secret exclude each other")
    return mistakes


def _port_mistakes(webhooks: WebhookOptions, serving: ServingOptions | None) -> Iterator[str]:
    if serving is None:
        return
    from konverge.runtime.serving.addresses import Address, parse_address

    here = Address(webhooks.host, webhooks.port)
    for what, text in (("metrics", serving.metrics_address), ("probes", serving.probe_address)):
        there = parse_address(text)
        if there is not None and there.takes_from(here):
            yield f"webhooks and {what} are two servers, and both were given port {here.port}: choose different ones"


def _name_mistakes(kind: str, key: ObjectKey, mistakes_in: Callable[[str], list[str]]) -> Iterator[str]:
    for mistake in dns_label_mistakes(key.namespace):
        yield f"the {kind} of the webhooks: namespace {key.namespace!r}: {mistake}"
    for mistake in mistakes_in(key.name):
        yield f"the {kind} of the webhooks: name {key.name!r}: {mistake}"
