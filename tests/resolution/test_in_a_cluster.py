"""Everything together: requests of both kinds, all five resolvers, real servers; and what holds between them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml
from aiohttp import web

from konverge.errors import ApiError
from konverge.kube import GroupVersionKind, Object, ObjectKey
from konverge.operator import RunOptions
from konverge.resolution.requests import REQUEST, TEKTON_REQUEST
from konverge.resolution.resolvers import STANDARD, standard_resolvers
from tests.network.stands import Seen, site, to
from tests.resolution.requests.desk import EMBEDDED, POLICY, Desk, a_desk, data_of
from tests.resolution.sources import FILE, Sources, all_sources, of_secret

pytestmark = [pytest.mark.anyio, pytest.mark.real_time]

TASK = GroupVersionKind("tekton.dev", "v1", "Task")


@pytest.fixture
async def desk(cluster: Any) -> Desk:
    return await a_desk(cluster, with_tekton=True)


@pytest.fixture
async def sources(desk: Desk, tmp_path: Path) -> AsyncIterator[Sources]:
    async with all_sources(desk, tmp_path) as found:
        yield found


@asynccontextmanager
async def resolving(desk: Desk, *names: str, **more: Any) -> AsyncIterator[None]:
    """The resolvers with all that a cluster gives them."""
    resolvers = standard_resolvers(names or STANDARD)
    async with desk.served_by(*resolvers, serves_tekton=True, services_for=None, **more):
        yield


async def ask(desk: Desk, name: str, resolver: str, params: dict[str, str], namespace: str = "") -> None:
    await desk.cluster.client.create(
        {
            "apiVersion": REQUEST.api_version,
            "kind": REQUEST.kind,
            "metadata": {"name": name, "namespace": namespace or desk.namespace},
            "spec": {"resolver": resolver, "params": params},
        }
    )


@pytest.mark.slow
async def test_all_five_sources_answer_our_requests_and_tektons(desk: Desk, sources: Sources) -> None:
    async with resolving(desk):
        for resolver, params in sources.params.items():
            await ask(desk, f"own-{resolver}", resolver, params)
            await desk.ask_as_tekton(f"tekton-{resolver}", resolver, params)
        own = {resolver: await desk.ended(f"own-{resolver}") for resolver in sources.params}
        tekton = {resolver: await desk.ended(f"tekton-{resolver}", TEKTON_REQUEST) for resolver in sources.params}

    for ended in (own, tekton):
        assert {each: request["status"]["conditions"][0].get("message", "") for each, request in ended.items()
                if request["status"]["conditions"][0]["status"] != "True"} == {}  # fmt: skip
        for resolver, content in sources.content.items():
            assert data_of(ended[resolver]) == content
        assert yaml.safe_load(data_of(ended["cluster"]))["metadata"]["name"] == "build"
    for resolver, request in tekton.items():
        record = request["status"]["refSource"]
        assert record["uri"] == own[resolver]["status"]["source"]["uri"]
        assert record["digest"], resolver
    # The path of an object is Tekton's form; what a policy calls it stands beside it in ours.
    named = {each: request["status"].get("policySource") for each, request in own.items()}
    assert named == dict.fromkeys(own) | {"cluster": f"cluster://{desk.namespace}/task/build"}
    assert f"which policies name {named['cluster']}" in own["cluster"]["status"]["conditions"][0]["message"]
    assert tekton["git"]["status"]["refSource"]["uri"].startswith("git+http://127.0.0.1:")
    assert tekton["git"]["status"]["refSource"]["entryPoint"] == "task.yaml"
    # Two requests for the same, of one user: what a name stands for was asked once or twice, the content once.
    assert sources.registry.count("GET", "/blobs/") == 1


@pytest.mark.slow
@EMBEDDED
async def test_what_one_namespace_may_fetch_another_does_not_get_from_the_cache(desk: Desk, sources: Sources) -> None:
    other = f"{desk.namespace}-other"
    await desk.cluster.client.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": other}})
    digest = next(name for _, name in sources.registry.manifests if name.startswith("sha256:"))
    repository = f"127.0.0.1:{sources.registry.port}/team/tasks"
    params = {**sources.params["bundles"], "bundle": f"{repository}@{digest}"}
    without = {name: value for name, value in params.items() if name != "secret"}
    await desk.cluster.client.create(of_secret("oci-credentials", other, {"a": b"b"}))
    both = RunOptions(namespaces=(desk.namespace, other))
    async with (
        desk.policy("others", namespaces=[other], privateNetworks=["127.0.0.0/8"]),
        resolving(desk, "bundles", options=both),
    ):
        await ask(desk, "mine", "bundles", params)
        assert data_of(await desk.ended("mine"))
        fetched = sources.registry.count("GET", "/blobs/")
        await ask(desk, "again", "bundles", params)
        assert (await desk.ended("again"))["status"]["fetchedFrom"] == "cache"
        reasons = []
        for name, theirs in {"same": params, "without": without}.items():
            await ask(desk, name, "bundles", theirs, other)
            reasons.append(await failed(desk, ObjectKey(other, name)))

    assert reasons == ["AuthRequired", "AuthRequired"]
    assert sources.registry.count("GET", "/blobs/") == fetched == 1


async def failed(desk: Desk, key: ObjectKey) -> str:
    """The reason why a request of any namespace has failed, as soon as it has."""

    async def found() -> str | None:
        status = (await desk.cluster.client.get(REQUEST, key)).get("status", {})
        (condition,) = status.get("conditions") or [{"status": "Unknown"}]
        return condition["reason"] if condition["status"] == "False" else None

    return await desk.cluster.eventually(found, describe=f"{key} fails")


@pytest.mark.slow
@EMBEDDED
async def test_what_the_operator_says_of_the_cache_wins_over_the_request(desk: Desk, sources: Sources) -> None:
    await desk.configure("konverge-resolution", cache_mode="never")
    params = {**sources.params["bundles"], "cache": "always"}
    async with resolving(desk, "bundles"):
        for name in ("first", "second"):
            await ask(desk, name, "bundles", params)
            assert (await desk.ended(name))["status"]["fetchedFrom"] == "remote"
        await desk.configure("konverge-resolution", cache_mode="always")
        never = {**params, "cache": "never"}

        async def is_remembered() -> bool:
            return await fetched_from(desk, never) == "cache"

        await desk.cluster.eventually(is_remembered, describe="the change counts")

    assert sources.registry.count("GET", "/blobs/") >= 3


async def fetched_from(desk: Desk, params: dict[str, str]) -> str:
    """Where one more request for these gets its content from."""
    listed = await desk.cluster.client.list(REQUEST, namespace=desk.namespace)
    name = f"request-{len(listed.items)}"
    await ask(desk, name, "bundles", params)
    return str((await desk.ended(name))["status"]["fetchedFrom"])


@pytest.mark.slow
async def test_a_policy_that_changes_counts_for_the_next_request(desk: Desk, sources: Sources) -> None:
    params = {"url": f"{sources.web_url}/task.yaml", **credentials(sources)}
    key = ObjectKey("", f"{desk.namespace}-loopback")
    async with resolving(desk, "http"):
        await ask(desk, "before", "http", params)
        assert data_of(await desk.ended("before")) == FILE
        asked = len(sources.asked)
        await desk.cluster.client.patch(
            POLICY, key, {"spec": {"sources": ["https://good.example"]}}, patch_type="merge"
        )

        async def is_denied() -> bool:
            number = len((await desk.cluster.client.list(REQUEST, namespace=desk.namespace)).items)
            await ask(desk, f"after-{number}", "http", params)
            (condition,) = (await desk.ended(f"after-{number}"))["status"]["conditions"]
            return bool(condition["status"] == "False" and condition["reason"] == "Denied")

        await desk.cluster.eventually(is_denied, 5 + desk.late_seconds, describe="the policy counts")
    # The first one that was refused was refused before anybody was asked; from the cache it did not come either.
    assert len(sources.asked) <= asked + 2


def credentials(sources: Sources) -> dict[str, str]:
    return {name: value for name, value in sources.params["http"].items() if name != "url"}


@pytest.mark.slow
@EMBEDDED
async def test_a_host_that_hangs_holds_up_nobody_else(desk: Desk, sources: Sources) -> None:
    hanging = asyncio.Event()

    async def hang(request: web.BaseRequest) -> web.StreamResponse:
        await hanging.wait()
        return web.Response()

    async with AsyncExitStack() as stack:
        dead = await stack.enter_async_context(site(hang))
        stack.callback(hanging.set)
        await stack.enter_async_context(resolving(desk, "http"))
        for number in range(20):
            await ask(desk, f"hung-{number}", "http", {"url": f"{dead}/{number}"})
        for number in range(50):
            url = f"{sources.web_url}/{number}"
            await ask(desk, f"good-{number}", "http", {"url": url, **credentials(sources)})
        for number in range(50):
            assert data_of(await desk.ended(f"good-{number}")) == FILE
        states = [await desk.condition(f"hung-{number}") for number in range(20)]

    assert all(state is not None and state.reason == "ResolutionInProgress" for state in states)


async def test_a_field_that_the_kind_does_not_have_is_named_where_the_definition_is_used(
    desk: Desk, sources: Sources
) -> None:
    """The protocol does not know kinds; the server does, and is asked before anything is made of a definition."""
    wrong = b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndat: {a: b}\n"

    async def serve(request: web.BaseRequest) -> web.StreamResponse:
        return web.Response(body=wrong)

    async with site(serve) as url, resolving(desk, "http"):
        await ask(desk, "a", "http", {"url": f"{url}/a.yaml"})
        found: Object = yaml.safe_load(data_of(await desk.ended("a")))
    found["metadata"]["namespace"] = desk.namespace
    with pytest.raises(ApiError, match="dat"):
        await desk.cluster.client.create(found, dry_run=True, field_validation="Strict")


async def test_an_api_that_redirects_to_another_owner_is_no_way_around_a_policy(desk: Desk) -> None:
    evil = Seen(json.dumps([{"sha": "c" * 40}]).encode())
    params = {"org": "goodorg", "repo": "boxes", "pathInRepo": "box.yaml"}
    async with site(evil) as there:
        good = Seen(status=301, headers={"Location": f"{there}/api/v1/repos/evilorg/boxes/commits"})
        async with site(good) as url:
            await desk.configure("konverge-resolver-git", server_url=url, scm_type="gitea")
            policy = desk.policy("good", sources=[f"git+{url}/goodorg"], privateNetworks=["127.0.0.0/8"])
            async with policy, resolving(desk, "git"):
                await ask(desk, "a", "git", params)
                failure = await desk.failure("a")

    assert failure.reason == "Denied"
    assert f"git+{url}/goodorg/boxes.git leads to another place: no policy lets namespace" in failure.message
    assert f"fetch {there}/api/v1/repos/evilorg/boxes/commits by resolver git" in failure.message
    assert f"{desk.namespace}-good (it names other sources)" in failure.message
    assert (len(good.requests), evil.requests) == (1, [])


async def test_a_request_records_where_its_content_was_in_the_end(desk: Desk) -> None:
    async with (
        site(Seen(FILE)) as there,
        site(to(f"{there}/b")) as url,
        desk.policy("both", sources=[url, there], privateNetworks=["127.0.0.0/8"]),
        resolving(desk, "http"),
    ):
        await ask(desk, "a", "http", {"url": f"{url}/a"})
        await desk.ask_as_tekton("a", "http", {"url": f"{url}/a"})
        status = (await desk.ended("a"))["status"]
        tekton = (await desk.ended("a", TEKTON_REQUEST))["status"]

    assert (status["source"]["uri"], status["policySource"]) == (f"{url}/a", f"{there}/b")
    assert status["conditions"][0]["message"] == f"fetched from {url}/a, redirected to {there}/b"
    assert tekton["annotations"]["resolution.konverge.dev/policy-source"] == f"{there}/b"


async def test_no_secret_is_read_in_a_namespace_that_is_not_named_for_it(desk: Desk, sources: Sources) -> None:
    params = {"url": f"{sources.web_url}/task.yaml", **credentials(sources)}
    async with resolving(desk, "http", credentials_in=(f"{desk.namespace}-other",)):
        await ask(desk, "a", "http", params)
        failure = await desk.failure("a")
    assert failure.reason == "AuthRequired"
    assert f"reads none of namespace {desk.namespace}; --credentials {desk.namespace} of konverge" in failure.message
    assert sources.asked == []
    async with resolving(desk, "http", credentials_in=(desk.namespace,)):
        await ask(desk, "b", "http", params)
        assert data_of(await desk.ended("b")) == FILE


@pytest.mark.slow
async def test_tektons_own_configmaps_count_and_say_what_changes_nothing(desk: Desk, sources: Sources) -> None:
    url = sources.params["git"]["url"]
    await desk.configure("git-resolver-config", default_url=url, backoff_steps="2", api_token_secret_name="")
    params = {name: value for name, value in sources.params["git"].items() if name not in ("url", "revision")}
    async with resolving(desk, "git"):
        await desk.ask_as_tekton("a", "git", params)
        assert data_of(await desk.ended("a", TEKTON_REQUEST)) == FILE
        (event,) = await desk.until_events("git-resolver-config", "SettingsIgnored")

    assert event["note"].startswith("backoff-steps: ")
