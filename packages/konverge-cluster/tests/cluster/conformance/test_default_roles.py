"""The default roles, and roles whose rules come from others. RBAC is on here."""

from __future__ import annotations

import json
import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from konverge.kube import GroupVersionKind, Object, ObjectKey
from konverge_cluster._internal.controlplane import RealCluster
from konverge_cluster._internal.embedded.access import default_roles
from konverge_cluster.testing import Cluster
from tests.cluster.conformance.test_access import People
from tests.rbac_clusters import cluster_with_roles

pytestmark = pytest.mark.anyio

RECORDED = Path(default_roles.__file__).with_suffix(".json")
GROUP = "rbac.authorization.k8s.io"
KINDS = ("ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding")
ROLE = GroupVersionKind(GROUP, "v1", "ClusterRole")
BINDINGS = f"/apis/{GROUP}/v1/namespaces/{{n}}/rolebindings"


@pytest.fixture
async def cluster(_control_plane: RealCluster | None) -> AsyncIterator[Cluster]:
    async with cluster_with_roles(_control_plane, "roles") as found:
        yield found


async def list_default_roles(cluster: Cluster) -> dict[str, list[Object]]:
    """Return the roles and bindings from the start of the server, as the recorded file contains them."""
    found: dict[str, list[Object]] = {}
    for kind in KINDS:
        objects = await cluster.client.list(
            GroupVersionKind(GROUP, "v1", kind), label_selector="kubernetes.io/bootstrapping=rbac-defaults"
        )
        found[kind] = [strip(obj) for obj in objects.items]
    return found


def strip(obj: Object) -> Object:
    metadata = {
        name: value for name, value in obj["metadata"].items() if name in ("name", "namespace", "labels", "annotations")
    }
    parts = {name: obj[name] for name in ("aggregationRule", "rules", "roleRef", "subjects") if obj.get(name)}
    return {"metadata": metadata, **parts}


def format_recorded(found: dict[str, list[Object]]) -> str:
    """Return the content of the recorded file, with one object on a line."""
    kinds = []
    for kind, objects in found.items():
        lines = ",\n".join(json.dumps(obj, sort_keys=True, separators=(",", ":")) for obj in objects)
        kinds.append(f'"{kind}": [\n{lines}\n]')
    return "{\n" + ",\n".join(kinds) + "\n}\n"


async def test_the_default_roles_are_those_of_the_real_server(cluster: Cluster) -> None:
    async def are_aggregated() -> bool:
        found = await list_default_roles(cluster)
        return all(role.get("rules") for role in found["ClusterRole"] if "aggregationRule" in role)

    await cluster.eventually(are_aggregated, describe="the rules of the aggregated roles are there")
    if cluster.name == "real" and os.environ.get("KONVERGE_RECORD"):
        RECORDED.write_text(format_recorded(await list_default_roles(cluster)))
    recorded: dict[str, list[Object]] = json.loads(RECORDED.read_text())

    # A role of an earlier test on this server can have just left the aggregated ones.
    async def are_equal() -> bool:
        return await list_default_roles(cluster) == recorded

    await cluster.eventually(are_equal, describe="the default roles are those of the recorded file")


async def wait_for_rules(cluster: Cluster, name: str, *resources: str) -> None:
    async def has_rules() -> bool:
        rules = (await cluster.client.get(ROLE, ObjectKey("", name))).get("rules") or ()
        return [rule["resources"][0] for rule in rules] == list(resources)

    await cluster.eventually(has_rules, describe=f"the rules of {name} are {resources}")


def cluster_role(name: str, labels: dict[str, str] | None = None, **fields: object) -> Object:
    metadata = {"name": name, "labels": labels or {}}
    return {"apiVersion": f"{GROUP}/v1", "kind": "ClusterRole", "metadata": metadata, **fields}


def rule(resource: str) -> Object:
    return {"verbs": ["get"], "apiGroups": [""], "resources": [resource]}


async def test_a_role_gets_the_rules_of_the_roles_that_it_selects(cluster: Cluster) -> None:
    prefix = cluster.namespace
    selectors = [{"matchLabels": {f"{prefix}/two": "yes"}}, {"matchLabels": {f"{prefix}/one": "yes"}}]
    names = [f"{prefix}-{name}" for name in ("sum", "a", "b", "c")]
    total, a, b, c = names
    try:
        await cluster.client.create(
            cluster_role(total, aggregationRule={"clusterRoleSelectors": selectors}, rules=[rule("secrets")])
        )
        await cluster.client.create(cluster_role(b, {f"{prefix}/one": "yes"}, rules=[rule("pods"), rule("nodes")]))
        await cluster.client.create(cluster_role(a, {f"{prefix}/one": "yes"}, rules=[rule("pods"), rule("events")]))
        await wait_for_rules(cluster, total, "pods", "events", "nodes")
        await cluster.client.create(cluster_role(c, {f"{prefix}/two": "yes"}, rules=[rule("services")]))
        await wait_for_rules(cluster, total, "services", "pods", "events", "nodes")
        await cluster.client.patch(ROLE, ObjectKey("", total), {"rules": [rule("secrets")]}, patch_type="merge")
        await wait_for_rules(cluster, total, "services", "pods", "events", "nodes")
        no_label: Object = {"metadata": {"labels": {f"{prefix}/one": None}}}
        await cluster.client.patch(ROLE, ObjectKey("", a), no_label, patch_type="merge")
        await wait_for_rules(cluster, total, "services", "pods", "nodes")
        await cluster.client.delete(ROLE, ObjectKey("", c))
        await wait_for_rules(cluster, total, "pods", "nodes")
        live = await cluster.client.get(ROLE, ObjectKey("", total))
        entries = [(entry["manager"], entry["operation"]) for entry in live["metadata"]["managedFields"]]
        assert ("clusterrole-aggregation-controller", "Apply") in entries
    finally:
        for obj in (await cluster.client.list(ROLE)).items:
            if obj["metadata"]["name"] in names:
                await cluster.client.delete(ROLE, ObjectKey.of(obj))


async def test_a_user_with_a_default_role_can_use_and_grant_what_it_contains(cluster: Cluster) -> None:
    people = People(cluster)
    await people.ask("POST", "/api/v1/namespaces/{n}/serviceaccounts", {"metadata": {"name": "bot"}})
    subjects = [{"kind": "ServiceAccount", "name": "bot", "namespace": cluster.namespace}]

    def bind(name: str, role: str) -> Object:
        reference = {"apiGroup": GROUP, "kind": "ClusterRole", "name": role}
        return {"metadata": {"name": name}, "roleRef": reference, "subjects": subjects}

    await people.ask("POST", BINDINGS, bind("bot-is-admin", "admin"))

    async def may_write() -> bool:
        return bool((await people.may("create", resource="configmaps"))["allowed"])

    await cluster.eventually(may_write, describe="the binding counts")
    view = await people.ask("POST", BINDINGS, bind("viewer", "view"), user=people.bot)
    everything = await people.ask("POST", BINDINGS, bind("all", "cluster-admin"), user=people.bot)
    absent = await people.ask("POST", BINDINGS, bind("none", "absent"), user=people.bot)
    quotas = f"/api/v1/namespaces/{cluster.namespace}/resourcequotas"
    quota = await people.ask("POST", quotas, {"metadata": {"name": "a"}}, user=people.bot)
    other = await people.ask("GET", "/api/v1/namespaces/default/configmaps", user=people.bot)

    assert [answer.status for answer in (view, everything, absent, quota, other)] == [201, 403, 404, 403, 403]
    assert "is attempting to grant RBAC permissions not currently held" in everything.message
