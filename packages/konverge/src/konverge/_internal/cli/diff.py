"""``konverge diff``: the changes that the next reconciles would make in a cluster."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

import click

from konverge._internal.cache import CacheOptions
from konverge._internal.cli.diff_text import format_diff
from konverge._internal.cli.dry_run import dry_run_argument, encode_output
from konverge._internal.cli.exit_codes import ExitCode, find_refusal, format_failure, iter_errors
from konverge._internal.cli.main import set_failure_code, verbose_option
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
from konverge._internal.client import Client
from konverge._internal.crd import find_definition
from konverge._internal.kube import GroupVersionKind, Object
from konverge._internal.operator import Operator
from konverge._internal.operator.dry_run import OwnerDryRun, dry_run_owner
from konverge._internal.operator.registrations import OwnerRegistration

__all__ = ["diff"]


@click.command()
@click.argument("file", metavar="FILE.py[:OPERATOR]|FILE.yaml")
@click.argument("owner", metavar="[OWNER.yaml|KIND/NAME]", required=False)
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
def diff(
    ctx: click.Context,
    /,
    file: str,
    owner: str | None,
    kubeconfig_file: Path | None,
    context: str | None,
    namespace: str | None,
    timeout_seconds: float,
    output: Literal["text", "yaml", "json"],
) -> None:
    """Show the changes that the operator in FILE.py would make in a cluster, by field and field manager.

    The command compares an owner in a file as if it were applied first. Without OWNER, it compares all owners, in
    --namespace or in all namespaces. The server receives only reads and dry runs. Exit code 0: no differences, 1:
    differences, higher: an error.
    """
    set_failure_code(ctx, ExitCode.TROUBLE)
    flags = ClusterFlags(kubeconfig_file, context, namespace, timeout_seconds)
    failures: list[BaseException] = []
    with redirect_stdout_to_stderr():
        operator = load_operator(parse_operator_reference(file))
        found = None if owner is None else find_owner(operator, owner)
        owners = run_with_timeout(timeout_seconds, lambda: _dry_run_all(operator, found, flags, failures), "comparing")
    if output == "text":
        for dry_run in owners:
            for line in format_diff(dry_run):
                click.echo(line)
    else:
        click.echo(encode_output({"owners": [_build_output(dry_run) for dry_run in owners]}, output), nl=False)
    for failure in (error for group in failures for error in iter_errors(group)):
        click.echo(f"konverge: not compared: {' '.join(format_failure(failure).split())}", err=True)
    if failures:
        ctx.exit(ExitCode.CLUSTER if any(map(find_refusal, failures)) else ExitCode.TROUBLE)
    if any(dry_run.changes or dry_run.status for dry_run in owners):
        ctx.exit(ExitCode.FAILED)


async def _dry_run_all(
    operator: Operator, found: NamedOwner | OwnerInFile | None, flags: ClusterFlags, failures: list[BaseException]
) -> list[OwnerDryRun]:
    async with flags.connect("diff") as client:
        if found is not None:
            return [await dry_run_argument(client, operator, found, flags, failures)]
        return [
            await dry_run_owner(
                registration,
                obj,
                client,
                indexes=operator.registered.indexes,
                adopt=operator.registered.adopt,
                operator_name=operator.name,
                on_failure=failures.append,
            )
            for registration in operator.registered.classes
            for obj in await _list_owners(client, registration, flags, operator.registered.cache_options)
        ]


async def _list_owners(
    client: Client,
    registration: OwnerRegistration,
    flags: ClusterFlags,
    cache_options: Mapping[GroupVersionKind, CacheOptions],
) -> list[Object]:
    """List the owners that a running operator has, which selectors of its cache can reduce."""
    definition = find_definition(registration.cls)
    namespace = flags.namespace or "" if definition.namespaced else ""
    options = cache_options.get(definition.gvk, CacheOptions())
    owners = client.items(
        definition.gvk,
        namespace=namespace,
        label_selector=options.label_selector,
        field_selector=options.field_selector,
    )
    return [obj async for obj in owners]


def _build_output(owner: OwnerDryRun) -> dict[str, Any]:
    """Return the part of a dry run that concerns changes."""
    return {
        "apiVersion": owner.api_version,
        "kind": owner.kind,
        "namespace": owner.namespace,
        "name": owner.name,
        "isDeleting": owner.is_deleting,
        "changes": owner.changes,
        "status": owner.status,
        "halts": list(_iter_halts(owner)),
        "errors": owner.errors,
    }


def _iter_halts(owner: OwnerDryRun) -> Iterator[dict[str, Any]]:
    for component in owner.components:
        unmet = next((report.reason for report in component.prerequisites if report.verdict == "NotMet"), "")
        halting = next((report for report in component.resources if report.outcome == "halts"), None)
        if not (unmet or halting or component.error):
            continue
        yield {
            "component": component.component,
            "at": None if halting is None else halting.identity,
            "reason": component.error or unmet or (halting.reason if halting is not None else ""),
            "notCompared": [report.identity for report in component.resources if report.outcome == "not reached"],
        }
