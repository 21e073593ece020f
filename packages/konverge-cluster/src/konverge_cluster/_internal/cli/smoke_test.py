"""``konverge test``: sample owners of an operator live and die on an embedded cluster, in simulated time."""

from __future__ import annotations

import logging
from pathlib import Path

import click
import yaml

from konverge._internal.cli.exit_codes import ExitCode
from konverge._internal.cli.main import is_verbose, verbose_option
from konverge._internal.cli.operator_file import load_operator, parse_operator_reference
from konverge._internal.cli.plurals import format_count
from konverge._internal.cli.user_code import call_with_timeout, redirect_stdout_to_stderr
from konverge._internal.cli.yaml_documents import read_objects
from konverge.errors import ConfigurationError
from konverge_cluster._internal.testing.smoke_run import OwnerReport, list_owners, run_owner

__all__ = ["test"]

_DEFINITION = "CustomResourceDefinition"
_OWNER_SECONDS = 60.0


@click.command()
@click.argument("file", metavar="FILE.py[:OPERATOR]")
@click.option(
    "--sample",
    "samples",
    multiple=True,
    type=click.Path(path_type=Path),
    help="File with owners, instead of samples from the schema of their kind. Can be repeated.",
)
@click.option(
    "--samples",
    "limit",
    type=click.IntRange(1, 256),
    default=16,
    show_default=True,
    help="Number of samples from the schema of each other kind.",
)
@click.option(
    "--crd",
    "definitions",
    multiple=True,
    type=click.Path(path_type=Path),
    help="File with CustomResourceDefinitions of other operators. Can be repeated.",
)
@verbose_option
@click.pass_context
def test(
    ctx: click.Context, /, file: str, samples: tuple[Path, ...], limit: int, definitions: tuple[Path, ...]
) -> None:
    """Test the operator in FILE.py with sample owners, each on an embedded cluster of its own.

    The operator must become steady without an error, write nothing after a restart, and leave nothing after the
    deletion of the owner. Hours of simulated time take no real time.
    """
    reference = parse_operator_reference(file)
    if reference.is_box:
        raise ConfigurationError(f"{reference.file}: expected a Python file, found a box; use konverge box simulate")
    given = [obj for sample in samples for obj in read_objects(sample)]
    installed = [obj for path in definitions for obj in read_objects(path) if obj.get("kind") == _DEFINITION]
    if definitions and not installed:
        raise ConfigurationError("--crd: expected CustomResourceDefinitions, found none")
    with redirect_stdout_to_stderr():
        operator = load_operator(reference)
    logging.basicConfig(level=logging.DEBUG if is_verbose(ctx) else logging.CRITICAL)
    owners = list_owners(operator, given, limit)
    if not owners:
        raise ConfigurationError(f"{file}: expected an operator with kinds of its own, found none; use --sample")
    reports: list[OwnerReport] = []
    for owner in owners:
        with redirect_stdout_to_stderr():
            report = call_with_timeout(
                _OWNER_SECONDS,
                lambda owner=owner: run_owner(operator, owner, installed),  # type: ignore[misc]  # bound now
                f"testing {owner['kind']} {owner['metadata'].get('name', '')}",
            )
        reports.append(report)
        _print_report(report)
    failed = sum(bool(report.problems) for report in reports)
    rejected = sum(bool(report.rejection) for report in reports)
    click.echo(
        f"{format_count(len(reports), 'owner')}: {len(reports) - failed - rejected} passed, {failed} failed, "
        f"{rejected} rejected"
    )
    if failed or rejected == len(reports):
        ctx.exit(ExitCode.FAILED)


def _print_report(report: OwnerReport) -> None:
    spec = yaml.safe_dump(report.owner.get("spec", {}), default_flow_style=True, width=2**20, sort_keys=False).strip()
    title = f"{report.owner['kind']} {spec}"
    if report.rejection:
        click.echo(f"{click.style('rejected', fg='cyan')}  {title}: {report.rejection}")
    elif report.problems:
        click.echo(f"{click.style('failed', fg='red')}    {title}")
        for problem in report.problems:
            click.echo(f"            {problem}")
    else:
        click.echo(f"{click.style('passed', fg='green')}    {title}  {report.condition}")
