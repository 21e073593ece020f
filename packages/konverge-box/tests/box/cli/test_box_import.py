"""`konverge box import` and `konverge box package` from the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from konverge_box._internal.file import load_box
from tests.box.katalog.katalogs import FOLDER
from tests.cli.conftest import Konverge

WHOLE = """
kind: Katalog
metadata: {name: tea}
spec:
  crds:
    cup:
      apiTypes: {group: tea.example.com, version: v1, kind: Cup, plural: cups}
      crdFile: FILE
      operatorBox:
        onReconcile:
          configMaps: [{name: "{{ .metadata.name }}", data: {sugar: "{{ default 2 .spec.sugar }}"}}]
"""
DEFINITION = """
kind: CustomResourceDefinition
spec:
  group: tea.example.com
  names: {kind: Cup, plural: cups}
  versions:
    - name: v1
      storage: true
      schema: {openAPIV3Schema: {properties: {spec: {properties: {sugar: {type: integer}}}}}}
"""


@pytest.mark.slow
def test_all_of_a_katalog_is_carried_over(konverge: Konverge, tmp_path: Path) -> None:
    (tmp_path / "katalog.yaml").write_text(WHOLE.replace("FILE", "crds/cup.yaml"))
    (tmp_path / "crds").mkdir()
    (tmp_path / "crds" / "cup.yaml").write_text(DEFINITION)

    done = konverge("box", "import", "katalog.yaml", "-o", "box.yaml")

    assert (done.returncode, done.stdout) == (0, "")
    assert (
        done.stderr
        == "everything converted, and the box works in a simulation; 0 converted with differences, see the comments\n"
    )
    box = load_box((tmp_path / "box.yaml").read_text())
    assert box.spec.crds["cup"].resource.schema is not None
    assert konverge("box", "lint", "box.yaml").returncode == 0


@pytest.mark.slow
def test_files_elsewhere_are_not_read(konverge: Konverge, tmp_path: Path) -> None:
    (tmp_path / "below").mkdir()
    (tmp_path / "cup.yaml").write_text(DEFINITION)
    for number, name in enumerate(("../cup.yaml", str(tmp_path / "cup.yaml"), "https://example.com/cup.yaml")):
        (tmp_path / "below" / f"{number}.yaml").write_text(WHOLE.replace("FILE", name))

    done = [konverge("box", "import", f"below/{number}.yaml") for number in range(3)]

    assert [each.returncode for each in done] == [1, 1, 1]
    assert all("it does not exist beside the Katalog" in each.stderr for each in done)


def test_what_is_not_carried_over_is_told_to_a_program(konverge: Konverge) -> None:
    done = konverge("box", "import", FOLDER / "early.yaml", "--report", "json")

    report = json.loads(done.stderr)
    assert done.returncode == 1
    assert done.stdout.startswith("#")
    assert [each["path"] for each in report["listed"]] == [
        "metadata.clusterName",
        "spec.crds.oven.queue.maxDepth",
        "spec.crds.oven.operatorBox.hooks",
    ]
    assert set(report["listed"][0]) == {"file", "line", "column", "path", "what", "why", "instead"}


def test_what_is_no_katalog_is_one_line(konverge: Konverge, tmp_path: Path) -> None:
    (tmp_path / "box.yaml").write_text("kind: OperatorBox\n")

    done = konverge("box", "import", "box.yaml")

    assert done.returncode == 3
    assert "expected a document of the kind Katalog, found OperatorBox" in done.stderr


def test_the_manifests_of_a_box_are_printed(konverge: Konverge) -> None:
    file = Path(__file__).parents[5] / "examples" / "boxes" / "hello-website" / "box.yaml"

    done = konverge("box", "package", file, "--namespace", "ops", "--replicas", "3", "--image", "example.com/a:1")

    found = list(yaml.safe_load_all(done.stdout))
    assert (done.returncode, done.stderr) == (0, "")
    assert found[-1]["spec"]["replicas"] == 3
    assert found[-1]["spec"]["template"]["spec"]["containers"][0]["image"] == "example.com/a:1"
    assert next(each for each in found if each["kind"] == "ConfigMap")["data"]["box.yaml"] == file.read_text()


FAILING = """
kind: Katalog
metadata: {name: tea}
spec:
  crds:
    cup:
      apiTypes: {group: tea.example.com, version: v1, kind: Cup, plural: cups}
      operatorBox:
        onReconcile:
          PART
"""


@pytest.mark.slow
def test_a_box_that_fails_in_the_simulation_is_no_success(konverge: Konverge, tmp_path: Path) -> None:
    part = "limitRanges: [{name: x, limits: [{type: Pod, default: {cpu: 1}}]}]"
    (tmp_path / "katalog.yaml").write_text(FAILING.replace("PART", part))

    done = konverge("box", "import", "katalog.yaml", "-o", "box.yaml")

    assert done.returncode == 1
    assert "katalog.yaml: the simulated pass: the resulting box: " in done.stderr
    assert "spec.limits[0].default: Forbidden: " in done.stderr


def test_a_box_that_does_not_compile_is_no_success(konverge: Konverge, tmp_path: Path) -> None:
    part = 'external: [{name: ask, url: "https://{{ .spec.host }}/", auth: {env: TOKEN}}]'
    (tmp_path / "katalog.yaml").write_text(FAILING.replace("PART", part))

    done = konverge("box", "import", "katalog.yaml", "-o", "box.yaml")

    assert done.returncode == 1
    assert "the resulting box: it is invalid: " in done.stderr
    assert "expected a literal host in url" in done.stderr


def test_the_simulated_pass_can_have_its_own_objects_and_answers(konverge: Konverge, tmp_path: Path) -> None:
    part = """external: [{name: ask, url: "https://example.com/"}]
          configMaps: [{name: x, data: {a: "{{ slice .spec.word 1 3 }}{{ .external.ask.body }}"}}]"""
    (tmp_path / "katalog.yaml").write_text(FAILING.replace("PART", part))
    (tmp_path / "cup.yaml").write_text(
        "apiVersion: tea.example.com/v1\nkind: Cup\nmetadata: {name: big}\nspec: {word: large}\n"
    )
    (tmp_path / "answers.yaml").write_text("ask: {body: hello}\n")

    done = konverge(
        "box", "import", "katalog.yaml", "-o", "box.yaml", "--object", "cup.yaml", "--answers", "answers.yaml"
    )

    assert "the simulated pass" not in done.stderr
