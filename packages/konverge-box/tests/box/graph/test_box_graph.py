"""The graph of a box, and its text."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from konverge_box._internal.file import load_box
from konverge_box._internal.graph import (
    BoxGraph,
    EdgeKind,
    GraphEdge,
    GraphNode,
    NodeKind,
    build_graph,
    format_dot,
    format_mermaid,
)
from tests.box.file.sample_boxes import build_box_text
from tests.box.running.box_harness import EXAMPLES

STEPS = """
pause: [{field: spec.paused}]
mutation: [{field: spec.a, default: 1}]
cross: [{crd: db, selector: {name: a}}, {apiVersion: v1, kind: Node, as: node, selector: {name: "{{ cross.db.name }}"}}]
external: [{name: call, url: "https://example.com/{{ cross.node.name }}"}]
onCreate: {secrets: [{name: key, once: true, stringData: {a: "{{ external.call.body }}"}}]}
onReconcile:
  - name: net
    services: [{port: 80}]
  - name: web
    waitsFor: [net]
    configMaps:
      - data: {ip: "{{ children.service.spec.clusterIP }}", arn: "{{ providers.aws.store.outputs.arn }}"}
      - {name: b, data: {field: "not a field!"}}
providers: {aws: [{kind: Bucket, name: store, when: [{field: cross.db.found}]}]}
status: {fields: [{path: ip, value: "{{ children.service.spec.clusterIP }}"}]}
onDelete: {groups: [{delete: {configMaps: [{name: b}]}}]}
"""


def build(steps: str = STEPS, second: str = "dependsOn: {}") -> BoxGraph:
    return build_graph(load_box(build_box_text(steps, second)))


def list_edges(graph: BoxGraph, kind: EdgeKind = EdgeKind.READS) -> list[str]:
    return [f"{each.source} -> {each.target} {each.label}".strip() for each in graph.edges if each.kind is kind]


def test_the_graph_shows_what_reads_what() -> None:
    graph = build()

    assert [node.id for node in graph.nodes if node.crd == "web"] == [
        "web.resource", "web.pause", "web.mutation", "web.cross.db", "web.cross.node", "web.external.call",
        "web.group.0", "web.group.net", "web.group.web", "web.providers.aws", "web.status", "web.onDelete",
    ]  # fmt: skip
    assert list_edges(graph) == [
        "web.resource -> web.pause",
        "web.resource -> web.mutation",
        "web.resource -> web.cross.db",
        "web.cross.db -> web.cross.node",
        "web.cross.node -> web.external.call",
        "web.external.call -> web.group.0",
        "web.resource -> web.group.net",
        "web.group.net -> web.group.web service",
        "web.providers.aws -> web.group.web store",
        "web.cross.db -> web.providers.aws",
        "web.group.net -> web.status service",
        "web.resource -> web.onDelete",
        "db.resource -> web.cross.db",
    ]
    assert list_edges(graph, EdgeKind.WAITS) == ["web.group.net -> web.group.web ready"]
    web = next(node for node in graph.nodes if node.id == "web.group.web")
    assert (web.kind, web.lines) == (NodeKind.GROUP, ("onReconcile: web", "configMaps x2"))


def test_custom_resources_that_wait_for_each_other_are_connected() -> None:
    graph = build("dependsOn: {db: healthy}")

    assert list_edges(graph, EdgeKind.WAITS) == ["db.resource -> web.resource healthy"]


def test_a_reader_of_several_results_has_an_edge_for_each_and_none_twice() -> None:
    steps = """
    cross: [{crd: db, selector: {name: a}}, {crd: db, as: b, selector: {name: b}}]
    onReconcile:
      configMaps:
        - data: {a: "{{ cross.db.name }}", b: "{{ cross.b.name ~ cross.db.spec.x }}"}
          when: [{field: cross.b.found, equals: true}]
    """

    edges = [each for each in list_edges(build(steps)) if each.endswith("group.0")]
    assert edges == ["web.cross.b -> web.group.0", "web.cross.db -> web.group.0"]


@pytest.mark.parametrize("file", sorted(EXAMPLES.glob("*/box.yaml")), ids=lambda file: file.parent.name)
def test_every_example_has_a_graph_whose_edges_join_its_nodes(file: Path) -> None:
    graph = build_graph(load_box(file.read_bytes(), file=str(file)))
    ids = {node.id for node in graph.nodes}

    assert len(ids) == len(graph.nodes)
    assert len(set(graph.edges)) == len(graph.edges)
    assert {end for edge in graph.edges for end in (edge.source, edge.target)} <= ids
    assert format_mermaid(graph) == format_mermaid(build_graph(load_box(file.read_bytes(), file=str(file))))


SMALL = BoxGraph(
    "shop",
    (
        GraphNode("a.resource", "a", NodeKind.RESOURCE, ("Web", "x/v1")),
        GraphNode("a.group.web", "a", NodeKind.GROUP, ('onReconcile: "web"',)),
    ),
    (
        GraphEdge("a.resource", "a.group.web", EdgeKind.READS),
        GraphEdge("a.resource", "a.group.web", EdgeKind.WAITS, "ready"),
    ),
)


def test_mermaid() -> None:
    assert format_mermaid(SMALL) == (
        """flowchart TB
  subgraph s0["a"]
    n0(["Web<br/>x/v1"])
    n1[["onReconcile: #34;web#34;"]]
  end
  n0 --> n1
  n0 -.->|"ready"| n1
"""
    )


def test_dot() -> None:
    assert format_dot(SMALL) == (
        """digraph "shop" {
  rankdir=TB;
  subgraph cluster_0 {
    label="a";
    n0 [shape=oval, label="Web\\nx/v1"];
    n1 [shape=box3d, label="onReconcile: \\"web\\""];
  }
  n0 -> n1;
  n0 -> n1 [style=dashed, label="ready"];
}
"""
    )


@given(st.text(max_size=30))
def test_no_text_leaves_its_label(text: str) -> None:
    graph = BoxGraph(
        text, (GraphNode("a", text, NodeKind.CALL, (text,)),), (GraphEdge("a", "a", EdgeKind.READS, text),)
    )

    mermaid, dot = format_mermaid(graph), format_dot(graph)

    assert re.fullmatch(
        r'flowchart TB\n  subgraph s0\["[^"\n]*"\]\n    n0\{\{"[^"\n]*"\}\}\n  end\n  n0 -->(\|"[^"\n]*"\|)? n0\n',
        mermaid,
    )
    assert len(re.sub(r'"(\\.|[^"\\])*"', "", dot).replace("\r", "").split('"')) == 1
