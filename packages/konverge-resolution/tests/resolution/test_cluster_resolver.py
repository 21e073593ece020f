"""The resolver for objects of the cluster: which it lets be read, and what it makes of one."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
import yaml

from konverge.clock import SeededEntropy, SystemClock
from konverge.kube import GroupVersionKind, Object, ObjectKey
from konverge_cluster.controlplane import RealCluster
from konverge_cluster.testing import Cluster
from konverge_resolution import Digest, FetchRequest, Reason, Reference, ResolutionError, Services
from konverge_resolution._internal.cluster_services import ClusterObjectReader, ClusterServices, NamespaceSecrets
from konverge_resolution._internal.engine import Engine, Requester, ResolutionResult
from konverge_resolution._internal.policy import Policy, SignatureMode, SignatureRule
from konverge_resolution._internal.resolver_registry import ResolverRegistry
from konverge_resolution._internal.resolvers.cluster import ClusterResolver, strip_server_fields
from konverge_resolution._internal.source_prefix import SourcePrefix
from tests.rbac_clusters import cluster_with_roles
from tests.resolution.http_resolution import resolve

pytestmark = pytest.mark.anyio

DEFAULTS = {key: setting.default for key, setting in ClusterResolver.settings.items()}
CONFIG_MAP = GroupVersionKind("", "v1", "ConfigMap")
TASK = {"kind": "task", "name": "build", "namespace": "catalog"}

TASK_DEFINITION: Object = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {
        "name": "tasks.tekton.dev",
        "annotations": {"api-approved.kubernetes.io": "unapproved, for tests"},
    },
    "spec": {
        "group": "tekton.dev",
        "scope": "Namespaced",
        "names": {"kind": "Task", "plural": "tasks", "singular": "task"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
            }
        ],
    },
}


@pytest.fixture
async def cluster(_control_plane: RealCluster | None) -> AsyncIterator[Cluster]:
    async with cluster_with_roles(_control_plane, "catalog") as found:
        yield found


@pytest.mark.parametrize(
    ("allowed", "blocked", "is_read"),
    [
        ("", "", True),
        ("catalog", "", True),
        ("other, catalog", "", True),
        (" catalog ,other", "", True),
        ("other", "", False),
        ("", "catalog", False),
        ("", "other , catalog", False),
        ("catalog", "catalog", False),
        ("catalog", "*", True),
        ("other", "*", False),
        ("", "*", False),
        ("", "other,*", False),
        ("*", "catalog", False),
        ("*", "other", True),
        ("other,*", "", True),
        ("catalog-2", "", False),
    ],
)
def test_namespaces_are_allowed_and_blocked_by_name_before_all(allowed: str, blocked: str, is_read: bool) -> None:
    settings = DEFAULTS | {"allowed-namespaces": allowed, "blocked-namespaces": blocked}
    if is_read:
        assert ClusterResolver().validate(TASK, settings) == TASK
        return
    with pytest.raises(ResolutionError, match="does not permit namespace 'catalog'") as caught:
        ClusterResolver().validate(TASK, settings)
    assert caught.value.reason is Reason.DENIED


def test_an_empty_default_namespace_is_none() -> None:
    with pytest.raises(ResolutionError, match="parameter 'namespace': expected a value, found none"):
        ClusterResolver().validate({"kind": "task", "name": "build"}, DEFAULTS | {"default-namespace": " "})


def test_what_is_not_said_comes_from_the_configuration() -> None:
    settings = DEFAULTS | {"default-namespace": "catalog", "default-kind": "pipeline"}
    assert ClusterResolver().validate({"name": "build"}, settings) == TASK | {"kind": "pipeline"}


@pytest.mark.parametrize(
    ("params", "told"),
    [
        ({"kind": "../secrets"}, "parameter 'kind': expected a kind such as Task, found"),
        ({"name": "a/b"}, "parameter 'name': expected the name of an object, found"),
        ({"name": ".."}, "parameter 'name': expected the name of an object, found"),
        ({"namespace": "a%2fb"}, "parameter 'namespace': expected the name of a namespace, found"),
        ({"apiVersion": "tekton.dev/v1/namespaces/x"}, "parameter 'apiVersion': expected a version such as tekton"),
        ({"knd": "task"}, "parameter 'knd': no such parameter"),
        ({"name": ["a"]}, "parameter 'name': expected text"),
    ],
)
def test_nothing_but_a_name_becomes_part_of_a_path(params: dict[str, Any], told: str) -> None:
    with pytest.raises(ResolutionError, match=told) as caught:
        ClusterResolver().validate(TASK | params, DEFAULTS)
    assert caught.value.reason is Reason.INVALID_PARAMETERS


async def test_without_a_cluster_there_is_nothing_to_read() -> None:
    with pytest.raises(ResolutionError, match="resolver 'cluster': no cluster is configured") as caught:
        await resolve(ClusterResolver(), TASK)
    assert caught.value.reason is Reason.RESOLVER_NOT_AVAILABLE


@pytest.mark.parametrize("kind", ["Secret", "secret", "SECRETS"])
def test_a_secret_is_refused_before_anybody_is_asked(kind: str) -> None:
    with pytest.raises(ResolutionError, match="never read") as caught:
        ClusterResolver().validate(TASK | {"kind": kind}, DEFAULTS)
    assert caught.value.reason is Reason.DENIED


def test_what_the_server_keeps_in_an_object_does_not_come_out() -> None:
    annotations = {"e": "f"}
    metadata = {"name": "a", "namespace": "b", "labels": {"c": "d"}, "annotations": annotations}
    last = {"kubectl.kubernetes.io/last-applied-configuration": "{}"}
    servers = {"uid": "1", "resourceVersion": "2", "managedFields": [], "annotations": annotations | last}
    obj = {"apiVersion": "v1", "kind": "A", "metadata": metadata, "spec": {"x": 1}}
    assert strip_server_fields(obj | {"metadata": metadata | servers, "status": {"y": 2}}) == obj


def engine_of(cluster: Cluster, services: ClusterServices, **settings: str) -> Engine:
    data = {key.replace("_", "-"): value for key, value in settings.items()}
    registry = ResolverRegistry.of([ClusterResolver()], {"cluster": data})
    return Engine(registry, services, clock=cluster.clock, entropy=SeededEntropy())


async def resolve_object(
    cluster: Cluster, params: dict[str, str], *, user: str = "", **settings: str
) -> ResolutionResult:
    services = ClusterServices(cluster.client, clock=cluster.clock)
    try:
        reference = Reference("cluster", {"namespace": cluster.namespace, **params})
        return await engine_of(cluster, services, **settings).resolve(reference, Requester("elsewhere", user))
    finally:
        services.close()


async def expect_resolution_error(
    cluster: Cluster, params: dict[str, str], *, user: str = "", **settings: str
) -> ResolutionError:
    with pytest.raises(ResolutionError) as caught:
        await resolve_object(cluster, params, user=user, **settings)
    return caught.value


async def make(cluster: Cluster, api_version: str, kind: str, name: str, **fields: Any) -> Object:
    metadata = {"name": name, "namespace": cluster.namespace}
    return await cluster.client.create({"apiVersion": api_version, "kind": kind, "metadata": metadata, **fields})


async def test_an_object_comes_out_as_its_author_wrote_it_with_its_path_and_its_uid(cluster: Cluster) -> None:
    await cluster.install(TASK_DEFINITION)
    spec = {"steps": [{"name": "a", "image": "b"}]}
    task = await make(cluster, "tekton.dev/v1", "Task", "build", spec=spec)

    outcome = await resolve_object(cluster, {"kind": "task", "name": "build"})

    assert yaml.safe_load(outcome.resolved.data) == {
        "apiVersion": "tekton.dev/v1",
        "kind": "Task",
        "metadata": {"name": "build", "namespace": cluster.namespace},
        "spec": spec,
    }
    path = f"/apis/tekton.dev/v1/namespaces/{cluster.namespace}/tasks/build@{task['metadata']['uid']}"
    assert outcome.resolved.source.uri == path
    assert outcome.policy_source == f"cluster://{cluster.namespace}/task/build"
    assert outcome.resolved.source.digest == {"sha256": Digest.of(outcome.resolved.data).hex}


async def test_one_catalog_serves_tenants_that_cannot_read_it_themselves(cluster: Cluster) -> None:
    await make(cluster, "v1", "ConfigMap", "shared", data={"x": "1"})
    params = {"kind": "configmap", "name": "shared"}
    reader = ClusterObjectReader(cluster.client)
    for tenant in ("team-a", "team-b"):
        user = f"system:serviceaccount:{tenant}:builder"
        assert not await reader.may_get(CONFIG_MAP, ObjectKey(cluster.namespace, "shared"), user=user)
        outcome = await resolve_object(cluster, params, user=user, allowed_namespaces=cluster.namespace)
        assert outcome.object["data"] == {"x": "1"}
        elsewhere = await expect_resolution_error(
            cluster, {**params, "namespace": "kube-system"}, user=user, allowed_namespaces=cluster.namespace
        )
        assert elsewhere.reason is Reason.DENIED


async def test_a_local_lookup_has_the_digest_and_the_policies_of_every_other(cluster: Cluster) -> None:
    await make(cluster, "v1", "ConfigMap", "local", data={"x": "1"})
    reference = Reference("cluster", {"kind": "configmap", "name": "local", "namespace": cluster.namespace})
    services = ClusterServices(cluster.client, clock=cluster.clock)
    others = Policy("others", sources=(SourcePrefix.parse("https://a.example"),))
    try:
        engine = engine_of(cluster, services)
        outcome = await engine.resolve(reference, Requester("elsewhere"))
        found = Digest.of(outcome.resolved.data)
        pinned = Reference("cluster", reference.params, found)
        assert (await engine.resolve(pinned, Requester("elsewhere"))).resolved.data == outcome.resolved.data
        with pytest.raises(ResolutionError) as mismatch:
            await engine.resolve(Reference("cluster", reference.params, Digest.of(b"other")), Requester("elsewhere"))
        registry = ResolverRegistry.of([ClusterResolver()])
        refusing = Engine(registry, services, clock=cluster.clock, entropy=SeededEntropy(), policies=[others])
        with pytest.raises(ResolutionError) as denied:
            await refusing.resolve(reference, Requester("elsewhere"))
    finally:
        services.close()
    assert (mismatch.value.reason, denied.value.reason) == (Reason.DIGEST_MISMATCH, Reason.DENIED)


async def test_what_a_policy_asks_of_a_kind_it_asks_by_whatever_name_that_is_meant(cluster: Cluster) -> None:
    await make(cluster, "v1", "ConfigMap", "home")
    services = ClusterServices(cluster.client, clock=cluster.clock)
    everything = Policy("everything")
    signed = Policy(
        "signed",
        sources=(SourcePrefix.parse(f"cluster://{cluster.namespace}/ConfigMap"),),
        signature=SignatureRule(SignatureMode.ENFORCE),
    )
    try:
        engine = engine_of(cluster, services)
        engine.policies = (everything, signed)
        for kind in ("configmap", "configmaps", "ConfigMaps"):
            reference = Reference("cluster", {"namespace": cluster.namespace, "kind": kind, "name": "home"})
            with pytest.raises(ResolutionError) as caught:
                await engine.resolve(reference, Requester("elsewhere"))
            assert caught.value.reason is Reason.SIGNATURE_INVALID
    finally:
        services.close()


@pytest.mark.parametrize("kind", ["ingress", "Ingress", "ingresses"])
async def test_a_kind_is_found_by_discovery_also_when_it_ends_in_s(cluster: Cluster, kind: str) -> None:
    backend = {"service": {"name": "web", "port": {"number": 80}}}
    await make(cluster, "networking.k8s.io/v1", "Ingress", "web", spec={"defaultBackend": backend})

    outcome = await resolve_object(cluster, {"kind": kind, "name": "web"})

    assert outcome.object["kind"] == "Ingress"
    path = f"/apis/networking.k8s.io/v1/namespaces/{cluster.namespace}/ingresses/web@"
    assert outcome.resolved.source.uri.startswith(path)


async def test_what_there_is_not_has_reasons_of_its_own(cluster: Cluster) -> None:
    missing = await expect_resolution_error(cluster, {"kind": "ConfigMap", "name": "nobody"})
    unknown = await expect_resolution_error(cluster, {"kind": "stepaction", "name": "a"})
    version = await expect_resolution_error(cluster, {"kind": "ConfigMap", "name": "a", "apiVersion": "v7"})
    wide = await expect_resolution_error(cluster, {"kind": "ClusterRole", "name": "admin"})

    assert (missing.reason, unknown.reason, version.reason) == (
        Reason.NOT_FOUND,
        Reason.INVALID_PARAMETERS,
        Reason.INVALID_PARAMETERS,
    )
    assert "does not exist" in missing.message
    assert "serves no kind 'stepaction'" in unknown.message
    assert "in v7" in version.message
    assert "expected a namespaced kind" in wide.message


async def test_a_kind_of_several_groups_has_to_be_named_with_its_version(cluster: Cluster) -> None:
    error = await expect_resolution_error(cluster, {"kind": "event", "name": "a"})
    assert error.message == (
        "parameter 'apiVersion': expected a version, because 'event' stands for several kinds: v1, events.k8s.io/v1"
    )


async def test_as_requester_only_what_its_service_account_may_read_comes_out(cluster: Cluster) -> None:
    await make(cluster, "v1", "ConfigMap", "a", data={"x": "1"})
    user = f"system:serviceaccount:{cluster.namespace}:builder"
    params = {"kind": "configmap", "name": "a"}

    before = await expect_resolution_error(cluster, params, user=user, as_requester="true")
    nobody = await expect_resolution_error(
        cluster, {"kind": "configmap", "name": "nobody"}, user=user, as_requester="true"
    )
    await make(
        cluster,
        "rbac.authorization.k8s.io/v1",
        "Role",
        "reader",
        rules=[{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get"]}],
    )
    await make(
        cluster,
        "rbac.authorization.k8s.io/v1",
        "RoleBinding",
        "reader",
        roleRef={"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "reader"},
        subjects=[{"kind": "ServiceAccount", "name": "builder", "namespace": cluster.namespace}],
    )

    async def may() -> ResolutionResult | None:
        try:
            return await resolve_object(cluster, params, user=user, as_requester="true")
        except ResolutionError:
            return None  # the server takes a moment to count the role

    outcome = await cluster.eventually(may, describe="the role counts")
    assert outcome.object["data"] == {"x": "1"}
    assert before.reason is nobody.reason is Reason.DENIED
    assert f"{user} must not read" in before.message
    assert (await expect_resolution_error(cluster, params, as_requester="true")).reason is Reason.DENIED


async def test_a_secret_is_read_by_name_and_whatever_is_missing_has_one_message(cluster: Cluster) -> None:
    await make(cluster, "v1", "Secret", "token", data={"token": "aHVudGVyMg==", "binary": "/w=="})
    secrets = NamespaceSecrets(cluster.client, cluster.namespace)
    elsewhere = NamespaceSecrets(cluster.client, f"{cluster.namespace}-other")

    async def told(secrets: NamespaceSecrets, name: str, key: str) -> str:
        with pytest.raises(ResolutionError) as caught:
            await secrets.read_value(name, key)
        assert caught.value.reason is Reason.AUTHENTICATION_REQUIRED
        return caught.value.message

    assert await secrets.read_value("token", "token") == "hunter2"
    messages = {
        await told(secrets, "nobody", "token"),
        await told(secrets, "token", "nobody"),
        await told(secrets, "token", "binary"),
        await told(secrets, "../token", "token"),
        await told(elsewhere, "token", "token"),
    }
    assert len(messages) == 1
    assert "token" not in messages.pop()


async def test_the_pull_secrets_of_a_service_account_are_named(cluster: Cluster) -> None:
    await make(cluster, "v1", "ServiceAccount", "puller", imagePullSecrets=[{"name": "a"}, {"name": "b"}])
    secrets = NamespaceSecrets(cluster.client, cluster.namespace)

    assert await secrets.list_pull_secrets("puller") == ("a", "b")
    with pytest.raises(ResolutionError):
        await secrets.list_pull_secrets("nobody")


async def test_a_misspelled_kind_or_name_has_a_suggestion_for_the_user_of_the_process(cluster: Cluster) -> None:
    config_map: Object = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "home-page"}}
    config_map["metadata"]["namespace"] = cluster.namespace
    await cluster.client.create(config_map)

    async def fail(is_requester: bool, **params: str) -> str:
        services = build_services(ClusterObjectReader(cluster.client, is_requester=is_requester))
        given = {"kind": "ConfigMap", "name": "home-page", "namespace": cluster.namespace, **params}
        with pytest.raises(ResolutionError) as caught:
            await ClusterResolver().resolve(FetchRequest(given, DEFAULTS, cluster.namespace, "", 10, services))
        return caught.value.message

    missing = f"ConfigMap {cluster.namespace}/home-pgae does not exist"
    assert await fail(True, name="home-pgae") == f"{missing}; did you mean 'home-page'?"
    assert await fail(False, name="home-pgae") == missing, "a tenant may not see the names of others"
    for is_requester in (True, False):
        message = await fail(is_requester, kind="ConfgMap")
        assert message == "parameter 'kind': the cluster serves no kind 'ConfgMap'; did you mean 'ConfigMap'?"


def build_services(reader: ClusterObjectReader) -> Services:
    nothing: Any = None
    return Services(http=nothing, secrets=nothing, workspaces=nothing, clock=SystemClock(), cluster=reader)
