"""Lock files and trees: what they have, what a locked reference comes to, and what when its source lies."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

from konverge.errors import ConfigurationError
from konverge_resolution import (
    MAX_CONTENT_BYTES,
    Digest,
    FetchRequest,
    Provenance,
    Reason,
    Reference,
    ResolutionError,
    ResolvedContent,
)
from konverge_resolution._internal.content_store import ContentStore, remove_leftovers
from konverge_resolution._internal.engine import Engine
from konverge_resolution._internal.lock_file import MAX_LOCK_ENTRIES, LockEntry, LockFile
from konverge_resolution._internal.locked_resolver import LockedResolver
from konverge_resolution._internal.policy import Policy
from konverge_resolution._internal.reference_parsing import ParsedReference, parse_reference
from konverge_resolution._internal.reference_tree import TreeNode, resolve_tree
from konverge_resolution._internal.source_prefix import SourcePrefix
from konverge_resolution.locks import build_entry
from tests.resolution.fake_resolver import FakeResolver
from tests.resolution.fake_source import CLOCK, ROOT, WEB, FakeSource, build_document, build_engine, build_reference

pytestmark = pytest.mark.anyio

TASK = build_document("t")
PIPELINE = build_document(
    "p",
    tasks=[
        {"taskRef": {"path": "../tasks/t.yaml"}},
        {"taskRef": {"resolver": "library", "params": [{"name": "path", "value": "other.yaml"}]}},
        {"taskRef": {"name": "local"}},
    ],
)
OTHER = build_document("o", again={"pipelineRef": {"resolver": "library", "params": {"path": "ci/p.yaml"}}})
FILES = {"ci/p.yaml": PIPELINE, "tasks/t.yaml": TASK, "other.yaml": OTHER}
PIPELINE_REFERENCE = ParsedReference((build_reference("ci/p.yaml"),))


def a_library() -> FakeSource:
    return FakeSource({"1": dict(FILES), "2": {name: data + b"# newer\n" for name, data in FILES.items()}})


async def tree_of(source: Any, engine: Engine, **more: Any) -> list[TreeNode]:
    return await resolve_tree(source, engine.registry, [PIPELINE_REFERENCE], WEB, clock=CLOCK, **more)


async def lock_content(library: FakeSource, folder: Path) -> LockFile:
    engine = build_engine(library)
    source = LockedResolver(engine, LockFile(), ContentStore(folder), may_add=True)
    await tree_of(source, engine)
    return source.lock


async def test_a_tree_is_everything_that_is_referred_to_once_and_knows_who_does(tmp_path: Path) -> None:
    library = a_library()
    engine = build_engine(library)
    nodes = await tree_of(engine, engine)
    assert [(node.result.object["metadata"]["name"], node.field_path, node.parent) for node in nodes] == [
        ("p", "", None),
        ("t", "spec.tasks[0].taskRef", 0),
        ("o", "spec.tasks[1].taskRef", 0),
        ("p", "spec.again.pipelineRef", 2),  # by another name than the first time: without the version
    ]


async def test_a_lock_file_has_digest_pin_and_source_of_the_whole_tree_sorted(tmp_path: Path) -> None:
    lock = await lock_content(a_library(), tmp_path)
    assert (
        lock.serialize()
        == LockFile(reversed(list(lock))).serialize()
        == LockFile.parse(lock.serialize().encode(), file="l").serialize()
    )
    entry = lock.find(build_reference("ci/p.yaml"))
    assert entry == LockEntry(
        resolver="library",
        digest=str(Digest.of(PIPELINE)),
        params={"path": "ci/p.yaml", "version": "main"},
        pinned={"version": "1"},
        source=Provenance(ROOT, {"sha256": Digest.of(PIPELINE).hex}, "ci/p.yaml"),
    )
    assert [each.params["path"] for each in lock] == ["ci/p.yaml", "other.yaml", "tasks/t.yaml"]
    other = lock.find(Reference("library", {"path": "other.yaml"}))
    assert other is not None
    assert (other.params, other.defaults) == ({"path": "other.yaml"}, {"version": "main"})


async def test_what_is_locked_stays_when_its_branch_moves(tmp_path: Path) -> None:
    library = a_library()
    lock = await lock_content(library, tmp_path)
    library.heads["main"] = "2"
    engine = build_engine(library)
    nodes = await tree_of(LockedResolver(engine, lock), engine)
    assert [node.result.resolved.data for node in nodes] == [PIPELINE, TASK, OTHER, PIPELINE]


async def test_what_is_locked_is_there_without_its_source(tmp_path: Path) -> None:
    lock = await lock_content(a_library(), tmp_path)
    gone = FakeSource(failure=ResolutionError(Reason.UNREACHABLE, "gone"))
    engine = build_engine(gone)
    nodes = await tree_of(LockedResolver(engine, lock, ContentStore(tmp_path), is_offline=True), engine)
    assert [node.result.resolved.data for node in nodes] == [PIPELINE, TASK, OTHER, PIPELINE]
    assert {node.result.fetched_from for node in nodes} == {"cache"}
    assert gone.fetched == []


async def test_offline_says_what_is_not_here_and_asks_nobody(tmp_path: Path) -> None:
    library = a_library()
    lock = await lock_content(library, tmp_path)
    library.fetched.clear()
    source = LockedResolver(build_engine(library), lock, ContentStore(tmp_path / "empty"), is_offline=True)
    with pytest.raises(
        ResolutionError, match="offline: the content sha256:.* of https://library.example#ci/p.yaml is not stored"
    ):
        await source.resolve(build_reference("ci/p.yaml"), WEB)
    assert library.fetched == []


async def test_a_source_that_changes_what_is_pinned_is_found_out() -> None:
    library = a_library()
    engine = build_engine(library)
    entry = build_entry(
        build_reference("other.yaml"), await engine.resolve(build_reference("other.yaml"), WEB), engine.registry
    )
    library.versions["1"]["other.yaml"] = TASK
    message = "#other.yaml: the content differs from sha256:.* in the lock file"
    with pytest.raises(ResolutionError, match=message) as caught:
        await LockedResolver(build_engine(library), LockFile([entry])).resolve(build_reference("other.yaml"), WEB)
    assert caught.value.reason is Reason.DIGEST_MISMATCH


async def test_what_is_locked_and_gone_from_its_source_is_told_with_the_way_out() -> None:
    library = a_library()
    engine = build_engine(library)
    entry = build_entry(
        build_reference("other.yaml"), await engine.resolve(build_reference("other.yaml"), WEB), engine.registry
    )
    del library.versions["1"]["other.yaml"]
    message = "the lock file names this version; lock the current version with --update"
    with pytest.raises(ResolutionError, match=message) as caught:
        await LockedResolver(build_engine(library), LockFile([entry])).resolve(build_reference("other.yaml"), WEB)
    assert caught.value.reason is Reason.NOT_FOUND


async def test_the_digest_of_a_reference_and_that_of_the_lock_file_have_to_be_one(tmp_path: Path) -> None:
    lock = await lock_content(a_library(), tmp_path)
    reference = Reference("library", {"path": "ci/p.yaml", "version": "main"}, Digest.of(b"other"))
    with pytest.raises(ResolutionError, match="digest: expected sha256:.* of the reference, found sha256:") as caught:
        await LockedResolver(build_engine(a_library()), lock).resolve(reference, WEB)
    assert caught.value.reason is Reason.DIGEST_MISMATCH


async def test_what_has_no_entry_is_refused_or_added() -> None:
    engine = build_engine(a_library())
    with pytest.raises(ResolutionError, match="the lock file has no entry for this reference of resolver 'library'"):
        await LockedResolver(engine, LockFile()).resolve(build_reference("other.yaml"), WEB)
    adding = LockedResolver(engine, LockFile(), may_add=True)
    await adding.resolve(build_reference("other.yaml"), WEB)
    assert len(adding.lock) == 1
    assert adding.used == adding.lock


@pytest.mark.slow
async def test_a_lock_file_has_so_many_entries_also_when_they_come_at_once() -> None:
    entry = LockEntry(resolver="shelf", digest=str(Digest.of(b"")), source=Provenance(ROOT, {}))
    full = LockFile(
        msgspec.structs.replace(entry, params={"url": str(number)}) for number in range(MAX_LOCK_ENTRIES - 1)
    )
    source = LockedResolver(build_engine(a_library()), full, may_add=True)
    both = (source.resolve(build_reference(path), WEB) for path in ("other.yaml", "ci/p.yaml"))
    answers = await asyncio.gather(*both, return_exceptions=True)
    (refusal,) = (each for each in answers if isinstance(each, ResolutionError))
    assert (refusal.reason, refusal.message) == (Reason.TOO_LARGE, "the lock file: expected at most 1000 entries")
    assert len(LockFile.parse(source.lock.serialize().encode(), file="l")) == MAX_LOCK_ENTRIES


def test_a_lock_file_that_could_not_be_read_again_is_not_written(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("konverge_resolution._internal.lock_file.MAX_LOCK_ENTRIES", 3)
    monkeypatch.setattr("konverge_resolution._internal.lock_file.MAX_LOCK_BYTES", 1 << 20)
    entry = LockEntry(resolver="shelf", digest=str(Digest.of(b"")), source=Provenance(ROOT, {}))
    many = LockFile(msgspec.structs.replace(entry, params={"url": str(number)}) for number in range(4))
    large = LockFile([msgspec.structs.replace(entry, params={"url": "x" * (1 << 20)})])
    for lock in (many, large):
        with pytest.raises(ConfigurationError, match="expected a lock file of at most 3 entries and 1 MiB, found"):
            lock.serialize()


async def test_a_default_that_is_written_out_is_the_same_reference_whichever_was_locked() -> None:
    written, left_out = build_reference("other.yaml"), Reference("library", {"path": "other.yaml"})
    for first, second in ((written, left_out), (left_out, written)):
        library = a_library()
        source = LockedResolver(build_engine(library), LockFile(), may_add=True)
        await source.resolve(first, WEB)
        library.heads["main"] = "2"
        again = LockedResolver(build_engine(library), LockFile.parse(source.lock.serialize().encode(), file="l"))
        assert (await again.resolve(second, WEB)).resolved.data == OTHER
        assert len(again.lock) == len(again.used) == 1


async def test_a_default_counts_as_it_was_when_it_was_locked() -> None:
    left_out = Reference("library", {"path": "other.yaml"})
    engine = build_engine(a_library())
    entry = build_entry(left_out, await engine.resolve(left_out, WEB), engine.registry)
    source = LockedResolver(engine, LockFile([msgspec.structs.replace(entry, defaults={"version": "dev"})]))
    with pytest.raises(ResolutionError, match="differs in 'version'; lock it first"):
        await source.resolve(build_reference("other.yaml"), WEB)
    assert (await source.resolve(left_out, WEB)).resolved.data == OTHER


@pytest.mark.parametrize(
    ("reference", "told"),
    [
        (
            build_reference("other.yaml", "v2"),
            f"of resolver 'library'; the nearest, for {ROOT}, differs in 'version'; lock it first",
        ),
        (build_reference("x.yaml", "main", token="hunter2"), "differs in 'path', 'token'; lock it first"),
        (build_reference("x.yaml", "v2"), "for this reference of resolver 'library'; lock it first"),
        (build_reference("other.yaml", resolver="shelf"), "for this reference of resolver 'shelf'; lock it first"),
    ],
)
async def test_what_has_no_entry_is_told_with_what_the_nearest_has_otherwise(reference: Reference, told: str) -> None:
    engine = build_engine(a_library())
    source = LockedResolver(engine, LockFile(), may_add=True)
    await source.resolve(build_reference("other.yaml"), WEB)
    await source.resolve(Reference("library", {"path": "tasks/t.yaml"}), WEB)
    with pytest.raises(ResolutionError) as caught:
        await LockedResolver(engine, source.lock).resolve(reference, WEB)
    assert str(caught.value).endswith(told)
    assert "hunter2" not in str(caught.value)


async def test_what_is_elsewhere_in_the_end_is_locked_by_the_name_of_that_place() -> None:
    moved = Reference("shelf", {"url": "https://a.example/box", "from": "https://b.example/box"})
    source = LockedResolver(build_engine(FakeResolver()), LockFile(), may_add=True)
    message = "https://a.example/box leads to https://b.example/box, which a lock file requires: use that address"
    with pytest.raises(ResolutionError, match=message):
        await source.resolve(moved, WEB)
    assert len(source.lock) == 0


class PinsSomethingElse(FakeSource):
    async def resolve(self, fetch: FetchRequest) -> ResolvedContent:
        found = await super().resolve(fetch)
        return msgspec.structs.replace(found, pinned={**found.pinned, **self.heads})


@pytest.mark.parametrize(
    ("heads", "reason", "told"),
    [
        ({"path": "x"}, Reason.INTERNAL, "pins parameter 'path', which it does not declare as a version"),
        (
            {"version": "2"},
            Reason.INVALID_PARAMETERS,
            "parameter 'version': 1 stands for 2, which a lock file requires",
        ),
    ],
)
async def test_what_a_lock_file_could_not_be_asked_for_is_not_locked(
    heads: dict[str, str], reason: Reason, told: str
) -> None:
    library = PinsSomethingElse({"1": dict(FILES)}, heads)
    with pytest.raises(ResolutionError, match=told) as caught:
        await LockedResolver(build_engine(library), LockFile(), may_add=True).resolve(
            build_reference("other.yaml", "1"), WEB
        )
    assert caught.value.reason is reason


async def test_how_it_is_cached_makes_no_other_entry() -> None:
    source = LockedResolver(build_engine(a_library()), LockFile(), may_add=True)
    await source.resolve(build_reference("other.yaml"), WEB)
    await source.resolve(build_reference("other.yaml", cache="never"), WEB)
    assert len(source.lock) == 1


async def test_a_policy_counts_for_what_is_taken_from_the_folder_too(tmp_path: Path) -> None:
    lock = await lock_content(a_library(), tmp_path)
    policy = Policy("only-b", sources=(SourcePrefix.parse("https://b.example"),))
    source = LockedResolver(build_engine(a_library(), policies=[policy]), lock, ContentStore(tmp_path))
    with pytest.raises(ResolutionError, match="no policy allows") as caught:
        await source.resolve(build_reference("ci/p.yaml"), WEB)
    assert caught.value.reason is Reason.DENIED


async def test_a_definition_that_cannot_be_had_is_named_with_the_field_that_wants_it() -> None:
    library = a_library()
    del library.versions["1"]["tasks/t.yaml"]
    engine = build_engine(library)
    with pytest.raises(ResolutionError) as caught:
        await tree_of(engine, engine)
    assert caught.value.reason is Reason.NOT_FOUND
    assert caught.value.message == (
        "spec.tasks[0].taskRef of https://library.example#ci/p.yaml: there is no tasks/t.yaml in version 1"
    )


async def test_a_path_out_of_the_source_is_refused_with_the_field_that_has_it() -> None:
    library = FakeSource({"1": {"p": build_document("p", taskRef={"path": "../../x"})}})
    engine = build_engine(library)
    root = [ParsedReference((build_reference("p"),))]
    with pytest.raises(ResolutionError, match=r"spec.taskRef of .*: path '../../x': expected a path within the source"):
        await resolve_tree(engine, engine.registry, root, WEB, clock=CLOCK)
    with pytest.raises(ResolutionError, match="expected a definition that contains it"):
        await resolve_tree(engine, engine.registry, [parse_reference({"path": "a"})], WEB, clock=CLOCK)


async def test_a_definition_with_local_names_alone_asks_for_nothing_else() -> None:
    local: dict[str, Any] = {"taskRef": {"name": "build", "kind": "Task"}, "envFrom": [{"configMapRef": {"name": "a"}}]}
    source = FakeSource({"1": {"a": build_document("a", **local)}})
    engine = build_engine(source)
    root = ParsedReference((build_reference("a"),))
    (node,) = await resolve_tree(engine, engine.registry, [root], WEB, clock=CLOCK)
    assert source.fetched == ["a@1"]
    assert node.result.object["spec"] == local


async def test_one_owner_takes_definitions_from_several_kinds_of_sources_at_once() -> None:
    roots = [ParsedReference((build_reference("a", resolver=name),)) for name in ("one", "two")]
    roots.append(ParsedReference((Reference("shelf", {"url": "https://a.example/box"}),)))
    one, two = (FakeSource({"1": {"a": build_document(name)}}, name=name, seconds=5) for name in ("one", "two"))
    engine = build_engine(one, two, FakeResolver())
    before = CLOCK.monotonic()
    nodes = await resolve_tree(engine, engine.registry, roots, WEB, clock=CLOCK)
    assert [node.result.resolver for node in nodes] == ["one", "two", "shelf"]
    assert CLOCK.monotonic() - before < 9


@pytest.mark.parametrize(("depth", "told"), [(40, "at most 16 levels")])
async def test_a_chain_without_end_is_ended(depth: int, told: str) -> None:
    files = {f"f{number}": build_document("f", nextRef={"path": f"f{number + 1}"}) for number in range(depth)}
    engine = build_engine(FakeSource({"1": files}))
    with pytest.raises(ResolutionError, match=told):
        await resolve_tree(engine, engine.registry, [ParsedReference((build_reference("f0"),))], WEB, clock=CLOCK)


async def test_a_tree_that_is_too_wide_is_ended() -> None:
    wide = build_document("w", tasks=[{"taskRef": {"path": f"t{number}"}} for number in range(300)])
    library = FakeSource({"1": {"w": wide}})
    engine = build_engine(library)
    with pytest.raises(ResolutionError, match="expected at most 200 definitions in a tree"):
        await resolve_tree(engine, engine.registry, [ParsedReference((build_reference("w"),))], WEB, clock=CLOCK)
    assert library.fetched == ["w@1"]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (b"", "a.lock: not a lock file: Expected `object`, got `null`"),
        (b"<<<<<<< ours\n", "a.lock: not a lock file: Expected `object`, got `str`"),
        (b"a: [\n", "a.lock, line 2: not a lock file"),
        (b"entries: []\nentries: []\n", "a.lock, line 2: not a lock file: duplicate field"),
        (b"apiVersion: resolution.konverge.dev/v9\nkind: DefinitionLock\nentries: []\n", "apiVersion: expected"),
        (
            b"apiVersion: resolution.konverge.dev/v1alpha1\nkind: Lock\nentries: []\n",
            "expected DefinitionLock, found Lock",
        ),
        (b"[" * 10_000, "not a lock file: "),
        (b" " * (5 << 20), "a.lock: expected a lock file of at most 4 MiB"),
    ],
)
def test_a_broken_lock_file_is_refused_in_one_sentence(text: bytes, told: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        LockFile.parse(text, file="a.lock")
    assert told in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("before", "after", "told"),
    [
        (
            "digest: sha256:",
            "digest: sha1:",
            "a.lock: not a lock file: entries[0].digest: Expected `str` matching regex",
        ),
        ("resolver: library", "resolver: 1", "entries[0].resolver: Expected `str`, got `int`"),
        ("- digest:", "- extra: 1\n  digest:", "entries[0]: Object contains unknown field `extra`"),
        ("version: main", "version: '2'", "two entries for the same reference"),
    ],
)
def test_a_broken_entry_is_refused_with_its_field(before: str, after: str, told: str) -> None:
    source = Provenance(ROOT, {})
    digest = str(Digest.of(b"a"))
    lock = LockFile(
        LockEntry(resolver="library", digest=digest, source=source, params={"path": "a", "version": version})
        for version in ("main", "2")
    )
    text = lock.serialize()
    assert before in text
    with pytest.raises(ConfigurationError) as caught:
        LockFile.parse(text.replace(before, after).encode(), file="a.lock")
    assert told in str(caught.value)


def test_content_is_taken_from_a_folder_only_if_it_is_what_its_name_says(tmp_path: Path) -> None:
    folder = ContentStore(tmp_path / "made")
    digest = folder.add(b"content")
    assert folder.get(digest) == b"content"
    assert folder.get(Digest.of(b"other")) is None
    (path,) = (tmp_path / "made").iterdir()
    path.write_bytes(b"changed")
    with pytest.raises(ResolutionError, match="the content does not match the digest in the name; remove it") as caught:
        folder.get(digest)
    assert caught.value.reason is Reason.DIGEST_MISMATCH


def test_a_link_and_a_pipe_in_the_folder_are_not_read(tmp_path: Path) -> None:
    folder, digest = ContentStore(tmp_path), Digest.of(b"content")
    path = tmp_path / f"sha256-{digest.hex}"
    (tmp_path / "elsewhere").write_bytes(b"content")
    path.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(ResolutionError):
        folder.get(digest)
    path.unlink()
    os.mkfifo(path)
    with pytest.raises(ResolutionError, match="expected a regular file"):
        folder.get(digest)


def test_a_folder_removes_nothing_that_a_lock_file_may_name(tmp_path: Path) -> None:
    folder = ContentStore(tmp_path)
    digests = [folder.add(b"%d" % number) for number in range(60)]
    assert len(list(tmp_path.iterdir())) == len(digests)
    folder.keep_only(digests[:1])
    assert [path.name for path in tmp_path.iterdir()] == [f"sha256-{digests[0].hex}"]


@pytest.mark.slow
def test_a_folder_has_room_for_definitions_of_the_largest_size(tmp_path: Path) -> None:
    folder = ContentStore(tmp_path)
    blank = bytes(MAX_CONTENT_BYTES - 4)
    digests = [
        folder.add(number.to_bytes(4, "big") + blank) for number in range(260)
    ]  # a cache would have removed some
    assert all(folder.get(digest) is not None for digest in digests)


WRITER = """
import os, sys
from pathlib import Path
from konverge_resolution._internal import content_store
os.replace = lambda *_: (print("ready", flush=True), sys.stdin.read())
content_store.replace_file(Path(sys.argv[1]), b"half")
"""


@pytest.mark.slow
def test_what_a_killed_process_has_left_is_removed_and_nothing_of_a_running_one(tmp_path: Path) -> None:
    own = tmp_path / f"sha256-{'a' * 64}"
    mine = tmp_path / ".ci.lock.yaml.backup12"
    mine.write_text("")
    command = [sys.executable, "-c", WRITER, str(own)]
    with (
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as killed,
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as running,
    ):
        for writer in (killed, running):
            assert writer.stdout is not None
            assert writer.stdout.readline() == b"ready\n"
        killed.kill()
        killed.wait()
        assert len(list(tmp_path.glob(".sha256-*"))) == 2
        ContentStore(tmp_path).add(b"content")
        assert len(list(tmp_path.glob(".sha256-*"))) == 1
        running.kill()
    remove_leftovers(tmp_path, "other")
    assert len(list(tmp_path.glob(".sha256-*"))) == 1
    remove_leftovers(tmp_path, own.name)
    assert not list(tmp_path.glob(".sha256-*"))
    assert mine.exists()
