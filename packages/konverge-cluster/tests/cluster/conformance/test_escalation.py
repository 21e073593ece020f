"""Protection against escalation: roles and bindings grant only what their author has. RBAC is on here."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from konverge.kube import Object
from konverge_cluster._internal.controlplane import RealCluster
from konverge_cluster.testing import Cluster
from tests.cluster.conformance.test_access import People
from tests.rbac_clusters import cluster_with_roles

pytestmark = pytest.mark.anyio

GROUP = "rbac.authorization.k8s.io"
RBAC = f"/apis/{GROUP}/v1"
ROLES, BINDINGS = f"{RBAC}/namespaces/{{n}}/roles", f"{RBAC}/namespaces/{{n}}/rolebindings"


def rule(verbs: str, group: str, resources: str, *names: str) -> Object:
    found: Object = {"verbs": verbs.split(), "apiGroups": [group], "resources": resources.split()}
    return found | ({"resourceNames": list(names)} if names else {})


def role(name: str, *rules: Object) -> Object:
    return {"metadata": {"name": name}, "rules": list(rules)}


def binding(name: str, role_name: str, kind: str = "Role") -> Object:
    subjects = [{"kind": "User", "apiGroup": GROUP, "name": "ann"}]
    return {
        "metadata": {"name": name},
        "roleRef": {"apiGroup": GROUP, "kind": kind, "name": role_name},
        "subjects": subjects,
    }


HELD = (
    rule("create update patch get", GROUP, "roles rolebindings"),
    rule("get list", "", "pods configmaps"),
    rule("get", "", "secrets", "one"),
)


@pytest.fixture
async def cluster(_control_plane: RealCluster | None) -> AsyncIterator[Cluster]:
    async with cluster_with_roles(_control_plane, "escalation") as found:
        yield found


@pytest.fixture
async def people(cluster: Cluster) -> People:
    """Return people; the bot has the permissions `HELD`, and there are a small and a big role."""
    people = People(cluster)
    await people.ask("POST", "/api/v1/namespaces/{n}/serviceaccounts", {"metadata": {"name": "bot"}})
    await people.allow(*HELD)
    await people.ask("POST", ROLES, role("small", rule("get", "", "pods")))
    await people.ask("POST", ROLES, role("big", rule("*", "*", "*")))

    async def may_write() -> bool:
        return bool((await people.may("create", group=GROUP, resource="roles"))["allowed"])

    await cluster.eventually(may_write)
    return people


def expect_refusal(people: People, plural: str, name: str, *missing: str) -> str:
    namespace = people.bot.split(":")[2]
    groups = f'"system:serviceaccounts" "system:serviceaccounts:{namespace}" "system:authenticated"'
    return "\n".join(
        [
            f'{plural}.{GROUP} "{name}" is forbidden: user "{people.bot}" (groups=[{groups}]) is attempting to grant '
            "RBAC permissions not currently held:",
            *missing,
        ]
    )


@pytest.mark.parametrize(
    ("rules", "missing"),
    [
        ([rule("get", "", "pods")], []),
        ([rule("get", "", "secrets", "one")], []),
        ([rule("delete", "", "pods")], ['{APIGroups:[""], Resources:["pods"], Verbs:["delete"]}']),
        ([rule("*", "", "pods")], ['{APIGroups:[""], Resources:["pods"], Verbs:["*"]}']),
        ([rule("get", "", "pods/log")], ['{APIGroups:[""], Resources:["pods/log"], Verbs:["get"]}']),
        (
            [rule("get", "", "secrets", "one", "two")],
            ['{APIGroups:[""], Resources:["secrets"], ResourceNames:["two"], Verbs:["get"]}'],
        ),
        (
            [rule("get delete create", "", "pods secrets")],
            [
                '{APIGroups:[""], Resources:["pods"], Verbs:["delete" "create"]}',
                '{APIGroups:[""], Resources:["secrets"], Verbs:["get" "delete" "create"]}',
            ],
        ),
    ],
)
async def test_a_role_grants_only_what_its_author_has(people: People, rules: list[Object], missing: list[str]) -> None:
    answer = await people.ask("POST", ROLES, role("new", *rules), user=people.bot)

    if not missing:
        assert answer.status == 201
        return
    assert (answer.status, answer.message) == (403, expect_refusal(people, "roles", "new", *missing))


async def test_any_change_of_a_role_needs_its_permissions(people: People) -> None:
    existing = (await people.ask("GET", f"{ROLES}/big")).body

    answer = await people.ask(
        "PUT", f"{ROLES}/big", {**existing, "metadata": {**existing["metadata"], "labels": {"a": "b"}}}, user=people.bot
    )

    everything = '{APIGroups:["*"], Resources:["*"], Verbs:["*"]}'
    assert (answer.status, answer.message) == (403, expect_refusal(people, "roles", "big", everything))


async def test_a_binding_grants_only_what_its_author_has(people: People) -> None:
    small = await people.ask("POST", BINDINGS, binding("small", "small"), user=people.bot)
    big = await people.ask("POST", BINDINGS, binding("big", "big"), user=people.bot)
    admin = await people.ask("POST", BINDINGS, binding("admin", "cluster-admin", "ClusterRole"), user=people.bot)
    absent = await people.ask("POST", BINDINGS, binding("absent", "nosuch"), user=people.bot)

    everything = '{APIGroups:["*"], Resources:["*"], Verbs:["*"]}'
    assert small.status == 201
    assert (big.status, big.message) == (403, expect_refusal(people, "rolebindings", "big", everything))
    assert admin.message == expect_refusal(
        people, "rolebindings", "admin", everything, '{NonResourceURLs:["*"], Verbs:["*"]}'
    )
    assert (absent.status, absent.message) == (404, f'rolebindings.{GROUP} "nosuch" not found')


async def test_bind_and_escalate_allow_more(people: People, cluster: Cluster) -> None:
    extra = (rule("bind", GROUP, "roles", "big"), rule("escalate", GROUP, "roles"))
    await people.allow(*extra, role="extra")

    async def may_bind() -> bool:
        return bool((await people.may("bind", group=GROUP, resource="roles", name="big"))["allowed"])

    await cluster.eventually(may_bind)

    bound = await people.ask("POST", BINDINGS, binding("big", "big"), user=people.bot)
    other = await people.ask("POST", BINDINGS, binding("admin", "cluster-admin", "ClusterRole"), user=people.bot)
    written = await people.ask("POST", ROLES, role("new", rule("watch", "", "nodes")), user=people.bot)

    assert [bound.status, other.status, written.status] == [201, 403, 201]


async def test_an_administrator_grants_everything(people: People) -> None:
    assert (await people.ask("POST", ROLES, role("new", rule("*", "*", "*")))).status == 201
    assert (await people.ask("POST", BINDINGS, binding("absent", "nosuch"))).status == 201
