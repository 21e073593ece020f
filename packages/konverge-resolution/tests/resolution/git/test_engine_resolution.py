"""The git resolver behind the engine: policies before connections, configurations, the cache, deadlines, retries."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from konverge.clock import SeededEntropy, SystemClock
from konverge_resolution import Reason, Reference, ResolutionError, Services
from konverge_resolution._internal.address_resolver import GuardedAddressResolver
from konverge_resolution._internal.engine import Engine, EngineOptions, Requester, ResolutionResult
from konverge_resolution._internal.policy import Policy, PolicyDecision
from konverge_resolution._internal.resolver_registry import ResolverRegistry
from konverge_resolution._internal.resolvers.git import GitResolver
from konverge_resolution._internal.source_prefix import SourcePrefix
from konverge_resolution._internal.workspaces import TemporaryFolders
from konverge_resolution.network import AllowedNetworks
from tests.resolution.git.sample_repositories import Loopback, SampleRepositories, Secrets, list_files
from tests.resolution.git.test_scm import COMMIT, Api, Reply
from tests.resolution.http_resolution import QuickClock
from tests.resolution.servers.git import GitServer
from tests.resolution.servers.git_faults import fault_server

pytestmark = pytest.mark.anyio


def engine_of(folder: Path, data: Mapping[str, str] | None = None, http: Any = None, **more: Any) -> Engine:
    clock = more.pop("clock", None) or QuickClock()
    folders = TemporaryFolders(SystemClock(), folder)

    def services_for(requester: Requester, admission: PolicyDecision) -> Services:
        return Services(http, Secrets(), folders, clock, addresses=Loopback())

    registry = ResolverRegistry.of([GitResolver()], {"git": dict(data or {})})
    return Engine(registry, services_for, clock=clock, entropy=SeededEntropy(), **more)


async def resolve_file(engine: Engine, params: Mapping[str, str], namespace: str = "web") -> ResolutionResult:
    return await engine.resolve(Reference("git", dict(params)), Requester(namespace))


async def expect_resolution_error(engine: Engine, params: Mapping[str, str], namespace: str = "web") -> ResolutionError:
    with pytest.raises(ResolutionError) as caught:
        await resolve_file(engine, params, namespace)
    return caught.value


async def test_a_branch_that_is_known_costs_one_question_and_a_commit_none(
    server: GitServer, samples: SampleRepositories, folder: Path
) -> None:
    engine = engine_of(folder)
    params = {"url": server.url("boxes.git"), "pathInRepo": "box.yaml"}
    first = await resolve_file(engine, params)
    server.reset_counters()
    again = await resolve_file(engine, params)
    assert [seen.path.rpartition("/")[2] for seen in server.seen] == ["refs?service=git-upload-pack", "git-upload-pack"]
    pinned = await resolve_file(engine, {**params, "revision": samples.commit})
    assert len(server.seen) == 2
    assert first.resolved.data == again.resolved.data == pinned.resolved.data
    assert [outcome.fetched_from for outcome in (first, again, pinned)] == ["remote", "cache", "cache"]


@pytest.mark.parametrize(("revision", "hint"), [("mian", "; did you mean 'main'?"), ("nothing-like-it", "")])
async def test_a_missing_branch_costs_one_more_request(
    server: GitServer, folder: Path, revision: str, hint: str
) -> None:
    params = {"url": server.url("boxes.git"), "pathInRepo": "box.yaml", "revision": revision}
    server.reset_counters()
    error = await expect_resolution_error(engine_of(folder), params)
    assert (error.reason, error.message.endswith(hint)) == (Reason.NOT_FOUND, True)
    assert [seen.path.rpartition("/")[2] for seen in server.seen].count("refs?service=git-upload-pack") == 2


async def test_a_repository_above_the_limit_is_fetched_once(server: GitServer, folder: Path) -> None:
    engine = engine_of(folder, {"max-repository-bytes": "1000"})
    params = {"url": server.url("boxes.git"), "pathInRepo": "box.yaml"}
    server.reset_counters()
    error = await expect_resolution_error(engine, params)
    paths = [seen.path.rpartition("/")[2] for seen in server.seen]
    assert (error.reason, paths.count("refs?service=git-upload-pack")) == (Reason.TOO_LARGE, 2)


@pytest.mark.slow
async def test_sets_of_settings_are_chosen_by_name(server: GitServer, folder: Path) -> None:
    url = server.url("boxes.git")
    engine = engine_of(folder, {"default.default-url": url, "old.default-url": url, "old.default-revision": "v1"})
    default = await resolve_file(engine, {"pathInRepo": "box.yaml"})
    old = await resolve_file(engine, {"pathInRepo": "box.yaml", "configKey": "old"})
    assert [outcome.object["metadata"]["name"] for outcome in (default, old)] == ["b", "a"]
    unknown = await expect_resolution_error(engine, {"pathInRepo": "box.yaml", "configKey": "new"})
    assert unknown.reason is Reason.INVALID_PARAMETERS


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "changed", "namespace"),
    [
        ("host", {"url": "http://other.test/boxes.git"}, "web"),
        ("repository", {"url": "{server}/boxes.git-evil"}, "web"),
        ("branch", {"revision": "v2"}, "web"),
        ("commit", {"revision": "0" * 40}, "web"),
        ("path", {"pathInRepo": "secret/box.yaml"}, "web"),
        ("spelling of a path", {"pathInRepo": "deep/../secret/box.yaml"}, "web"),
        ("namespace", {}, "elsewhere"),
    ],
)
async def test_what_no_policy_allows_reaches_no_server(
    server: GitServer, samples: SampleRepositories, folder: Path, name: str, changed: Mapping[str, str], namespace: str
) -> None:
    origin = server.url("").rstrip("/")
    policies = [
        Policy(
            "boxes",
            namespaces=("web",),
            sources=(SourcePrefix.parse(f"git+{origin}/boxes.git"),),
            parameters={"revision": ("main", samples.first), "pathInRepo": ("box.yaml", "deep/*")},
        ),
        Policy("nobody else", namespaces=("nobody",)),
        Policy(
            "elsewhere has others", namespaces=("elsewhere",), sources=(SourcePrefix.parse("git+https://a.example"),)
        ),
    ]
    engine = engine_of(folder, policies=policies)
    params = {"url": f"{origin}/boxes.git", "revision": "main", "pathInRepo": "box.yaml"}
    await resolve_file(engine, params)
    await resolve_file(engine, {**params, "revision": samples.first, "pathInRepo": "deep/er/box.yaml"})
    server.reset_counters()
    error = await expect_resolution_error(
        engine, {**params, **{key: value.format(server=origin) for key, value in changed.items()}}, namespace
    )
    assert error.reason in (Reason.DENIED, Reason.INVALID_PARAMETERS)
    assert server.seen == []


@pytest.mark.slow
async def test_a_server_of_a_byte_a_second_ends_at_the_deadline_with_its_folder(folder: Path) -> None:
    with fault_server() as faults:
        engine = engine_of(folder, options=EngineOptions(timeout=timedelta(seconds=1)), clock=SystemClock())
        error = await expect_resolution_error(engine, {"url": faults.url("drip"), "pathInRepo": "box.yaml"})
    assert error.reason is Reason.TIMED_OUT
    assert list_files(folder) == ["lock"]


@pytest.mark.slow
async def test_what_cannot_pass_is_not_tried_again(server: GitServer, folder: Path) -> None:
    clock = QuickClock()
    engine = engine_of(folder, clock=clock)
    params = {"url": server.url("boxes.git"), "pathInRepo": "box.yaml"}
    for changed in ({"revision": "nope"}, {"revision": "abcd1234"}, {"pathInRepo": "no"}, {"pathInRepo": "deep"}):
        await expect_resolution_error(engine, {**params, **changed})
    assert clock.slept == []


async def test_an_api_that_is_busy_is_asked_again_when_it_says(folder: Path) -> None:
    clock = QuickClock()
    api = Api(commit=COMMIT.encode())
    api.replies = [Reply(429, {"retry-after": "7"}), Reply(502)]
    outcome = await resolve_file(
        engine_of(folder, http=api, clock=clock), {"repo": "boxes", "org": "team", "pathInRepo": "a"}
    )
    assert outcome.resolved.source.digest == {"sha1": COMMIT}
    assert clock.slept[0] == 7
    assert (len(clock.slept), len(api.asked)) == (2, 4)


@pytest.mark.parametrize(
    ("host", "found", "kind"),
    [
        ("127.0.0.1", [], "loopback"),
        ("metadata.test", ["169.254.169.254"], "link-local"),
        ("mapped.test", ["::ffff:10.0.0.1"], "private"),
    ],
)
async def test_private_addresses_are_refused_unless_they_are_allowed(host: str, found: list[str], kind: str) -> None:
    async def lookup(host: str, port: int) -> list[str]:
        return found

    with pytest.raises(ResolutionError) as caught:
        await GuardedAddressResolver(lookup, AllowedNetworks()).resolve_permitted(host, 443)
    assert (caught.value.reason, kind in caught.value.message) == (Reason.DENIED, True)
    assert not any(address in caught.value.message for address in found)
    allowed = AllowedNetworks(["127.0.0.0/8", "169.254.0.0/16", "10.0.0.0/8"])
    assert await GuardedAddressResolver(lookup, allowed).resolve_permitted(host, 443) == tuple(found or [host])


async def test_a_name_that_cannot_be_resolved_is_unreachable() -> None:
    async def lookup(host: str, port: int) -> list[str]:
        raise OSError("no such name")

    with pytest.raises(ResolutionError) as caught:
        await GuardedAddressResolver(lookup, AllowedNetworks()).resolve_permitted("name.invalid", 443)
    assert caught.value.reason is Reason.UNREACHABLE
