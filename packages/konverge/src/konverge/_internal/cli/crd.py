"""``konverge crd``: the CustomResourceDefinitions that a cluster needs for an operator."""

from __future__ import annotations

import json
from typing import Literal

import click
import yaml

from konverge._internal.cli.main import verbose_option
from konverge._internal.cli.operator_file import load_operator, parse_operator_reference
from konverge._internal.cli.user_code import redirect_stdout_to_stderr
from konverge._internal.crd import crd_manifest
from konverge._internal.kube import Object

__all__ = ["crd", "format_objects", "output_option"]

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
    click.echo(format_objects(definitions, output), nl=False)


def format_objects(objects: list[Object], output: Literal["yaml", "json"]) -> str:
    """Return the objects as text for ``kubectl apply``; equal objects give equal text."""
    if output == "json":
        return json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}, indent=2) + "\n"
    return yaml.safe_dump_all(objects, sort_keys=False, explicit_start=True, width=120)
