"""``konverge box render``: the objects that a custom resource produces, step by step, without a cluster."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

import click

from konverge._internal.cli.dry_run import encode_output
from konverge._internal.cli.exit_codes import ExitCode
from konverge._internal.cli.main import verbose_option
from konverge._internal.cli.yaml_documents import STDIN, read_objects
from konverge._internal.kube import Object
from konverge.clock import SimulatedLoop
from konverge.errors import ConfigurationError
from konverge_box._internal.cli.box import read_box
from konverge_box._internal.cli.box_inputs import input_options, read_answers, read_input_objects
from konverge_box._internal.rendering import DEFAULT_TIME, Rendering, render_box
from konverge_box._internal.runtime.box_validation import load_valid_box
from konverge_box._internal.runtime.step_order import STEP_ORDER

__all__ = ["box_render"]

_STEPS = ("object", *(step.name for step in STEP_ORDER))


@click.command("render")
@click.argument("file", metavar="FILE.yaml", type=click.Path(path_type=Path))
@click.option(
    "--object",
    "object_file",
    metavar="CR.yaml",
    required=True,
    type=click.Path(path_type=Path),
    help="File with the custom resource; - is stdin.",
)
@input_options(
    given="File with the objects in the cluster (default: none). Can be repeated.",
    answers="Responses to external calls, by name: status and json or body, or result, or error.",
)
@click.option(
    "--at", metavar="TIME", help="Time of the reconcile, for example 2026-03-01T08:00:00Z (default: 1 January 2026)."
)
@click.option("--step", "step_name", type=click.Choice(_STEPS), help="Show only this step (default: all).")
@click.option("--namespace", default="default", show_default=True, help="Namespace for objects without one.")
@click.option(
    "-o",
    "--output",
    type=click.Choice(["yaml", "json"]),
    default="yaml",
    show_default=True,
    help="Output format.",
)
@verbose_option
@click.pass_context
def box_render(
    ctx: click.Context,
    file: Path,
    object_file: Path,
    given_files: tuple[Path, ...],
    answers_file: Path | None,
    at: str | None,
    step_name: str | None,
    namespace: str,
    output: Literal["yaml", "json"],
) -> None:
    """Show the objects that a custom resource produces, step by step, without a cluster.

    The command makes no calls and writes nothing. It masks the values of Secrets; equal input gives equal output. Exit
    code 1: the custom resource is denied or a step fails; the output contains the steps before it.
    """
    box = load_valid_box(read_box(file), file=str(file))
    owner = _find_only_object(read_objects(object_file), object_file)
    given, answers = read_input_objects(given_files), read_answers(answers_file)
    with asyncio.Runner(loop_factory=SimulatedLoop) as runner:
        rendering = runner.run(
            render_box(box, owner, given=given, answers=answers, at=_parse_time(at), namespace=namespace)
        )
    click.echo(_format_rendering(rendering, step_name, output), nl=False)
    for step in rendering.steps:
        if step.error:
            click.echo(f"konverge: {step.step}: {' '.join(step.error.split())}", err=True)
    if rendering.result != "ok":
        ctx.exit(ExitCode.FAILED)


def _find_only_object(objects: list[Object], file: Path) -> Object:
    if len(objects) != 1:
        name = "stdin" if file == STDIN else file
        raise ConfigurationError(f"{name}: expected one custom resource, found {len(objects)} objects")
    return objects[0]


def _parse_time(text: str | None) -> datetime:
    if text is None:
        return DEFAULT_TIME
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        raise click.UsageError(f"--at: expected a time such as 2026-03-01T08:00:00Z, found {text!r}") from None
    return time.replace(tzinfo=UTC) if time.tzinfo is None else time.astimezone(UTC)


def _format_rendering(rendering: Rendering, step: str | None, output: Literal["yaml", "json"]) -> str:
    if step is None:
        return encode_output(rendering, output)
    return encode_output(next((each for each in rendering.steps if each.step == step), {"step": step}), output)
