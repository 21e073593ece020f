"""``konverge migrate-storage``: rewrites the objects of custom resources in their storage version."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Literal

import click
import msgspec

from konverge._internal.cli.dry_run import encode_output
from konverge._internal.cli.exit_codes import ExitCode
from konverge._internal.cli.main import verbose_option
from konverge._internal.cli.plurals import format_count
from konverge._internal.client.connect import connect
from konverge._internal.upgrade import MigrationReport, StorageMigration
from konverge.clock import SystemClock

__all__ = ["migrate_storage"]

_PROGRESS_SECONDS = 5.0
_HIGHEST_RATE = 10_000.0


def _check_rate(ctx: click.Context, parameter: click.Parameter, rate: float) -> float:
    if not 0 < rate <= _HIGHEST_RATE:  # also rejects "nan", for which no comparison is true
        raise click.BadParameter(f"expected more than 0 and at most {_HIGHEST_RATE:g}, found {rate:g}")
    return rate


@click.command("migrate-storage")
@click.argument("names", metavar="DEFINITION...", nargs=-1, required=True)
@click.option(
    "--rate",
    type=float,
    default=50.0,
    callback=_check_rate,
    show_default=True,
    metavar="N",
    help="Maximum number of objects per second.",
)
@click.option("--dry-run", "is_dry_run", is_flag=True, help="Let the server check each write without storing it.")
@click.option(
    "--kubeconfig",
    "kubeconfig_file",
    type=click.Path(path_type=Path),
    help="Kubeconfig file (default: KUBECONFIG, then ~/.kube/config, then the Pod's service account).",
)
@click.option("--context", help="Context in the kubeconfig (default: its current context).")
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
def migrate_storage(
    ctx: click.Context,
    /,
    names: tuple[str, ...],
    rate: float,
    is_dry_run: bool,
    kubeconfig_file: Path | None,
    context: str | None,
    output: Literal["text", "yaml", "json"],
) -> None:
    """Rewrite all objects of custom resources in the storage version, and forget the older stored versions.

    DEFINITION is the name of a CustomResourceDefinition, for example apps.example.com. Afterwards, a version that is
    not the storage version can be removed from the definition. The command can be interrupted and repeated. Exit code
    1: an object could not be rewritten, and the stored versions stay.
    """
    reports: list[MigrationReport] = []

    def add(report: MigrationReport) -> None:
        reports.append(report)
        if output == "text":
            click.echo(_format_report(report))
        for failure in report.failures:
            click.echo(f"konverge: not rewritten: {failure}", err=True)

    try:
        asyncio.run(_migrate_all(dict.fromkeys(names), rate, is_dry_run, kubeconfig_file, context, add))
    finally:
        # An error with one definition hides no result of those before it.
        if output != "text" and reports:
            click.echo(encode_output({"definitions": msgspec.to_builtins(reports)}, output), nl=False)
    if any(report.failures for report in reports):
        ctx.exit(ExitCode.FAILED)


async def _migrate_all(
    names: dict[str, None],
    rate: float,
    is_dry_run: bool,
    kubeconfig_file: Path | None,
    context: str | None,
    on_report: Callable[[MigrationReport], None],
) -> None:
    clock = SystemClock()
    user_agent = f"konverge/{version('konverge')} (migrate-storage)"
    async with connect(kubeconfig_file, context, user_agent=user_agent, clock=clock) as client:
        for name in names:
            progress = _Progress(name, clock)
            migration = StorageMigration(client, name, clock, rate=rate, is_dry_run=is_dry_run, on_progress=progress)
            on_report(await migration.run())


class _Progress:
    """Prints the number of rewritten objects on stderr every few seconds."""

    def __init__(self, name: str, clock: SystemClock) -> None:
        self._name = name
        self._clock = clock
        self._printed = clock.monotonic()

    def __call__(self, done: int, total: int) -> None:
        if self._clock.monotonic() - self._printed >= _PROGRESS_SECONDS:
            self._printed = self._clock.monotonic()
            click.echo(f"konverge: {self._name}: {done} of {total} objects", err=True)


def _format_report(report: MigrationReport) -> str:
    if report.stored_versions_before == (report.storage_version,):
        return f"{report.name}: nothing to do: all objects are stored in {report.storage_version}"
    parts = [f"{format_count(report.rewritten, 'object')} {'would be ' if report.is_dry_run else ''}rewritten"]
    if report.is_dry_run:
        parts = [f"{format_count(report.rewritten + report.current, 'object')} can be rewritten"]
    elif report.current:
        parts.append(f"{report.current} already stored in {report.storage_version}")
    if report.deleted:
        parts.append(f"{report.deleted} deleted meanwhile")
    if report.failures:
        parts.append(f"{len(report.failures)} not rewritten")
    was, now = ", ".join(report.stored_versions_before), ", ".join(report.stored_versions)
    return f"{report.name}: {', '.join(parts)}; stored versions: {now if now == was else f'{was} → {now}'}"
