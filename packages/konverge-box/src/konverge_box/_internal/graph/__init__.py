"""The graph of a box: its steps and groups, and what reads what. It needs no cluster and no provider.

`build_graph` reads a loaded box and returns nodes and edges; `format_mermaid` and `format_dot` return their text. The
graph contains names of the file, and no values.
"""

from konverge_box._internal.graph.box_graph import BoxGraph, EdgeKind, GraphEdge, GraphNode, NodeKind, build_graph
from konverge_box._internal.graph.graph_formats import format_dot, format_mermaid

__all__ = [
    "BoxGraph",
    "EdgeKind",
    "GraphEdge",
    "GraphNode",
    "NodeKind",
    "build_graph",
    "format_dot",
    "format_mermaid",
]
