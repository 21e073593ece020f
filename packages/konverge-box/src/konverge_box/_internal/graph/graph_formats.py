"""The text of a graph, for Mermaid and for Graphviz. Labels are escaped: a box can contain any text."""

from __future__ import annotations

import re
from collections.abc import Iterator

from konverge_box._internal.graph.box_graph import BoxGraph, EdgeKind, GraphNode, NodeKind

__all__ = ["format_dot", "format_mermaid"]

_SAFE = re.compile(r"[A-Za-z0-9 ._:/,-]")
_MERMAID = {
    NodeKind.RESOURCE: ("([", "])"),
    NodeKind.STEP: ("[", "]"),
    NodeKind.OBSERVATION: ("[/", "/]"),
    NodeKind.CALL: ("{{", "}}"),
    NodeKind.GROUP: ("[[", "]]"),
    NodeKind.PROVIDER: ("[(", ")]"),
}
_DOT = {
    NodeKind.RESOURCE: "oval",
    NodeKind.STEP: "box",
    NodeKind.OBSERVATION: "parallelogram",
    NodeKind.CALL: "hexagon",
    NodeKind.GROUP: "box3d",
    NodeKind.PROVIDER: "cylinder",
}


def format_mermaid(graph: BoxGraph) -> str:
    """Return the graph as a Mermaid flowchart."""
    ids = {node.id: f"n{number}" for number, node in enumerate(graph.nodes)}
    lines = ["flowchart TB"]
    for number, (crd, nodes) in enumerate(_group_by_crd(graph)):
        lines.append(f'  subgraph s{number}["{_escape_mermaid(crd)}"]')
        for node in nodes:
            begin, end = _MERMAID[node.kind]
            label = "<br/>".join(map(_escape_mermaid, node.lines))
            lines.append(f'    {ids[node.id]}{begin}"{label}"{end}')
        lines.append("  end")
    for edge in graph.edges:
        arrow = "-->" if edge.kind is EdgeKind.READS else "-.->"
        label = f'|"{_escape_mermaid(edge.label)}"|' if edge.label else ""
        lines.append(f"  {ids[edge.source]} {arrow}{label} {ids[edge.target]}")
    return "\n".join(lines) + "\n"


def format_dot(graph: BoxGraph) -> str:
    """Return the graph in the DOT language of Graphviz."""
    ids = {node.id: f"n{number}" for number, node in enumerate(graph.nodes)}
    lines = [f"digraph {_quote_dot(graph.name)} {{", "  rankdir=TB;"]
    for number, (crd, nodes) in enumerate(_group_by_crd(graph)):
        lines += [f"  subgraph cluster_{number} {{", f"    label={_quote_dot(crd)};"]
        for node in nodes:
            lines.append(f"    {ids[node.id]} [shape={_DOT[node.kind]}, label={_quote_dot(*node.lines)}];")
        lines.append("  }")
    for edge in graph.edges:
        options = ["style=dashed"] if edge.kind is EdgeKind.WAITS else []
        options += [f"label={_quote_dot(edge.label)}"] if edge.label else []
        suffix = f" [{', '.join(options)}]" if options else ""
        lines.append(f"  {ids[edge.source]} -> {ids[edge.target]}{suffix};")
    return "\n".join(lines) + "\n}\n"


def _group_by_crd(graph: BoxGraph) -> Iterator[tuple[str, list[GraphNode]]]:
    for crd in dict.fromkeys(node.crd for node in graph.nodes):
        yield crd, [node for node in graph.nodes if node.crd == crd]


def _escape_mermaid(text: str) -> str:
    return "".join(letter if _SAFE.match(letter) else f"#{ord(letter)};" for letter in text)


def _quote_dot(*lines: str) -> str:
    escaped = (line.replace("\\", "\\\\").replace('"', '\\"').replace("\n", " ") for line in lines)
    return '"' + "\\n".join(escaped) + '"'
