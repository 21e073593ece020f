"""``konverge upgrade-check``: what a new version of an operator would change and break in a cluster."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import click
import msgspec

from konverge._internal.cli.dry_run import encode_output
from konverge._internal.cli.exit_codes import ExitCode, find_refusal
from konverge._internal.cli.main import set_failure_code, verbose_option
from konverge._internal.cli.namespaced_name import parse_namespaced_name
from konverge._internal.cli.observation_process import observe_functions
from konverge._internal.cli.operator_file import load_operator, parse_operator_reference
from konverge._internal.cli.owner_arguments import ClusterFlags, cluster_flags, run_with_timeout
from konverge._internal.cli.upgrade_text import format_upgrade
from konverge._internal.cli.user_code import redirect_stdout_to_stderr
from konverge._internal.upgrade import CheckLimits, UpgradeCheck, UpgradeReport
from konverge.clock import SystemClock

__all__ = ["upgrade_check"]

# The part of the time limit in which objects and owners are begun; the rest is for the last one and the output.
_WORKING_PART = 0.8
# The limits of the run of the author's functions, which shows the permissions that they need.
_FUNCTION_PART = 0.3
_MAX_FUNCTION_SECONDS = 60.0


@click.command("upgrade-check")
@click.argument("file", metavar="FILE.py[:OPERATOR]|FILE.yaml")
@click.option(
    "--account",
    metavar="NAMESPACE/NAME",
    default="",
    help="ServiceAccount of the operator's Pods (default: default/<operator>).",
)
@click.option(
    "--max-objects",
    type=click.IntRange(min=0),
    default=10_000,
    show_default=True,
    metavar="N",
    help="Maximum number of objects of each kind to validate.",
)
@click.option(
    "--max-owners",
    type=click.IntRange(min=0),
    default=500,
    show_default=True,
    metavar="N",
    help="Maximum number of owners to reconcile as a dry run.",
)
@cluster_flags(timeout_seconds=300.0)
@click.option(
    "-o",
    "--output",
    type=click.Choice(["text", "yaml", "json"]),
    default="text",
    show_default=True,
    help="Output format.",
)
@verbose_option
@click.pass_context
def upgrade_check(
    ctx: click.Context,
    /,
    file: str,
    account: str,
    max_objects: int,
    max_owners: int,
    kubeconfig_file: Path | None,
    context: str | None,
    namespace: str | None,
    timeout_seconds: float,
    output: Literal["text", "yaml", "json"],
) -> None:
    """Show what the operator in FILE.py would change and break in a cluster that runs an older version of it.

    The command compares the CustomResourceDefinitions, validates the existing objects against the new schemas,
    reconciles the owners as a dry run and compares the roles, in --namespace or in all namespaces. The server receives
    only reads and dry runs. Exit code 0: nothing breaks, 1: something breaks, higher: an error.
    """
    set_failure_code(ctx, ExitCode.TROUBLE)
    flags = ClusterFlags(kubeconfig_file, context, namespace, timeout_seconds)
    failures: list[BaseException] = []
    with redirect_stdout_to_stderr():
        reference = parse_operator_reference(file)
        operator = load_operator(reference)
        pods_account = parse_namespaced_name("--account", account or f"default/{operator.name}")
        clock = SystemClock()
        started = clock.monotonic()
        observation = observe_functions(
            operator,
            reference,
            (),
            in_namespaces=bool(namespace),
            records_events=True,
            seconds=min(_MAX_FUNCTION_SECONDS, timeout_seconds * _FUNCTION_PART),
        )
        seconds = max(1.0, timeout_seconds - (clock.monotonic() - started))

        async def check() -> UpgradeReport:
            async with flags.connect("upgrade-check") as client:
                upgrade = UpgradeCheck(
                    client,
                    operator,
                    pods_account,
                    CheckLimits(max_objects, max_owners, seconds * _WORKING_PART),
                    clock,
                    namespace or "",
                    observation,
                )
                try:
                    return await upgrade.run()
                finally:
                    failures.extend(upgrade.failures)

        report = run_with_timeout(seconds, check, "checking")
    if output == "text":
        for line in format_upgrade(report):
            click.echo(line)
    else:
        click.echo(encode_output(_build_output(report), output), nl=False)
    if report.breaks:
        ctx.exit(ExitCode.FAILED)
    if failures:
        ctx.exit(ExitCode.CLUSTER if any(map(find_refusal, failures)) else ExitCode.TROUBLE)


def _build_output(report: UpgradeReport) -> Any:
    return {**msgspec.to_builtins(report), "breaks": report.breaks}
