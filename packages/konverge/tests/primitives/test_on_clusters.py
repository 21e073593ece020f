"""The default rules against controllers that are at work: what they judge is what a cluster really shows."""

from __future__ import annotations

from typing import Any

import pytest

from konverge.errors import ApiError
from konverge.kube import Object
from konverge.mutation import Mutation
from konverge.primitives import (
    ConfigMap,
    Convergence,
    ConvergingStatus,
    Deployment,
    DeploymentMutator,
    GraceStatus,
    Operation,
    Primitive,
    Secret,
    Service,
    StatefulSet,
    StatefulSetMutator,
    SuspensionStatus,
)
from konverge.types import apps_v1
from konverge_cluster.testing import Cluster

pytestmark = pytest.mark.anyio

MANAGER = "primitives-under-test"


def workload(cluster: Cluster, *, image: str = "konverge.test/app:1", replicas: int = 2, **spec: Any) -> Object:
    """A baseline that fits Deployment and StatefulSet."""
    labels = {"app": "web"}
    return {
        "metadata": {"name": "web", "namespace": cluster.namespace},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {"containers": [{"name": "main", "image": image}]},
            },
            **spec,
        },
    }


async def apply(cluster: Cluster, primitive: Primitive[Any], *, suspended: bool = False) -> Convergence:
    """Apply what is desired; answers how it is judged in that moment."""
    applied = await cluster.client.apply(primitive.render(suspended=suspended), field_manager=MANAGER)
    found = primitive.converging_status(applied.object, Operation.CREATED if applied.created else Operation.UPDATED)
    assert found is not None
    return found


async def live(cluster: Cluster, primitive: Primitive[Any]) -> Object:
    return await cluster.client.get(primitive.gvk, primitive.key)


async def until(cluster: Cluster, primitive: Primitive[Any], status: ConvergingStatus) -> Object:
    """The live object as soon as it is judged so."""

    async def judged() -> Object | None:
        found = await live(cluster, primitive)
        judgement = primitive.converging_status(found, Operation.NONE)
        return found if judgement is not None and judgement.status is status else None

    return await cluster.eventually(judged, describe=f"{primitive.identity} is {status}")


@pytest.mark.parametrize("kind", [Deployment, StatefulSet])
async def test_a_workload_is_healthy_only_when_its_rollout_is_finished(
    cluster: Cluster, kind: type[Deployment] | type[StatefulSet]
) -> None:
    created = await apply(cluster, kind(workload(cluster)))
    await until(cluster, kind(workload(cluster)), ConvergingStatus.HEALTHY)
    changed = kind(workload(cluster, image="konverge.test/app:2"))
    updated = await apply(cluster, changed)
    settled = await until(cluster, changed, ConvergingStatus.HEALTHY)

    assert created.status is ConvergingStatus.CREATING
    assert updated.status is ConvergingStatus.UPDATING
    status = settled["status"]
    assert (status["readyReplicas"], status["updatedReplicas"], status["replicas"]) == (2, 2, 2)


@pytest.mark.parametrize("kind", [Deployment, StatefulSet])
async def test_a_suspended_workload_says_so_when_its_pods_are_gone(
    cluster: Cluster, kind: type[Deployment] | type[StatefulSet]
) -> None:
    web = kind(workload(cluster))
    await apply(cluster, web)
    running = await until(cluster, web, ConvergingStatus.HEALTHY)
    await apply(cluster, web, suspended=True)

    async def suspended() -> Object | None:
        found = await live(cluster, web)
        return found if web.suspension_status(found).status is SuspensionStatus.SUSPENDED else None

    asleep = await cluster.eventually(suspended, describe="the workload is suspended")
    assert web.suspension_status(running).status is SuspensionStatus.SUSPENDING
    assert asleep["spec"]["replicas"] == 0


@pytest.mark.parametrize("kind", [Deployment, StatefulSet])
async def test_a_workload_that_never_starts_is_down(
    cluster: Cluster, kind: type[Deployment] | type[StatefulSet]
) -> None:
    web = kind(workload(cluster, image="konverge.test/never-ready:1"))
    await apply(cluster, web)

    found = await until(cluster, web, ConvergingStatus.SCALING)

    graded = web.grace_status(found)
    assert graded is not None
    assert graded.status is GraceStatus.DOWN


@pytest.mark.parametrize("kind", [Deployment, StatefulSet])
async def test_a_workload_without_replicas_is_healthy(
    cluster: Cluster, kind: type[Deployment] | type[StatefulSet]
) -> None:
    web = kind(workload(cluster, replicas=0))
    await apply(cluster, web)
    await until(cluster, web, ConvergingStatus.HEALTHY)


async def test_a_paused_deployment_does_not_wait_for_its_rollout(cluster: Cluster) -> None:
    await apply(cluster, Deployment(workload(cluster)))
    await until(cluster, Deployment(workload(cluster)), ConvergingStatus.HEALTHY)
    pause = Mutation[DeploymentMutator]("pause", lambda m: m.edit_deployment_spec(lambda spec: spec.set(paused=True)))
    paused = Deployment(workload(cluster, image="konverge.test/app:2"), mutations=pause)

    await apply(cluster, paused)
    settled = await until(cluster, paused, ConvergingStatus.HEALTHY)

    assert settled["status"].get("updatedReplicas", 0) == 0


@pytest.mark.parametrize(
    ("strategy", "updated"),
    [
        pytest.param({"type": "RollingUpdate", "rollingUpdate": {"partition": 1}}, 1, id="partition"),
        pytest.param({"type": "OnDelete"}, 0, id="OnDelete"),
    ],
)
async def test_a_stateful_set_is_healthy_as_far_as_its_strategy_goes(
    cluster: Cluster, strategy: apps_v1.StatefulSetUpdateStrategy, updated: int
) -> None:
    hold = Mutation[StatefulSetMutator](
        "hold", lambda m: m.edit_stateful_set_spec(lambda spec: spec.set(updateStrategy=strategy))
    )
    first = StatefulSet(workload(cluster), mutations=hold)
    changed = StatefulSet(workload(cluster, image="konverge.test/app:2"), mutations=hold)

    await apply(cluster, first)
    await until(cluster, first, ConvergingStatus.HEALTHY)
    await apply(cluster, changed)
    settled = await until(cluster, changed, ConvergingStatus.HEALTHY)

    assert settled["status"].get("updatedReplicas", 0) == updated


@pytest.mark.parametrize(
    ("service_type", "status"),
    [("ClusterIP", ConvergingStatus.OPERATIONAL), ("LoadBalancer", ConvergingStatus.OPERATION_PENDING)],
)
async def test_a_service_waits_only_for_a_load_balancer(
    cluster: Cluster, service_type: str, status: ConvergingStatus
) -> None:
    web = Service(
        {
            "metadata": {"name": "web", "namespace": cluster.namespace},
            "spec": {"type": service_type, "selector": {"app": "web"}, "ports": [{"port": 80}]},
        }
    )
    assert (await apply(cluster, web)).status is status


@pytest.mark.parametrize(
    ("kind", "content", "is_accepted"),
    [
        pytest.param(ConfigMap, {"data": {"port": "8080"}}, True, id="text"),
        pytest.param(ConfigMap, {"data": {"port": 8080}}, False, id="a number in a ConfigMap"),
        pytest.param(Secret, {"data": {"token": "YWJj"}}, True, id="base64"),
        pytest.param(Secret, {"data": {"token": "YWJj\nYWJj\n"}}, True, id="base64 in lines"),
        pytest.param(Secret, {"data": {"token": "hunter2"}}, False, id="plain text in data"),
        pytest.param(Secret, {"data": {"token": "YWI"}}, False, id="base64 without padding"),
        pytest.param(Secret, {"stringData": {"token": "hunter2"}}, True, id="plain text in stringData"),
        pytest.param(Secret, {"stringData": {"pin": 1234}}, False, id="a number in a Secret"),
    ],
)
async def test_mistakes_are_what_the_server_refuses(
    cluster: Cluster, kind: type[ConfigMap] | type[Secret], content: Object, is_accepted: bool
) -> None:
    obj: Object = {"metadata": {"name": "web", "namespace": cluster.namespace}, **content}

    async def server_accepts() -> bool:
        manifest = {"apiVersion": "v1", "kind": kind.gvk.kind, **obj}
        try:
            await cluster.client.apply(manifest, field_manager=MANAGER)
        except ApiError:
            return False
        return True

    assert (kind(obj).errors == ()) is is_accepted
    assert await server_accepts() is is_accepted


async def test_the_hash_of_a_secret_survives_the_server(cluster: Cluster) -> None:
    secret = Secret(
        {
            "metadata": {"name": "web", "namespace": cluster.namespace},
            "data": {"token": b"\x00\xff"},
            "stringData": {"password": "hunter2"},
        }
    )
    applied = await cluster.client.apply(secret.render(), field_manager=MANAGER)
    assert Secret.hash_data(applied.object) == secret.hash_desired_data()
