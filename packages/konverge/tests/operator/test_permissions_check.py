"""The permission check on the embedded cluster with roles; `test_permissions_granted` runs it on the real one."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from konverge._internal.client.config import ClusterConfig
from konverge._internal.client.credentials import BearerToken
from konverge._internal.client.http_transport import HttpTransport
from konverge._internal.operator.permission_check import find_missing_permissions
from konverge._internal.operator.permission_derivation import (
    OperatorDeclaration,
    RequiredPermissions,
    RuntimeFeatures,
    derive_permissions,
)
from konverge._internal.operator.rbac_rules import READ, ResourceAccess
from konverge._internal.operator.role_manifests import build_role_manifests
from konverge.client import Client
from konverge.clock import SeededEntropy, SystemClock
from konverge.errors import ServerError
from konverge.kube import GroupVersionKind, Object, ObjectKey
from konverge_cluster.embedded import LocalCluster, User
from tests.cancellation_leaks import run_loop_turns

pytestmark = pytest.mark.anyio

HOME = "default"
ACCOUNT = User(f"system:serviceaccount:{HOME}:shop", ("system:serviceaccounts", "system:authenticated"))
ADMIN = User("ann", ("system:masters", "system:authenticated"))
DECLARATION = OperatorDeclaration(
    "shop",
    uses=(
        ResourceAccess.of(GroupVersionKind("", "v1", "ConfigMap"), READ),
        ResourceAccess.of(GroupVersionKind("", "v1", "Node"), READ),
        ResourceAccess.of(GroupVersionKind("apps", "v1", "Deployment"), ("patch",), subresource="scale"),
    ),
)
NEEDED = derive_permissions(DECLARATION, RuntimeFeatures(records_events=False, elects_leader=True))


@pytest.fixture
async def guarded() -> AsyncIterator[LocalCluster]:
    async with LocalCluster(
        clock=SystemClock(),
        entropy=SeededEntropy(),
        controllers=False,
        authorization="rbac",
        tokens={"account": ACCOUNT, "admin": ADMIN},
    ) as running:
        yield running


@pytest.fixture
async def account(guarded: LocalCluster) -> AsyncIterator[Client]:
    config = ClusterConfig(await guarded.serve(), "test", credentials=BearerToken("account"))
    async with Client(HttpTransport(config)) as client:
        yield client


async def grant(guarded: LocalCluster, permissions: RequiredPermissions, *namespaces: str) -> None:
    async with Client(guarded.transport()) as admin:
        for obj in build_role_manifests(permissions, ObjectKey(HOME, "shop"), namespaces):
            await admin.apply(obj, field_manager="tests")


async def missing(client: Any, *namespaces: str) -> list[str]:
    found = await find_missing_permissions(client, NEEDED, role="shop", home=HOME, namespaces=namespaces)
    return [str(each) for each in found]


async def test_without_roles_every_rule_is_missing_in_one_line_each(account: Client) -> None:
    assert await missing(account) == [
        "missing permission: add to ClusterRole shop: "
        "{apiGroups: [''], resources: [configmaps, nodes], verbs: [get, list, watch]}",
        "missing permission: add to ClusterRole shop: "
        "{apiGroups: [apps], resources: [deployments/scale], verbs: [patch]}",
        "missing permission: add to Role shop in namespace default: "
        "{apiGroups: [coordination.k8s.io], resources: [leases], verbs: [create]}",
        "missing permission: add to Role shop in namespace default: "
        "{apiGroups: [coordination.k8s.io], resources: [leases], resourceNames: [shop], verbs: [get, update]}",
    ]


async def test_with_the_manifests_nothing_is_missing(guarded: LocalCluster, account: Client) -> None:
    await grant(guarded, NEEDED)

    assert await missing(account) == []


async def test_roles_of_a_namespace_do_for_it_and_for_no_other(guarded: LocalCluster, account: Client) -> None:
    await grant(guarded, NEEDED, "default")

    assert await missing(account, "default") == []
    assert await missing(account, "default", "kube-system") == [
        "missing permission: add to Role shop in namespace kube-system: "
        "{apiGroups: [''], resources: [configmaps], verbs: [get, list, watch]}",
        "missing permission: add to Role shop in namespace kube-system: "
        "{apiGroups: [apps], resources: [deployments/scale], verbs: [patch]}",
    ]


class Reviews:
    """A client that counts its reviews, and whose rules are never complete."""

    def __init__(self, answers: dict[str, Any]) -> None:
        self.answers = answers
        self.at_once = self.most_at_once = 0

    async def create(self, obj: Object, *, field_manager: str = "") -> Object:
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        await run_loop_turns()  # the others start
        self.at_once -= 1
        answer = self.answers[obj["kind"]]
        if isinstance(answer, Exception):
            raise answer
        return {**obj, "status": answer}


async def test_what_no_rule_tells_is_asked_for_a_few_at_a_time() -> None:
    reviews = Reviews(
        {
            "SelfSubjectRulesReview": {"resourceRules": [], "incomplete": True},
            "SelfSubjectAccessReview": {"allowed": True},
        }
    )

    assert await missing(reviews) == []
    assert reviews.most_at_once == 4


async def test_a_server_that_fails_is_no_missing_permission() -> None:
    reviews = Reviews({"SelfSubjectRulesReview": ServerError("no")})

    with pytest.raises(ServerError, match="no"):
        await missing(reviews)
