"""Simulation files: every error with its position."""

from pathlib import Path

import pytest

from konverge.errors import ConfigurationError
from konverge_box._internal.file import BoxFileError
from konverge_box._internal.simulation import find_simulation_errors, load_simulation
from tests.box.running.box_harness import build_box_text, build_config_map, build_custom_resource

HEAD = """\
apiVersion: konverge.dev/v1alpha1
kind: Simulation
metadata: {name: test}
spec:
"""


def write_files(folder: Path, spec: str) -> Path:
    steps = {
        "external": [{"name": "settings", "url": "https://example.com/"}],
        "onReconcile": {"configMaps": [build_config_map()]},
    }
    (folder / "box.yaml").write_text(build_box_text(shelf=build_custom_resource("Shelf", **steps)))
    (folder / "simulate.yaml").write_text(HEAD + spec)
    return folder / "simulate.yaml"


def find_errors(folder: Path, spec: str) -> list[str]:
    found = find_simulation_errors(write_files(folder, spec))
    return [f"{each.line}:{each.column}: {each.path}: {each.message}" for each in found]


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ("  stepps: []\n", ["5:3: spec.stepps: unknown field; did you mean steps?", "4:1: spec: steps is missing"]),
        ("  steps: [{name: a, expct: {}}]\n", ["5:21: spec.steps[0].expct: unknown field; did you mean expect?"]),
        (
            "  steps: [{name: a, advance: soon}]\n",
            ["5:21: spec.steps[0].advance: expected a duration such as 90s, 5m, 12h or 90d, found 'soon'"],
        ),
        (
            "  steps: [{name: a, delete: [{kind: Shelv, name: a}]}]\n",
            ["spec.steps[0].delete[0].kind: expected a kind of the box or of Kubernetes; add apiVersion"],
        ),
        (
            "  answers: {setings: {}}\n  steps: []\n",
            ["5:13: spec.answers.setings: expected a call of the box, found setings; did you mean settings?"],
        ),
        ("  steps: [{name: a, apply: [none.yaml]}]\n", ["5:29: spec.steps[0].apply[0]:"]),
        (
            "  steps: [{name: a, apply: [{kind: Shelf}]}]\n",
            ["expected an object with apiVersion, kind and metadata.name"],
        ),
        (
            "  steps: [{name: a, expect: {created: [shelf]}}]\n",
            ["spec.steps[0].expect.created[0]: expected an object as Kind/name"],
        ),
    ],
)
def test_a_mistake_has_its_place(spec: str, expected: list[str], tmp_path: Path) -> None:
    found = find_errors(tmp_path, spec)

    assert len(found) == len(expected)
    for text in expected:
        assert any(text in each for each in found), found


def test_the_namespace_stands_for_itself(tmp_path: Path) -> None:
    file = write_files(tmp_path, '  steps: [{name: a, delete: [{kind: Shelf, name: "{{ namespace }}-a"}]}]\n')

    (step,) = load_simulation(file, namespace="test").simulation.spec.steps

    assert step.delete[0].name == "test-a"


def test_mistakes_of_the_box_are_told_with_the_places_of_the_box(tmp_path: Path) -> None:
    file = write_files(tmp_path, "  steps: []\n")
    (tmp_path / "box.yaml").write_text("kind: OperatorBox\n")

    with pytest.raises(BoxFileError, match=r"box.yaml:1:1"):
        load_simulation(file)


def test_a_box_that_is_not_there_is_named(tmp_path: Path) -> None:
    file = write_files(tmp_path, "  box: other.yaml\n  steps: []\n")

    with pytest.raises(ConfigurationError, match=r"other.yaml: No such file"):
        load_simulation(file)
