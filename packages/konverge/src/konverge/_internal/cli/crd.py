"""``konverge crd``: the CustomResourceDefinitions that a cluster needs for an operator."""

from __future__ import annotations

from typing import Literal

import click

from konverge._internal.cli.main import verbose_option
from konverge._internal.cli.manifest_text import format_manifests
from konverge._internal.cli.operator_file import load_operator, parse_operator_reference
from konverge._internal.cli.user_code import redirect_stdout_to_stderr
from konverge._internal.crd import crd_manifest

__all__ = ["crd", "output_option"]

output_option = click.option(
    "-o",
    "--output",
    type=click.Choice(["yaml", "json"]),
    default="yaml",
    show_default=True,
    help="Output format: YAML documents, or one JSON List.",
)


@click.command()
@click.argument("file", metavar="FILE.py[:OPERATOR]|FILE.yaml")
@output_option
@verbose_option
def crd(file: str, output: Literal["yaml", "json"]) -> None:
    """Print the CustomResourceDefinitions of the operator in FILE.py.

    The command derives them from the operator's classes. Apply them with:
    konverge crd FILE.py | kubectl apply --server-side -f -
    """
    with redirect_stdout_to_stderr():
        operator = load_operator(parse_operator_reference(file))
        definitions = [crd_manifest(resource) for resource in operator.defined_resources]
    click.echo(format_manifests(definitions, output), nl=False)
