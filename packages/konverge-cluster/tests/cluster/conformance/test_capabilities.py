"""The list of what the embedded cluster lacks is complete, and what it lacks is refused or warned of."""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from konverge.clock import SeededEntropy, SimulatedClock
from konverge.kube import Object
from konverge_cluster._internal.embedded.apiserver import ApiServer
from konverge_cluster._internal.embedded.controllers.manager import ControllerManager
from konverge_cluster._internal.embedded.limitations import unserved_resources
from konverge_cluster._internal.embedded.limitations.limitation_list import COVERED_CONTROLLERS, MISSING_CONTROLLERS
from konverge_cluster._internal.embedded.limitations.unserved_resources import load_real_resources
from konverge_cluster.controlplane import find_binaries
from konverge_cluster.testing import Cluster
from tests.cluster.conformance.objects import CUSTOM_RESOURCE_DEFINITION, new
from tests.cluster.conformance.widgets import Widgets

pytestmark = pytest.mark.anyio

RECORDED = Path(unserved_resources.__file__).parent / "real_resources.json"
JSON = "application/json"
POD_SPEC: Object = {"containers": [{"name": "main", "image": "konverge.test/ready"}]}


async def ask(
    cluster: Cluster, method: str, path: str, body: Object | None = None, content_type: str = JSON
) -> tuple[int, Any, str]:
    """Return the status, the body and the warnings of a response."""
    response = await cluster.new_transport().request(
        method,
        path.replace("{n}", cluster.namespace),
        query={"dryRun": "All"} if body else {},
        headers={"content-type": content_type, "accept": JSON},
        body=json.dumps(body).encode() if body else None,
        timeout_seconds=60,
    )
    return response.status, json.loads(response.body), response.headers.get("warning", "")


# The list against the real server


async def list_resources(cluster: Cluster) -> dict[str, dict[str, Object]]:
    """Return the built-in resources of a server by apiVersion and plural, as the recorded file contains them."""
    _, groups, _ = await ask(cluster, "GET", "/apis")
    custom = {item["spec"]["group"] for item in (await cluster.client.list(CUSTOM_RESOURCE_DEFINITION)).items}
    versions = ["v1"] + [
        version["groupVersion"]
        for group in groups["groups"]
        if group["name"] not in custom
        for version in group["versions"]
    ]
    found: dict[str, dict[str, Object]] = {}
    for version in versions:
        _, listed, _ = await ask(cluster, "GET", f"/apis/{version}" if "/" in version else f"/api/{version}")
        own = found.setdefault(version, {})
        for resource in sorted(listed["resources"], key=lambda resource: resource["name"]):
            name, _, part = resource["name"].partition("/")
            if part:
                own[name]["subresources"].append(part)
            else:
                own[name] = {"kind": resource["kind"], "subresources": []}
    return found


@pytest.mark.real
@pytest.mark.parametrize("cluster_kind", ["real"])
async def test_the_recorded_resources_are_those_of_the_real_server(cluster: Cluster) -> None:
    found = await list_resources(cluster)
    if os.environ.get("KONVERGE_RECORD"):
        RECORDED.write_text(json.dumps(found, indent=1, sort_keys=True) + "\n")
        load_real_resources.cache_clear()

    assert found == json.loads(RECORDED.read_text())


@pytest.mark.embedded
@pytest.mark.parametrize("cluster_kind", ["embedded"])
async def test_everything_that_the_embedded_server_has_exists(cluster: Cluster) -> None:
    recorded = load_real_resources()

    for version, resources in (await list_resources(cluster)).items():
        for name, resource in resources.items():
            assert recorded[version][name].kind == resource["kind"]
            assert set(resource["subresources"]) <= set(recorded[version][name].subresources)


@pytest.mark.real
def test_each_controller_of_the_real_cluster_is_simulated_or_in_the_list() -> None:
    program = find_binaries() / "kube-controller-manager"
    text = subprocess.run([program, "--help"], capture_output=True, text=True, check=True).stdout
    names = re.search(r"All controllers: ([-a-z, ]+)", text)
    assert names

    assert set(names[1].strip().split(", ")) == COVERED_CONTROLLERS.keys() | MISSING_CONTROLLERS.keys()


async def test_the_simulated_controllers_run() -> None:
    clock, entropy = SimulatedClock(), SeededEntropy()
    running = ControllerManager(ApiServer(clock=clock, entropy=entropy), clock, entropy).names

    assert set(COVERED_CONTROLLERS.values()) <= running
    assert not COVERED_CONTROLLERS.keys() & MISSING_CONTROLLERS.keys()


# Responses

UNSERVED = {
    "/api/v1/namespaces/{n}/pods/a/exec": "pods/exec of v1",
    "/api/v1/nodes/a/proxy": "nodes/proxy of v1",
    "/apis/networking.k8s.io/v1/servicecidrs": "servicecidrs of networking.k8s.io/v1",
    "/apis/resource.k8s.io/v1/namespaces/{n}/resourceclaims/a": "resourceclaims of resource.k8s.io/v1",
}


@pytest.mark.embedded
@pytest.mark.parametrize("cluster_kind", ["embedded"])
@pytest.mark.parametrize("path", UNSERVED)
async def test_a_path_of_the_real_server_is_named_when_it_is_missing(cluster: Cluster, path: str) -> None:
    status, body, _ = await ask(cluster, "GET", path)

    assert status == 404
    assert body["message"] == (
        f"the server could not find the requested resource (konverge: the embedded cluster does not serve "
        f"{UNSERVED[path]}; konverge local capabilities lists what it lacks)"
    )


@pytest.mark.parametrize("path", ["/api/v1/foos", "/apis/apps/v1/pods"])
async def test_a_path_that_no_server_has_is_only_unknown(cluster: Cluster, path: str) -> None:
    status, body, _ = await ask(cluster, "GET", path)

    assert (status, body["message"]) == (404, "the server could not find the requested resource")


def pod(**spec: Any) -> Object:
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, "spec": {**POD_SPEC, **spec}}


def job(**spec: Any) -> Object:
    template = {"spec": {**POD_SPEC, "restartPolicy": "Never"}}
    spec = {"template": template, **spec}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "a"}, "spec": spec}


PODS, JOBS = "/api/v1/namespaces/{n}/pods", "/apis/batch/v1/namespaces/{n}/jobs"
SPREAD: Object = {"maxSkew": 1, "topologyKey": "zone", "labelSelector": {"matchLabels": {"a": "b"}}}
AWAY: Object = {"topologyKey": "zone", "labelSelector": {"matchLabels": {"a": "b"}}}
REQUIRED, PREFERRED = (
    "requiredDuringSchedulingIgnoredDuringExecution",
    "preferredDuringSchedulingIgnoredDuringExecution",
)
# The objects, and the field without effect; empty if all fields have one.
WRITES: dict[str, tuple[str, Object, str]] = {
    "deadline": (PODS, pod(activeDeadlineSeconds=10), "spec.activeDeadlineSeconds"),
    "anti-affinity": (PODS, pod(affinity={"podAntiAffinity": {REQUIRED: [AWAY]}}), "spec.affinity.podAntiAffinity"),
    "preference": (PODS, pod(affinity={"podAntiAffinity": {PREFERRED: [{"weight": 1, "podAffinityTerm": AWAY}]}}), ""),
    "spread": (
        PODS,
        pod(topologySpreadConstraints=[{**SPREAD, "whenUnsatisfiable": "DoNotSchedule"}]),
        "spec.topologySpreadConstraints",
    ),
    "spread anyway": (PODS, pod(topologySpreadConstraints=[{**SPREAD, "whenUnsatisfiable": "ScheduleAnyway"}]), ""),
    "job": (JOBS, job(), ""),
    "indexed job": (JOBS, job(completionMode="Indexed", completions=2), "spec.completionMode"),
    "deadline of a job's pods": (
        JOBS,
        job(template={"spec": {**POD_SPEC, "restartPolicy": "Never", "activeDeadlineSeconds": 10}}),
        "spec.template.spec.activeDeadlineSeconds",
    ),
    "quota": (
        "/api/v1/namespaces/{n}/resourcequotas",
        {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "a"}, "spec": {"hard": {"pods": "1"}}},
        "ResourceQuota",
    ),
}


@pytest.mark.parametrize("name", WRITES)
async def test_a_field_without_effect_is_warned_of(cluster: Cluster, name: str) -> None:
    path, body, field = WRITES[name]

    status, _, warning = await ask(cluster, "POST", path, body)

    assert status == 201
    if cluster.name == "real" or not field:
        assert "konverge: " not in warning
    else:
        assert f'299 - "konverge: {field} has no effect on the embedded cluster: ' in warning


@pytest.mark.embedded
@pytest.mark.parametrize("cluster_kind", ["embedded"])
async def test_only_a_change_of_the_field_is_warned_of(cluster: Cluster) -> None:
    body = pod(activeDeadlineSeconds=10)
    created = await cluster.client.create({**body, "metadata": {"namespace": cluster.namespace, "name": "a"}})
    assert created["spec"]["activeDeadlineSeconds"] == 10

    path, patch = f"{PODS}/a", "application/merge-patch+json"
    labelled = await ask(cluster, "PATCH", path, {"metadata": {"labels": {"a": "b"}}}, patch)
    shortened = await ask(cluster, "PATCH", path, {"spec": {"activeDeadlineSeconds": 5}}, patch)

    assert (labelled[0], labelled[2]) == (200, "")
    assert shortened[0] == 200
    assert "konverge: spec.activeDeadlineSeconds" in shortened[2]


# Rules of custom resources


def with_rule(widgets: Widgets, rule: str, **extra: str) -> Object:
    size = {"type": "string", "maxLength": 10, "x-kubernetes-validations": [{"rule": rule, **extra}]}
    spec = {"type": "object", "properties": {"size": size}}
    return widgets.definition(schema={"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}})


DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
AT = "spec.validation.openAPIV3Schema.properties[spec].properties[size].x-kubernetes-validations[0]"


@pytest.mark.parametrize(
    ("rule", "extra", "field"),
    [
        ("self.foo(", {}, "rule"),
        ("foo(self)", {}, "rule"),
        ("self.foo() == ''", {}, "rule"),
        ("self == ''", {"messageExpression": "foo(self)"}, "messageExpression"),
    ],
)
async def test_a_rule_that_no_server_compiles_is_refused(
    cluster: Cluster, rule: str, extra: dict[str, str], field: str
) -> None:
    kind = Widgets(cluster, f"{cluster.namespace}.konverge.test")

    status, body, _ = await ask(cluster, "POST", DEFINITIONS, with_rule(kind, rule, **extra))

    assert status == 422
    assert [cause["field"] for cause in body["details"]["causes"]] == [f"{AT}.{field}"]
    assert "compilation failed: " in body["message"]


QUANTITY = "quantity(self).isLessThan(quantity('1Gi'))"


async def test_a_rule_that_is_not_checked_is_warned_of(cluster: Cluster) -> None:
    kind = Widgets(cluster, f"{cluster.namespace}.konverge.test")
    definition = with_rule(kind, QUANTITY)
    status, _, warning = await ask(cluster, "POST", DEFINITIONS, definition)
    why = "the embedded cluster does not check the rule"

    assert status == 201
    assert (f"konverge: {AT}.rule: {why}" in warning) == (cluster.name == "embedded")

    await cluster.client.create(definition)
    await cluster.eventually(kind.is_served)
    status, _, warning = await ask(
        cluster,
        "POST",
        f"/apis/{kind.group}/v1/namespaces/{{n}}/widgets",
        new(kind.gvk, cluster.namespace, "a", spec={"size": "2Gi"}),
    )

    assert status == (422 if cluster.name == "real" else 201)
    assert (why in warning) == (cluster.name == "embedded")
