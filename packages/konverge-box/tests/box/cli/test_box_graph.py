"""``konverge box graph``: a diagram of a box, without a cluster and without its providers."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.box.file.sample_boxes import build_box_text
from tests.cli.conftest import Konverge

STEPS = """
onReconcile: [{name: net, services: [{port: 80}]}, {name: web, waitsFor: [net], configMaps: [{}]}]
providers: {unheard: [{kind: Thing, name: a}]}
"""


@pytest.mark.slow
def test_a_diagram_is_printed_in_both_formats(konverge: Konverge, tmp_path: Path) -> None:
    (tmp_path / "box.yaml").write_text(build_box_text(STEPS))

    mermaid, dot = konverge("box", "graph", "box.yaml"), konverge("box", "graph", "box.yaml", "-o", "dot")

    assert (mermaid.returncode, dot.returncode) == (0, 0)
    assert mermaid.stdout.startswith('flowchart TB\n  subgraph s0["web"]\n')
    assert '-.->|"ready"|' in mermaid.stdout
    assert dot.stdout.startswith('digraph "test" {\n')


def test_an_invalid_box_has_no_diagram_but_its_errors(konverge: Konverge, tmp_path: Path) -> None:
    (tmp_path / "bad.yaml").write_text(build_box_text("onReconcil: {}"))

    done = konverge("box", "graph", "bad.yaml")

    assert done.returncode == 3
    assert done.stdout == ""
    assert "bad.yaml:8:7: spec.crds.web.onReconcil: unknown field" in done.stderr
