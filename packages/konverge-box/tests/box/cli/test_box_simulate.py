"""``konverge box render`` and ``simulate`` from the command line."""

import json
import socket
from pathlib import Path

import pytest
import yaml

from tests.cli.conftest import Konverge

EXAMPLES = Path(__file__).parents[5] / "examples" / "boxes"


@pytest.mark.slow
def test_a_rendering_is_yaml_or_json(started_konverge: Konverge) -> None:
    box, owner = EXAMPLES / "validation" / "box.yaml", EXAMPLES / "validation" / "service.yaml"

    as_yaml = started_konverge("box", "render", box, "--object", owner)
    as_json = started_konverge("box", "render", box, "--object", owner, "-o", "json")

    assert as_yaml.returncode == 0
    assert yaml.safe_load(as_yaml.stdout) == json.loads(as_json.stdout)
    assert json.loads(as_json.stdout)["result"] == "ok"


def test_one_step_can_be_shown(konverge: Konverge) -> None:
    box, owner = EXAMPLES / "validation" / "box.yaml", EXAMPLES / "validation" / "service.yaml"

    step = yaml.safe_load(konverge("box", "render", box, "--object", owner, "--step", "mutation").stdout)

    assert [change["path"] for change in step["changes"]] == ["spec.tier", "spec.replicas"]


def test_a_denied_object_ends_with_code_1(konverge: Konverge, tmp_path: Path) -> None:
    owner = yaml.safe_load((EXAMPLES / "validation" / "service.yaml").read_text())
    owner["spec"]["image"] = "rogue:latest"
    (tmp_path / "owner.yaml").write_text(yaml.safe_dump(owner))

    result = konverge("box", "render", EXAMPLES / "validation" / "box.yaml", "--object", tmp_path / "owner.yaml")

    assert result.returncode == 1
    assert yaml.safe_load(result.stdout)["result"] == "denied"


@pytest.mark.slow
def test_answers_and_given_objects_come_from_files(konverge: Konverge, tmp_path: Path) -> None:
    folder = EXAMPLES / "config-from-http"
    (tmp_path / "answers.yaml").write_text("settings: {json: {color: red, version: '7'}}\n")

    with_answers = ("--answers", tmp_path / "answers.yaml")
    result = konverge("box", "render", folder / "box.yaml", "--object", folder / "config.yaml", *with_answers)

    assert result.returncode == 0
    assert "color: red" in result.stdout
    without = konverge("box", "render", folder / "box.yaml", "--object", folder / "config.yaml")
    assert without.returncode == 1
    assert "external.settings" in without.stderr

    (tmp_path / "answers.yaml").write_text("settings: {jsn: {}}\n")
    refused = konverge("box", "render", folder / "box.yaml", "--object", folder / "config.yaml", *with_answers)
    assert refused.returncode == 3
    assert "answers.yaml:1:12: settings.jsn: unknown field; did you mean json?" in refused.stderr


@pytest.mark.slow
def test_a_simulation_that_fails_says_what_it_found_and_ends_with_code_1(konverge: Konverge, tmp_path: Path) -> None:
    for file in (EXAMPLES / "for-each").glob("*.yaml"):
        (tmp_path / file.name).write_text(
            file.read_text().replace("has: {spec: {replicas: 2}}", "has: {spec: {replicas: 9}}")
        )

    result = konverge("box", "simulate", tmp_path)

    assert result.returncode == 1
    assert "FAILED Deployment/shop-worker: spec.replicas: expected 9, found 2" in result.stdout
    assert "+ Deployment/shop-front" in result.stdout


@pytest.mark.slow
def test_a_box_without_simulation_runs_until_a_pass_writes_nothing(started_konverge: Konverge) -> None:
    folder = EXAMPLES / "drift"

    result = started_konverge("box", "simulate", folder / "box.yaml", "--object", folder / "site.yaml")

    assert result.returncode == 0
    assert "+ Deployment/shop" in result.stdout
    assert result.stdout.splitlines()[-1] == "  steady"


@pytest.mark.slow
def test_samples_of_the_schema_do_where_no_object_is_given(konverge: Konverge) -> None:
    result = konverge("box", "simulate", EXAMPLES / "hello-website" / "box.yaml")

    assert result.returncode == 0
    assert "+ Deployment/website-1" in result.stdout


def test_a_folder_without_a_simulation_is_refused(konverge: Konverge, tmp_path: Path) -> None:
    result = konverge("box", "simulate", tmp_path)

    assert result.returncode == 3
    assert "expected a simulate.yaml" in result.stderr


@pytest.mark.slow
def test_an_example_without_its_server_is_left_out_with_what_starts_it(konverge: Konverge, tmp_path: Path) -> None:
    with socket.socket() as reserved:  # bound but not listening: connections are refused
        reserved.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{reserved.getsockname()[1]}"
        for example in ("provider", "for-each"):
            (tmp_path / example).mkdir()
            for file in (EXAMPLES / example).glob("*.yaml"):
                text = file.read_text().replace("address: 127.0.0.1:5432", f"address: {address}")
                (tmp_path / example / file.name).write_text(text)

        result = konverge("box", "simulate", tmp_path)

    assert f"left out: no server at {address}; to start it: docker run -p 5432:5432" in result.stdout
    assert result.stderr.splitlines()[-1] == "1 simulated, 0 failed, 1 left out"
    assert result.returncode == 0


INTEGRATIONS_BOX = """\
apiVersion: konverge.dev/v1alpha1
kind: OperatorBox
metadata: {name: outside}
spec:
  crds:
    site:
      resource: {apiVersion: test.konverge.dev/v1, kind: Site, schema: {spec: {properties: {}}}}
      onReconcile:
        - {name: web, deployments: [{image: nginx, port: 80}]}
        - {name: balanced, services: [{port: 80, type: LoadBalancer}]}
        - {name: routed, ingresses: [{host: example.com}]}
        - {name: scaled, horizontalPodAutoscalers: [{maxReplicas: 3}]}
        - name: stored
          persistentVolumes: [{accessModes: [ReadWriteOnce], capacity: {storage: 1Gi}, hostPath: {path: /data}}]
"""
INTEGRATIONS_SIMULATION = """\
apiVersion: konverge.dev/v1alpha1
kind: Simulation
metadata: {name: outside}
spec:
  withoutControllers: WITHOUT
  steps:
    - name: It is created
      apply: [{apiVersion: test.konverge.dev/v1, kind: Site, metadata: {name: home}, spec: {}}]
      expect:
        objects:
          - kind: Site
            name: home
            conditions: {BalancedReady: IS, RoutedReady: IS, ScaledReady: IS, StoredReady: IS, WebReady: "True"}
        steady: true
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("without", "status"),
    [("[]", '"True"'), ("[HorizontalPodAutoscaler, Ingress, PersistentVolume, Service]", '"False"')],
    ids=["by default", "without controllers"],
)
def test_what_a_cluster_gets_from_outside_is_ready_unless_the_file_says_no(
    konverge: Konverge, tmp_path: Path, without: str, status: str
) -> None:
    (tmp_path / "box.yaml").write_text(INTEGRATIONS_BOX)
    simulation = INTEGRATIONS_SIMULATION.replace("WITHOUT", without).replace("IS", status)
    (tmp_path / "simulate.yaml").write_text(simulation)

    result = konverge("box", "simulate", tmp_path)

    assert result.returncode == 0, result.stdout
