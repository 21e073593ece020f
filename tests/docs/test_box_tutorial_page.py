"""The tutorial's operator, after each of its five steps."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from konverge._internal.cli.main import run_command
from konverge.clock import SeededEntropy
from konverge_box._internal.runtime.box_validation import find_box_errors
from konverge_box._internal.simulation import SimulatedCluster, find_simulation_errors, load_simulation, simulate
from konverge_cluster.testing import Cluster
from tests.docs.pages import REPOSITORY, find_code_blocks

PAGE = "docs/box-tutorial.md"
STEPS = 5


def write_page_files(folder: Path, step: int) -> Path:
    """Write the files as the reader has them after that step."""
    box_text, website, simulation_text, *rest = find_code_blocks(PAGE, "yaml")
    box, simulation = yaml.safe_load(box_text), yaml.safe_load(simulation_text)
    assert len(rest) == 2 * (STEPS - 1)
    for more, steps in zip(rest[: 2 * (step - 1) : 2], rest[1 : 2 * (step - 1) : 2], strict=True):
        merge(box["spec"]["crds"]["website"], yaml.safe_load(more))
        simulation["spec"]["steps"] += yaml.safe_load(steps)
    (folder / "box.yaml").write_text(yaml.safe_dump(box, sort_keys=False))
    (folder / "website.yaml").write_text(website)
    (folder / "simulate.yaml").write_text(yaml.safe_dump(simulation, sort_keys=False))
    return folder / "simulate.yaml"


def merge(into: dict[str, Any], more: dict[str, Any]) -> None:
    for name, value in more.items():
        if isinstance(value, dict) and isinstance(into.get(name), dict):
            merge(into[name], value)
        else:
            into[name] = value


@pytest.mark.slow
@pytest.mark.parametrize("step", range(1, STEPS + 1))
def test_each_step_does_what_the_page_says(step: int, tmp_path: Path) -> None:
    write_page_files(tmp_path, step)

    assert run_command(["box", "simulate", str(tmp_path)]) == 0


def test_the_report_is_that_of_the_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_page_files(tmp_path, 1)
    example = find_code_blocks(PAGE, "console")[0].splitlines()[2:]

    run_command(["box", "simulate", str(tmp_path)])

    assert capsys.readouterr().out.splitlines()[1:] == example


def test_the_box_can_be_linted_and_rendered(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_page_files(tmp_path, STEPS)
    box, website = str(tmp_path / "box.yaml"), str(tmp_path / "website.yaml")

    assert run_command(["box", "lint", box]) == 0
    assert run_command(["box", "render", box, "--object", website]) == 0
    assert "apps/v1/Deployment/default/hello" in capsys.readouterr().out


@pytest.mark.slow
@pytest.mark.anyio
async def test_the_whole_does_the_same_on_both_clusters(cluster: Cluster, tmp_path: Path) -> None:
    loaded = load_simulation(write_page_files(tmp_path, STEPS), namespace=cluster.namespace)
    where = SimulatedCluster(
        client=cluster.client,
        transport=cluster.new_transport(),
        clock=cluster.clock,
        entropy=SeededEntropy(3),
        namespace=cluster.namespace,
        is_embedded=cluster.name == "embedded",
    )

    reports = await simulate(loaded, where)

    assert {report.name: report.failures for report in reports if report.failures} == {}


def test_the_simulation_of_the_other_page_loads(tmp_path: Path) -> None:
    for file in (REPOSITORY / "examples" / "boxes" / "config-from-http").glob("*.yaml"):
        (tmp_path / file.name).write_text(file.read_text())
    (tmp_path / "simulate.yaml").write_text(find_code_blocks("docs/box-simulations.md", "yaml")[0])

    assert find_simulation_errors(tmp_path / "simulate.yaml") == ()
    assert run_command(["box", "simulate", str(tmp_path)]) == 0


def test_the_box_of_the_readme_is_one_and_comes_to_rest(tmp_path: Path) -> None:
    (example,) = [block for block in find_code_blocks("README.md", "yaml") if "OperatorBox" in block]
    (tmp_path / "sites.yaml").write_text(example)

    assert find_box_errors(example) == ()
    assert run_command(["box", "simulate", str(tmp_path / "sites.yaml")]) == 0
