"""The options of ``konverge run`` that say how an operator runs, and the `RunOptions` that they make."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any, TypeVar

import click

from konverge.client.in_cluster import SERVICE_ACCOUNT_FOLDER
from konverge.operator import RunOptions
from konverge.runtime.election import LeaderElection, Sharding
from konverge.runtime.serving import ServingOptions
from konverge.runtime.webhooks import ServiceReference, WebhookOptions

__all__ = ["RunFlags", "run_flags"]

F = TypeVar("F", bound=Callable[..., Any])

_OFF = "0"
_FLAGS = (
    click.option("--namespace", "namespaces", multiple=True, help="Look after this namespace alone; repeatable."),
    click.option("--grace", "grace_seconds", type=float, default=30.0, show_default=True, metavar="SECONDS",
                 help="How long passes under way may take to end."),
    click.option("--leader-elect", is_flag=True, help="Of several replicas one works, the others stand by."),
    click.option("--shards", type=click.IntRange(1, 256), help="Several replicas divide the owners in so many parts."),
    click.option("--lease-name", help="The Lease's name; the operator's when not given."),
    click.option("--lease-namespace", help="The Lease's namespace; the Pod's, or default."),
    click.option("--lease-seconds", type=click.IntRange(2, 3600), default=15, show_default=True,
                 help="After so long without a renewal another replica takes over."),
    click.option("--metrics", "metrics_address", default=_OFF, metavar="ADDRESS",
                 help="Serve /metrics, for example at :8080."),
    click.option("--probes", "probe_address", default=_OFF, metavar="ADDRESS",
                 help="Serve /healthz and /readyz, for example at :8081."),
    click.option("--metrics-auth", is_flag=True, help="Let the API server say who may read metrics."),
    click.option("--metrics-token-file", type=click.Path(path_type=Path), help="Who has this file's token may."),
    click.option("--metrics-certificate", type=click.Path(path_type=Path), metavar="FOLDER",
                 help="Serve metrics over HTTPS with tls.crt and tls.key of that folder."),
    click.option("--debug-page", is_flag=True, help="Serve /debug/ beside the metrics; needs authentication."),
    click.option("--webhooks", "webhook_address", metavar="HOST:PORT", help="Serve the operator's webhooks there."),
    click.option("--webhook-certificate", type=click.Path(path_type=Path), metavar="FOLDER",
                 help="With tls.crt and tls.key of that folder; with a certificate of their own when not given."),
    click.option("--webhook-service", metavar="NAMESPACE/NAME", help="The Service through which the API server calls."),
    click.option("--register-webhooks", is_flag=True, help="Tell the API server of the webhooks."),
    click.option("--events/--no-events", "records_events", default=True, show_default=True,
                 help="Record what happens to owners' objects as events."),
    click.option("--trace", "traces", is_flag=True, help="Make OpenTelemetry spans."),
    click.option("--permission-check/--no-permission-check", "checks_permissions", default=True, show_default=True,
                 help="Say at start what the API server would refuse."),
)  # fmt: skip


def run_flags(command: F) -> F:
    """Give a command the options; it gets them as keyword arguments, for `RunFlags`."""
    for option in reversed(_FLAGS):
        command = option(command)
    return command


class RunFlags:
    """What was said on the command line.

    Args:
        **flags: The options' values by name.
    """

    def __init__(self, **flags: Any) -> None:
        self._flags = flags

    def options(self, operator: str) -> RunOptions:
        """How to run the operator of that name.

        Raises:
            click.UsageError: Two options contradict each other.
            konverge.errors.ConfigurationError: A value cannot be used.
        """
        flags = self._flags
        home = flags["lease_namespace"] or _own_namespace()
        return RunOptions(
            namespaces=flags["namespaces"],
            grace=timedelta(seconds=flags["grace_seconds"]),
            leases=self._leases(operator, home),
            serving=self._serving(),
            webhooks=self._webhooks(),
            registers_webhooks=flags["register_webhooks"],
            records_events=flags["records_events"],
            traces=flags["traces"],
            checks_permissions=flags["checks_permissions"],
            home=home,
        )

    def _leases(self, operator: str, home: str) -> LeaderElection | Sharding | None:
        flags = self._flags
        if flags["leader_elect"] and flags["shards"]:
            raise click.UsageError("--leader-elect and --shards exclude each other: one replica works, or all do")
        if not (flags["leader_elect"] or flags["shards"]):
            return None
        name = flags["lease_name"] or operator
        duration = timedelta(seconds=flags["lease_seconds"])
        deadline, retry = duration * 2 / 3, duration * 2 / 15  # the proportions of client-go's 15, 10 and 2 seconds
        if flags["shards"]:
            shards = flags["shards"]
            return Sharding(name, home, shards, lease_duration=duration, renew_deadline=deadline, retry_period=retry)
        return LeaderElection(name, home, lease_duration=duration, renew_deadline=deadline, retry_period=retry)

    def _serving(self) -> ServingOptions | None:
        flags = self._flags
        if flags["metrics_address"] == _OFF and flags["probe_address"] == _OFF:
            return None
        return ServingOptions(
            flags["metrics_address"],
            flags["probe_address"],
            metrics_certificate=flags["metrics_certificate"],
            authenticate_with_cluster=flags["metrics_auth"],
            token_file=flags["metrics_token_file"],
            debug=flags["debug_page"],
        )

    def _webhooks(self) -> WebhookOptions | None:
        flags = self._flags
        address = flags["webhook_address"]
        if address is None:
            return None
        host, _, port = address.rpartition(":")
        if not port.isdecimal():
            raise click.UsageError(f"--webhooks: expected HOST:PORT, found {address!r}")
        service = None
        if flags["webhook_service"] is not None:
            namespace, slash, name = flags["webhook_service"].partition("/")
            if not slash:
                raise click.UsageError(
                    f"--webhook-service: expected NAMESPACE/NAME, found {flags['webhook_service']!r}"
                )
            service = ServiceReference(namespace, name)
        return WebhookOptions(host, int(port), certificate_folder=flags["webhook_certificate"], service=service)


def _own_namespace() -> str:
    """The Pod's namespace; ``default`` outside of one."""
    try:
        return (SERVICE_ACCOUNT_FOLDER / "namespace").read_text(encoding="utf-8").strip() or "default"
    except OSError:
        return "default"
