"""``konverge explain``: the reasons of an owner's conditions, and the next step."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import click
import msgspec

from konverge._internal.cli.dry_run import dry_run_argument, encode_output
from konverge._internal.cli.exit_codes import ExitCode, find_refusal, format_failure
from konverge._internal.cli.explain_text import format_explanation
from konverge._internal.cli.main import verbose_option
from konverge._internal.cli.operator_file import load_operator, parse_operator_reference
from konverge._internal.cli.owner_arguments import (
    ClusterFlags,
    NamedOwner,
    OwnerInFile,
    cluster_flags,
    find_owner,
    run_with_timeout,
)
from konverge._internal.cli.user_code import redirect_stdout_to_stderr
from konverge._internal.operator import Operator
from konverge._internal.operator.dry_run import OwnerDryRun
from konverge.clock import SystemClock
from konverge.errors import ConfigurationError

__all__ = ["explain"]


@click.command()
@click.argument("file", metavar="FILE.py[:OPERATOR]|FILE.yaml")
@click.argument("owner", metavar="KIND/NAME")
@click.option("--component", "component", help="Explain only this component (default: all).")
@cluster_flags()
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
def explain(
    ctx: click.Context,
    /,
    file: str,
    owner: str,
    component: str | None,
    kubeconfig_file: Path | None,
    context: str | None,
    namespace: str | None,
    timeout_seconds: float,
    output: Literal["text", "yaml", "json"],
) -> None:
    """Explain the conditions of an owner: the rule and the fields behind each condition, and what it waits for.

    The command simulates the next reconcile of the operator in FILE.py. The server receives only reads and dry runs.
    """
    flags = ClusterFlags(kubeconfig_file, context, namespace, timeout_seconds)
    failures: list[BaseException] = []
    with redirect_stdout_to_stderr():
        operator = load_operator(parse_operator_reference(file))
        found = find_owner(operator, owner)
        explained = run_with_timeout(
            timeout_seconds, lambda: _dry_run_owner(operator, found, flags, failures), f"explaining {owner}"
        )
    if component is not None:
        explained = _select_component(explained, component)
    if output == "text":
        for line in format_explanation(explained, SystemClock().now()):
            click.echo(line)
    else:
        click.echo(encode_output(explained, output), nl=False)
    refusals = [refusal for failure in failures if (refusal := find_refusal(failure)) is not None]
    if refusals:
        click.echo(f"konverge: the explanation is incomplete: {format_failure(refusals[0])}", err=True)
        ctx.exit(ExitCode.CLUSTER)


async def _dry_run_owner(
    operator: Operator, found: NamedOwner | OwnerInFile, flags: ClusterFlags, failures: list[BaseException]
) -> OwnerDryRun:
    async with flags.connect("explain") as client:
        return await dry_run_argument(client, operator, found, flags, failures, examines=True)


def _select_component(owner: OwnerDryRun, name: str) -> OwnerDryRun:
    chosen = tuple(report for report in owner.components if report.component == name)
    if not chosen:
        names = ", ".join(report.component for report in owner.components) or "none"
        raise ConfigurationError(
            f"--component: {owner.kind} {owner.name}: expected one of its components ({names}), found {name!r}"
        )
    return msgspec.structs.replace(owner, components=chosen)
