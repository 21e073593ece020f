"""The options of ``konverge run`` for the operator process, and their conversion to `RunOptions`.

An option without effect is an error: the user expects an effect.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any, TypeVar

import click

from konverge._internal.cli.namespaced_name import parse_namespaced_name
from konverge._internal.client.in_cluster import SERVICE_ACCOUNT_FOLDER
from konverge._internal.operator import RunOptions
from konverge._internal.runtime.election import LeaderElection, Sharding
from konverge._internal.runtime.observability import DEFAULT_FRESHNESS, ObservabilityOptions
from konverge._internal.runtime.observability.listen_address import ListenAddress, parse_listen_address
from konverge._internal.runtime.start_steps import DEFAULT_START_TIMEOUT
from konverge._internal.runtime.webhooks import ServiceReference, WebhookOptions
from konverge.errors import ConfigurationError

__all__ = ["RunFlags", "get_pod_namespace", "run_flags"]

F = TypeVar("F", bound=Callable[..., Any])

_OFF = "0"
_LEASE_SECONDS = 15
_MAX_GRACE_SECONDS = 86_400


def _check_duration(ctx: click.Context, parameter: click.Parameter, seconds: float) -> float:
    """Return the duration if it is in range; "nan" is not, because no comparison with it is true."""
    if not 0 <= seconds <= _MAX_GRACE_SECONDS:
        raise click.BadParameter(f"expected a number from 0 to {_MAX_GRACE_SECONDS}, found {seconds:g}", ctx, parameter)
    return seconds


_FLAGS = (
    click.option("--namespace", "namespaces", multiple=True, help="Watch only this namespace. Can be repeated."),
    click.option("--grace", "grace_seconds", type=float, default=30.0, show_default=True, metavar="SECONDS",
                 callback=_check_duration,
                 help="Time for running reconciles to finish at shutdown."),
    click.option("--start-timeout", "start_seconds", type=float, default=DEFAULT_START_TIMEOUT.total_seconds(),
                 show_default=True, metavar="SECONDS", callback=_check_duration,
                 help="Time to retry each step of the start; 0 exits at the first failure."),
    click.option("--leader-elect", is_flag=True, help="Elect one active replica; the other replicas stand by."),
    click.option("--shards", type=click.IntRange(1, 256), help="Distribute the owners over this number of shards."),
    click.option("--lease-name", help="Name of the Lease (default: the operator's name)."),
    click.option("--lease-namespace",
                 help="Namespace of the Lease (default: the Pod's namespace, outside a Pod 'default')."),
    click.option("--lease-seconds", type=click.IntRange(2, 3600),
                 help=f"Lease duration in seconds (default: {_LEASE_SECONDS})."),
    click.option("--metrics", "metrics_address", default=_OFF, metavar="ADDRESS",
                 help="Serve /metrics, for example at :8080."),
    click.option("--probes", "probe_address", default=_OFF, metavar="ADDRESS",
                 help="Serve /livez, /healthz and /readyz, for example at :8081."),
    click.option("--freshness", type=click.IntRange(1, 86_400), metavar="SECONDS",
                 help="Report not ready if the cache is older than this "
                      f"(default: {DEFAULT_FRESHNESS.total_seconds():g})."),
    click.option("--metrics-auth", is_flag=True, help="Authorize metrics clients through the API server."),
    click.option("--metrics-token-file", type=click.Path(path_type=Path),
                 help="Allow clients with a token from this file to read metrics."),
    click.option("--metrics-certificate", type=click.Path(path_type=Path), metavar="FOLDER",
                 help="Serve metrics over HTTPS with tls.crt and tls.key from this directory."),
    click.option("--debug-page", is_flag=True, help="Serve /debug/ on the metrics port; requires authentication."),
    click.option("--webhooks", "webhook_address", default=_OFF, metavar="ADDRESS",
                 help="Serve the operator's webhooks, for example at :9443."),
    click.option("--webhook-certificate", type=click.Path(path_type=Path), metavar="FOLDER",
                 help="Directory with tls.crt and tls.key (default: a self-signed certificate)."),
    click.option("--webhook-secret", metavar="NAMESPACE/NAME",
                 help="Secret with the certificate that the replicas share; konverge creates and renews it."),
    click.option("--webhook-service", metavar="NAMESPACE/NAME", help="Service in front of the webhook server."),
    click.option("--register-webhooks", is_flag=True, help="Register the webhooks with the API server."),
    click.option("--events/--no-events", "records_events", default=True, show_default=True,
                 help="Record changes to the owners' objects as Kubernetes events."),
    click.option("--diagnosis/--no-diagnosis", "diagnoses", default=True, show_default=True,
                 help="Examine the pods, claims and events of late workloads for the messages of conditions."),
    click.option("--trace", "traces", is_flag=True, help="Export OpenTelemetry spans."),
    click.option("--permission-check/--no-permission-check", "checks_permissions", default=True, show_default=True,
                 help="Report missing permissions at startup."),
)  # fmt: skip


# Options that require another option.
_LEASE_OPTIONS = ("--lease-name", "--lease-namespace", "--lease-seconds")
_METRICS_OPTIONS = ("--metrics-auth", "--metrics-token-file", "--metrics-certificate", "--debug-page")
_PROBE_OPTIONS = ("--freshness",)
_WEBHOOK_OPTIONS = ("--webhook-certificate", "--webhook-secret", "--webhook-service", "--register-webhooks")


def run_flags(command: F) -> F:
    """Add the options to a command, which gets them as keyword arguments for `RunFlags`."""
    for option in reversed(_FLAGS):
        command = option(command)
    return command


class RunFlags:
    """Values of the options on the command line.

    Args:
        **flags: The options' values by name.
    """

    def __init__(self, **flags: Any) -> None:
        self._flags = flags

    def build_options(self, operator: str, home: str = "") -> RunOptions:
        """Return the `RunOptions` for an operator.

        Args:
            operator: The name of the operator.
            home: The namespace of the operator (default: the Pod's namespace).

        Raises:
            click.UsageError: Two options contradict each other.
            konverge.errors.ConfigurationError: A value is invalid.
        """
        flags = self._flags
        self._check_combinations()
        given = flags["lease_namespace"]
        lease_home = (home or get_pod_namespace()) if given is None else given
        return RunOptions(
            namespaces=tuple(dict.fromkeys(flags["namespaces"])),
            grace=timedelta(seconds=flags["grace_seconds"]),
            start_timeout=timedelta(seconds=flags["start_seconds"]),
            leases=self._build_leases(operator, lease_home),
            observability=self._build_observability(),
            webhooks=self._build_webhooks(),
            registers_webhooks=flags["register_webhooks"],
            records_events=flags["records_events"],
            diagnoses=flags["diagnoses"],
            traces=flags["traces"],
            checks_permissions=flags["checks_permissions"],
            home=home or lease_home,
        )

    def _check_combinations(self) -> None:
        flags = self._flags
        for partner, is_there, options in (
            ("--leader-elect or --shards", flags["leader_elect"] or flags["shards"], _LEASE_OPTIONS),
            ("--metrics", _parse_address("--metrics", flags["metrics_address"]), _METRICS_OPTIONS),
            ("--probes", _parse_address("--probes", flags["probe_address"]), _PROBE_OPTIONS),
            ("--webhooks", _parse_address("--webhooks", flags["webhook_address"]), _WEBHOOK_OPTIONS),
        ):
            given = [name for name in options if flags[_to_parameter_name(name)] not in (None, False)]
            if given and not is_there:
                raise click.UsageError(f"{', '.join(given)}: requires {partner}")

    def _build_leases(self, operator: str, home: str) -> LeaderElection | Sharding | None:
        flags = self._flags
        if flags["leader_elect"] and flags["shards"]:
            raise click.UsageError(
                "--leader-elect, --shards: expected at most one of them: either one replica is active or all are"
            )
        if not (flags["leader_elect"] or flags["shards"]):
            return None
        name = operator if flags["lease_name"] is None else flags["lease_name"]
        duration = timedelta(seconds=flags["lease_seconds"] or _LEASE_SECONDS)
        deadline, retry = duration * 2 / 3, duration * 2 / 15  # the proportions of client-go's 15, 10 and 2 seconds
        if flags["shards"]:
            shards = flags["shards"]
            return Sharding(name, home, shards, lease_duration=duration, renew_deadline=deadline, retry_period=retry)
        return LeaderElection(name, home, lease_duration=duration, renew_deadline=deadline, retry_period=retry)

    def _build_observability(self) -> ObservabilityOptions | None:
        flags = self._flags
        if not (
            _parse_address("--metrics", flags["metrics_address"]) or _parse_address("--probes", flags["probe_address"])
        ):
            return None
        if flags["metrics_auth"] and flags["metrics_token_file"] is not None:
            raise click.UsageError("--metrics-auth, --metrics-token-file: expected at most one of them")
        if flags["debug_page"] and not flags["metrics_auth"] and flags["metrics_token_file"] is None:
            raise click.UsageError(
                "--debug-page: expected authentication, found none: the page contains names of objects; set "
                "--metrics-auth or --metrics-token-file"
            )
        return ObservabilityOptions(
            flags["metrics_address"],
            flags["probe_address"],
            metrics_certificate=flags["metrics_certificate"],
            authenticate_with_cluster=flags["metrics_auth"],
            token_file=flags["metrics_token_file"],
            debug=flags["debug_page"],
            freshness=DEFAULT_FRESHNESS if flags["freshness"] is None else timedelta(seconds=flags["freshness"]),
        )

    def _build_webhooks(self) -> WebhookOptions | None:
        flags = self._flags
        address = _parse_address("--webhooks", flags["webhook_address"])
        if address is None:
            return None
        service = secret = None
        if flags["webhook_service"] is not None:
            key = parse_namespaced_name("--webhook-service", flags["webhook_service"])
            service = ServiceReference(key.namespace, key.name)
        if flags["webhook_secret"] is not None:
            if flags["webhook_certificate"] is not None:
                raise click.UsageError("--webhook-certificate, --webhook-secret: expected at most one of them")
            secret = parse_namespaced_name("--webhook-secret", flags["webhook_secret"])
        return WebhookOptions(
            address.host,
            address.port,
            certificate_folder=flags["webhook_certificate"],
            certificate_secret=secret,
            service=service,
        )


def _parse_address(option: str, text: str) -> ListenAddress | None:
    try:
        return parse_listen_address(text)
    except ConfigurationError as error:
        raise ConfigurationError(f"{option}: {error}") from error


def _to_parameter_name(option: str) -> str:
    """Return the name of the parameter that click derives from an option."""
    return option.removeprefix("--").replace("-", "_")


def get_pod_namespace(default: str = "default") -> str:
    """Return the namespace of the Pod, or the default outside a Pod."""
    try:
        return (SERVICE_ACCOUNT_FOLDER / "namespace").read_text(encoding="utf-8").strip() or default
    except OSError:
        return default
