"""Lock files that somebody has changed in a pull request: each field of each resolver's entry, one at a time.

What a lock file may say is refused, or shown to change nothing: neither what comes, nor what is asked for it, nor with
whose credential. The cases are made of the declared parameters of every resolver and of the fields of an entry, so that
a new one is among them by itself.
"""

from __future__ import annotations

import asyncio
import copy
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml
from aiohttp import web

from konverge.clock import SeededEntropy, SystemClock
from konverge.errors import ConfigurationError
from konverge.kube import GroupVersionKind, Object, ObjectKey, RestMapping
from konverge_resolution import Digest, Provenance, Reason, Reference, ResolutionError, Services
from konverge_resolution._internal.address_resolver import GuardedAddressResolver
from konverge_resolution._internal.content_store import ContentStore
from konverge_resolution._internal.engine import Engine, Requester, ResolutionResult
from konverge_resolution._internal.lock_file import LockEntry, LockFile
from konverge_resolution._internal.locked_resolver import LockedResolver
from konverge_resolution._internal.policy import PolicyDecision
from konverge_resolution._internal.resolver_registry import ResolverRegistry
from konverge_resolution._internal.resolvers import load_resolvers
from konverge_resolution._internal.workspaces import TemporaryFolders
from konverge_resolution.network import AllowedNetworks
from tests.resolution.bundles.sample_images import build_image, object_layer
from tests.resolution.http_resolution import TASK, Secrets
from tests.resolution.hub.fake_hubs import FakeHub
from tests.resolution.network.http_servers import build_guarded_http, serve_site
from tests.resolution.servers.fake_registry import fake_registry
from tests.resolution.servers.git import git, git_server

EVIL = TASK.replace(b"build", b"evil")
EVIL_DIGEST = str(Digest.of(EVIL))
WEB = Requester("web")
RESOLVERS = {each.name: each for each in load_resolvers()}

ENTRY_FIELDS = [each.encode_name for each in msgspec.structs.fields(LockEntry)]
SOURCE_FIELDS = [each.encode_name for each in msgspec.structs.fields(Provenance)]
MAPPINGS = ("params", "defaults", "pinned")

CHANGED: Mapping[str, str] = {
    "url": "https://evil.example/boxes.git",
    "revision": "f" * 40,
    "bundle": f"registry.evil.example/team/boxes@sha256:{'f' * 64}",
    "digest": EVIL_DIGEST,
    "version": "9.9.9",
    "scmType": "gitlab",
    "serverURL": "https://evil.example",
    "type": "tekton",
    "kind": "pipeline",
    "apiVersion": "v1",
}
"""What a parameter becomes; another name where nothing is said."""


def cases() -> Iterator[tuple[str, str]]:
    """By resolver, the path of each field that an entry can have."""
    for name, resolver in RESOLVERS.items():
        for each in ENTRY_FIELDS:
            if each == "source":
                yield from ((name, f"source.{part}") for part in SOURCE_FIELDS)
            elif each in MAPPINGS:
                yield from ((name, f"{each}.{parameter}") for parameter in [*resolver.parameters, "configKey"])
            else:
                yield (name, each)


NO_MORE_THAN_A_NAME = {
    *((name, "root") for name in RESOLVERS),
    # Policies judge it besides what the reference says, so it can have them refuse more, and nothing less.
    *((name, field) for name in RESOLVERS for field in ("foundAt", "foundParams")),
    # Which manifest an index has chosen is told and never asked for.
    ("bundles", "source.digest"),
    # The default that a version had when it was locked: the pin says what it was.
    ("git", "defaults.revision"),
}
"""What may be changed, and changes nothing but what is told."""

ONLY_AT_ITS_SOURCE = {("git", "digest"), ("bundles", "digest")}
"""What is found out where the source is asked, or the reference has a digest: a commit and an image's digest say of the
content alone nothing that can be compared here."""


BESIDE = {
    "digest": ("pinned.digest", "source.digest"),
    "pinned.revision": ("source.digest",),
}
"""In which other fields a change is seen: two of them do not fit each other."""


@dataclass
class LockedSources:
    """One definition of each resolver, locked.

    Args:
        references: By resolver.
        texts: By resolver, its lock file.
        folder: The content.
        asked: What the servers were asked since then: where, and with which credential.
        engine: Asks them.
    """

    engine: Engine
    folder: Path
    secrets: Secrets
    references: dict[str, Reference] = field(default_factory=dict)
    texts: dict[str, bytes] = field(default_factory=dict)
    asked: list[Callable[[], list[str]]] = field(default_factory=list)

    def list_requests(self) -> list[list[str]]:
        """What each server was asked so far, and which Secrets were read."""
        return [list(self.secrets.read), *(each() for each in self.asked)]

    def entry(self, resolver: str) -> dict[str, Any]:
        """The one entry of its lock file, as it is written."""
        (found,) = yaml.safe_load(self.texts[resolver])["entries"]
        return dict(found)

    async def resolve(
        self,
        resolver: str,
        entry: Mapping[str, Any],
        *,
        is_offline: bool,
        folder: Path,
        reference: Reference | None = None,
        **more: bool,
    ) -> ResolutionResult:
        """What the reference comes to by a lock file with this entry."""
        document = {**yaml.safe_load(self.texts[resolver]), "entries": [entry]}
        lock = LockFile.parse(yaml.safe_dump(document).encode(), file="box.lock.yaml")
        source = LockedResolver(self.engine, lock, ContentStore(folder), is_offline=is_offline, **more)
        return await source.resolve(reference or self.references[resolver], WEB)


class OneTask:
    """A cluster with one task."""

    async def find(self, kind: str, api_version: str = "") -> tuple[RestMapping, ...]:
        return (RestMapping(GroupVersionKind("tekton.dev", "v1", "Task"), "tasks", namespaced=True),)

    async def get(self, gvk: GroupVersionKind, key: ObjectKey) -> Object:
        metadata = {"name": key.name, "namespace": key.namespace, "uid": "u-1"}
        return {"apiVersion": "tekton.dev/v1", "kind": "Task", "metadata": metadata}

    async def list_kinds(self) -> tuple[str, ...]:
        return ("Task",)

    async def list_names(self, gvk: GroupVersionKind, namespace: str) -> tuple[str, ...]:
        return ()

    async def may_get(self, gvk: GroupVersionKind, key: ObjectKey, *, user: str) -> bool:
        return True


@asynccontextmanager
async def the_stand(folder: Path) -> AsyncIterator[LockedSources]:
    work = folder / "work"
    work.mkdir(parents=True)
    git("init", "--quiet", folder=work)
    (work / "task.yaml").write_bytes(TASK)
    git("add", ".", folder=work)
    git("commit", "--quiet", "-m", "one", folder=work)
    git("clone", "--quiet", "--bare", str(work), str(folder / "boxes.git"), folder=folder)
    headers: list[str] = []

    async def serve(request: web.BaseRequest) -> web.StreamResponse:
        headers.append(f"{request.path} {request.headers.get('Authorization', '')}")
        return web.Response(body=TASK)

    hub, secrets = (
        FakeHub(),
        Secrets({"mine": {"token": "hunter2", "password": "hunter3"}, "others": {"token": "hunter4"}}),
    )
    with git_server(folder) as repositories, fake_registry() as registry:
        registry.push("team/boxes", "main", *build_image([object_layer("build")]))
        async with serve_site(hub) as hub_url, serve_site(serve) as web_url:
            plain = {"allow-plain-http-credentials": "true"}
            settings = {
                "git": plain,
                "http": plain,
                "bundles": {"plain-http-registries": f"127.0.0.1:{registry.port}"},
                "hub": {"artifact-hub-urls": f"{hub_url}, https://second.example"},
            }

            def services_for(requester: Requester, admission: PolicyDecision) -> Services:
                nothing: Any = None
                return Services(
                    http=build_guarded_http(),
                    secrets=secrets,
                    workspaces=TemporaryFolders(SystemClock(), folder / "work-folders"),
                    clock=SystemClock(),
                    cluster=OneTask(),
                    addresses=GuardedAddressResolver(nothing, AllowedNetworks(["127.0.0.0/8"])),
                )

            (folder / "work-folders").mkdir()
            engine = Engine(
                ResolverRegistry.of(load_resolvers(), settings),
                services_for,
                clock=SystemClock(),
                entropy=SeededEntropy(),
            )
            stand = LockedSources(engine, folder / "content", secrets)
            stand.asked = [
                lambda: [repr(each) for each in repositories.seen],
                lambda: [repr(each) for each in registry.seen],
                lambda: list(hub.asked),
                lambda: list(headers),
            ]
            url = repositories.url("boxes.git", host="127.0.0.1")
            stand.references = {
                "git": Reference("git", {"url": url, "pathInRepo": "task.yaml", "gitToken": "mine"}),
                "http": Reference("http", {"url": f"{web_url}/task.yaml", "http-token-secret": "mine"}),
                "bundles": Reference(
                    "bundles", {"bundle": f"127.0.0.1:{registry.port}/team/boxes:main", "name": "build"}
                ),
                "hub": Reference("hub", {"name": "build", "version": ">=0.6 <2"}),
                "cluster": Reference("cluster", {"kind": "task", "name": "build", "namespace": "web"}),
            }
            contents = ContentStore(stand.folder)
            contents.add(EVIL)
            for name, reference in stand.references.items():
                source = LockedResolver(engine, LockFile(), contents, may_add=True)
                await source.resolve(reference, WEB)
                stand.texts[name] = source.lock.serialize().encode()
            yield stand


@pytest.fixture(scope="module")
def loop() -> Iterator[asyncio.Runner]:
    with asyncio.Runner() as runner:
        yield runner


@pytest.fixture(scope="module")
def stand(loop: asyncio.Runner, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LockedSources]:
    made = the_stand(tmp_path_factory.mktemp("stand"))
    yield loop.run(made.__aenter__())
    loop.run(made.__aexit__(None, None, None))


def tamper_with(entry: Mapping[str, Any], path: str) -> dict[str, Any]:
    """The same with one field changed, or added where it is not there."""
    found = copy.deepcopy(dict(entry))
    first, _, rest = path.partition(".")
    if first in MAPPINGS:
        before = found.get(first, {}).get(rest, "")
        found.setdefault(first, {})[rest] = CHANGED.get(rest, "others") if before != CHANGED.get(rest) else "others"
    elif path == "source.digest":
        found["source"]["digest"] = {name: "f" * len(value) for name, value in found["source"]["digest"].items()}
    elif path == "source.uri":
        found["source"]["uri"] = found["source"]["uri"].replace("build", "evil").replace("127.0.0.1", "evil.example")
    elif path == "source.entryPoint":
        found["source"]["entryPoint"] = "evil.yaml"
    elif path == "root":
        found["root"] = not found.get("root", False)
    elif path == "foundAt":
        found["foundAt"] = "https://evil.example"
    elif path == "foundParams":
        found["foundParams"] = {"pathInRepo": "evil.yaml"}
    else:
        found[path] = {"resolver": "http" if found["resolver"] != "http" else "hub", "digest": EVIL_DIGEST}[path]
    assert found != entry
    return found


@pytest.mark.parametrize(("resolver", "path"), [each for each in cases() if each not in ONLY_AT_ITS_SOURCE])
def test_a_changed_field_is_refused_or_changes_nothing(
    loop: asyncio.Runner, stand: LockedSources, resolver: str, path: str
) -> None:
    before, entry = stand.list_requests(), stand.entry(resolver)
    outcome, message = None, ""
    try:
        outcome = loop.run(stand.resolve(resolver, tamper_with(entry, path), is_offline=True, folder=stand.folder))
    except (ResolutionError, ConfigurationError) as error:
        message = str(error)
    assert stand.list_requests() == before
    assert "hunter" not in message
    if (resolver, path) in NO_MORE_THAN_A_NAME:
        assert outcome is not None, message
        assert outcome.resolved.data == (stand.folder / entry["digest"].replace(":", "-")).read_bytes()
    elif path == "resolver" or path.startswith("params."):
        assert "has no entry for this reference" in message
    else:
        assert message.startswith("box.lock.yaml: the entry for "), message
        # Of a commit that is another one the record of the source is not.
        assert any(f": {each}: expected " in message for each in (path, *BESIDE.get(path, ()))), message
        assert message.endswith("; find the cause of the change, then lock it again with --update")


@pytest.mark.parametrize("resolver", RESOLVERS)
def test_other_content_with_its_digest_is_refused_if_the_reference_has_one(
    loop: asyncio.Runner, stand: LockedSources, resolver: str
) -> None:
    entry = stand.entry(resolver)
    changed = tamper_with(entry, "digest")
    if "sha256" in changed["source"]["digest"] and resolver not in ("git", "bundles"):
        changed["source"]["digest"] = {"sha256": EVIL_DIGEST.removeprefix("sha256:")}
    if "digest" in changed.get("pinned", {}):
        changed["pinned"]["digest"] = EVIL_DIGEST
    data = (stand.folder / entry["digest"].replace(":", "-")).read_bytes()
    for algorithm in ("sha256", "sha512"):
        wanted = Reference(resolver, stand.references[resolver].params, Digest.of(data, algorithm))
        with pytest.raises(ResolutionError, match="digest: expected sha") as caught:
            loop.run(stand.resolve(resolver, changed, is_offline=True, folder=stand.folder, reference=wanted))
        assert caught.value.reason is Reason.DIGEST_MISMATCH


@pytest.mark.parametrize("resolver", RESOLVERS)
def test_other_content_with_its_digest_is_found_out_where_it_is_verified(
    loop: asyncio.Runner, stand: LockedSources, resolver: str
) -> None:
    changed = tamper_with(stand.entry(resolver), "digest")
    with pytest.raises(ResolutionError) as caught:
        loop.run(stand.resolve(resolver, changed, is_offline=False, folder=stand.folder, is_verifying=True))
    assert caught.value.reason is Reason.DIGEST_MISMATCH
    loop.run(stand.resolve(resolver, stand.entry(resolver), is_offline=False, folder=stand.folder, is_verifying=True))


@pytest.mark.parametrize(("resolver", "path"), list(cases()))
def test_whatever_is_changed_nobody_else_is_asked_and_no_other_credential_is_sent(
    loop: asyncio.Runner, stand: LockedSources, resolver: str, path: str, tmp_path: Path
) -> None:
    def asked(entry: Mapping[str, Any], folder: Path) -> tuple[bytes | None, set[str]]:
        before = stand.list_requests()
        data = None
        with suppress(ResolutionError, ConfigurationError):
            data = loop.run(stand.resolve(resolver, entry, is_offline=False, folder=folder)).resolved.data
        return data, {line for old, new in zip(before, stand.list_requests(), strict=True) for line in new[len(old) :]}

    entry = stand.entry(resolver)
    expected, usual = asked(entry, tmp_path / "first")
    assert expected is not None
    data, seen = asked(tamper_with(entry, path), tmp_path / "second")
    assert data in (None, expected)
    assert seen <= usual


@pytest.mark.parametrize("resolver", RESOLVERS)
def test_a_digest_with_a_newline_after_it_is_refused(loop: asyncio.Runner, stand: LockedSources, resolver: str) -> None:
    entry = stand.entry(resolver)
    entry["digest"] += "\n"
    with pytest.raises(ResolutionError, match=": digest: expected sha256: or sha512: and hexadecimal digits, found"):
        loop.run(stand.resolve(resolver, entry, is_offline=True, folder=stand.folder))


@pytest.mark.parametrize(
    "place",
    [
        "https://me:hunter2@evil.example/a",
        "https://evil.example/a?token=hunter2",
        "https://evil.example/a#hunter2",
        "https://evil.example/\x1b[2Jhunter2",
        "https://[hunter2",
        "hunter2",
    ],
)
def test_a_place_with_a_credential_or_with_what_a_terminal_obeys_is_no_record(
    loop: asyncio.Runner, stand: LockedSources, place: str
) -> None:
    for field_, value in (("foundAt", place), ("foundParams", {"url": place})):
        entry = {**stand.entry("git"), field_: value}
        if field_ == "foundParams" and ("@" not in place and "?" not in place and place.isprintable()):
            continue
        with pytest.raises(ResolutionError, match=f": {field_}: expected ") as caught:
            loop.run(stand.resolve("git", entry, is_offline=True, folder=stand.folder))
        assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize("digest", [{}, {"md5": "a"}, {"sha256": "\x1b[2J"}, {"sha256": "a" * 64, "sha512": "a" * 128}])
def test_what_is_no_digest_is_no_record_of_an_image(
    loop: asyncio.Runner, stand: LockedSources, digest: Mapping[str, str]
) -> None:
    entry = stand.entry("bundles")
    entry["source"]["digest"] = digest
    with pytest.raises(ResolutionError, match=r": source\.digest: expected sha256:") as caught:
        loop.run(stand.resolve("bundles", entry, is_offline=True, folder=stand.folder))
    assert str(caught.value).isprintable()


@pytest.mark.parametrize("field_", ["source.uri", "a field", "kind", "apiVersion"])
def test_messages_have_nothing_of_a_lock_file_that_a_terminal_obeys_nor_a_credential(
    loop: asyncio.Runner, stand: LockedSources, field_: str
) -> None:
    entry = stand.entry("git")
    document = {**yaml.safe_load(stand.texts["git"]), "entries": [entry]}
    if field_ == "source.uri":  # told of the nearest entry
        entry["params"]["revision"] = "other"
        entry["source"]["uri"] = "https://me:hunter2@evil.example/\x1b[2J?token=hunter2"
    elif field_ == "a field":
        entry["\x1b[2J"] = "a"
    else:
        document[field_] = "\x1b[2J"

    async def resolve() -> None:
        lock = LockFile.parse(yaml.safe_dump(document).encode(), file="box.lock.yaml")
        await LockedResolver(stand.engine, lock, is_offline=True).resolve(stand.references["git"], WEB)

    with pytest.raises((ResolutionError, ConfigurationError)) as caught:
        loop.run(resolve())
    assert str(caught.value).isprintable()
    assert "hunter2" not in str(caught.value)


def test_a_query_is_not_told_of_what_is_no_address(loop: asyncio.Runner, stand: LockedSources) -> None:
    entry = stand.entry("cluster")
    entry["source"]["uri"] += "?token=hunter2"
    with pytest.raises(ResolutionError, match=r": source\.uri: expected ") as caught:
        loop.run(stand.resolve("cluster", entry, is_offline=True, folder=stand.folder))
    assert "hunter2" not in str(caught.value)
