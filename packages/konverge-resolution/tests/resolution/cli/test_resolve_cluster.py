"""`konverge resolve cluster`: an object is named as kubectl names it."""

from __future__ import annotations

import json
from pathlib import Path

import anyio
import pytest

from konverge.kube import Object
from konverge_cluster.testing import Cluster
from tests.cli.conftest import Konverge

pytestmark = pytest.mark.anyio


@pytest.fixture
async def kubeconfig(cluster: Cluster) -> Path:
    config_map: Object = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "home"}, "data": {"a": "b"}}
    config_map["metadata"]["namespace"] = cluster.namespace
    await cluster.client.create(config_map)
    return await cluster.write_kubeconfig()


POLICY = """apiVersion: resolution.konverge.dev/v1alpha1
kind: ResolutionPolicy
metadata: {name: for-team-a}
spec: {namespaces: [team-a], resolvers: [cluster], sources: ["cluster://elsewhere"]}
"""


@pytest.mark.slow
@pytest.mark.parametrize("cluster_kind", [pytest.param("embedded", marks=pytest.mark.embedded)])
async def test_the_namespace_of_an_object_is_given_as_to_kubectl(
    cluster: Cluster, konverge: Konverge, kubeconfig: Path, tmp_path: Path
) -> None:
    async def resolved(*options: str) -> tuple[int, str, str]:
        command = ("resolve", "cluster", "--kubeconfig", kubeconfig, "--kind", "ConfigMap", "--name", "home", *options)
        done = await anyio.to_thread.run_sync(lambda: konverge(*command))
        return done.returncode, done.stdout, done.stderr

    (tmp_path / "policy.yaml").write_text(POLICY)
    for namespaces in (["-n", cluster.namespace], ["--param", f"namespace={cluster.namespace}"]):
        code, content, message = await resolved(*namespaces)
        assert (code, message) == (0, "")
        assert '"data":{"a":"b"}' in content
    record = json.loads((await resolved("-n", cluster.namespace, "-o", "json"))[1])
    assert record["source"]["uri"].startswith(f"/api/v1/namespaces/{cluster.namespace}/configmaps/home@")
    assert record["policySource"] == f"cluster://{cluster.namespace}/configmap/home"
    assert "ConfigMap default/home does not exist" in (await resolved())[2], "that of the context"
    assert (
        f"ConfigMap {cluster.namespace}2/home does not exist"
        in (await resolved("--setting", f"default-namespace={cluster.namespace}2"))[2]
    )
    # Who asks and where the object is may be two.
    elsewhere = ["--param", f"namespace={cluster.namespace}", "--policy", str(tmp_path / "policy.yaml")]
    assert (await resolved(*elsewhere, "-n", "team-b"))[0] == 0
    assert (await resolved(*elsewhere, "-n", "team-a"))[0] == 3
    assert (await resolved("-n", "Team A"))[2].startswith(
        "konverge: InvalidParams: --namespace: expected the name of a namespace"
    )


def test_its_help_says_whose_namespace_is_meant(konverge: Konverge) -> None:
    message = " ".join(konverge("resolve", "cluster", "--help").stdout.split())
    assert "-n, --namespace TEXT Namespace of the object" in message
    assert "Namespace for policies" not in message
