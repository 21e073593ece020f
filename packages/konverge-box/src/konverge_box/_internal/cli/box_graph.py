"""``konverge box graph``: the steps and groups of a box, and what reads what, as a diagram."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import click

from konverge._internal.cli.main import verbose_option
from konverge_box._internal.cli.box import read_box
from konverge_box._internal.file import load_box
from konverge_box._internal.graph import build_graph, format_dot, format_mermaid
from konverge_box._internal.runtime.locked_imports import load_locked_imports

__all__ = ["box_graph"]


@click.command("graph")
@click.argument("file", metavar="FILE.yaml", type=click.Path(path_type=Path))
@click.option(
    "-o",
    "--output",
    type=click.Choice(["mermaid", "dot"]),
    default="mermaid",
    show_default=True,
    help="Output format: a Mermaid flowchart, or the DOT language of Graphviz.",
)
@verbose_option
def box_graph(file: Path, output: Literal["mermaid", "dot"]) -> None:
    """Print the steps and groups of a box, and what reads what, as a diagram. Use - for stdin.

    A solid arrow leads from a result to its reader, a dashed arrow from a part to another one that waits for it. The
    output contains names of the file, and no values. For an image:
    konverge box graph FILE.yaml -o dot | dot -Tsvg > box.svg
    """
    content = read_box(file)
    box = load_box(content, file=str(file), imported=load_locked_imports(content, str(file)))
    graph = build_graph(box)
    click.echo(format_mermaid(graph) if output == "mermaid" else format_dot(graph), nl=False)
