"""Users who act as others: each part of the other's identity needs a permission. RBAC is on here."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

from konverge.client import HttpTransport, load_kubeconfig
from konverge.kube import Object
from konverge_cluster.controlplane import RealCluster
from konverge_cluster.testing import Cluster
from tests.cluster.conformance.test_access import AUTHENTICATION, People
from tests.rbac_clusters import cluster_with_roles

# The kubeconfig carries the identity, so both clusters are asked over HTTP.
pytestmark = [pytest.mark.anyio, pytest.mark.real_time]

GROUP = "authentication.k8s.io"
RBAC = "/apis/rbac.authorization.k8s.io/v1"


@pytest.fixture
async def cluster(_control_plane: RealCluster | None) -> AsyncIterator[Cluster]:
    async with cluster_with_roles(_control_plane, "acting", is_simulated=False) as found:
        yield found


class Actors:
    """The ServiceAccount ``bot``, which acts as other users."""

    def __init__(self, cluster: Cluster, folder: Path, closing: AsyncExitStack) -> None:
        self._cluster = cluster
        self._folder = folder
        self._closing = closing
        self._people = People(cluster)
        self._token = ""

    async def set_up(self, *rules: Object) -> None:
        """Create the account with these permissions in the whole cluster."""
        await self._people.ask("POST", "/api/v1/namespaces/{n}/serviceaccounts", {"metadata": {"name": "bot"}})
        path = "/api/v1/namespaces/{n}/serviceaccounts/bot/token"
        self._token = (await self._people.ask("POST", path, {"spec": {}})).body["status"]["token"]
        name = f"{self._cluster.namespace}-acting"
        reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name}
        subject = {"kind": "ServiceAccount", "name": "bot", "namespace": self._cluster.namespace}
        for path, body in (
            ("clusterroles", {"metadata": {"name": name}, "rules": list(rules)}),
            ("clusterrolebindings", {"metadata": {"name": name}, "roleRef": reference, "subjects": [subject]}),
        ):
            await self._people.ask("POST", f"{RBAC}/{path}", body)
            self._closing.push_async_callback(self._people.ask, "DELETE", f"{RBAC}/{path}/{name}")

    async def whoami(self, **identity: Any) -> tuple[int, Any]:
        """Return the status, and the user as the server knows it or the message of the refusal."""
        config = json.loads((await self._cluster.write_kubeconfig()).read_text())
        config["users"][0]["user"] = {"token": self._token, **identity}
        file = self._folder / "kubeconfig"
        file.write_text(json.dumps(config))
        transport = HttpTransport(load_kubeconfig(file, env={}))
        try:
            response = await transport.request(
                "POST",
                f"{AUTHENTICATION}/selfsubjectreviews",
                headers={"content-type": "application/json", "accept": "application/json"},
                body=b"{}",
                timeout_seconds=60,
            )
        finally:
            await transport.close()
        body = json.loads(response.body)
        if response.status != 201:
            return response.status, body["message"].replace(self._cluster.namespace, "<namespace>")
        return response.status, body["status"]["userInfo"]


@pytest.fixture
async def actors(cluster: Cluster, tmp_path: Path) -> AsyncIterator[Actors]:
    async with AsyncExitStack() as closing:
        yield Actors(cluster, tmp_path, closing)


def may(resource: str, group: str = "", *names: str) -> Object:
    rule: Object = {"verbs": ["impersonate"], "apiGroups": [group], "resources": [resource]}
    return rule | ({"resourceNames": list(names)} if names else {})


ALL = (may("users"), may("groups"), may("uids", GROUP), may("userextras/scopes", GROUP))


async def test_a_user_with_all_parts_is_taken_over(actors: Actors, cluster: Cluster) -> None:
    await actors.set_up(*ALL)
    identity = {"as": "joe", "as-uid": "u-1", "as-groups": ["a", "b,c"], "as-user-extra": {"scopes": ["x", "y"]}}

    async def is_allowed() -> Any:
        status, user = await actors.whoami(**identity)
        return user if status == 201 else None

    user = await cluster.eventually(is_allowed, describe="the bot may act as joe")

    assert user == {
        "username": "joe",
        "uid": "u-1",
        "groups": ["a", "b,c", "system:authenticated"],
        "extra": {"scopes": ["x", "y"]},
    }


@pytest.mark.parametrize(
    "identity",
    [
        {"as": "joe", "as-uid": "u-1"},
        {"as": "joe", "as-groups": ["a"]},
        {"as": "joe", "as-user-extra": {"scopes": ["x"]}},
    ],
)
async def test_each_part_needs_a_permission(actors: Actors, cluster: Cluster, identity: dict[str, Any]) -> None:
    await actors.set_up(may("users"))

    async def is_allowed() -> bool:
        return (await actors.whoami(**{"as": "joe"}))[0] == 201

    await cluster.eventually(is_allowed, describe="the bot may act as joe")

    assert (await actors.whoami(**identity))[0] == 403


@pytest.mark.parametrize(
    ("identity", "groups"),
    [
        ({"as": "joe", "as-groups": ["system:unauthenticated"]}, ["system:unauthenticated"]),
        ({"as": "joe", "as-groups": ["system:authenticated", "a"]}, ["system:authenticated", "a"]),
        ({"as": "system:anonymous"}, ["system:unauthenticated"]),
        ({"as": "system:anonymous", "as-groups": ["a"]}, ["a", "system:unauthenticated"]),
    ],
)
async def test_the_groups_say_whether_the_user_is_known(
    actors: Actors, cluster: Cluster, identity: dict[str, Any], groups: list[str]
) -> None:
    await actors.set_up(*ALL)

    async def is_allowed() -> bool:
        return (await actors.whoami(**{"as": "joe", "as-groups": ["a"]}))[0] == 201

    await cluster.eventually(is_allowed, describe="the bot may act as joe")

    status, user = await actors.whoami(**identity)

    if "system:unauthenticated" in groups:  # who is not known may not ask who it is
        assert (status, 'cannot create resource "selfsubjectreviews"' in user) == (403, True)
    else:
        assert (status, user["groups"]) == (201, groups)


@pytest.mark.parametrize("identity", [{"as-uid": "u-1"}, {"as-groups": ["a"]}, {"as-user-extra": {"scopes": ["x"]}}])
async def test_parts_without_a_user_are_refused(actors: Actors, identity: dict[str, Any]) -> None:
    await actors.set_up(*ALL)

    assert (await actors.whoami(**identity))[0] == 400
