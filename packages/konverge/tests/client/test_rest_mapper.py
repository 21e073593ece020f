"""Mappings of kinds by both forms of discovery."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from konverge.client import Client
from konverge.clock import SeededEntropy, SimulatedClock
from konverge.errors import (
    ConnectionFailedError,
    ForbiddenError,
    KindNotServedError,
    KindUnreachableError,
    KonvergeError,
)
from konverge.kube import GroupVersionKind, Object, RestMapping
from tests.client.scripted_transport import ScriptedRequest, ScriptedResponse, ScriptedTransport, build_failure

pytestmark = pytest.mark.anyio

DEPLOYMENT = GroupVersionKind("apps", "v1", "Deployment")
WIDGET = GroupVersionKind("demo.dev", "v1", "Widget")

CORE: Object = {"kind": "APIGroupDiscoveryList", "items": []}
APPS: Object = {
    "metadata": {"name": "apps"},
    "versions": [
        {
            "version": "v1",
            "freshness": "Current",
            "resources": [
                {
                    "resource": "deployments",
                    "responseKind": {"group": "apps", "version": "v1", "kind": "Deployment"},
                    "scope": "Namespaced",
                    "singularResource": "deployment",
                    "verbs": ["get", "list"],
                    "shortNames": ["deploy"],
                    "categories": ["all"],
                    "subresources": [{"subresource": "status", "verbs": ["get"]}],
                }
            ],
        }
    ],
}
WIDGETS: Object = {
    "metadata": {"name": "demo.dev"},
    "versions": [
        {
            "version": "v1",
            "resources": [{"resource": "widgets", "responseKind": {"kind": "Widget"}, "scope": "Cluster"}],
        }
    ],
}
DEPLOYMENTS = RestMapping(
    DEPLOYMENT,
    "deployments",
    namespaced=True,
    singular="deployment",
    short_names=("deploy",),
    verbs=frozenset({"get", "list"}),
    subresources=frozenset({"status"}),
    categories=("all",),
)


def build_aggregated(*groups: Object) -> Object:
    return {"kind": "APIGroupDiscoveryList", "items": list(groups)}


class SlowTransport(ScriptedTransport):
    """A transport with a delay for each request."""

    seconds = 0.0

    async def request(self, method: str, path: str, **options: Any) -> ScriptedResponse:
        await SimulatedClock().sleep(self.seconds)
        return await super().request(method, path, **options)


class Server:
    """A server that responds to each path from a table that a test may change."""

    def __init__(self, answers: dict[str, ScriptedResponse]) -> None:
        self.answers = answers
        self.transport = SlowTransport(discovery=None)
        self.transport.extend_script([self] * 1000)
        self.client = Client(self.transport, clock=SimulatedClock(), entropy=SeededEntropy())

    def __call__(self, asked: ScriptedRequest) -> ScriptedResponse | KonvergeError:
        return self.answers.get(asked.path) or build_failure(404, "NotFound")


def modern(*groups: Object) -> Server:
    return Server({"/api": ScriptedResponse(json=CORE), "/apis": ScriptedResponse(json=build_aggregated(*groups))})


LEGACY = {
    "/api": ScriptedResponse(json={"kind": "APIVersions", "versions": ["v1"]}),
    "/apis": ScriptedResponse(
        json={
            "kind": "APIGroupList",
            "groups": [
                {
                    "name": "apps",
                    "versions": [{"groupVersion": "apps/v1beta1"}, {"groupVersion": "apps/v1"}],
                    "preferredVersion": {"groupVersion": "apps/v1"},
                },
                {"name": "broken.dev", "versions": [{"groupVersion": "broken.dev/v1"}]},
            ],
        }
    ),
    "/api/v1": ScriptedResponse(json={"kind": "APIResourceList", "groupVersion": "v1", "resources": []}),
    "/apis/apps/v1": ScriptedResponse(
        json={
            "kind": "APIResourceList",
            "groupVersion": "apps/v1",
            "resources": [
                {
                    "name": "deployments",
                    "singularName": "deployment",
                    "namespaced": True,
                    "kind": "Deployment",
                    "verbs": ["get", "list"],
                    "shortNames": ["deploy"],
                    "categories": ["all"],
                },
                {"name": "deployments/status", "namespaced": True, "kind": "Deployment", "verbs": ["get"]},
            ],
        }
    ),
    "/apis/apps/v1beta1": ScriptedResponse(
        json={
            "kind": "APIResourceList",
            "groupVersion": "apps/v1beta1",
            "resources": [{"name": "deployments", "namespaced": True, "kind": "Deployment"}],
        }
    ),
    "/apis/broken.dev/v1": build_failure(503, "ServiceUnavailable"),
}


@pytest.mark.parametrize("make", [lambda: modern(APPS), lambda: Server(dict(LEGACY))], ids=["aggregated", "legacy"])
async def test_both_forms_say_the_same(make: Callable[[], Server]) -> None:
    assert await make().client.mapping(DEPLOYMENT) == DEPLOYMENTS


async def test_the_preferred_version_comes_first() -> None:
    found = await Server(dict(LEGACY)).client.mappings()

    assert [mapping.gvk.version for mapping in found] == ["v1", "v1beta1"]


async def test_what_is_known_is_not_asked_for_again() -> None:
    server = modern(APPS)
    for _ in range(3):
        await server.client.mapping(DEPLOYMENT)

    assert server.transport.paths == ["/api", "/apis"]


async def test_a_kind_that_is_missing_is_looked_for_again_after_a_second() -> None:
    server = modern()
    with pytest.raises(KindNotServedError):
        await server.client.mapping(WIDGET)
    server.answers["/apis"] = ScriptedResponse(json=build_aggregated(WIDGETS))
    with pytest.raises(KindNotServedError):
        await server.client.mapping(WIDGET)
    await SimulatedClock().sleep(1.0)

    assert not (await server.client.mapping(WIDGET)).namespaced
    assert server.transport.paths == ["/api", "/apis"] * 2


async def test_many_who_miss_a_kind_share_one_question() -> None:
    server = modern(APPS)
    await asyncio.gather(*(server.client.mapping(DEPLOYMENT) for _ in range(10)))

    assert len(server.transport.asked) == 2


async def test_many_who_miss_a_kind_share_one_question_also_when_the_answer_takes_long() -> None:
    server = modern()
    server.transport.seconds = 5.0
    found = await asyncio.gather(*(server.client.mapping(WIDGET) for _ in range(10)), return_exceptions=True)

    assert {type(error) for error in found} == {KindNotServedError}
    assert len(server.transport.asked) == 2


async def test_a_document_that_has_not_changed_is_not_sent_again() -> None:
    server = modern(APPS)
    server.answers["/apis"] = ScriptedResponse(json=build_aggregated(APPS), headers={"etag": '"1"'})
    await server.client.mapping(DEPLOYMENT)
    server.answers["/apis"] = ScriptedResponse(304, b"")
    await SimulatedClock().sleep(5.0)
    with pytest.raises(KindNotServedError):
        await server.client.mapping(WIDGET)

    assert server.transport.asked[-1].headers["if-none-match"] == '"1"'
    assert await server.client.mapping(DEPLOYMENT) == DEPLOYMENTS


GONE = ScriptedResponse(404, b"404 page not found")
BACK = ScriptedResponse(json={"metadata": {"resourceVersion": "1"}, "items": []})


async def test_a_kind_that_has_gone_is_looked_for_again_at_once() -> None:
    server = modern(WIDGETS)
    await server.client.mapping(WIDGET)
    server.answers["/apis/demo.dev/v1/widgets"] = GONE
    with pytest.raises(KindNotServedError):
        await server.client.list(WIDGET)
    server.answers["/apis/demo.dev/v1/widgets"] = BACK

    assert (await server.client.list(WIDGET)).resource_version == "1"


async def test_discovery_that_goes_on_naming_what_has_gone_is_asked_rarely() -> None:
    server = modern(WIDGETS)
    server.answers["/apis/demo.dev/v1/widgets"] = GONE
    for _ in range(100):
        with pytest.raises(KindNotServedError):
            await server.client.list(WIDGET)
        await SimulatedClock().sleep(0.05)

    assert server.transport.paths.count("/apis") <= 11


@pytest.mark.parametrize(
    ("gvk", "words"),
    [
        (WIDGET, "is its CustomResourceDefinition installed"),
        (GroupVersionKind("apps", "v2", "Deployment"), "it serves Deployment as v1"),
        (GroupVersionKind("apps", "v1", "Foo"), "does not serve apps/v1/Foo$"),
    ],
    ids=["group", "version", "kind"],
)
async def test_the_message_says_what_to_look_for(gvk: GroupVersionKind, words: str) -> None:
    with pytest.raises(KindNotServedError, match=words):
        await modern(APPS).client.mapping(gvk)


@pytest.mark.parametrize(
    "make",
    [
        lambda: modern({"metadata": {"name": "broken.dev"}, "versions": [{"version": "v1", "freshness": "Stale"}]}),
        lambda: Server(dict(LEGACY)),
    ],
    ids=["aggregated", "legacy"],
)
async def test_a_server_behind_the_server_that_does_not_answer_is_named(make: Callable[[], Server]) -> None:
    with pytest.raises(KindUnreachableError, match="does not respond now"):
        await make().client.mapping(GroupVersionKind("broken.dev", "v1", "Foo"))


async def test_a_refusal_of_discovery_is_an_error() -> None:
    server = modern(APPS)
    server.answers["/api"] = build_failure(403, "Forbidden")

    with pytest.raises(ForbiddenError):
        await server.client.mapping(DEPLOYMENT)


async def test_a_server_of_another_kind_is_told_as_such() -> None:
    server = modern(APPS)
    server.answers["/api"] = ScriptedResponse(200, b"<html>")

    with pytest.raises(ConnectionFailedError, match="expected the response of a Kubernetes API server"):
        await server.client.mapping(DEPLOYMENT)


@pytest.mark.parametrize(
    "odd",
    [
        {"kind": "APIGroupDiscoveryList", "items": None},
        {"kind": "APIGroupDiscoveryList", "items": [7, {}, {"metadata": 7, "versions": [{"resources": [{}, 3]}]}]},
        {"kind": "APIGroupList", "groups": [{"versions": [{}]}, None]},
        {},
    ],
)
async def test_odd_entries_are_left_out(odd: Object) -> None:
    server = modern()
    server.answers["/apis"] = ScriptedResponse(json=odd)

    assert await server.client.mappings() == []
