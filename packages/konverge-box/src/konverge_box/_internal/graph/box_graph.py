"""The nodes and edges of a box: what each part of a custom resource reads, waits for and declares."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Any

import msgspec

from konverge._internal.message_text import shorten
from konverge_box._internal.file import KINDS, CustomResource, Group, OperatorBox, find_child_kind
from konverge_box._internal.file.struct_reader import has_expression
from konverge_box._internal.file.template_analysis import TemplateSyntaxError, find_field_paths, find_read_paths

__all__ = ["BoxGraph", "EdgeKind", "GraphEdge", "GraphNode", "NodeKind", "build_graph"]

_MAX_LABEL_LENGTH = 80
_Names = tuple[str, ...]


class NodeKind(Enum):
    """The part of a box that a node stands for."""

    RESOURCE = "resource"
    STEP = "step"
    OBSERVATION = "observation"
    CALL = "call"
    GROUP = "group"
    PROVIDER = "provider"


class EdgeKind(Enum):
    """The relation of two nodes; the target comes after the source."""

    READS = "reads"
    """The target reads a result of the source."""
    WAITS = "waits"
    """The target waits until the source is ready."""


@dataclass(frozen=True, slots=True)
class GraphNode:
    """One node.

    Args:
        id: Its identifier, unique in the graph: ``website.group.web``.
        crd: The name of its custom resource in the file.
        kind: The part that it stands for.
        lines: The lines of its label.
    """

    id: str
    crd: str
    kind: NodeKind
    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class GraphEdge:
    """One edge.

    Args:
        source: The node that comes first.
        target: The node that reads or waits.
        kind: The relation.
        label: What is read, or the awaited state; may be empty.
    """

    source: str
    target: str
    kind: EdgeKind
    label: str = ""


@dataclass(frozen=True, slots=True)
class BoxGraph:
    """The graph of a box; the same file always gives the same graph.

    Args:
        name: The name of the box.
        nodes: The nodes, by custom resource and in the order of the steps.
        edges: The edges, without duplicates.
    """

    name: str
    nodes: tuple[GraphNode, ...]
    edges: tuple[GraphEdge, ...]


def build_graph(box: OperatorBox) -> BoxGraph:
    """Build the graph of a loaded box."""
    nodes: list[GraphNode] = []
    edges: dict[GraphEdge, None] = {}
    for name, declared in box.spec.crds.items():
        builder = _CustomResourceGraph(name, declared)
        nodes += builder.nodes
        edges |= dict.fromkeys(builder.edges)
        for other, state in declared.depends_on.items():
            edges[GraphEdge(f"{other}.resource", f"{name}.resource", EdgeKind.WAITS, state)] = None
        for entry in declared.cross:
            if entry.crd is not None:
                edges[GraphEdge(f"{entry.crd}.resource", f"{name}.cross.{entry.name}", EdgeKind.READS)] = None
    return BoxGraph(box.metadata.name, tuple(nodes), tuple(edges))


class _CustomResourceGraph:
    """The nodes and edges of one custom resource."""

    def __init__(self, name: str, declared: CustomResource) -> None:
        self.nodes: list[GraphNode] = []
        self.edges: list[GraphEdge] = []
        self._name = name
        self._groups = self._list_groups(declared)
        self._add_node("resource", NodeKind.RESOURCE, str(declared.resource.gvk.kind), declared.resource.api_version)
        if declared.pause:
            self._add_step("pause", declared.pause)
        for step in ("normalize", "mutation", "validation"):
            part = getattr(declared, step)
            if part != type(part)():
                self._add_step(step, part)
        for entry in declared.cross:
            shown = entry.kind or entry.crd or ""
            self._add_reader(f"cross.{entry.name}", NodeKind.OBSERVATION, entry, f"cross.{entry.name}", shown)
        for call in declared.external:
            self._add_reader(f"external.{call.name}", NodeKind.CALL, call, f"external.{call.name}", call.protocol)
        for at, (group_id, group, step) in enumerate(self._groups):
            shown = group.name or f"group {at + 1}"
            lines = (f"{step}: {shown}", *_count_kinds(group))
            self._add_reader(group_id, NodeKind.GROUP, group, *lines, place=at)
            for other in group.waits_for:
                source = next(each for each, earlier, _ in self._groups if earlier.name == other)
                self.edges.append(GraphEdge(f"{name}.{source}", f"{name}.{group_id}", EdgeKind.WAITS, "ready"))
        for provider, items in declared.providers.items():
            kinds = ", ".join(dict.fromkeys(item.kind for item in items))
            self._add_reader(f"providers.{provider}", NodeKind.PROVIDER, items, f"providers: {provider}", kinds)
        if declared.status.fields:
            count = len(declared.status.fields)
            self._add_reader("status", NodeKind.STEP, declared.status, "status", f"{count} field{'s' * (count != 1)}")
        if declared.on_delete is not None:
            count = len(declared.on_delete.groups)
            lines = ("onDelete", f"{count} group{'s' * (count != 1)}")
            self._add_reader("onDelete", NodeKind.STEP, declared.on_delete, *lines)

    def _list_groups(self, declared: CustomResource) -> list[tuple[str, Group, str]]:
        groups = [(group, "onCreate") for group in declared.on_create]
        groups += [(group, "onReconcile") for group in declared.on_reconcile]
        return [(f"group.{group.name or at}", group, step) for at, (group, step) in enumerate(groups)]

    def _add_node(self, part: str, kind: NodeKind, *lines: str) -> None:
        shown = tuple(shorten(line, _MAX_LABEL_LENGTH) for line in lines if line)
        self.nodes.append(GraphNode(f"{self._name}.{part}", self._name, kind, shown))

    def _add_step(self, step: str, part: Any) -> None:
        self._add_node(step, NodeKind.STEP, step)
        self.edges.append(GraphEdge(f"{self._name}.resource", f"{self._name}.{step}", EdgeKind.READS))

    def _add_reader(self, part: str, kind: NodeKind, declared: Any, *lines: str, place: int | None = None) -> None:
        """Add a node and the edges from everything that it reads; `place` is the index of a group."""
        self._add_node(part, kind, *lines)
        target = f"{self._name}.{part}"
        found: dict[tuple[str, str], None] = {}
        for path in sorted(_iter_read_paths(msgspec.to_builtins(declared))):
            found |= dict.fromkeys((source, label) for source, label in self._find_sources(path, place))
        found.pop((part, ""), None)
        for source, label in found:
            if source != part:
                self.edges.append(GraphEdge(f"{self._name}.{source}", target, EdgeKind.READS, label))
        if not any(edge.target == target for edge in self.edges):
            self.edges.append(GraphEdge(f"{self._name}.resource", target, EdgeKind.READS))

    def _find_sources(self, path: _Names, place: int | None) -> Iterator[tuple[str, str]]:
        """Yield the nodes that set a result, with a label, for a path that is read."""
        if len(path) < 2:
            return
        if path[0] in ("cross", "external", "providers"):
            item = path[2] if path[0] == "providers" and len(path) > 2 else ""
            yield f"{path[0]}.{path[1]}", item
        elif path[0] == "children":
            kind = find_child_kind(path[1])
            for group_id, group, _ in self._groups[:place]:
                if kind is not None and any(resource.kind == kind.key for resource in group.resources):
                    yield group_id, path[1]


def _count_kinds(group: Group) -> Iterable[str]:
    counted = Counter(resource.kind for resource in group.resources)
    for key in KINDS:
        if key in counted:
            yield f"{key}{f' x{counted[key]}' if counted[key] > 1 else ''}"


def _iter_read_paths(value: Any, key: str = "") -> Iterator[_Names]:
    """Yield the paths that the expressions and the fields of conditions and loops read."""
    if isinstance(value, str):
        try:
            if has_expression(value):
                yield from find_read_paths(value, ())
            elif key == "field":
                yield from find_field_paths(value, ())
        except TemplateSyntaxError:
            return  # text of a Kubernetes object that looks like a field
    elif isinstance(value, dict):
        for name, each in value.items():
            yield from _iter_read_paths(name)
            yield from _iter_read_paths(each, str(name))
    elif isinstance(value, list | tuple):
        for each in value:
            yield from _iter_read_paths(each)
