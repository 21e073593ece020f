"""Tokens and permissions, as API servers see them; the embedded cluster with roles on."""

from __future__ import annotations

import json
import logging
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack

import pytest

from konverge.clock import SeededEntropy, SimulatedClock, SystemEntropy
from konverge.kube import Object
from konverge.observability import ClusterAuthorization
from konverge_cluster._internal.testing.cluster import ClusterServer
from konverge_cluster._internal.testing.cluster_servers import EmbeddedServer, RealServer
from konverge_cluster.controlplane import RealCluster
from konverge_cluster.embedded import LocalCluster
from konverge_cluster.testing import Cluster

pytestmark = pytest.mark.anyio


@pytest.fixture
async def cluster(_control_plane: RealCluster | None) -> AsyncIterator[Cluster]:
    async with AsyncExitStack() as stack:
        server: ClusterServer
        if _control_plane is not None:
            server = RealServer(_control_plane)
        else:
            clock = SimulatedClock()
            running = LocalCluster(clock=clock, entropy=SeededEntropy(), authorization="rbac")
            server = stack.enter_context(EmbeddedServer(await stack.enter_async_context(running), clock))
        yield await stack.enter_async_context(Cluster(server, f"serving-{SystemEntropy().name_suffix(8)}"))


async def test_the_server_knows_a_service_account_and_what_it_may_read(
    cluster: Cluster, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    account = {"kind": "ServiceAccount", "name": "scraper", "namespace": cluster.namespace}
    role = f"metrics-reader-{cluster.namespace}"
    made: list[Object] = [
        {
            "apiVersion": "v1",
            "kind": "ServiceAccount",
            "metadata": {"name": "scraper", "namespace": cluster.namespace},
        },
        {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRole",
            "metadata": {"name": role},
            "rules": [{"nonResourceURLs": ["/metrics"], "verbs": ["get"]}],
        },
        {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": role},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
            "subjects": [account],
        },
    ]
    for each in made:
        await cluster.client.create(each)
    body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 600}}
    path = f"/api/v1/namespaces/{cluster.namespace}/serviceaccounts/scraper/token"
    answer = await cluster.new_transport().request(
        "POST",
        path,
        headers={"content-type": "application/json"},
        body=json.dumps(body).encode(),
        timeout_seconds=30,
    )
    token = json.loads(answer.body)["status"]["token"]
    authorization = ClusterAuthorization(cluster.new_client("konverge-reviews"), clock=cluster.clock, refused_seconds=0)

    async def may_read() -> bool:  # the authorizer receives the binding through its own watch
        return (await authorization.decide(token, method="GET", path="/metrics")).status == 200

    await cluster.eventually(may_read)
    assert (await authorization.decide(token, method="GET", path="/debug/")).status == 403
    assert (await authorization.decide(f"{token}x", method="GET", path="/metrics")).status == 401
    assert token not in caplog.text
    asked = len(cluster.list_requests("konverge-reviews"))
    assert await may_read()
    assert len(cluster.list_requests("konverge-reviews")) == asked
