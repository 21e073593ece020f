"""``konverge diff``: what the next passes would change in a cluster."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import click

from konverge.cli.authors_code import printing_to_stderr
from konverge.cli.diff_text import diff_lines
from konverge.cli.failures import ExitCode, explain, failures_in, refusal_in
from konverge.cli.operator_file import load_operator, parse_reference
from konverge.cli.owners import ClusterFlags, NamedOwner, OwnerInFile, cluster_flags, find_owner, within
from konverge.cli.program import fails_with, verbose_option
from konverge.cli.rehearsals import encoded, rehearsed
from konverge.client import Client
from konverge.crd import definition_of
from konverge.kube import Object
from konverge.operator import Operator
from konverge.operator.registered import Registration
from konverge.operator.rehearsing import OwnerRehearsal, rehearse_owner

__all__ = ["diff"]


@click.command()
@click.argument("file", metavar="FILE.py[:OPERATOR]|FILE.yaml")
@click.argument("owner", metavar="[OWNER.yaml|KIND/NAME]", required=False)
@cluster_flags
@click.option("-o", "--output", type=click.Choice(["text", "yaml", "json"]), default="text", show_default=True)
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
    """Show what the operator in FILE.py would change in a cluster, field by field, with who owns each field now.

    An owner in a file is compared as if it were applied first; without OWNER all owners of the operator are, those of
    --namespace or everywhere. The server gets reads and dry runs. Exit code 0: nothing would change, 1: something
    would; more: trouble.
    """
    fails_with(ctx, ExitCode.TROUBLE)
    flags = ClusterFlags(kubeconfig_file, context, namespace, timeout_seconds)
    failures: list[BaseException] = []
    with printing_to_stderr():
        operator = load_operator(parse_reference(file))
        found = None if owner is None else find_owner(operator, owner)
        owners = within(timeout_seconds, lambda: _all(operator, found, flags, failures), "comparing")
    if output == "text":
        for each in owners:
            for line in diff_lines(each):
                click.echo(line)
    else:
        click.echo(encoded({"owners": [_told(each) for each in owners]}, output), nl=False)
    for failure in (each for group in failures for each in failures_in(group)):
        click.echo(f"konverge: not compared: {' '.join(explain(failure).split())}", err=True)
    if failures:
        ctx.exit(ExitCode.CLUSTER if any(map(refusal_in, failures)) else ExitCode.TROUBLE)
    if any(each.changes for each in owners):
        ctx.exit(ExitCode.FAILED)


async def _all(
    operator: Operator, found: NamedOwner | OwnerInFile | None, flags: ClusterFlags, failures: list[BaseException]
) -> list[OwnerRehearsal]:
    async with flags.connect("diff") as client:
        if found is not None:
            return [await rehearsed(client, operator, found, flags, failures)]
        return [
            await rehearse_owner(
                registration,
                obj,
                client,
                indexes=operator.registered.indexes,
                adopt=operator.registered.adopt,
                on_failure=failures.append,
            )
            for registration in operator.registered.classes
            for obj in await _listed(client, registration, flags)
        ]


async def _listed(client: Client, registration: Registration, flags: ClusterFlags) -> list[Object]:
    definition = definition_of(registration.cls)
    namespace = flags.namespace or "" if definition.namespaced else ""
    return [obj async for obj in client.items(definition.gvk, namespace=namespace)]


def _told(owner: OwnerRehearsal) -> dict[str, Any]:
    """The part of a rehearsal that concerns changes."""
    return {
        "apiVersion": owner.api_version,
        "kind": owner.kind,
        "namespace": owner.namespace,
        "name": owner.name,
        "isDeleting": owner.is_deleting,
        "changes": owner.changes,
        "halts": list(_halts(owner)),
        "errors": owner.errors,
    }


def _halts(owner: OwnerRehearsal) -> Iterator[dict[str, Any]]:
    for component in owner.components:
        unmet = next((story.reason for story in component.prerequisites if story.verdict == "NotMet"), "")
        halting = next((story for story in component.resources if story.outcome == "halts"), None)
        if not (unmet or halting or component.error):
            continue
        yield {
            "component": component.component,
            "at": None if halting is None else halting.identity,
            "reason": component.error or unmet or (halting.reason if halting is not None else ""),
            "notCompared": [story.identity for story in component.resources if story.outcome == "not reached"],
        }
