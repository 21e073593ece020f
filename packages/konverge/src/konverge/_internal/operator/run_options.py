"""The options of a run: the differences between a laptop, a test and production."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from konverge._internal.kube import ObjectKey
from konverge._internal.kube.name_validation import validate_dns_label, validate_dns_subdomain
from konverge._internal.operator.permission_derivation import RuntimeFeatures
from konverge._internal.runtime.election import LeaderElection, Sharding
from konverge._internal.runtime.start_steps import DEFAULT_START_TIMEOUT
from konverge.errors import ConfigurationError

if TYPE_CHECKING:  # the servers load the HTTP library, which the declaration of an operator does not need
    from konverge._internal.runtime.observability import ObservabilityOptions
    from konverge._internal.runtime.webhooks import WebhookOptions

__all__ = ["RunOptions"]

_MAX_PORT = 65535


@dataclass(frozen=True, slots=True)
class RunOptions:
    """The options of a run of an operator.

    Args:
        namespaces: The namespaces of owners and objects; all namespaces if empty.
        grace: The time for running reconciles to finish after the first signal.
        start_timeout: The time for retries of each start step (discovery, the first lists, webhooks) while the API
            server refuses requests or does not answer, for example after its own start. Zero ends the run at the first
            failure.
        function_limit: The time limit of each synchronous author function (component factories, mutations, guards,
            extractors, health, prerequisites, webhook handlers, `is_needed`, predicates, mapping and index functions):
            a function that never returns would block all owners.
            The log names a function that cannot be interrupted (`component.time_limit`) while it blocks the
            event loop. Zero is without a limit; use it with a debugger.
        leases: The coordination of several replicas: one is active and the others stand by (`LeaderElection`), or each
            reconciles a part of the owners (`Sharding`). None for a single process.
        observability: The servers of metrics, probes and the debug page; None serves nothing.
        webhooks: The server of the handlers of `Operator.validates`, `defaults` and `converts`; None serves none.
        registers_webhooks: True to register the webhooks with the API server; otherwise the deployment does.
        records_events: True to record writes to owners' objects as Kubernetes events.
        diagnoses: True to examine the pods, claims and events of late workloads, for the messages of conditions.
        traces: True to create OpenTelemetry spans with the program's global tracer provider.
        checks_permissions: True to check the permissions at startup and log each missing rule.
        home: The operator's own namespace, which has its Leases.

    Raises:
        ConfigurationError: A namespace or another name is invalid (an empty one is not "all"); `grace`, `start_timeout`
            or `function_limit` is below zero; or the address of the webhooks is invalid.
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
    diagnoses: bool = True
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
        """The features of the run that require permissions."""
        secret = None if self.webhooks is None else self.webhooks.certificate_secret
        return RuntimeFeatures(
            records_events=self.records_events,
            diagnoses=self.diagnoses,
            elects_leader=isinstance(self.leases, LeaderElection),
            shards=isinstance(self.leases, Sharding),
            lease="" if self.leases is None else self.leases.name,
            authenticates_metrics=self.observability is not None and self.observability.authenticate_with_cluster,
            registers_webhooks=self.webhooks is not None and self.registers_webhooks,
            certificate_secret="" if secret is None else secret.name,
        )


def _validate_webhooks(options: WebhookOptions) -> list[str]:
    """Find invalid values: asyncio takes a port modulo 65,536, and the API server would call another host."""
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
    from konverge._internal.runtime.observability.listen_address import ListenAddress, parse_listen_address

    here = ListenAddress(webhooks.host, webhooks.port)
    for what, text in (("metrics", observability.metrics_address), ("probes", observability.probe_address)):
        there = parse_listen_address(text)
        if there is not None and there.conflicts_with(here):
            yield f"webhooks and {what} are two servers with the same port {here.port}: expected different ports"


def _validate_name(kind: str, key: ObjectKey, validate: Callable[[str], list[str]]) -> Iterator[str]:
    for mistake in validate_dns_label(key.namespace):
        yield f"the {kind} of the webhooks: namespace {key.namespace!r}: {mistake}"
    for mistake in validate(key.name):
        yield f"the {kind} of the webhooks: name {key.name!r}: {mistake}"
