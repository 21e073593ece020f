"""The real kubectl against the embedded server."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from konverge.clock import SeededEntropy, SystemClock
from konverge.kube import Object
from konverge_cluster.controlplane import find_binaries
from konverge_cluster.embedded import LocalCluster
from tests.cluster.embedded.objects import (
    DEFINITION,
    DEPLOYMENT,
    config_map,
    deployment,
    pod,
    webapp,
    webapp_definition,
)

pytestmark = [pytest.mark.anyio, pytest.mark.real]

_DEADLINE_SECONDS = 60


class Kubectl:
    """A runner of kubectl commands against a server."""

    def __init__(self, url: str, folder: Path) -> None:
        self._program = find_binaries() / "kubectl"
        self._folder = folder
        self._config = folder / "kubeconfig"
        self._config.write_text(
            json.dumps(
                {
                    "apiVersion": "v1",
                    "kind": "Config",
                    "current-context": "embedded",
                    "clusters": [{"name": "embedded", "cluster": {"server": url}}],
                    "users": [{"name": "embedded", "user": {}}],
                    "contexts": [{"name": "embedded", "context": {"cluster": "embedded", "user": "embedded"}}],
                }
            )
        )

    def file(self, *objects: Object) -> str:
        """Write a manifest of these objects."""
        path = self._folder / f"{objects[0]['kind']}-{objects[0]['metadata']['name']}.yaml"
        path.write_text(yaml.safe_dump_all(objects))
        return str(path)

    async def __call__(self, *arguments: str, editor: str = "false", exit_code: int = 0) -> str:
        """Return the output of kubectl; both streams for an expected failure."""
        process = await self.start(*arguments, editor=editor)
        async with asyncio.timeout(_DEADLINE_SECONDS):
            output, errors = await process.communicate()
        transcript = f"kubectl {' '.join(arguments)}\n{output.decode()}{errors.decode()}"
        assert process.returncode == exit_code, transcript
        return output.decode() if exit_code == 0 else output.decode() + errors.decode()

    async def start(self, *arguments: str, editor: str = "false") -> asyncio.subprocess.Process:
        """Start kubectl without waiting for its end."""
        return await asyncio.create_subprocess_exec(
            self._program,
            f"--kubeconfig={self._config}",
            f"--cache-dir={self._folder / 'cache'}",
            *arguments,
            env={"KUBE_EDITOR": editor, "HOME": str(self._folder), "PATH": "/usr/bin:/bin"},
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )


@pytest.fixture
def anyio_backend() -> tuple[str, dict[str, Any]]:
    return "asyncio", {}


@pytest.fixture
async def embedded() -> AsyncIterator[LocalCluster]:
    async with LocalCluster(clock=SystemClock(), entropy=SeededEntropy()) as running:
        yield running


@pytest.fixture
async def kubectl(embedded: LocalCluster, tmp_path: Path) -> Kubectl:
    return Kubectl(await embedded.serve(), tmp_path)


def manifest(gvk_of: str, body: Object) -> Object:
    api_version, _, kind = gvk_of.rpartition("/")
    return {"apiVersion": api_version, "kind": kind, **body}


WEB = manifest("apps/v1/Deployment", deployment(replicas=2))
DEFINED = manifest("apiextensions.k8s.io/v1/CustomResourceDefinition", webapp_definition())
SETTINGS = manifest("v1/ConfigMap", config_map(a="1"))
POD = manifest("v1/Pod", pod("lonely"))


def columns(table: str) -> list[list[str]]:
    return [line.split() for line in table.splitlines()]


async def test_apply_from_the_server_side(kubectl: Kubectl) -> None:
    file = kubectl.file(WEB)

    first = await kubectl("apply", "--server-side", "-f", file)
    second = await kubectl("apply", "--server-side", "-f", file)
    conflict = await kubectl(
        "apply",
        "--server-side",
        "--field-manager=other",
        "-f",
        kubectl.file(manifest("apps/v1/Deployment", deployment(replicas=3))),
        exit_code=1,
    )

    assert first == second == "deployment.apps/web serverside-applied\n"
    assert 'conflict with "kubectl": .spec.replicas' in conflict


async def test_apply_from_the_client_side(kubectl: Kubectl) -> None:
    created = await kubectl("apply", "-f", kubectl.file(WEB))
    unchanged = await kubectl("apply", "-f", kubectl.file(WEB))
    image = json.loads(json.dumps(WEB).replace("app:1", "app:2"))
    configured = await kubectl("apply", "-f", kubectl.file(image))

    assert created == "deployment.apps/web created\n"
    assert unchanged == "deployment.apps/web unchanged\n"
    assert configured == "deployment.apps/web configured\n"
    images = await kubectl("get", "deployment", "web", "-o", "jsonpath={.spec.template.spec.containers[*].image}")
    assert images == "konverge.test/app:2"


async def test_unknown_fields_stop_an_apply(kubectl: Kubectl) -> None:
    wrong = {**WEB, "spec": {**WEB["spec"], "replica": 2}}

    client_side = await kubectl("apply", "-f", kubectl.file(wrong), exit_code=1)

    assert 'strict decoding error: unknown field "spec.replica"' in client_side


async def test_custom_resources(kubectl: Kubectl) -> None:
    await kubectl("apply", "-f", kubectl.file(DEFINED))
    await kubectl("wait", "--for=condition=Established", "crd/webapps.demo.konverge.dev", "--timeout=10s")
    await kubectl("apply", "-f", kubectl.file(webapp(replicas=2)))

    plain, wide = await kubectl("get", "wa"), await kubectl("get", "webapps", "-o", "wide")
    described, explained = await kubectl("describe", "webapp", "shop"), await kubectl("explain", "webapp.spec")
    await kubectl("scale", "webapp/shop", "--replicas=4")
    refused = await kubectl("apply", "-f", kubectl.file(webapp("bad", size="huge")), exit_code=1)

    assert columns(plain)[0] == ["NAME", "READY", "REPLICAS", "AGE"]
    assert columns(wide)[1][:4] == ["shop", "2", "shop:1", columns(wide)[1][3]]
    assert "Image:     shop:1" in described
    assert "replicas\t<integer>" in explained
    assert (await kubectl("get", "wa", "shop", "-o", "jsonpath={.spec.replicas}")) == "4"
    assert 'spec.size: Unsupported value: "huge"' in refused
    assert "shop" in await kubectl("get", "all")


async def test_a_rollout_is_followed(kubectl: Kubectl) -> None:
    await kubectl("apply", "-f", kubectl.file(WEB))

    status = await kubectl("rollout", "status", "deployment/web", "--timeout=30s")
    await kubectl("wait", "--for=condition=Available", "deployment/web", "--timeout=30s")
    await kubectl("scale", "deployment/web", "--replicas=3")
    await kubectl("wait", "--for=jsonpath={.status.readyReplicas}=3", "deployment/web", "--timeout=30s")
    table = columns(await kubectl("get", "deployments,replicasets,pods"))
    everywhere = await kubectl("get", "pods", "-A", "-o", "wide")

    assert "successfully rolled out" in status
    assert ["deployment.apps/web", "3/3", "3", "3"] in [row[:4] for row in table]
    assert [row[1:3] for row in table if row and row[0].startswith("pod/")] == [["1/1", "Running"]] * 3
    assert columns(everywhere)[0][:2] == ["NAMESPACE", "NAME"]
    assert everywhere.count("node-0") == 3


async def test_objects_are_read_in_every_form(kubectl: Kubectl) -> None:
    await kubectl("create", "-f", kubectl.file(SETTINGS))

    read = yaml.safe_load(await kubectl("get", "configmap", "settings", "-o", "yaml"))
    listed = json.loads(await kubectl("get", "cm", "-l", "!absent", "-o", "json"))
    names = await kubectl("get", "cm", "--field-selector=metadata.name=settings", "-o", "name")
    missing = await kubectl("get", "configmap", "none", exit_code=1)

    assert (read["apiVersion"], read["kind"], read["data"]) == ("v1", "ConfigMap", {"a": "1"})
    assert "settings" in [item["metadata"]["name"] for item in listed["items"]]
    assert names == "configmap/settings\n"
    assert 'configmaps "none" not found' in missing


async def test_changes_are_watched(kubectl: Kubectl, embedded: LocalCluster) -> None:
    embedded.api.create(DEPLOYMENT, deployment("first", replicas=0))
    watching = await kubectl.start("get", "deployments", "--watch")
    assert watching.stdout is not None
    try:
        async with asyncio.timeout(_DEADLINE_SECONDS):
            head = [(await watching.stdout.readline()).decode().split() for _ in range(2)]
            embedded.api.create(DEPLOYMENT, deployment("second", replicas=1))
            seen: list[list[str]] = []
            while not seen or seen[-1][:2] != ["second", "1/1"]:
                seen.append((await watching.stdout.readline()).decode().split())
    finally:
        watching.terminate()
        await watching.communicate()

    assert head == [["NAME", "READY", "UP-TO-DATE", "AVAILABLE", "AGE"], ["first", "0/0", "0", "0", head[1][4]]]
    assert seen[0][:4] == ["second", "0/1", "0", "0"]


async def test_everything_is_described(kubectl: Kubectl) -> None:
    service = manifest(
        "v1/Service", {"metadata": {"name": "web"}, "spec": {"selector": {"app": "web"}, "ports": [{"port": 80}]}}
    )
    await kubectl("apply", "-f", kubectl.file(WEB, service, POD))
    await kubectl("wait", "--for=condition=Available", "deployment/web", "--timeout=30s")
    await kubectl("wait", "--for=condition=Ready", "pod/lonely", "--timeout=30s")

    workload = await kubectl("describe", "deployment", "web")
    described = await kubectl("describe", "service", "web")
    lonely = await kubectl("describe", "pod", "lonely")

    assert "2 desired | 2 updated | 2 total | 2 available | 0 unavailable" in workload
    assert "NewReplicaSet:   web-" in workload
    assert "Endpoints:" in described
    assert "Status:       Running" in lonely


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("--type=merge", '-p={"data":{"b":"2"}}'), {"a": "1", "b": "2"}),
        (
            ("--type=json", '-p=[{"op":"remove","path":"/data/a"},{"op":"add","path":"/data","value":{"c":"3"}}]'),
            {"c": "3"},
        ),
        (("--type=strategic", '-p={"data":{"a":null,"d":"4"}}'), {"d": "4"}),
    ],
)
async def test_patches(kubectl: Kubectl, arguments: tuple[str, ...], expected: Object) -> None:
    await kubectl("create", "-f", kubectl.file(SETTINGS))

    patched = await kubectl("patch", "configmap", "settings", *arguments)

    assert patched == "configmap/settings patched\n"
    assert json.loads(await kubectl("get", "cm", "settings", "-o", "json"))["data"] == expected


async def test_an_object_is_edited_labelled_and_annotated(kubectl: Kubectl) -> None:
    await kubectl("create", "-f", kubectl.file({**SETTINGS, "data": {"a": "before"}}))

    edited = await kubectl("edit", "configmap", "settings", editor="sed -i s/before/after/")
    labelled = await kubectl("label", "configmap", "settings", "tier=front")
    annotated = await kubectl("annotate", "configmap", "settings", "note=here")
    unlabelled = await kubectl("label", "configmap", "settings", "tier-")

    read = json.loads(await kubectl("get", "cm", "settings", "-o", "json"))
    assert (edited, labelled) == ("configmap/settings edited\n", "configmap/settings labeled\n")
    assert (annotated, unlabelled) == ("configmap/settings annotated\n", "configmap/settings unlabeled\n")
    assert read["data"] == {"a": "after"}
    assert read["metadata"]["annotations"] == {"note": "here"}
    assert "labels" not in read["metadata"]


@pytest.mark.parametrize(("cascade", "pods_left"), [("background", 0), ("foreground", 0), ("orphan", 2)])
async def test_a_deployment_is_deleted(kubectl: Kubectl, cascade: str, pods_left: int) -> None:
    await kubectl("apply", "-f", kubectl.file(WEB))
    await kubectl("wait", "--for=condition=Available", "deployment/web", "--timeout=30s")

    deleted = await kubectl("delete", "deployment", "web", f"--cascade={cascade}", "--wait")
    await kubectl("wait", "--for=delete", "deployment/web", "--timeout=30s")
    if not pods_left:
        await kubectl("wait", "--for=delete", "pod", "-l", "app=web", "--timeout=30s")

    assert 'deployment.apps "web" deleted' in deleted
    left = json.loads(await kubectl("get", "pods", "-o", "json"))["items"]
    assert len(left) == pods_left


async def test_a_namespace_comes_and_goes_with_all_that_is_in_it(kubectl: Kubectl) -> None:
    await kubectl("create", "namespace", "team")
    await kubectl("create", "configmap", "settings", "--from-literal=a=1", "-n", "team")
    await kubectl("create", "deployment", "web", "--image=konverge.test/app:1", "-n", "team")

    deleted = await kubectl("delete", "namespace", "team", "--wait", "--timeout=30s")
    missing = await kubectl("get", "namespace", "team", exit_code=1)

    assert 'namespace "team" deleted' in deleted
    assert 'namespaces "team" not found' in missing


async def test_what_there_is_can_be_asked(kubectl: Kubectl, embedded: LocalCluster) -> None:
    embedded.api.create(DEFINITION, webapp_definition())

    resources = await kubectl("api-resources", "--no-headers")
    versions = (await kubectl("api-versions")).split()
    fields = await kubectl("explain", "deployment.spec.strategy", "--recursive")
    allowed = await kubectl("auth", "can-i", "delete", "nodes")
    events = await kubectl("events")
    version = json.loads(await kubectl("version", "-o", "json"))

    assert ["webapps", "wa", "demo.konverge.dev/v1", "true", "WebApp"] in columns(resources)
    assert {"v1", "apps/v1", "demo.konverge.dev/v1"} <= set(versions)
    assert "maxSurge" in fields
    assert allowed == "yes\n"
    assert events == ""
    assert version["serverVersion"]["minor"] == "36"


async def test_typed_commands_create_in_their_own_format(kubectl: Kubectl) -> None:
    await kubectl("create", "secret", "generic", "key", "--from-literal=token=abc")
    await kubectl("create", "job", "once", "--image=konverge.test/app:1")
    await kubectl("create", "cronjob", "daily", "--image=konverge.test/app:1", "--schedule=0 0 * * *")
    await kubectl("create", "ingress", "door", "--rule=example.com/path=web:80,tls=cert")
    await kubectl("create", "role", "reader", "--verb=get", "--resource=pods")
    await kubectl("create", "service", "nodeport", "web", "--tcp=80:8080")
    await kubectl("create", "poddisruptionbudget", "careful", "--selector=app=web", "--min-available=50%")

    secret = json.loads(await kubectl("get", "secret", "key", "-o", "json"))
    door = json.loads(await kubectl("get", "ingress", "door", "-o", "json"))
    budget = await kubectl("get", "pdb", "careful", "-o", "jsonpath={.spec.minAvailable}")
    port = await kubectl("get", "service", "web", "-o", "jsonpath={.spec.ports[0].targetPort}")
    await kubectl("wait", "--for=condition=Complete", "job/once", "--timeout=30s")

    assert secret["data"] == {"token": "YWJj"}
    assert door["spec"]["rules"][0]["http"]["paths"][0]["backend"]["service"] == {"name": "web", "port": {"number": 80}}
    assert (budget, port) == ("50%", "8080")


async def test_a_dry_run_and_a_diff_change_nothing(kubectl: Kubectl) -> None:
    await kubectl("create", "-f", kubectl.file(SETTINGS))
    changed = kubectl.file({**SETTINGS, "data": {"a": "2"}})

    tried = await kubectl("apply", "--server-side", "--force-conflicts", "--dry-run=server", "-f", changed)
    different = await kubectl("diff", "-f", changed, exit_code=1)

    assert tried == "configmap/settings serverside-applied (server dry run)\n"
    assert '+  a: "2"' in different
    assert await kubectl("get", "cm", "settings", "-o", "jsonpath={.data.a}") == "1"
