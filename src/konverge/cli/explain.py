"""``konverge explain``: why the components of an owner say what they say, and what happens next."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import click
import msgspec

from konverge.cli.authors_code import printing_to_stderr
from konverge.cli.explain_text import explain_lines
from konverge.cli.failures import ExitCode, refusal_in
from konverge.cli.failures import explain as told
from konverge.cli.operator_file import load_operator, parse_reference
from konverge.cli.owners import ClusterFlags, NamedOwner, OwnerInFile, cluster_flags, find_owner, within
from konverge.cli.program import verbose_option
from konverge.cli.rehearsals import encoded, rehearsed
from konverge.clock import SystemClock
from konverge.errors import ConfigurationError
from konverge.operator import Operator
from konverge.operator.rehearsing import OwnerRehearsal

__all__ = ["explain"]


@click.command()
@click.argument("file", metavar="FILE.py[:OPERATOR]|FILE.yaml")
@click.argument("owner", metavar="KIND/NAME")
@click.option("--component", "component", help="This component alone.")
@cluster_flags
@click.option("-o", "--output", type=click.Choice(["text", "yaml", "json"]), default="text", show_default=True)
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
    """Explain the conditions of an owner: which rule made them, by which fields of which object, what they wait for.

    Its next pass is run as the operator in FILE.py would run it; the server gets reads and dry runs.
    """
    flags = ClusterFlags(kubeconfig_file, context, namespace, timeout_seconds)
    failures: list[BaseException] = []
    with printing_to_stderr():
        operator = load_operator(parse_reference(file))
        found = find_owner(operator, owner)
        explained = within(timeout_seconds, lambda: _explained(operator, found, flags, failures), f"explaining {owner}")
    if component is not None:
        explained = _only(explained, component)
    if output == "text":
        for line in explain_lines(explained, SystemClock().now()):
            click.echo(line)
    else:
        click.echo(encoded(explained, output), nl=False)
    refusals = [refusal for failure in failures if (refusal := refusal_in(failure)) is not None]
    if refusals:
        click.echo(f"konverge: the story is not complete: {told(refusals[0])}", err=True)
        ctx.exit(ExitCode.CLUSTER)


async def _explained(
    operator: Operator, found: NamedOwner | OwnerInFile, flags: ClusterFlags, failures: list[BaseException]
) -> OwnerRehearsal:
    async with flags.connect("explain") as client:
        return await rehearsed(client, operator, found, flags, failures)


def _only(owner: OwnerRehearsal, name: str) -> OwnerRehearsal:
    chosen = tuple(each for each in owner.components if each.component == name)
    if not chosen:
        known = ", ".join(each.component for each in owner.components) or "none"
        raise ConfigurationError(f"--component: {owner.kind} {owner.name} has no component {name!r} (it has: {known})")
    return msgspec.structs.replace(owner, components=chosen)
