"""Functions of an author have exactly the permissions that a run on the embedded cluster has observed."""

from __future__ import annotations

import asyncio
import copy
from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import pytest

from konverge._internal.operator.observed_access import Observation, ObservedAccess, find_undeclared_access
from konverge._internal.operator.permission_derivation import RequiredPermissions, derive_permissions
from konverge._internal.operator.rbac_rules import READ, AccessScope, PolicyRule, ResourceAccess
from konverge._internal.operator.role_manifests import OBSERVED, build_role_manifests
from konverge.client import Client, Transport
from konverge.crd import crd_manifest, find_definition
from konverge.errors import NotFoundError
from konverge.kube import ObjectKey
from konverge.operator import RunOptions
from konverge_cluster._internal.testing.observed_run import observe_operator
from konverge_cluster.controlplane import RealCluster
from konverge_cluster.testing import Cluster
from tests.operator.depot_operator import CONFIG_MAP, DEPLOYMENT, SECRET, SURROUNDINGS, Depot, build_operator
from tests.rbac_clusters import cluster_with_roles

DEPOT = find_definition(Depot).gvk
CONFIG_MAPS = ObservedAccess("", "configmaps", "v1/ConfigMap", ("create", "get"))


@pytest.fixture(scope="module")
def observation() -> Observation:
    return observe_operator(build_operator(), SURROUNDINGS, in_namespaces=True, records_events=False)


@pytest.fixture
async def cluster(_control_plane: RealCluster | None) -> AsyncIterator[Cluster]:
    async with cluster_with_roles(_control_plane, "observed") as found:
        yield found


class AccountTransport:
    """Sends everything as a ServiceAccount."""

    def __init__(self, transport: Transport, user: str) -> None:
        self._transport = transport
        self._user = {"impersonate-user": user}
        self.close = transport.close

    async def request(self, method: str, path: str, *, headers: Mapping[str, str] = {}, **rest: Any) -> Any:
        return await self._transport.request(method, path, headers={**headers, **self._user}, **rest)

    def stream(
        self, method: str, path: str, *, headers: Mapping[str, str] = {}, **rest: Any
    ) -> AbstractAsyncContextManager[Any]:
        return self._transport.stream(method, path, headers={**headers, **self._user}, **rest)


@asynccontextmanager
async def running_under(cluster: Cluster, permissions: RequiredPermissions) -> AsyncIterator[None]:
    """Run the operator with exactly these permissions in the namespace of the test."""
    account = ObjectKey(cluster.namespace, "depots")
    await cluster.install(crd_manifest(Depot))
    for obj in build_role_manifests(permissions, account, [cluster.namespace]):
        await cluster.client.apply(obj, field_manager="tests")
    transport = AccountTransport(cluster.new_transport(), f"system:serviceaccount:{account.namespace}:{account.name}")
    client = Client(transport, user_agent="depots", clock=cluster.clock)
    for obj in SURROUNDINGS:
        owned = copy.deepcopy(obj)
        owned["metadata"]["namespace"] = cluster.namespace
        await cluster.client.create(owned)
    options = RunOptions(namespaces=(cluster.namespace,), records_events=False, diagnoses=False)
    running = asyncio.create_task(build_operator().run(client, options, clock=cluster.clock))
    try:
        yield
    finally:
        running.cancel()
        await asyncio.wait([running])


async def live_and_die(cluster: Cluster) -> None:
    """Wait for everything that the functions do."""
    counted, key = ObjectKey(cluster.namespace, "north-count"), ObjectKey(cluster.namespace, "north-key")

    async def has_count() -> bool:
        workload = await cluster.client.get(DEPLOYMENT, ObjectKey(cluster.namespace, "web"))
        count = (await cluster.client.get(CONFIG_MAP, counted)).get("data")
        return workload["spec"]["replicas"] == 1 and count is not None

    async def is_gone() -> bool:
        for gvk, name in ((DEPOT, ObjectKey(cluster.namespace, "north")), (SECRET, key)):
            try:
                await cluster.client.get(gvk, name)
            except NotFoundError:
                continue
            return False
        return True

    await cluster.eventually(has_count, describe="all functions have run")
    await cluster.client.get(SECRET, key)
    await cluster.client.delete(DEPOT, ObjectKey(cluster.namespace, "north"))
    await cluster.eventually(is_gone, describe="the finalizer has run")


@pytest.mark.anyio
@pytest.mark.slow
async def test_functions_run_under_exactly_what_was_observed(cluster: Cluster, observation: Observation) -> None:
    operator = build_operator()
    features = RunOptions(records_events=False, diagnoses=False).runtime_features
    permissions = derive_permissions(operator.registered.declaration, features, observation=observation)

    async with running_under(cluster, permissions):
        await live_and_die(cluster)

    refused = {(request.verb, request.path) for request in cluster.list_requests("depots") if request.code == 403}
    assert observation.gaps == ()
    assert refused == set()


@pytest.mark.slow
def test_what_a_run_used_is_observed(observation: Observation) -> None:
    declared = derive_permissions(build_operator().registered.declaration, RunOptions().runtime_features)
    permissions = derive_permissions(
        build_operator().registered.declaration, RunOptions().runtime_features, observation=observation
    )

    assert [str(access) for access in permissions.observed] == [
        "configmaps: update",
        "pods: list",
        "secrets: create, delete, get, list, patch, watch",
        "deployments.apps: get, list, watch",
        "deployments.apps/scale: patch",
    ]
    assert declared.observed == ()
    assert declared.gaps == (
        "Depot: the access of publish, withdraw, count_pods cannot be derived without a run: declare it with "
        "operator.uses(...), as konverge rbac prints it",
    )
    assert permissions.gaps == ()


@pytest.mark.slow
def test_the_same_operator_gives_the_same_observation(observation: Observation) -> None:
    again = observe_operator(build_operator(), SURROUNDINGS, in_namespaces=True, records_events=False)

    assert again == observation


@pytest.mark.slow
def test_what_no_sample_reaches_is_named() -> None:
    found = observe_operator(build_operator(), [], modules=[_Module()])

    assert found.gaps == (
        "publish: no sample owner reached line 78 (await ctx.cluster.patch(DEPLOYMENT, key, "
        '{"spec": {"replicas": 1}}, patch_typ...); give an owner, and the objects that it needs, with --sample, or '
        "declare its access with operator.uses(...)",
    )


class _Module:
    from tests.operator import depot_operator

    __file__ = depot_operator.__file__


@pytest.mark.parametrize(
    ("declared", "missing"),
    [
        ([], ("create", "get")),
        ([ResourceAccess("", "configmaps", READ)], ("create",)),
        ([ResourceAccess("", "configmaps", ("create", "get"))], None),
        ([ResourceAccess("", "configmaps", ("create", "get"), AccessScope.CLUSTER)], None),
        ([ResourceAccess("", "configmaps", ("create", "get"), AccessScope.HOME)], ("create", "get")),
        ([ResourceAccess("", "configmaps", ("create", "get"), names=("one",))], ("create", "get")),
        ([ResourceAccess("other.example.com", "configmaps", ("create", "get"))], ("create", "get")),
    ],
)
def test_only_what_no_declaration_has_is_observed(
    declared: list[ResourceAccess], missing: tuple[str, ...] | None
) -> None:
    found = [access.verbs for access in find_undeclared_access([CONFIG_MAPS], declared)]

    assert found == ([] if missing is None else [missing])


def test_access_in_another_namespace_gets_a_role_there() -> None:
    elsewhere = ObservedAccess("", "secrets", "v1/Secret", ("get",), AccessScope.NAMESPACE.name, "vault")
    permissions = RequiredPermissions(
        (PolicyRule(("",), ("configmaps",), ("create", "get")),),
        other_rules=(("vault", (PolicyRule(("",), ("secrets",), ("get",)),)),),
        observed=(CONFIG_MAPS, elsewhere),
    )

    roles = {
        obj["metadata"].get("namespace", ""): obj["metadata"].get("annotations")
        for obj in build_role_manifests(permissions, ObjectKey("home", "depots"), ["shops"])
        if obj["kind"] in ("Role", "ClusterRole")
    }

    assert roles == {
        "shops": {OBSERVED: "configmaps: create, get"},
        "vault": {OBSERVED: "secrets: get"},
    }
    assert elsewhere.format_declaration() == 'operator.uses("v1/Secret", "get") in namespace vault'


def test_observed_subresources_are_declared_as_such() -> None:
    scale = ObservedAccess("apps", "deployments/scale", "apps/v1/Deployment", ("patch",))

    assert scale.format_declaration() == 'operator.uses("apps/v1/Deployment", "patch", subresource="scale")'
