"""Permissions: roles, the text of a rejection, and access reviews. The embedded cluster has RBAC on."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import pytest

from konverge.kube import Object
from konverge_cluster.controlplane import RealCluster
from konverge_cluster.testing import Cluster
from tests.cluster.conformance.objects import config_map
from tests.rbac_clusters import cluster_with_roles

pytestmark = pytest.mark.anyio

RBAC = "/apis/rbac.authorization.k8s.io/v1"
AUTHENTICATION = "/apis/authentication.k8s.io/v1"
AUTHORIZATION = "/apis/authorization.k8s.io/v1"


@pytest.fixture
async def cluster(_control_plane: RealCluster | None) -> AsyncIterator[Cluster]:
    async with cluster_with_roles(_control_plane, "access") as found:
        yield found


@dataclass(frozen=True)
class Answered:
    status: int
    body: Any

    @property
    def message(self) -> str:
        return str(self.body["message"])


class People:
    """A client as an administrator, or as the ServiceAccount ``bot`` of the test's namespace."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._transport = cluster.new_transport()
        self.bot = f"system:serviceaccount:{cluster.namespace}:bot"

    async def ask(self, method: str, path: str, body: Object | None = None, *, user: str = "") -> Answered:
        headers = {"content-type": "application/json", "accept": "application/json"}
        if user:
            headers["impersonate-user"] = user
        path, _, query = path.replace("{n}", self._cluster.namespace).partition("?")
        answer = await self._transport.request(
            method,
            path,
            query=dict(pair.split("=", 1) for pair in query.split("&") if pair),
            headers=headers,
            body=json.dumps(body).encode() if body is not None else None,
            timeout_seconds=60,
        )
        return Answered(answer.status, json.loads(answer.body))

    async def allow(self, *rules: Object, role: str = "helper") -> None:
        """Give the bot permissions in its namespace."""
        reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": role}
        subject = {"kind": "ServiceAccount", "name": "bot", "namespace": self._cluster.namespace}
        roles, bindings = f"{RBAC}/namespaces/{{n}}/roles", f"{RBAC}/namespaces/{{n}}/rolebindings"
        if rules:
            await self.ask("POST", roles, {"metadata": {"name": role}, "rules": list(rules)})
        await self.ask("POST", bindings, {"metadata": {"name": role}, "roleRef": reference, "subjects": [subject]})

    async def may(self, verb: str, **attributes: str) -> Object:
        """Return the bot's review of its own access."""
        spec = {"resourceAttributes": {"namespace": self._cluster.namespace, "verb": verb, **attributes}}
        body = {"spec": spec}
        answer = await self.ask("POST", f"{AUTHORIZATION}/selfsubjectaccessreviews", body, user=self.bot)
        status: Object = answer.body["status"]
        return status


@pytest.fixture
async def people(cluster: Cluster) -> People:
    found = People(cluster)
    await found.ask("POST", "/api/v1/namespaces/{n}/serviceaccounts", {"metadata": {"name": "bot"}})
    return found


CONFIG_MAPS = "/api/v1/namespaces/{n}/configmaps"
IN_CORE = 'in API group ""'


@pytest.mark.parametrize(
    ("method", "path", "what", "wanted"),
    [
        ("GET", CONFIG_MAPS, "configmaps", f'list resource "configmaps" {IN_CORE} in the namespace "{{n}}"'),
        ("GET", f"{CONFIG_MAPS}/a", 'configmaps "a"', f'get resource "configmaps" {IN_CORE} in the namespace "{{n}}"'),
        ("POST", CONFIG_MAPS, "configmaps", f'create resource "configmaps" {IN_CORE} in the namespace "{{n}}"'),
        (
            "DELETE",
            CONFIG_MAPS,
            "configmaps",
            f'deletecollection resource "configmaps" {IN_CORE} in the namespace "{{n}}"',
        ),
        (
            "GET",
            f"{CONFIG_MAPS}?watch=1",
            "configmaps",
            f'watch resource "configmaps" {IN_CORE} in the namespace "{{n}}"',
        ),
        ("GET", "/api/v1/configmaps", "configmaps", f'list resource "configmaps" {IN_CORE} at the cluster scope'),
        ("GET", "/api/v1/nodes/x", 'nodes "x"', f'get resource "nodes" {IN_CORE} at the cluster scope'),
        (
            "PUT",
            "/apis/apps/v1/namespaces/{n}/deployments/a/status",
            'deployments.apps "a"',
            'update resource "deployments/status" in API group "apps" in the namespace "{n}"',
        ),
        (
            "GET",
            "/apis/unserved.konverge.test/v1/namespaces/{n}/things",
            "things.unserved.konverge.test",
            'list resource "things" in API group "unserved.konverge.test" in the namespace "{n}"',
        ),
    ],
)
async def test_a_refusal_reads_like_this(
    people: People, cluster: Cluster, method: str, path: str, what: str, wanted: str
) -> None:
    body = config_map(cluster.namespace) if method == "POST" else None

    answer = await people.ask(method, path, body, user=people.bot)

    wanted = wanted.replace("{n}", cluster.namespace)
    assert answer.status == 403
    assert answer.message == f'{what} is forbidden: User "{people.bot}" cannot {wanted}'


async def test_a_path_that_is_no_resource_is_refused_too(people: People) -> None:
    answer = await people.ask("GET", "/metrics", user=people.bot)

    assert (answer.status, answer.message) == (403, f'forbidden: User "{people.bot}" cannot get path "/metrics"')


async def test_everybody_who_is_known_may_discover(people: People) -> None:
    for path in ("/api", "/apis", "/version", "/openapi/v3"):
        assert (await people.ask("GET", path, user=people.bot)).status == 200


async def test_a_role_allows_what_its_rules_say(people: People, cluster: Cluster) -> None:
    await people.allow({"apiGroups": [""], "resources": ["configmaps"], "verbs": ["list", "create"]})

    async def is_allowed() -> bool:
        return (await people.ask("GET", CONFIG_MAPS, user=people.bot)).status == 200

    await cluster.eventually(is_allowed)
    assert (await people.ask("POST", CONFIG_MAPS, config_map(cluster.namespace), user=people.bot)).status == 201
    assert (await people.ask("DELETE", f"{CONFIG_MAPS}/settings", user=people.bot)).status == 403


async def test_a_rule_may_be_about_names_and_parts(people: People, cluster: Cluster) -> None:
    await people.allow(
        {"apiGroups": [""], "resources": ["secrets"], "resourceNames": ["mine"], "verbs": ["get"]},
        {"apiGroups": ["apps"], "resources": ["deployments/scale"], "verbs": ["get"]},
    )

    async def is_known() -> bool:
        return bool((await people.may("get", resource="secrets", name="mine"))["allowed"])

    await cluster.eventually(is_known)
    assert (await people.ask("GET", "/api/v1/namespaces/{n}/secrets/mine", user=people.bot)).status == 404
    assert (await people.ask("GET", "/api/v1/namespaces/{n}/secrets/yours", user=people.bot)).status == 403
    assert (await people.may("get", group="apps", resource="deployments", subresource="scale"))["allowed"]
    assert not (await people.may("get", group="apps", resource="deployments"))["allowed"]


async def test_an_access_review_names_the_binding_that_allows(people: People, cluster: Cluster) -> None:
    await people.allow({"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get"]})

    async def is_known() -> bool:
        return bool((await people.may("get", resource="configmaps"))["allowed"])

    await cluster.eventually(is_known)
    n = cluster.namespace
    reason_text = f'RBAC: allowed by RoleBinding "helper/{n}" of Role "helper" to ServiceAccount "bot/{n}"'
    assert await people.may("get", resource="configmaps") == {"allowed": True, "reason": reason_text}
    assert await people.may("delete", resource="configmaps") == {"allowed": False}


async def test_a_binding_to_no_role_is_told(people: People, cluster: Cluster) -> None:
    await people.allow(role="missing")

    async def reason() -> str:
        return str((await people.may("get", resource="configmaps")).get("reason", ""))

    assert await cluster.eventually(reason) == 'RBAC: role.rbac.authorization.k8s.io "missing" not found'


async def test_an_administrator_may_ask_for_others(people: People, cluster: Cluster) -> None:
    attributes = {"namespace": cluster.namespace, "verb": "get", "resource": "configmaps"}
    body: Object = {"spec": {"user": people.bot, "resourceAttributes": attributes}}
    masters: Object = {"spec": {"groups": ["system:masters"], "resourceAttributes": attributes}}

    review = await people.ask("POST", f"{AUTHORIZATION}/subjectaccessreviews", body)
    local = await people.ask("POST", f"{AUTHORIZATION}/namespaces/{{n}}/localsubjectaccessreviews", body)
    powerful = await people.ask("POST", f"{AUTHORIZATION}/subjectaccessreviews", masters)
    empty_review = await people.ask("POST", f"{AUTHORIZATION}/subjectaccessreviews", {"spec": {}})

    assert (review.status, review.body["status"]) == (201, {"allowed": False})
    assert (local.status, local.body["status"]) == (201, {"allowed": False})
    assert powerful.body["status"] == {"allowed": True}
    assert empty_review.status == 422


async def test_a_rules_review_lists_what_one_may_do(people: People, cluster: Cluster) -> None:
    rule = {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get"]}
    await people.allow(rule)
    body: Object = {"spec": {"namespace": cluster.namespace}}

    async def rules() -> Any:
        answer = await people.ask("POST", f"{AUTHORIZATION}/selfsubjectrulesreviews", body, user=people.bot)
        found = answer.body["status"]["resourceRules"]
        return found if rule in found else None

    found = await cluster.eventually(rules)
    assert {"apiGroups": ["authentication.k8s.io"], "resources": ["selfsubjectreviews"], "verbs": ["create"]} in found


async def test_one_may_ask_who_one_is(people: People, cluster: Cluster) -> None:
    answer = await people.ask("POST", f"{AUTHENTICATION}/selfsubjectreviews", {}, user=people.bot)

    assert answer.status == 201
    info = answer.body["status"]["userInfo"]
    assert info["username"] == people.bot
    assert set(info["groups"]) == {
        "system:serviceaccounts",
        f"system:serviceaccounts:{cluster.namespace}",
        "system:authenticated",
    }


async def test_the_token_of_a_service_account_says_whose_it_is(people: People, cluster: Cluster) -> None:
    requested = await people.ask("POST", "/api/v1/namespaces/{n}/serviceaccounts/bot/token", {"spec": {}})
    token = requested.body["status"]["token"]

    review = await people.ask("POST", f"{AUTHENTICATION}/tokenreviews", {"spec": {"token": token}})
    other = await people.ask("POST", f"{AUTHENTICATION}/tokenreviews", {"spec": {"token": "nonsense"}})

    assert (requested.status, requested.body["kind"]) == (201, "TokenRequest")
    assert requested.body["spec"]["expirationSeconds"] == 3600
    assert review.body["status"]["authenticated"] is True
    assert review.body["status"]["user"]["username"] == people.bot
    assert other.body["status"] == {"user": {}, "error": "invalid bearer token"}


async def test_a_token_lasts_ten_minutes_at_least(people: People) -> None:
    body = {"spec": {"expirationSeconds": 5}}

    answer = await people.ask("POST", "/api/v1/namespaces/{n}/serviceaccounts/bot/token", body)

    assert answer.status == 422
    assert answer.message == (
        'TokenRequest.authentication.k8s.io "" is invalid: spec.expirationSeconds: Invalid value: 5: '
        "may not specify a duration less than 10 minutes"
    )


async def test_one_who_is_taken_for_another_may_do_no_more_than_the_other(people: People) -> None:
    answer = await people.ask("GET", CONFIG_MAPS, user="joe")

    assert (answer.status, 'User "joe" cannot list' in answer.message) == (403, True)
