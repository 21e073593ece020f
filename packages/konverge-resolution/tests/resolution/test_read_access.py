"""Who may create the owners of definitions sees nothing of their content: rights to read it are rights of their own."""

from __future__ import annotations

import base64
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
import yaml

from konverge.kube import Object
from konverge_cluster.controlplane import RealCluster
from konverge_cluster.testing import Cluster
from konverge_resolution._internal.requests.resolver_packaging import ResolverPackaging, package_resolvers
from konverge_resolution._internal.resolvers import STANDARD, load_resolvers
from konverge_resolution.requests import REQUEST
from tests.docs.pages import find_code_blocks
from tests.rbac_clusters import cluster_with_roles
from tests.resolution.consumer.consumer_harness import READER, ConsumerHarness, build_consumer_harness
from tests.resolution.fake_resolver import BOX, FakeResolver
from tests.resolution.requests.request_namespace import REAL, create_request_namespace

pytestmark = pytest.mark.anyio

SECRETIVE = "nobody-else-may-know"
OF_THE_LARGE = "told-in-the-large-one"
SMALL = BOX.replace(b"{name: a}", f"{{name: a, labels: {{told: {SECRETIVE}}}}}".encode())
CONTENT = {
    "small": SMALL,
    "large": SMALL + f"# {OF_THE_LARGE}{'.' * 4096}\n".encode(),
    "bad": f"not: a definition, but {SECRETIVE}\n".encode(),
}
RBAC = "rbac.authorization.k8s.io"
READERS, REQUESTS = f"readers.{READER.group}", f"resolutionrequests.{REQUEST.group}"  # Tekton's have the same plural


@pytest.fixture
async def cluster(_control_plane: RealCluster | None) -> AsyncIterator[Cluster]:
    async with cluster_with_roles(_control_plane, "rights") as found:
        yield found


@pytest.fixture
async def readers(cluster: Cluster) -> ConsumerHarness:
    return await build_consumer_harness(await create_request_namespace(cluster))


class ClusterReader:
    """A ServiceAccount of the test's namespace, or with no name an administrator, and what the server shows it."""

    def __init__(self, cluster: Cluster, name: str) -> None:
        self._cluster = cluster
        self._transport = cluster.new_transport()
        self._name = name
        user = f"system:serviceaccount:{cluster.namespace}:{name}"
        self._acting_as = {"impersonate-user": user} if name else {}

    async def gets(self, role: Object) -> None:
        """Let it do what a role says, in its namespace."""
        namespace = self._cluster.namespace
        metadata = {"name": f"{self._name}-{role['metadata']['name']}", "namespace": namespace}
        if "rules" in role:
            await self._cluster.client.create({**role, "kind": "Role", "metadata": metadata})
        name = metadata["name"] if "rules" in role else role["metadata"]["name"]
        await self._cluster.client.create(
            {
                "apiVersion": f"{RBAC}/v1",
                "kind": "RoleBinding",
                "metadata": metadata,
                "roleRef": {"apiGroup": RBAC, "kind": "Role" if "rules" in role else "ClusterRole", "name": name},
                "subjects": [{"kind": "ServiceAccount", "name": self._name, "namespace": namespace}],
            }
        )

    async def creates_a_reader(self, name: str) -> None:
        """Create an owner that asks for one definition."""
        body = {"apiVersion": READER.api_version, "kind": READER.kind, "metadata": {"name": name}}
        path = f"/apis/{READER.api_version}/namespaces/{self._cluster.namespace}/readers"
        status, answer = await self.asks("POST", path, {**body, "spec": {"reads": {name: "1"}}})
        assert status == 201, answer

    async def asks(self, method: str, path: str, body: Object | None = None) -> tuple[int, Any]:
        answer = await self._transport.request(
            method,
            path,
            query={},
            headers={"content-type": "application/json", "accept": "application/json", **self._acting_as},
            body=None if body is None else json.dumps(body).encode(),
            timeout_seconds=60,
        )
        return answer.status, json.loads(answer.body)

    async def read_everything(self) -> dict[str, str]:
        """By resource of the namespace that it may list, everything that it is shown; contents in the clear."""
        found = {}
        for mapping in await self._cluster.client.mappings():
            if mapping.namespaced and "list" in mapping.verbs:
                status, body = await self.asks("GET", mapping.build_path(namespace=self._cluster.namespace))
                if status == 200:
                    found[f"{mapping.plural}.{mapping.gvk.group}".rstrip(".")] = str(body) + str(
                        [decode_values(each) for each in body["items"]]
                    )
        return found

    async def until_it_may_list(self, resource: str) -> None:
        async def may() -> bool:
            return resource in await self.read_everything()

        await self._cluster.eventually(may, describe=f"{self._name} may list {resource}")


def decode_values(obj: Object) -> list[bytes]:
    """What an object has in base64."""
    texts = [*(obj.get("binaryData") or {}).values(), (obj.get("status") or {}).get("data") or ""]
    return [base64.b64decode(text) for text in texts]


def role_of_the_page(name: str) -> Object:
    """A role that the page shows, for the owners of the test."""
    (text,) = [block for block in find_code_blocks("docs/resolution/running.md", "yaml") if f"name: {name}\n" in block]
    role: Object = yaml.safe_load(text.replace("example.com", READER.group).replace("pages", "readers"))
    return role


async def test_who_may_create_owners_but_not_read_requests_sees_no_content_anywhere(readers: ConsumerHarness) -> None:
    desk, cluster = readers.desk, readers.desk.cluster
    author, reader, administrator = (
        ClusterReader(cluster, "author"),
        ClusterReader(cluster, "reader"),
        ClusterReader(cluster, ""),
    )
    await author.gets(role_of_the_page("author"))
    await reader.gets(role_of_the_page("resolution-requests-view"))
    await author.until_it_may_list(READERS)
    await reader.until_it_may_list(REQUESTS)
    await desk.set_config_map("konverge-resolution", inline_max_bytes="1000")
    async with readers.running(FakeResolver(lambda fetch, calls: CONTENT[str(fetch.params["url"]).rpartition("/")[2]])):
        for name in CONTENT:
            await author.creates_a_reader(name)
            await desk.create_request(f"{name}-request", params={"url": f"https://a.example/{name}"})
            await desk.wait_until_ended(f"{name}-request")
            await readers.wait_for_condition(name, reason="UnsupportedContent" if name == "bad" else "Resolved")
        await desk.wait_for_events("bad-request", "UnsupportedContent")
        shown, read, everything = (
            await author.read_everything(),
            await reader.read_everything(),
            await administrator.read_everything(),
        )

    assert sorted(shown) == ["events", "events.events.k8s.io", READERS]
    assert "https://a.example/small" in shown[READERS]
    assert "bad-request" in shown["events"]
    assert SECRETIVE not in str(shown)
    # It is where rights of their own lead to, and nowhere else: of what is large, ConfigMaps have it alone.
    assert {kind for kind, text in everything.items() if SECRETIVE in text} == {"configmaps", REQUESTS}
    assert sorted(read) == [REQUESTS]
    assert SECRETIVE in read[REQUESTS]
    assert OF_THE_LARGE not in read[REQUESTS]
    assert OF_THE_LARGE in everything["configmaps"]


@REAL
async def test_the_roles_that_every_cluster_has_do_not_read_requests_by_themselves(readers: ConsumerHarness) -> None:
    people = {name: ClusterReader(readers.desk.cluster, f"may-{name}") for name in ("view", "edit", "admin")}
    await readers.desk.create_request("a")
    for name, person in people.items():
        await person.gets({"metadata": {"name": name}})
        await person.until_it_may_list("configmaps")
    assert [name for name, person in people.items() if REQUESTS in await person.read_everything()] == []


@pytest.mark.parametrize("serves_tekton", [False, True])
def test_nothing_that_is_printed_adds_to_the_roles_that_every_cluster_has(serves_tekton: bool) -> None:
    chosen = ResolverPackaging("image", serves_tekton=serves_tekton)
    found = package_resolvers(load_resolvers(STANDARD), chosen)
    roles = [each for each in found if each["kind"] in ("ClusterRole", "Role")]
    accounts = [subject for each in found for subject in each.get("subjects", ())]
    assert roles
    assert "aggregate-to" not in str(roles)
    assert {(each["kind"], each["name"]) for each in accounts} == {("ServiceAccount", "konverge-resolution")}
