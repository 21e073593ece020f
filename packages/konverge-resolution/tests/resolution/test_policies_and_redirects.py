"""Nothing is connected to before policy has decided: first requests, redirects, tokens, the next hub of a list.

What shows it is the log of the server that no policy names: it has heard nothing, and nobody has looked up its name.
"""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from konverge.clock import SeededEntropy, SystemClock
from konverge_resolution import Reason, Reference, ResolutionError, Resolver, Services
from konverge_resolution._internal.content_store import ContentStore
from konverge_resolution._internal.engine import Engine, EngineOptions, Requester, ResolutionResult
from konverge_resolution._internal.lock_file import LockFile
from konverge_resolution._internal.locked_resolver import LockedResolver
from konverge_resolution._internal.policy import Policy, PolicyDecision, SignatureRule
from konverge_resolution._internal.resolver_registry import ResolverRegistry
from konverge_resolution._internal.resolvers.bundles import BundlesResolver
from konverge_resolution._internal.resolvers.git import GitResolver
from konverge_resolution._internal.resolvers.http import HttpResolver
from konverge_resolution._internal.resolvers.hub import HubResolver
from konverge_resolution._internal.source_prefix import SourcePrefix
from konverge_resolution._internal.workspaces import TemporaryFolders
from konverge_resolution.network import GuardedHttp
from tests.resolution.bundles.sample_images import BUNDLE, build_task
from tests.resolution.bundles.test_pulling import layer_of
from tests.resolution.git.sample_repositories import Loopback, SampleRepositories, make_samples
from tests.resolution.http_resolution import TASK, Secrets
from tests.resolution.hub.fake_hubs import FakeHub, build_definition
from tests.resolution.network.http_servers import (
    FakeDns,
    RecordingHandler,
    RequestHandlerFunction,
    build_guarded_http,
    redirect_to,
    route_paths,
    serve_site,
)
from tests.resolution.servers.fake_registry import FakeRegistry, RegistryReply, fake_registry
from tests.resolution.servers.git import git_server

pytestmark = pytest.mark.anyio

STATUSES = (301, 302, 303, 307, 308)
COMMIT = "c" * 40
BOX = b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: evil}\n"
FILE = {"type": "file", "encoding": "base64", "size": len(BOX), "content": base64.b64encode(BOX).decode()}
PLAIN = {"allow-plain-http-credentials": "true"}


@pytest.fixture
def anyio_backend(anyio_backend: Any) -> Any:
    return "asyncio", {}  # servers and git take real time


@dataclass
class Unlisted:
    """A server that no policy names, by a name of its own; it counts connections, and answers to none."""

    port: int = 0
    connections: int = 0
    names: FakeDns = field(default_factory=lambda: FakeDns({"unlisted.test": [["127.0.0.1"]]}))

    @property
    def url(self) -> str:
        return f"http://unlisted.test:{self.port}"

    def http(self) -> GuardedHttp:
        return build_guarded_http(self.names)

    def is_untouched(self) -> bool:
        return self.connections == 0 and "unlisted.test" not in self.names.asked


@pytest.fixture
async def unlisted() -> AsyncIterator[Unlisted]:
    found = Unlisted()

    async def count(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        found.connections += 1
        writer.close()

    server = await asyncio.start_server(count, "127.0.0.1", 0)
    found.port = server.sockets[0].getsockname()[1]
    try:
        yield found
    finally:
        server.close()


def engine_of(
    resolver: Resolver,
    http: GuardedHttp,
    *sources: str,
    settings: Mapping[str, str] | None = None,
    secrets: Mapping[str, Mapping[str, str]] | None = None,
    folder: Path | None = None,
    policies: tuple[Policy, ...] | None = None,
) -> Engine:
    """An engine whose one policy names these sources."""

    def services_for(requester: Requester, admission: PolicyDecision) -> Services:
        workspaces: Any = None if folder is None else TemporaryFolders(SystemClock(), folder)
        return Services(http, Secrets(secrets or {}), workspaces, SystemClock(), addresses=Loopback())

    if policies is None:
        policies = (Policy("ours", sources=tuple(SourcePrefix.parse(source) for source in sources)),)
    return Engine(
        ResolverRegistry.of([resolver], {resolver.name: dict(settings or {})}),
        services_for,
        clock=SystemClock(),
        entropy=SeededEntropy(),
        options=EngineOptions(attempts=1),
        policies=policies,
    )


async def resolve(engine: Engine, params: Mapping[str, str]) -> ResolutionResult:
    (installed,) = engine.registry
    return await engine.resolve(Reference(installed.resolver.name, dict(params)), Requester("web"))


async def expect_denial(engine: Engine, params: Mapping[str, str]) -> str:
    with pytest.raises(ResolutionError) as caught:
        await resolve(engine, params)
    assert caught.value.reason is Reason.DENIED, caught.value
    return caught.value.message


# HTTP.


FIRST_SERVERS: dict[str, tuple[Resolver, dict[str, str], dict[str, str]]] = {
    "http": (HttpResolver(), {"url": "{url}/a"}, {}),
    "git": (GitResolver(), {"url": "{url}/boxes.git", "pathInRepo": "a"}, {}),
    "the API of a git server": (
        GitResolver(), {"repo": "boxes", "org": "team", "pathInRepo": "a"}, {"server-url": "{url}"},
    ),
    "a registry": (
        BundlesResolver(), {"bundle": "{host}/team/boxes", "name": "a"}, {"plain-http-registries": "{host}"},
    ),
    "a hub": (HubResolver(), {"name": "a", "version": "0.1.0", "type": "artifact"}, {"artifact-hub-urls": "{url}"}),
}  # fmt: skip


@pytest.mark.parametrize(("resolver", "params", "settings"), FIRST_SERVERS.values(), ids=FIRST_SERVERS)
async def test_an_unlisted_first_server_is_neither_looked_up_nor_connected_to(
    unlisted: Unlisted, tmp_path: Path, resolver: Resolver, params: dict[str, str], settings: dict[str, str]
) -> None:
    words = {"url": unlisted.url, "host": f"unlisted.test:{unlisted.port}"}
    params, settings = ({key: value.format(**words) for key, value in given.items()} for given in (params, settings))
    listed = [f"{scheme}://listed.test" for scheme in ("https", "git+https", "oci")]
    denied = engine_of(resolver, unlisted.http(), *listed, settings=settings, folder=tmp_path)
    assert "its policies are ours (it allows other sources)" in await expect_denial(denied, params)
    assert unlisted.is_untouched()
    free = engine_of(resolver, unlisted.http(), settings=settings, folder=tmp_path, policies=())
    with pytest.raises(ResolutionError):
        await resolve(free, params)
    assert unlisted.connections > 0


@pytest.mark.parametrize("status", STATUSES)
async def test_a_redirect_to_an_unlisted_server_is_refused_before_it_is_connected_to(
    unlisted: Unlisted, status: int
) -> None:
    async with serve_site(redirect_to(f"{unlisted.url}/b?token=hunter2", status)) as url:
        message = await expect_denial(engine_of(HttpResolver(), unlisted.http(), url), {"url": f"{url}/a"})
    assert unlisted.is_untouched()
    assert message == (
        f"{url}/a leads to another address: no policy allows namespace web to fetch {unlisted.url}/b "
        "with resolver http; its policies are ours (it allows other sources)"
    )


async def test_an_unlisted_server_between_two_listed_ones_gets_nothing() -> None:
    end, between = RecordingHandler(TASK), RecordingHandler()
    async with serve_site(end) as last:
        between = RecordingHandler(status=302, headers={"Location": f"{last}/c"})
        async with serve_site(between) as middle, serve_site(redirect_to(f"{middle}/b")) as first:
            await expect_denial(engine_of(HttpResolver(), build_guarded_http(), first, last), {"url": f"{first}/a"})
            assert (between.requests, end.requests) == ([], [])
            outcome = await resolve(
                engine_of(HttpResolver(), build_guarded_http(), first, middle, last), {"url": f"{first}/a"}
            )
    assert (outcome.resolved.data, len(between.requests), len(end.requests)) == (TASK, 1, 1)
    assert outcome.policy_source == f"{last}/c"


@pytest.mark.parametrize("location", ["../other/b", "/other/b", "/team/../other/b", "/team/%2e%2e/other/b"])
async def test_a_redirect_out_of_the_listed_part_of_a_server_is_refused(location: str) -> None:
    seen: list[str] = []

    async def serve(request: web.Request) -> web.StreamResponse:
        seen.append(request.path)
        return web.Response(status=302, headers={"Location": location}) if request.path == "/team/a" else web.Response()

    async with serve_site(serve) as url:
        await expect_denial(engine_of(HttpResolver(), build_guarded_http(), f"{url}/team"), {"url": f"{url}/team/a"})
    assert seen == ["/team/a"]


async def test_a_redirect_within_the_listed_part_of_a_server_is_followed() -> None:
    async with serve_site(route_paths(a=redirect_to("b"), b=RecordingHandler(TASK))) as url:
        outcome = await resolve(engine_of(HttpResolver(), build_guarded_http(), url), {"url": f"{url}/a"})
    assert (outcome.resolved.data, outcome.policies) == (TASK, ("ours",))


async def test_a_redirect_below_what_was_asked_for_is_judged_by_what_names_that_part() -> None:
    async with serve_site(route_paths(a=redirect_to("a/b"), **{"a/b": RecordingHandler(TASK)})) as url:
        whole = Policy("whole", sources=(SourcePrefix.parse(url),))
        part = Policy("part", sources=(SourcePrefix.parse(f"{url}/a/b"),), requires_digest=True)
        message = await expect_denial(
            engine_of(HttpResolver(), build_guarded_http(), policies=(whole, part)), {"url": f"{url}/a"}
        )
        outcome = await resolve(engine_of(HttpResolver(), build_guarded_http(), policies=(whole,)), {"url": f"{url}/a"})
    assert message == "policy part: requires a digest for the actual source of this content; add a digest"
    assert (outcome.resolved.data, outcome.policies) == (TASK, ("whole",))


async def test_a_listed_place_of_a_redirect_gets_no_credential_and_an_unlisted_one_nothing(unlisted: Unlisted) -> None:
    secrets = {"token": {"token": "hunter2"}}
    params = {"http-token-secret": "token"}
    listed = RecordingHandler(TASK)
    async with (
        serve_site(listed) as other,
        serve_site(route_paths(a=redirect_to(f"{other}/b"), c=redirect_to(f"{unlisted.url}/b"))) as url,
    ):
        engine = engine_of(HttpResolver(), unlisted.http(), url, other, settings=PLAIN, secrets=secrets)
        await resolve(engine, {"url": f"{url}/a", **params})
        assert "hunter2" not in await expect_denial(engine, {"url": f"{url}/c", **params})
    assert "Authorization" not in listed.requests[0].headers
    assert unlisted.is_untouched()


async def test_without_policies_a_redirect_is_followed_and_recorded() -> None:
    async with serve_site(RecordingHandler(TASK)) as other, serve_site(redirect_to(f"{other}/b")) as url:
        outcome = await resolve(engine_of(HttpResolver(), build_guarded_http(), policies=()), {"url": f"{url}/a"})
    assert (outcome.resolved.source.uri, outcome.policy_source) == (f"{url}/a", f"{other}/b")


async def test_where_a_redirect_led_is_locked_and_judged_without_a_connection(tmp_path: Path) -> None:
    def locked(engine: Engine, lock: LockFile, *, offline: bool) -> LockedResolver:
        return LockedResolver(engine, lock, contents, is_offline=offline, may_add=not offline)

    contents = await asyncio.to_thread(ContentStore, tmp_path)
    async with serve_site(RecordingHandler(TASK)) as other, serve_site(redirect_to(f"{other}/b")) as url:
        reference = Reference("http", {"url": f"{url}/a"})
        adding = locked(engine_of(HttpResolver(), build_guarded_http(), policies=()), LockFile(), offline=False)
        await adding.resolve(reference, Requester("web"))
    lock = LockFile.parse(adding.lock.serialize().encode(), file="a.lock")
    assert [entry.found_at for entry in lock] == [f"{other}/b"]
    both = locked(engine_of(HttpResolver(), build_guarded_http(), url, other), lock, offline=True)
    assert (await both.resolve(reference, Requester("web"))).policy_source == f"{other}/b"
    only = locked(engine_of(HttpResolver(), build_guarded_http(), url), lock, offline=True)
    with pytest.raises(ResolutionError, match=f"{url}/a leads to another address: no policy"):
        await only.resolve(reference, Requester("web"))


# The API of a git server.


def api(
    org: str, type_: str, seen: list[str], *, moved: Callable[[str], str | None] = lambda path: None
) -> RequestHandlerFunction:
    """Answers for repositories of one owner; what `moved` gives for a path is where it redirects to."""

    async def serve(request: web.Request) -> web.StreamResponse:
        path = request.raw_path
        seen.append(path)
        if target := moved(path):
            return web.Response(status=301, headers={"Location": target})
        assert org in path
        if "/contents/" in path or "/files/" in path:
            return web.json_response({**FILE})
        found: Any = {"github": COMMIT, "gitlab": {"id": COMMIT}, "gitea": [{"sha": COMMIT}]}[type_]
        return web.Response(text=found) if isinstance(found, str) else web.json_response(found)

    return serve


def elsewhere(path: str, base: str = "") -> str | None:
    return f"{base}{path.replace('goodorg', 'evilorg')}" if "goodorg" in path else None


def of_api(url: str, type_: str) -> tuple[dict[str, str], dict[str, str]]:
    """Parameters, and settings."""
    params = {"org": "goodorg", "repo": "boxes", "pathInRepo": "box.yaml", "scmType": type_, "serverURL": url}
    return params, {"server-url": url, "scm-type": type_}


@pytest.mark.parametrize("type_", ["github", "gitlab", "gitea"])
async def test_an_api_that_redirects_to_another_repository_of_its_server_is_judged_by_that_one(type_: str) -> None:
    seen: list[str] = []
    async with serve_site(api("evilorg", type_, seen, moved=elsewhere)) as url:
        params, settings = of_api(url, type_)
        engine = engine_of(GitResolver(), build_guarded_http(), f"git+{url}/goodorg", settings=settings)
        message = await expect_denial(engine, params)
        assert not [path for path in seen if "evilorg" in path]
        assert f"git+{url}/goodorg/boxes leads to another address: no policy" in message
        assert f"fetch git+{url}/evilorg/boxes with resolver git; its policies are ours" in message
        both = engine_of(
            GitResolver(), build_guarded_http(), f"git+{url}/goodorg", f"git+{url}/evilorg", settings=settings
        )
        outcome = await resolve(both, params)
    assert outcome.resolved.data == BOX
    assert outcome.resolved.source.uri == f"git+{url}/evilorg/boxes.git"
    assert outcome.resolved.annotations["org"] == "evilorg"


@pytest.mark.parametrize("type_", ["github", "gitlab", "gitea"])
async def test_an_api_that_redirects_to_an_unlisted_server_does_not_get_there(unlisted: Unlisted, type_: str) -> None:
    async with serve_site(api("", type_, [], moved=lambda path: elsewhere(path, unlisted.url))) as url:
        params, settings = of_api(url, type_)
        engine = engine_of(GitResolver(), unlisted.http(), f"git+{url}/goodorg", settings=settings)
        message = await expect_denial(engine, params)
    assert unlisted.is_untouched()
    assert f"fetch {unlisted.url}/api/" in message


@pytest.mark.parametrize("type_", ["github", "gitlab", "gitea"])
async def test_a_path_of_another_server_is_no_repository_of_it(unlisted: Unlisted, type_: str) -> None:
    """It need not be a server of that kind: there, the path of an API may be anybody's."""

    def moved(path: str) -> str:
        return f"{unlisted.url}{path}"

    async with serve_site(api("", type_, [], moved=moved)) as url:
        params, settings = of_api(url, type_)
        sources = (f"git+{url}/goodorg", f"git+{unlisted.url}/goodorg")
        message = await expect_denial(engine_of(GitResolver(), unlisted.http(), *sources, settings=settings), params)
    assert unlisted.is_untouched()
    assert f"fetch {unlisted.url}/api/" in message


async def test_the_call_for_the_file_is_judged_as_the_one_for_the_commit_is(unlisted: Unlisted) -> None:
    def moved(path: str) -> str | None:
        return f"{unlisted.url}/raw" if "/contents/" in path else None

    async with serve_site(api("goodorg", "gitea", [], moved=moved)) as url:
        params, settings = of_api(url, "gitea")
        engine = engine_of(GitResolver(), unlisted.http(), f"git+{url}/goodorg", settings=settings)
        assert f"fetch {unlisted.url}/raw with resolver git" in await expect_denial(engine, params)
    assert unlisted.is_untouched()


async def test_a_redirect_to_a_number_is_judged_by_its_url_and_recorded_as_it() -> None:
    """GitHub answers so for a repository that was renamed."""

    def moved(path: str) -> str | None:
        return f"/api/v3/repositories/7/{path.split('/', 6)[6]}" if "goodorg" in path else None

    async with serve_site(api("repositories/7", "github", [], moved=moved)) as url:
        params, settings = of_api(url, "github")
        only = engine_of(GitResolver(), build_guarded_http(), f"git+{url}/goodorg", settings=settings)
        assert f"fetch {url}/api/v3/repositories/7/commits/main with resolver git" in await expect_denial(only, params)
        number = f"{url}/api/v3/repositories/7"
        engine = engine_of(GitResolver(), build_guarded_http(), f"git+{url}/goodorg", number, settings=settings)
        outcome = await resolve(engine, params)
        assert outcome.resolved.source.uri == f"{number}/contents/box.yaml"
        free = await resolve(engine_of(GitResolver(), build_guarded_http(), policies=(), settings=settings), params)
    assert free.resolved.source.uri == f"{number}/contents/box.yaml"


@pytest.mark.parametrize(
    "path",
    [
        "/api/v1/repos/goodorg/boxes/../../evilorg/boxes/contents/a",
        "/api/v1/repos/goodorg/boxes/..%2f..%2fevilorg/boxes/contents/a",
        "/api/v1/repos/goodorg%2f..%2fevilorg/boxes/contents/a",
        "/api/v1//repos/goodorg/boxes/contents/a",
        "/other/api/v1/repos/goodorg/boxes/contents/a",
    ],
)
async def test_a_url_of_an_api_that_can_be_read_in_two_ways_names_no_repository(path: str) -> None:
    seen: list[str] = []
    async with serve_site(api("goodorg", "gitea", seen, moved=lambda asked: None if asked == path else path)) as url:
        params, settings = of_api(url, "gitea")
        await expect_denial(
            engine_of(GitResolver(), build_guarded_http(), f"git+{url}/goodorg", settings=settings), params
        )
    assert len(seen) == 1


# git itself.


@pytest.fixture(scope="session")
def repositories(tmp_path_factory: pytest.TempPathFactory) -> SampleRepositories:
    return make_samples(tmp_path_factory.mktemp("redirected"))


@pytest.mark.slow
@pytest.mark.parametrize("part", ["info/refs", "git-upload-pack"])
@pytest.mark.parametrize("status", [301, 307])
async def test_git_follows_no_redirect(
    repositories: SampleRepositories, tmp_path: Path, part: str, status: int
) -> None:
    with git_server(repositories.root) as other, git_server(repositories.root) as asked:
        asked.moves[part] = (status, other.url("").rstrip("/"))
        engine = engine_of(GitResolver(), build_guarded_http(), f"git+{asked.url('')}", folder=tmp_path)
        with pytest.raises(ResolutionError, match="redirects to another address; ") as failure:
            await resolve(engine, {"url": asked.url("boxes.git"), "pathInRepo": "box.yaml"})
        assert failure.value.reason is Reason.DENIED
        assert asked.seen
        assert other.seen == []


# Registries.


@pytest.fixture
def registry() -> Any:
    with fake_registry() as found:
        found.push("team/boxes", "1", *BUNDLE)
        yield found


def of_registry(registry: FakeRegistry, unlisted: Unlisted, *sources: str) -> tuple[Engine, dict[str, str]]:
    name = registry.name()
    unlisted.names = FakeDns({"registry.test": [["127.0.0.1"]], "unlisted.test": [["127.0.0.1"]]})
    listed = (f"oci://{name}/team", *sources)
    engine = engine_of(BundlesResolver(), unlisted.http(), *listed, settings={"plain-http-registries": name})
    return engine, {"bundle": f"{name}/team/boxes:1", "name": "build"}


@pytest.mark.parametrize("method", ["HEAD", "GET"])
@pytest.mark.parametrize("status", STATUSES)
async def test_a_redirect_of_a_manifest_or_of_its_head_is_judged(
    registry: FakeRegistry, unlisted: Unlisted, method: str, status: int
) -> None:
    target = f"{unlisted.url}/v2/team/boxes/manifests/1"
    served = registry.reply

    def reply(request: Any) -> RegistryReply:
        if request.method == method and "/manifests/" in request.path:
            return RegistryReply(status, b"", {"Location": target})
        return served(request)

    registry.reply = reply  # type: ignore[method-assign]
    engine, params = of_registry(registry, unlisted)
    message = await expect_denial(engine, params)
    assert f"fetch oci://unlisted.test:{unlisted.port}/team/boxes with resolver bundles" in message
    assert unlisted.is_untouched()


async def test_a_blob_elsewhere_is_got_only_from_a_listed_place(registry: FakeRegistry, unlisted: Unlisted) -> None:
    digest = layer_of(BUNDLE[0])
    engine, params = of_registry(registry, unlisted)
    registry.replies[digest] = RegistryReply(307, b"", {"Location": f"{unlisted.url}/stored?signature=hunter2"})
    assert f"fetch {unlisted.url}/stored with resolver bundles" in await expect_denial(engine, params)
    assert unlisted.is_untouched()
    async with serve_site(RecordingHandler(registry.blobs[digest])) as store:
        registry.replies[digest] = RegistryReply(307, b"", {"Location": f"{store}/stored"})
        await expect_denial(engine, params)
        engine, params = of_registry(registry, unlisted, store)
        assert (await resolve(engine, params)).resolved.data == build_task("build")


async def test_a_tag_that_leads_to_another_repository_of_its_registry_is_judged_by_that_one(
    registry: FakeRegistry, unlisted: Unlisted
) -> None:
    registry.push("evil/boxes", "1", *BUNDLE)
    registry.replies["/v2/team/boxes/manifests/1"] = RegistryReply(302, b"", {"Location": "/v2/evil/boxes/manifests/1"})
    engine, params = of_registry(registry, unlisted)
    assert f"fetch oci://{registry.name()}/evil/boxes with resolver bundles" in await expect_denial(engine, params)
    assert registry.count("GET", "/evil/") + registry.count("HEAD", "/evil/") == 0


@pytest.mark.parametrize("method", ["GET", "HEAD"])
async def test_a_manifest_of_another_listed_repository_is_recorded_and_judged_as_of_that_one(
    registry: FakeRegistry, unlisted: Unlisted, method: str
) -> None:
    registry.push("other/boxes", "1", *BUNDLE)
    served = registry.reply

    def reply(request: Any) -> RegistryReply:
        if request.method in (method, "GET") and "/v2/team/boxes/manifests/" in request.path:
            return RegistryReply(302, b"", {"Location": request.path.replace("/team/", "/other/")})
        return served(request)

    registry.reply = reply  # type: ignore[method-assign]
    name = registry.name()
    engine, params = of_registry(registry, unlisted, f"oci://{name}/other")
    outcome = await resolve(engine, params)
    assert outcome.resolved.data == build_task("build")
    assert outcome.policy_source == f"oci://{name}/other/boxes"
    strict = Policy(
        "strict", sources=(SourcePrefix.parse(f"oci://{name}/other"),), signature=SignatureRule(keys=("k",))
    )
    engine.policies = (*engine.policies, strict)
    with pytest.raises(ResolutionError, match="requires a signature"):
        await resolve(engine, params)


async def test_a_registry_with_tls_is_not_one_without_it_on_the_same_port(
    registry: FakeRegistry, unlisted: Unlisted
) -> None:
    engine, params = of_registry(registry, unlisted, "oci://unlisted.test/team")
    target = "http://unlisted.test:443/v2/team/boxes/manifests/1"
    registry.replies["/v2/team/boxes/manifests/1"] = RegistryReply(302, b"", {"Location": target})
    assert f"fetch {target} with resolver bundles" in await expect_denial(engine, params)
    assert unlisted.is_untouched()


async def test_tokens_are_asked_for_at_the_registry_itself_or_at_a_listed_place(
    registry: FakeRegistry, unlisted: Unlisted
) -> None:
    engine, params = of_registry(registry, unlisted)
    registry.realm = f"{unlisted.url}/token"
    assert f"fetch {unlisted.url}/token with resolver bundles" in await expect_denial(engine, params)
    assert unlisted.is_untouched()
    registry.realm = f"http://{registry.name()}/token"
    assert (await resolve(engine, params)).resolved.data == build_task("build")
    async with serve_site(RecordingHandler(json.dumps({"token": "a-token"}).encode())) as realm:
        registry.realm = f"{realm}/token"
        engine, params = of_registry(registry, unlisted, realm)
        assert (await resolve(engine, params)).resolved.data == build_task("build")


async def test_a_redirect_of_the_place_of_tokens_is_judged_too(registry: FakeRegistry, unlisted: Unlisted) -> None:
    registry.realm = f"http://{registry.name()}/token"
    registry.replies["/token"] = RegistryReply(307, b"", {"Location": f"{unlisted.url}/token"})
    engine, params = of_registry(registry, unlisted)
    assert f"fetch {unlisted.url}/token with resolver bundles" in await expect_denial(engine, params)
    assert unlisted.is_untouched()


# Hubs.


def of_hub(*hubs: str) -> dict[str, str]:
    return {"artifact-hub-urls": ", ".join(hubs)}


@pytest.mark.parametrize("version", ["0.7", ">=0.1"])
async def test_a_hub_that_redirects_to_an_unlisted_place_does_not_get_there(unlisted: Unlisted, version: str) -> None:
    async with serve_site(redirect_to(f"{unlisted.url}/evil")) as hub:
        engine = engine_of(HubResolver(), unlisted.http(), hub, settings=of_hub(hub))
        assert f"fetch {unlisted.url}/evil with resolver hub" in await expect_denial(
            engine, {"name": "build", "version": version}
        )
    assert unlisted.is_untouched()


async def test_the_next_hub_of_a_list_is_asked_only_if_it_is_listed(unlisted: Unlisted) -> None:
    named = {"name": "build", "version": "0.7"}
    async with serve_site(RecordingHandler(status=503)) as down, serve_site(FakeHub()) as up:
        engine = engine_of(HubResolver(), unlisted.http(), down, settings=of_hub(down, unlisted.url, up))
        assert f"fetch {unlisted.url}/api/v1/packages/" in await expect_denial(engine, named)
        assert unlisted.is_untouched()
        engine = engine_of(HubResolver(), unlisted.http(), down, up, settings=of_hub(down, up))
        assert (await resolve(engine, named)).resolved.data == build_definition("0.7.0")
