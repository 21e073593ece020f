"""What two type checkers say of objects with and without mistakes."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

# Each line with a mistake says so.
SAMPLE = """
from konverge.client import Client
from konverge.mutation import DeploymentSpecEditor, Mutation
from konverge.primitives import Deployment, Secret, Service, Static
from konverge.types import apiextensions_v1, apps_v1, autoscaling_v2, core_v1, meta_v1, networking_v1

labels = {"app": "web"}


def deployment(replicas: int) -> apps_v1.Deployment:
    container: core_v1.Container = {
        "name": "web",
        "image": "nginx",
        "imagePullPolicy": "Always",
        "ports": [{"containerPort": 80, "protocol": "TCP"}],
        "livenessProbe": {"httpGet": {"port": "http"}},
        "readinessProbe": {"httpGet": {"port": 80}},
        "resources": {"limits": {"cpu": 1, "memory": "1Gi"}, "requests": {"cpu": 0.5}},
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "default", "labels": labels},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}},
        },
    }


Deployment(deployment(2), mutations=Mutation("nothing", lambda m: None))
Static(deployment(2))


async def apply(client: Client) -> None:
    await client.apply(dict(deployment(2)), field_manager="me")


service: core_v1.Service = {"spec": {"ports": [{"port": 80, "targetPort": "http"}]}}
Service(service)
policy: networking_v1.NetworkPolicyIngressRule = {"from": [{"podSelector": {}}]}
schema: apiextensions_v1.JSONSchemaProps = {
    "type": "object",
    "x-kubernetes-preserve-unknown-fields": True,
    "properties": {"size": {"type": "integer", "not": {"enum": [0]}}},
}
quantity: meta_v1.Quantity = "100m"

wrong_field: apps_v1.DeploymentSpec = {"replica": 2, "selector": {}, "template": {}}  # mistake
field_type_invalid: apps_v1.StatefulSetSpec = {"replicas": "2", "selector": {}, "template": {}}  # mistake
missing: apps_v1.DeploymentSpec = {"selector": {}}  # mistake
deep: core_v1.PodTemplateSpec = {"spec": {"containers": [{"name": "web", "ports": [{"port": 80}]}]}}  # mistake
no_such_value: core_v1.Container = {"name": "web", "imagePullPolicy": "Sometimes"}  # mistake
other_kind: core_v1.Secret = {"kind": "ConfigMap"}  # mistake
not_text: core_v1.ConfigMap = {"data": {"port": 80}}  # mistake
deeper: apiextensions_v1.JSONSchemaProps = {"properties": {"size": {"typ": "integer"}}}  # mistake
minimum: autoscaling_v2.HorizontalPodAutoscalerSpec = {"maxReplicas": 3}  # mistake
service["spec"]["port"]  # mistake
Secret(["no", "object"])  # mistake

edit = DeploymentSpecEditor({})
edit.set(replicas=3, paused=None, strategy={"type": "Recreate"})
edit.set(replica=3)  # mistake
edit.set(replicas="3")  # mistake
edit.set(strategy={"type": "Sometimes"})  # mistake
edit.set(template={})  # mistake
""".lstrip()


REPORTED = {"mypy": r"^sample\.py:(\d+): error", "pyright": r"sample\.py:(\d+):\d+ - error"}


@pytest.mark.slow
@pytest.mark.parametrize("checker", REPORTED)
def test_each_mistake_is_reported_and_nothing_else(
    checker: str, type_checkers: dict[str, list[str]], tmp_path: Path
) -> None:
    (tmp_path / "sample.py").write_text(SAMPLE)
    command = [*type_checkers[checker], "sample.py"]

    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=100)

    assert done.returncode == 1, done.stdout + done.stderr
    lines = enumerate(SAMPLE.splitlines(), start=1)
    mistakes = {number for number, line in lines if line.endswith("# mistake")}
    assert {int(line) for line in re.findall(REPORTED[checker], done.stdout, re.MULTILINE)} == mistakes
