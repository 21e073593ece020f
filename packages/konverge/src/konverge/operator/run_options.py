"""How an operator is run: what differs between a laptop, a test and production."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from konverge.errors import ConfigurationError
from konverge.kube import ObjectKey
from konverge.kube.name_validation import validate_dns_label, validate_dns_subdomain
from konverge.operator.permission_derivation import RuntimeFeatures
from konverge.runtime.election import LeaderElection, Sharding
from konverge.runtime.start_steps import DEFAULT_START_TIMEOUT

if TYPE_CHECKING:  # the servers bring the HTTP library with them, which whoever only declares an operator never needs
    from konverge.runtime.observability import ObservabilityOptions
    from konverge.runtime.webhooks import WebhookOptions

__all__ = ["RunOptions"]

_MAX_PORT = 65535


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
        observability: Metrics, probes and the debug page; None serves nothing.
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
    observability: ObservabilityOptions | None = None
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
            for mistake in validate_dns_label(namespace)
        ]
        mistakes += [
            f"{name}: expected zero or more, found {getattr(self, name).total_seconds():g} s"
            for name in ("grace", "start_timeout", "function_limit")
            if getattr(self, name) < timedelta()
        ]
        if self.webhooks is not None:
            mistakes += _validate_webhooks(self.webhooks)
            mistakes += _validate_ports(self.webhooks, self.observability)
        if mistakes:
            raise ConfigurationError("; ".join(mistakes))

    @property
    def runtime_features(self) -> RuntimeFeatures:
        """What of this needs permissions."""
        secret = None if self.webhooks is None else self.webhooks.certificate_secret
        return RuntimeFeatures(
            records_events=self.records_events,
            elects_leader=isinstance(self.leases, LeaderElection),
            shards=isinstance(self.leases, Sharding),
            lease="" if self.leases is None else self.leases.name,
            authenticates_metrics=self.observability is not None and self.observability.authenticate_with_cluster,
            registers_webhooks=self.webhooks is not None and self.registers_webhooks,
            certificate_secret="" if secret is None else secret.name,
        )


def _validate_webhooks(options: WebhookOptions) -> list[str]:
    """What of it cannot be: asyncio takes a port modulo 65,536, and the API server would call another host."""
    mistakes = []
    if not 0 <= options.port <= _MAX_PORT:
        mistakes.append(f"the port of the webhooks: expected 0 to {_MAX_PORT}, found {options.port}")
    if any(letter.isspace() or letter in "/[]" for letter in options.host):
        mistakes.append(f"the host of the webhooks: expected a name or an IP address, found {options.host!r}")
    if (service := options.service) is not None:
        mistakes += _validate_name("Service", ObjectKey(service.namespace, service.name), validate_dns_label)
    if (secret := options.certificate_secret) is not None:
        mistakes += _validate_name("Secret", secret, validate_dns_subdomain)
        if options.certificate_folder is not None:
            mistakes.append("the certificate of the webhooks: a folder and a Secret exclude each other")
    return mistakes


def _validate_ports(webhooks: WebhookOptions, observability: ObservabilityOptions | None) -> Iterator[str]:
    if observability is None:
        return
    from konverge.runtime.observability.listen_address import ListenAddress, parse_listen_address

    here = ListenAddress(webhooks.host, webhooks.port)
    for what, text in (("metrics", observability.metrics_address), ("probes", observability.probe_address)):
        there = parse_listen_address(text)
        if there is not None and there.conflicts_with(here):
            yield f"webhooks and {what} are two servers, and both were given port {here.port}: choose different ones"


def _validate_name(kind: str, key: ObjectKey, validate: Callable[[str], list[str]]) -> Iterator[str]:
    for mistake in validate_dns_label(key.namespace):
        yield f"the {kind} of the webhooks: namespace {key.namespace!r}: {mistake}"
    for mistake in validate(key.name):
        yield f"the {kind} of the webhooks: name {key.name!r}: {mistake}"
