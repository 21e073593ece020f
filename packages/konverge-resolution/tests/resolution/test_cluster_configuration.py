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
from konverge_resolution._internal.resolvers import STANDARD, load_resolvers
from konverge_resolution.requests import REQUEST, TEKTON_REQUEST
from tests.resolution.network.http_servers import RecordingHandler, redirect_to, serve_site
from tests.resolution.requests.request_namespace import (
    EMBEDDED,
    POLICY,
    RequestNamespace,
    create_request_namespace,
    decode_data,
)
from tests.resolution.source_servers import FILE, SourceServers, build_secret, serve_all_sources

pytestmark = [pytest.mark.anyio, pytest.mark.real_time]

TASK = GroupVersionKind("tekton.dev", "v1", "Task")


@pytest.fixture
async def desk(cluster: Any) -> RequestNamespace:
    return await create_request_namespace(cluster, with_tekton=True)


@pytest.fixture
async def sources(desk: RequestNamespace, tmp_path: Path) -> AsyncIterator[SourceServers]:
    async with serve_all_sources(desk, tmp_path) as found:
        yield found


@asynccontextmanager
async def resolving(desk: RequestNamespace, *names: str, **more: Any) -> AsyncIterator[None]:
    """The resolvers with all that a cluster gives them."""
    resolvers = load_resolvers(names or STANDARD)
    async with desk.running_resolvers(*resolvers, serves_tekton=True, services_for=None, **more):
        yield


async def ask(desk: RequestNamespace, name: str, resolver: str, params: dict[str, str], namespace: str = "") -> None:
    await desk.cluster.client.create(
        {
            "apiVersion": REQUEST.api_version,
            "kind": REQUEST.kind,
            "metadata": {"name": name, "namespace": namespace or desk.namespace},
            "spec": {"resolver": resolver, "params": params},
        }
    )


@pytest.mark.slow
async def test_all_five_sources_answer_our_requests_and_tektons(desk: RequestNamespace, sources: SourceServers) -> None:
    async with resolving(desk):
        for resolver, params in sources.params.items():
            await ask(desk, f"own-{resolver}", resolver, params)
            await desk.create_tekton_request(f"tekton-{resolver}", resolver, params)
        own = {resolver: await desk.wait_until_ended(f"own-{resolver}") for resolver in sources.params}
        tekton = {
            resolver: await desk.wait_until_ended(f"tekton-{resolver}", TEKTON_REQUEST) for resolver in sources.params
        }

    for ended in (own, tekton):
        assert {each: request["status"]["conditions"][0].get("message", "") for each, request in ended.items()
                if request["status"]["conditions"][0]["status"] != "True"} == {}  # fmt: skip
        for resolver, content in sources.content.items():
            assert decode_data(ended[resolver]) == content
        assert yaml.safe_load(decode_data(ended["cluster"]))["metadata"]["name"] == "build"
    for resolver, request in tekton.items():
        record = request["status"]["refSource"]
        assert record["uri"] == own[resolver]["status"]["source"]["uri"]
        assert record["digest"], resolver
    # The path of an object is Tekton's form; what a policy calls it stands beside it in ours.
    named = {each: request["status"].get("policySource") for each, request in own.items()}
    assert named == dict.fromkeys(own) | {"cluster": f"cluster://{desk.namespace}/task/build"}
    assert f"named by policies as {named['cluster']}" in own["cluster"]["status"]["conditions"][0]["message"]
    assert tekton["git"]["status"]["refSource"]["uri"].startswith("git+http://127.0.0.1:")
    assert tekton["git"]["status"]["refSource"]["entryPoint"] == "task.yaml"
    # Two requests for the same, of one user: what a name stands for was asked once or twice, the content once.
    assert sources.registry.count("GET", "/blobs/") == 1


@pytest.mark.slow
@EMBEDDED
async def test_what_one_namespace_may_fetch_another_does_not_get_from_the_cache(
    desk: RequestNamespace, sources: SourceServers
) -> None:
    other = f"{desk.namespace}-other"
    await desk.cluster.client.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": other}})
    digest = next(name for _, name in sources.registry.manifests if name.startswith("sha256:"))
    repository = f"127.0.0.1:{sources.registry.port}/team/tasks"
    params = {**sources.params["bundles"], "bundle": f"{repository}@{digest}"}
    without = {name: value for name, value in params.items() if name != "secret"}
    await desk.cluster.client.create(build_secret("oci-credentials", other, {"a": b"b"}))
    both = RunOptions(namespaces=(desk.namespace, other))
    async with (
        desk.policy("others", namespaces=[other], privateNetworks=["127.0.0.0/8"]),
        resolving(desk, "bundles", options=both),
    ):
        await ask(desk, "mine", "bundles", params)
        assert decode_data(await desk.wait_until_ended("mine"))
        fetched = sources.registry.count("GET", "/blobs/")
        await ask(desk, "again", "bundles", params)
        assert (await desk.wait_until_ended("again"))["status"]["fetchedFrom"] == "cache"
        reasons = []
        for name, theirs in {"same": params, "without": without}.items():
            await ask(desk, name, "bundles", theirs, other)
            reasons.append(await wait_for_failure(desk, ObjectKey(other, name)))

    assert reasons == ["AuthRequired", "AuthRequired"]
    assert sources.registry.count("GET", "/blobs/") == fetched == 1


async def wait_for_failure(desk: RequestNamespace, key: ObjectKey) -> str:
    """The reason why a request of any namespace has failed, as soon as it has."""

    async def found() -> str | None:
        status = (await desk.cluster.client.get(REQUEST, key)).get("status", {})
        (condition,) = status.get("conditions") or [{"status": "Unknown"}]
        return condition["reason"] if condition["status"] == "False" else None

    return await desk.cluster.eventually(found, describe=f"{key} fails")


@pytest.mark.slow
@EMBEDDED
async def test_what_the_operator_says_of_the_cache_wins_over_the_request(
    desk: RequestNamespace, sources: SourceServers
) -> None:
    await desk.set_config_map("konverge-resolution", cache_mode="never")
    params = {**sources.params["bundles"], "cache": "always"}
    async with resolving(desk, "bundles"):
        for name in ("first", "second"):
            await ask(desk, name, "bundles", params)
            assert (await desk.wait_until_ended(name))["status"]["fetchedFrom"] == "remote"
        await desk.set_config_map("konverge-resolution", cache_mode="always")
        never = {**params, "cache": "never"}

        async def is_remembered() -> bool:
            return await find_fetch_source(desk, never) == "cache"

        await desk.cluster.eventually(is_remembered, describe="the change counts")

    assert sources.registry.count("GET", "/blobs/") >= 3


async def find_fetch_source(desk: RequestNamespace, params: dict[str, str]) -> str:
    """Where one more request for these gets its content from."""
    listed = await desk.cluster.client.list(REQUEST, namespace=desk.namespace)
    name = f"request-{len(listed.items)}"
    await ask(desk, name, "bundles", params)
    return str((await desk.wait_until_ended(name))["status"]["fetchedFrom"])


@pytest.mark.slow
async def test_a_policy_that_changes_counts_for_the_next_request(
    desk: RequestNamespace, sources: SourceServers
) -> None:
    params = {"url": f"{sources.web_url}/task.yaml", **credentials(sources)}
    key = ObjectKey("", f"{desk.namespace}-loopback")
    async with resolving(desk, "http"):
        await ask(desk, "before", "http", params)
        assert decode_data(await desk.wait_until_ended("before")) == FILE
        asked = len(sources.asked)
        await desk.cluster.client.patch(
            POLICY, key, {"spec": {"sources": ["https://good.example"]}}, patch_type="merge"
        )

        async def is_denied() -> bool:
            number = len((await desk.cluster.client.list(REQUEST, namespace=desk.namespace)).items)
            await ask(desk, f"after-{number}", "http", params)
            (condition,) = (await desk.wait_until_ended(f"after-{number}"))["status"]["conditions"]
            return bool(condition["status"] == "False" and condition["reason"] == "Denied")

        await desk.cluster.eventually(is_denied, 5 + desk.late_seconds, describe="the policy counts")
    # The first one that was refused was refused before anybody was asked; from the cache it did not come either.
    assert len(sources.asked) <= asked + 2


def credentials(sources: SourceServers) -> dict[str, str]:
    return {name: value for name, value in sources.params["http"].items() if name != "url"}


@pytest.mark.slow
@EMBEDDED
async def test_a_host_that_hangs_holds_up_nobody_else(desk: RequestNamespace, sources: SourceServers) -> None:
    hanging = asyncio.Event()

    async def hang(request: web.BaseRequest) -> web.StreamResponse:
        await hanging.wait()
        return web.Response()

    async with AsyncExitStack() as stack:
        dead = await stack.enter_async_context(serve_site(hang))
        stack.callback(hanging.set)
        await stack.enter_async_context(resolving(desk, "http"))
        for number in range(20):
            await ask(desk, f"hung-{number}", "http", {"url": f"{dead}/{number}"})
        for number in range(50):
            url = f"{sources.web_url}/{number}"
            await ask(desk, f"good-{number}", "http", {"url": url, **credentials(sources)})
        for number in range(50):
            assert decode_data(await desk.wait_until_ended(f"good-{number}")) == FILE
        states = [await desk.condition(f"hung-{number}") for number in range(20)]

    assert all(state is not None and state.reason == "ResolutionInProgress" for state in states)


@pytest.mark.slow
async def test_a_field_that_the_kind_does_not_have_is_named_where_the_definition_is_used(
    desk: RequestNamespace, sources: SourceServers
) -> None:
    """The protocol does not know kinds; the server does, and is asked before anything is made of a definition."""
    wrong = b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndat: {a: b}\n"

    async def serve(request: web.BaseRequest) -> web.StreamResponse:
        return web.Response(body=wrong)

    async with serve_site(serve) as url, resolving(desk, "http"):
        await ask(desk, "a", "http", {"url": f"{url}/a.yaml"})
        found: Object = yaml.safe_load(decode_data(await desk.wait_until_ended("a")))
    found["metadata"]["namespace"] = desk.namespace
    with pytest.raises(ApiError, match="dat"):
        await desk.cluster.client.create(found, dry_run=True, field_validation="Strict")


async def test_an_api_that_redirects_to_another_owner_is_no_way_around_a_policy(desk: RequestNamespace) -> None:
    evil = RecordingHandler(json.dumps([{"sha": "c" * 40}]).encode())
    params = {"org": "goodorg", "repo": "boxes", "pathInRepo": "box.yaml"}
    async with serve_site(evil) as there:
        good = RecordingHandler(status=301, headers={"Location": f"{there}/api/v1/repos/evilorg/boxes/commits"})
        async with serve_site(good) as url:
            await desk.set_config_map("konverge-resolver-git", server_url=url, scm_type="gitea")
            policy = desk.policy("good", sources=[f"git+{url}/goodorg"], privateNetworks=["127.0.0.0/8"])
            async with policy, resolving(desk, "git"):
                await ask(desk, "a", "git", params)
                failure = await desk.wait_for_failure("a")

    assert failure.reason == "Denied"
    assert f"git+{url}/goodorg/boxes leads to another address: no policy allows namespace" in failure.message
    assert f"fetch {there}/api/v1/repos/evilorg/boxes/commits with resolver git" in failure.message
    assert f"{desk.namespace}-good (it allows other sources)" in failure.message
    assert (len(good.requests), evil.requests) == (1, [])


async def test_a_request_records_where_its_content_was_in_the_end(desk: RequestNamespace) -> None:
    async with (
        serve_site(RecordingHandler(FILE)) as there,
        serve_site(redirect_to(f"{there}/b")) as url,
        desk.policy("both", sources=[url, there], privateNetworks=["127.0.0.0/8"]),
        resolving(desk, "http"),
    ):
        await ask(desk, "a", "http", {"url": f"{url}/a"})
        await desk.create_tekton_request("a", "http", {"url": f"{url}/a"})
        status = (await desk.wait_until_ended("a"))["status"]
        tekton = (await desk.wait_until_ended("a", TEKTON_REQUEST))["status"]

    assert (status["source"]["uri"], status["policySource"]) == (f"{url}/a", f"{there}/b")
    assert status["conditions"][0]["message"] == f"fetched from {url}/a, redirected to {there}/b"
    assert tekton["annotations"]["resolution.konverge.dev/policy-source"] == f"{there}/b"


@pytest.mark.slow
async def test_no_secret_is_read_in_a_namespace_that_is_not_named_for_it(
    desk: RequestNamespace, sources: SourceServers
) -> None:
    params = {"url": f"{sources.web_url}/task.yaml", **credentials(sources)}
    async with resolving(desk, "http", credentials_in=(f"{desk.namespace}-other",)):
        await ask(desk, "a", "http", params)
        failure = await desk.wait_for_failure("a")
    assert failure.reason == "AuthRequired"
    assert f"must not read Secrets of namespace {desk.namespace}" in failure.message
    assert f"allow it with konverge resolvers package --credentials {desk.namespace}" in failure.message
    assert sources.asked == []
    async with resolving(desk, "http", credentials_in=(desk.namespace,)):
        await ask(desk, "b", "http", params)
        assert decode_data(await desk.wait_until_ended("b")) == FILE


@pytest.mark.slow
async def test_tektons_own_configmaps_count_and_say_what_changes_nothing(
    desk: RequestNamespace, sources: SourceServers
) -> None:
    url = sources.params["git"]["url"]
    await desk.set_config_map("git-resolver-config", default_url=url, backoff_steps="2", api_token_secret_name="")
    params = {name: value for name, value in sources.params["git"].items() if name not in ("url", "revision")}
    async with resolving(desk, "git"):
        await desk.create_tekton_request("a", "git", params)
        assert decode_data(await desk.wait_until_ended("a", TEKTON_REQUEST)) == FILE
        (event,) = await desk.wait_for_events("git-resolver-config", "SettingsIgnored")

    assert event["note"].startswith("backoff-steps: ")
