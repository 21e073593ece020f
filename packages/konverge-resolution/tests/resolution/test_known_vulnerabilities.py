"""Problems of other resolvers that were published: each as it was exploited, against all of ours put together.

Every test asks the whole engine, as a request does; what it refuses would have been done by the resolver of the report.
"""

from __future__ import annotations

import asyncio
import base64
import json
import subprocess
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from konverge.kube import GroupVersionKind
from konverge_cluster.testing import Cluster
from konverge_resolution import Reason, Reference, ResolutionError, build_request_name
from konverge_resolution._internal.engine import Engine, Requester
from konverge_resolution._internal.policy import Policy
from konverge_resolution._internal.requests.policy_parsing import InvalidPolicy, parse_policy
from konverge_resolution._internal.resolvers import STANDARD, load_resolvers
from konverge_resolution.local_engine import LocalSetup, local_engine
from konverge_resolution.requests import REQUEST, TEKTON_REQUEST
from tests.resolution.git.sample_repositories import list_files
from tests.resolution.network.http_servers import RecordingHandler, serve_site
from tests.resolution.requests.request_namespace import (
    CONFIG_MAP,
    EMBEDDED,
    EVENT,
    RequestNamespace,
    create_request_namespace,
)
from tests.resolution.servers.git import GitServer, git, git_server
from tests.resolution.source_servers import FILE, PLANTED, SourceServers, serve_all_sources

pytestmark = pytest.mark.anyio

CANARY = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: canary}\n"
REFUSALS = {Reason.INVALID_PARAMETERS, Reason.DENIED, Reason.NOT_FOUND}


@pytest.fixture
def anyio_backend(request: pytest.FixtureRequest) -> Any:
    return "asyncio", {}


@pytest.fixture
def canary(tmp_path: Path) -> Path:
    """A file of the machine that would pass for a definition."""
    file = tmp_path / "canary.yaml"
    file.write_text(CANARY)
    return file


@pytest.fixture
def server(tmp_path: Path, canary: Path) -> Iterator[GitServer]:
    """A repository with links to the file, and one whose tree names a place above it."""
    root = tmp_path / "repositories"
    work = root / "work"
    work.mkdir(parents=True)
    git("init", "--quiet", folder=work)
    (work / "task.yaml").write_bytes(FILE)
    (work / "link.yaml").symlink_to(canary)
    (work / "folder").symlink_to(canary.parent)
    (work / "above.yaml").symlink_to("../../../canary.yaml")
    git("add", ".", folder=work)
    git("commit", "--quiet", "-m", "one", folder=work)
    _add_hostile_tree(work)
    git("clone", "--quiet", "--bare", str(work), str(root / "boxes.git"), folder=root)
    git("config", "uploadpack.allowFilter", "true", folder=root / "boxes.git")
    with git_server(root) as found:
        yield found


def _add_hostile_tree(work: Path) -> None:
    blob = git("hash-object", "-w", "task.yaml", folder=work)
    entries = b"".join(
        b"100644 " + name + b"\0" + bytes.fromhex(blob) for name in (b"../../planted.yaml", b"task.yaml")
    )
    (work / "tree").write_bytes(entries)
    tree = git("hash-object", "-w", "-t", "tree", "--literally", "tree", folder=work)
    git("branch", "hostile", git("commit-tree", tree, "-m", "two", folder=work), folder=work)


@asynccontextmanager
async def engine(*policies: Policy, **settings: dict[str, str]) -> AsyncIterator[Engine]:
    """All five resolvers, which may reach the loopback interface."""
    setup = LocalSetup(settings=settings, networks=("127.0.0.0/8",), policies=policies)
    async with local_engine(load_resolvers(STANDARD), setup) as found:
        yield found


async def expect_resolution_error(asked: Engine, resolver: str, **params: str) -> ResolutionError:
    with pytest.raises(ResolutionError) as caught:
        await asked.resolve(Reference(resolver, params), Requester("web"), seconds=20)
    assert "canary" not in caught.value.message.replace("canary.yaml", "")
    return caught.value


@pytest.mark.parametrize(
    "path", ["link.yaml", "folder/canary.yaml", "above.yaml", "../../canary.yaml", "folder/../../../canary.yaml"]
)
async def test_cve_2026_33211_no_path_and_no_link_leads_to_a_file_of_the_machine(server: GitServer, path: str) -> None:
    async with engine() as asked:
        error = await expect_resolution_error(
            asked, "git", url=server.url("boxes.git", host="127.0.0.1"), pathInRepo=path
        )

    assert error.reason in REFUSALS


@pytest.mark.parametrize("name", ["a" * 31, "a" * 63, "a" * 64, "a" * 300, "ключ", "", "A_b", "-" * 40])
async def test_cve_2026_33022_no_name_of_a_resolver_is_more_than_an_error(name: str) -> None:
    reference = Reference(name, {"a": "b"})
    async with engine() as asked:
        with pytest.raises(ResolutionError):
            await asked.resolve(reference, Requester("web"))
        again = await expect_resolution_error(asked, "http", url="file:///etc/passwd")
    assert again.reason is Reason.INVALID_PARAMETERS
    try:
        made = build_request_name(reference, namespace="web", owner_uid="1")
    except ResolutionError:
        return
    assert len(made) <= 63


@pytest.mark.parametrize(
    "url", ["{root}/boxes.git", "file://{root}/boxes.git", "ext::sh -c touch% {marker}", "{served}"]
)
async def test_cve_2026_40938_a_revision_that_is_an_option_runs_nothing(
    server: GitServer, tmp_path: Path, url: str
) -> None:
    marker = tmp_path / "ran"
    places = {"root": server.root, "marker": marker, "served": server.url("boxes.git", host="127.0.0.1")}
    async with engine() as asked:
        error = await expect_resolution_error(
            asked, "git", url=url.format(**places), revision=f"--upload-pack=touch {marker};", pathInRepo="task.yaml"
        )

    assert error.reason is Reason.INVALID_PARAMETERS
    assert not marker.exists()


async def test_cve_2026_40161_the_operators_token_goes_to_no_server_of_the_requesters(tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("hunter2")
    settings = {"server-url": "https://git.example.com", "scm-type": "gitea", "api-token-file": str(token)}
    seen = RecordingHandler()
    async with serve_site(seen) as url, engine(git=settings) as asked:
        error = await expect_resolution_error(
            asked, "git", repo="boxes", org="team", pathInRepo="a.yaml", scmType="gitea", serverURL=url
        )

    assert error.reason is Reason.DENIED
    assert seen.requests == []


async def test_cve_2026_40924_a_body_without_end_is_cut_off_and_stops_nobody_else() -> None:
    sent = 0

    async def serve(request: web.BaseRequest) -> web.StreamResponse:
        nonlocal sent
        answer = web.StreamResponse()
        await answer.prepare(request)
        try:
            while sent < 1 << 30:
                await answer.write(bytes(1 << 20))
                sent += 1 << 20
        except ConnectionError:
            pass
        return answer

    async with serve_site(serve) as url, serve_site(RecordingHandler(FILE)) as good, engine() as asked:
        error, other = await asyncio.gather(
            expect_resolution_error(asked, "http", url=f"{url}/a"),
            asked.resolve(Reference("http", {"url": f"{good}/a"}), Requester("web")),
        )

    assert error.reason is Reason.TOO_LARGE
    assert other.resolved.data == FILE
    assert sent < 50 << 20


async def test_cve_2026_25542_a_trusted_address_inside_of_another_is_not_trusted() -> None:
    policy = parse_policy(policy_of("https://good.example/team"))
    assert isinstance(policy, Policy)
    async with engine(policy) as asked:
        for url in (
            "https://evil.example/?https://good.example/team/a",
            "https://evil.example/https://good.example/team/a",
            "https://good.example.evil.example/team/a",
            "https://good.example/teams/a",
            "https://good.example/team/../other/a",
        ):
            assert (await expect_resolution_error(asked, "http", url=url)).reason in (
                Reason.DENIED,
                Reason.INVALID_PARAMETERS,
            ), url


@pytest.mark.parametrize("pattern", ["^https://good.example|evil$", ".*", "https://good.example/.*", "https://[a"])
def test_cve_2026_25542_a_pattern_is_no_source_and_the_policy_says_so(pattern: str) -> None:
    assert isinstance(parse_policy(policy_of(pattern)), InvalidPolicy)


def policy_of(source: str) -> Any:
    return {
        "apiVersion": "resolution.konverge.dev/v1alpha1",
        "kind": "ResolutionPolicy",
        "metadata": {"name": "trusted"},
        "spec": {"sources": [source]},
    }


async def test_cve_2023_49569_a_tree_that_names_places_above_it_writes_nothing_there(
    server: GitServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temporary"))
    params = {"url": server.url("boxes.git", host="127.0.0.1"), "revision": "hostile", "pathInRepo": "task.yaml"}
    async with engine() as asked:
        try:
            assert (await asked.resolve(Reference("git", params), Requester("web"))).resolved.data == FILE
        except ResolutionError as error:
            assert error.reason is not Reason.INTERNAL  # noqa: PT017  # a git that refuses such a tree is right, too

    assert "planted.yaml" not in list_files(tmp_path)


EVERYTHING = (REQUEST, TEKTON_REQUEST, EVENT, CONFIG_MAP, GroupVersionKind("coordination.k8s.io", "v1", "Lease"))


@pytest.fixture
async def desk(cluster: Cluster) -> RequestNamespace:
    return await create_request_namespace(cluster, with_tekton=True)


@pytest.mark.slow
@EMBEDDED
@pytest.mark.real_time
async def test_no_credential_is_in_any_message_event_log_or_argument_of_a_process(
    desk: RequestNamespace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    arguments: list[str] = []

    class Watched(subprocess.Popen[Any]):
        def __init__(self, command: Any, **more: Any) -> None:
            arguments.extend(str(each) for each in command)
            super().__init__(command, **more)

    monkeypatch.setattr(subprocess, "Popen", Watched)
    caplog.set_level("DEBUG")
    resolvers = load_resolvers(STANDARD)
    async with serve_all_sources(desk, tmp_path) as sources:
        async with desk.running_resolvers(*resolvers, serves_tekton=True, services_for=None):
            await ask_all(desk, "fine", sources)
            refuse_all(sources)
            await ask_all(desk, "refused", sources, cache="never")
            for kind, name in (("secret", "others"), ("Secrets", "git-credentials")):
                params = {"kind": kind, "name": name, "namespace": desk.namespace}
                await desk.create_tekton_request(f"stolen-by-{kind.lower()}", "cluster", params)
                assert (await desk.wait_for_failure(f"stolen-by-{kind.lower()}", TEKTON_REQUEST)).message.startswith(
                    "Denied"
                )
        objects = [
            each for gvk in EVERYTHING for each in (await desk.cluster.client.list(gvk, namespace=desk.namespace)).items
        ]

    everything = json.dumps(objects) + caplog.text + "\0".join(arguments)
    assert "ls-remote" in arguments
    reasons = {each["metadata"]["name"]: each["status"]["conditions"][0].get("message", "").partition(":")[0]
               for each in objects if each["kind"] == "ResolutionRequest"}  # fmt: skip
    assert {name: reasons[f"fine-tekton-{name}"] for name in STANDARD} == dict.fromkeys(STANDARD, "")
    assert [reasons[f"refused-tekton-{name}"] for name in ("git", "bundles", "hub")] == [
        "Denied",
        "Denied",
        "Unreachable",
    ]
    for form in forms_of_secrets():
        assert form not in everything
    for name in ("git-credentials", "oci-credentials", "http-credentials"):
        # Of failures, not even the names of Secrets are told: the spec of a request has them, nothing else does.
        message = [each for each in objects if each["kind"] == "Event"] + [each.get("status") for each in objects]
        assert name not in json.dumps(message)


async def ask_all(desk: RequestNamespace, name: str, sources: SourceServers, **more: str) -> None:
    """Ask each source in both ways, and wait until all have ended."""
    for resolver, params in sources.params.items():
        given = {**params, **(more if resolver not in ("cluster", "hub") else {})}
        await desk.create_tekton_request(f"{name}-tekton-{resolver}", resolver, given)
        await desk.wait_until_ended(f"{name}-tekton-{resolver}", TEKTON_REQUEST)


def refuse_all(sources: SourceServers) -> None:
    """From now on, no credential is the right one."""
    sources.git.credentials["boxes.git"] = ("git", "another")
    sources.registry.logins["me"] = "another"
    sources.hub.status = 500


def forms_of_secrets() -> set[str]:
    """The credentials, as they are and as they are written where they are sent and kept."""
    found = set(PLANTED)
    for each in PLANTED:
        for text in (each, f"me:{each}", f"git:{each}"):
            found.add(base64.b64encode(text.encode()).decode().rstrip("=")[:-1])
    return found
