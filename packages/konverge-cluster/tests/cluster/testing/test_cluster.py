"""The fixture ``cluster`` on both clusters."""

from __future__ import annotations

import asyncio
import socket
from itertools import count

import pytest

from konverge import Metadata, Operator, RunOptions, WebhookOptions
from konverge._internal.client.connect import connect
from konverge.clock import SeededEntropy, SimulatedClock
from konverge.crd import encode
from konverge.errors import ConfigurationError, ConnectionFailedError, InvalidError, KonvergeError
from konverge.kube import GroupVersionKind, Object, ObjectKey
from konverge_cluster._internal.testing.cluster_servers import EmbeddedServer
from konverge_cluster._internal.testing.steadiness import has_been_observed
from konverge_cluster.embedded import LocalCluster
from konverge_cluster.testing import Cluster
from tests.operator.sample_operator import Shop, ShopSpec, settings

pytestmark = pytest.mark.anyio

CONFIG_MAP = GroupVersionKind("", "v1", "ConfigMap")
NAMESPACE = GroupVersionKind("", "v1", "Namespace")
POD = GroupVersionKind("", "v1", "Pod")


def config_map(cluster: Cluster, name: str = "settings") -> Object:
    metadata = {"name": name, "namespace": cluster.namespace}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}


async def test_the_namespace_is_there_and_active(cluster: Cluster) -> None:
    namespace = await cluster.client.get(NAMESPACE, ObjectKey("", cluster.namespace))

    assert namespace["status"]["phase"] == "Active"


async def test_requests_are_recorded_as_soon_as_they_are_answered(cluster: Cluster) -> None:
    client = cluster.new_client("ann")

    await client.create(config_map(cluster))

    last = cluster.list_requests("ann")[-1]
    path = f"/api/v1/namespaces/{cluster.namespace}/configmaps"
    assert (last.user_agent, last.verb, last.path, last.code) == ("ann", "create", path, 201)
    assert abs((cluster.clock.now() - last.time).total_seconds()) < 60


async def test_refused_requests_are_recorded_with_their_code(cluster: Cluster) -> None:
    client = cluster.new_client("ann")
    await client.create(config_map(cluster))

    with pytest.raises(Exception, match="already exists"):
        await client.create(config_map(cluster))

    assert cluster.list_requests("ann")[-1].code == 409


async def test_requests_of_others_are_not_mixed_in(cluster: Cluster) -> None:
    bob = cluster.new_client("bob")

    await cluster.new_client("ann").create(config_map(cluster))
    await bob.delete(CONFIG_MAP, ObjectKey(cluster.namespace, "settings"))

    assert [request.verb for request in cluster.list_requests("ann") if request.verb != "get"] == ["create"]
    assert [request.verb for request in cluster.list_requests("bob") if request.verb != "get"] == ["delete"]


async def test_each_verb_has_the_name_that_the_api_gives_it(cluster: Cluster) -> None:
    client = cluster.new_client("ann")
    key = ObjectKey(cluster.namespace, "settings")

    await client.apply(config_map(cluster), field_manager="ann")
    await client.update(config_map(cluster))
    await client.list(CONFIG_MAP, namespace=cluster.namespace)
    async with client.watch(CONFIG_MAP, namespace=cluster.namespace):
        pass
    await client.get(CONFIG_MAP, key)
    await client.delete(CONFIG_MAP, key)

    about_config_maps = [request for request in cluster.list_requests("ann") if "configmaps" in request.path]
    assert [request.verb for request in about_config_maps] == ["patch", "update", "list", "watch", "get", "delete"]


@pytest.mark.real_time
async def test_other_programs_reach_the_cluster_by_its_kubeconfig(cluster: Cluster) -> None:
    await cluster.client.create(config_map(cluster))

    async with connect(await cluster.write_kubeconfig(), env={}) as client:
        found = await client.get(CONFIG_MAP, ObjectKey(cluster.namespace, "settings"))

    assert found["metadata"]["name"] == "settings"


@pytest.mark.embedded
@pytest.mark.parametrize("cluster_kind", ["embedded"])
@pytest.mark.parametrize(
    ("name", "type", "last"),
    [
        ("web", "Ready", "Ready False ContainersNotReady: containers with unready status: [web]"),
        ("web", "Blue", "Pod web has no condition Blue"),
        ("absent", "Ready", 'pods "absent" not found'),
    ],
)
async def test_a_condition_that_does_not_come_is_told_as_it_was_last(
    cluster: Cluster, name: str, type: str, last: str
) -> None:
    metadata = {"name": "web", "namespace": cluster.namespace}
    containers = [{"name": "web", "image": "konverge.test/never-ready:1"}]
    await cluster.client.create(
        {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": containers}}
    )

    with pytest.raises(AssertionError, match=f"Pod {name} has {type} True\nthe last result was ") as raised:
        await cluster.wait_for_condition(POD, name, type=type)

    assert str(raised.value).endswith(last)


async def test_a_test_may_delete_its_namespace_itself(cluster: Cluster) -> None:
    await cluster.client.delete(NAMESPACE, ObjectKey("", cluster.namespace))


async def test_what_cannot_be_entered_leaves_no_connection() -> None:
    clock = SimulatedClock()
    async with LocalCluster(clock=clock, entropy=SeededEntropy(), controllers=False) as embedded:
        cluster = Cluster(EmbeddedServer(embedded, clock), "not a name")

        with pytest.raises(KonvergeError, match="not a name"):
            await cluster.__aenter__()

        with pytest.raises(ConnectionFailedError, match="the transport is closed"):
            await cluster.client.get(NAMESPACE, ObjectKey("", "default"))


@pytest.mark.real_time
async def test_an_operator_that_runs_is_asked_by_its_webhooks(cluster: Cluster) -> None:
    operator = Operator("asked-shops")
    operator.manages(Shop, settings)
    operator.validates(Shop)(lambda shop, request: ["no shop greets like that"] if shop.spec.greeting == "rude" else [])
    operator.defaults(Shop)(lambda shop, request: setattr(shop.spec, "greeting", shop.spec.greeting or "Welcome"))
    options = RunOptions((cluster.namespace,), webhooks=WebhookOptions(port=0), registers_webhooks=True)

    def shop(name: str, greeting: str) -> Object:
        return encode(Shop(Metadata(name=name, namespace=cluster.namespace), ShopSpec(greeting=greeting)))

    async with cluster.run_operator(operator, options):
        with pytest.raises(InvalidError, match="no shop greets like that"):
            await cluster.client.create(shop("rough", "rude"))
        mute = await cluster.client.create(shop("mute", ""))

    assert mute["spec"]["greeting"] == "Welcome"


@pytest.mark.real_time
async def test_an_operator_that_ends_before_its_webhooks_are_asked_is_told_by_its_own_error(cluster: Cluster) -> None:
    operator = Operator("asked-shops")
    operator.manages(Shop, settings)
    operator.validates(Shop)(lambda shop, request: [])
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        options = RunOptions((cluster.namespace,), webhooks=WebhookOptions(port=port), registers_webhooks=True)

        with pytest.raises(ConfigurationError, match=str(port)):
            async with cluster.run_operator(operator, options):
                pytest.fail("the block has begun")


async def test_one_who_is_cancelled_while_an_operator_stops_hears_of_it(cluster: Cluster) -> None:
    async def run_for_a_moment() -> None:
        async with cluster.run_operator(Operator("brief")):
            leaving.set()

    leaving = asyncio.Event()
    user = asyncio.create_task(run_for_a_moment())
    await leaving.wait()
    user.cancel()
    await asyncio.wait([user])

    assert user.cancelled()


async def test_until_steady_waits_for_whoever_still_writes(cluster: Cluster) -> None:
    key = ObjectKey(cluster.namespace, "late")
    await cluster.client.create(config_map(cluster, "late"))

    async def write_late() -> None:
        for number in range(4):
            await cluster.clock.sleep(0.3)
            await cluster.client.patch(CONFIG_MAP, key, {"data": {"number": str(number)}}, patch_type="merge")

    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(write_late())
        await cluster.wait_until_steady(seconds=0.8)
        found = await cluster.client.get(CONFIG_MAP, key)

    assert found["data"] == {"number": "3"}


async def test_until_steady_waits_for_a_client_that_still_asks(cluster: Cluster) -> None:
    ann = cluster.new_client("ann")
    checks = 0

    async def ask() -> None:
        nonlocal checks
        for _ in range(4):
            await cluster.clock.sleep(0.3)
            await ann.list(CONFIG_MAP, namespace=cluster.namespace)
            checks += 1

    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(ask())
        await cluster.wait_until_steady("ann", seconds=0.8)
        assert checks == 4


async def test_until_steady_says_who_does_not_come_to_rest(cluster: Cluster) -> None:
    key = ObjectKey(cluster.namespace, "restless")
    await cluster.client.create(config_map(cluster, "restless"))

    async def write_for_ever() -> None:
        for number in count():
            await cluster.clock.sleep(0.05)
            await cluster.client.patch(CONFIG_MAP, key, {"data": {"number": str(number)}}, patch_type="merge")

    async with asyncio.TaskGroup() as tasks:
        writing = tasks.create_task(write_for_ever())
        with pytest.raises(AssertionError, match="a client writes /api/v1/namespaces/.*/configmaps/restless"):
            await cluster.wait_until_steady(seconds=0.2, timeout_seconds=2)
        writing.cancel()


async def test_versions_are_those_of_objects_of_any_scope_but_not_of_events_and_leases(cluster: Cluster) -> None:
    role = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "steady"}}
    lease = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease"}
    await cluster.client.apply(role, field_manager="tests")
    await cluster.client.create({**lease, "metadata": {"name": "mine", "namespace": cluster.namespace}, "spec": {}})
    made = await cluster.client.create(config_map(cluster, "mine"))

    found = await cluster.list_versions()

    await cluster.client.delete(GroupVersionKind.of(role), ObjectKey("", "steady"))
    assert found[f"/api/v1/namespaces/{cluster.namespace}/configmaps/mine"] == made["metadata"]["resourceVersion"]
    assert "/apis/rbac.authorization.k8s.io/v1/clusterroles/steady" in found
    assert not [path for path in found if "leases" in path]


async def test_an_object_counts_once_its_controller_has_been_at_it(cluster: Cluster) -> None:
    labels = {"app": "web"}
    container = {"name": "web", "image": "konverge.test/app:1"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [container]}}
    deployment = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "namespace": cluster.namespace},
        "spec": {"replicas": 1, "selector": {"matchLabels": labels}, "template": template},
    }
    made = await cluster.client.create(deployment)

    await cluster.wait_until_steady()

    found = await cluster.client.get(GroupVersionKind.of(made), ObjectKey.of(made))
    assert found["status"]["observedGeneration"] == found["metadata"]["generation"]
    assert found["status"]["readyReplicas"] == 1
    assert not has_been_observed("deployments", made, is_real=cluster.name == "real")
