"""Lock files and trees: what they have, what a locked reference comes to, and what when its source lies."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Any

import msgspec
import pytest

from konverge.errors import ConfigurationError
from konverge.resolution import Digest, Fetch, Reason, Reference, ResolutionError, Resolved, Source
from konverge.resolution.content_folder import ContentFolder
from konverge.resolution.engine import Engine
from konverge.resolution.lock import MAX_LOCK_ENTRIES, Lock, LockEntry
from konverge.resolution.lock_checks import make_entry
from konverge.resolution.locking import LockedDefinitions
from konverge.resolution.policy import Policy, SourcePrefix
from konverge.resolution.tree import Node, resolve_tree
from konverge.resolution.written import WrittenReference, read_reference
from tests.resolution.library import CLOCK, ROOT, WEB, Library, asked, document, engine_of
from tests.resolution.shelf import Shelf

pytestmark = pytest.mark.anyio

TASK = document("t")
PIPELINE = document(
    "p",
    tasks=[
        {"taskRef": {"path": "../tasks/t.yaml"}},
        {"taskRef": {"resolver": "library", "params": [{"name": "path", "value": "other.yaml"}]}},
        {"taskRef": {"name": "local"}},
    ],
)
OTHER = document("o", again={"pipelineRef": {"resolver": "library", "params": {"path": "ci/p.yaml"}}})
FILES = {"ci/p.yaml": PIPELINE, "tasks/t.yaml": TASK, "other.yaml": OTHER}
PIPELINE_REFERENCE = WrittenReference((asked("ci/p.yaml"),))


def a_library() -> Library:
    return Library({"1": dict(FILES), "2": {name: data + b"# newer\n" for name, data in FILES.items()}})


async def tree_of(source: Any, engine: Engine, **more: Any) -> list[Node]:
    return await resolve_tree(source, engine.registry, [PIPELINE_REFERENCE], WEB, clock=CLOCK, **more)


async def locked(library: Library, folder: Path) -> Lock:
    engine = engine_of(library)
    source = LockedDefinitions(engine, Lock(), ContentFolder(folder), may_add=True)
    await tree_of(source, engine)
    return source.lock


async def test_a_tree_is_everything_that_is_referred_to_once_and_knows_who_does(tmp_path: Path) -> None:
    library = a_library()
    engine = engine_of(library)
    nodes = await tree_of(engine, engine)
    assert [(node.answer.outcome.object["metadata"]["name"], node.where, node.parent) for node in nodes] == [
        ("p", "", None),
        ("t", "spec.tasks[0].taskRef", 0),
        ("o", "spec.tasks[1].taskRef", 0),
        ("p", "spec.again.pipelineRef", 2),  # by another name than the first time: without the version
    ]


async def test_a_lock_file_has_digest_pin_and_source_of_the_whole_tree_sorted(tmp_path: Path) -> None:
    lock = await locked(a_library(), tmp_path)
    assert lock.text() == Lock(reversed(list(lock))).text() == Lock.read(lock.text().encode(), file="l").text()
    entry = lock.find(asked("ci/p.yaml"))
    assert entry == LockEntry(
        resolver="library",
        digest=str(Digest.of(PIPELINE)),
        params={"path": "ci/p.yaml", "version": "main"},
        pinned={"version": "1"},
        source=Source(ROOT, {"sha256": Digest.of(PIPELINE).hex}, "ci/p.yaml"),
    )
    assert [each.params["path"] for each in lock] == ["ci/p.yaml", "other.yaml", "tasks/t.yaml"]
    other = lock.find(Reference("library", {"path": "other.yaml"}))
    assert other is not None
    assert (other.params, other.defaults) == ({"path": "other.yaml"}, {"version": "main"})


async def test_what_is_locked_stays_when_its_branch_moves(tmp_path: Path) -> None:
    library = a_library()
    lock = await locked(library, tmp_path)
    library.heads["main"] = "2"
    engine = engine_of(library)
    nodes = await tree_of(LockedDefinitions(engine, lock), engine)
    assert [node.answer.outcome.resolved.data for node in nodes] == [PIPELINE, TASK, OTHER, PIPELINE]


async def test_what_is_locked_is_there_without_its_source(tmp_path: Path) -> None:
    lock = await locked(a_library(), tmp_path)
    gone = Library(failure=ResolutionError(Reason.UNREACHABLE, "gone"))
    engine = engine_of(gone)
    nodes = await tree_of(LockedDefinitions(engine, lock, ContentFolder(tmp_path), is_offline=True), engine)
    assert [node.answer.outcome.resolved.data for node in nodes] == [PIPELINE, TASK, OTHER, PIPELINE]
    assert {node.answer.outcome.fetched_from for node in nodes} == {"cache"}
    assert gone.fetched == []


async def test_offline_says_what_is_not_here_and_asks_nobody(tmp_path: Path) -> None:
    library = a_library()
    lock = await locked(library, tmp_path)
    library.fetched.clear()
    source = LockedDefinitions(engine_of(library), lock, ContentFolder(tmp_path / "empty"), is_offline=True)
    with pytest.raises(
        ResolutionError, match="offline, and the content sha256:.* of https://library.example#ci/p.yaml is not here"
    ):
        await source.resolve(asked("ci/p.yaml"), WEB)
    assert library.fetched == []


async def test_a_source_that_changes_what_is_pinned_is_found_out() -> None:
    library = a_library()
    engine = engine_of(library)
    entry = make_entry(asked("other.yaml"), await engine.resolve(asked("other.yaml"), WEB), engine.registry)
    library.versions["1"]["other.yaml"] = TASK
    told = "#other.yaml has other content now than the sha256:.* of the lock file"
    with pytest.raises(ResolutionError, match=told) as caught:
        await LockedDefinitions(engine_of(library), Lock([entry])).resolve(asked("other.yaml"), WEB)
    assert caught.value.reason is Reason.DIGEST_MISMATCH


async def test_what_is_locked_and_gone_from_its_source_is_told_with_the_way_out() -> None:
    library = a_library()
    engine = engine_of(library)
    entry = make_entry(asked("other.yaml"), await engine.resolve(asked("other.yaml"), WEB), engine.registry)
    del library.versions["1"]["other.yaml"]
    told = "it is what the lock file has: lock it again with --update for what is there now"
    with pytest.raises(ResolutionError, match=told) as caught:
        await LockedDefinitions(engine_of(library), Lock([entry])).resolve(asked("other.yaml"), WEB)
    assert caught.value.reason is Reason.NOT_FOUND


async def test_the_digest_of_a_reference_and_that_of_the_lock_file_have_to_be_one(tmp_path: Path) -> None:
    lock = await locked(a_library(), tmp_path)
    reference = Reference("library", {"path": "ci/p.yaml", "version": "main"}, Digest.of(b"other"))
    with pytest.raises(
        ResolutionError, match="digest: expected sha256:.*, for which the reference asks, found sha256:"
    ) as caught:
        await LockedDefinitions(engine_of(a_library()), lock).resolve(reference, WEB)
    assert caught.value.reason is Reason.DIGEST_MISMATCH


async def test_what_has_no_entry_is_refused_or_added() -> None:
    engine = engine_of(a_library())
    with pytest.raises(ResolutionError, match="the lock file has no entry for this reference to resolver 'library'"):
        await LockedDefinitions(engine, Lock()).resolve(asked("other.yaml"), WEB)
    adding = LockedDefinitions(engine, Lock(), may_add=True)
    await adding.resolve(asked("other.yaml"), WEB)
    assert len(adding.lock) == 1
    assert adding.used == adding.lock


async def test_a_lock_file_has_so_many_entries_also_when_they_come_at_once() -> None:
    entry = LockEntry(resolver="shelf", digest=str(Digest.of(b"")), source=Source(ROOT, {}))
    full = Lock(msgspec.structs.replace(entry, params={"url": str(number)}) for number in range(MAX_LOCK_ENTRIES - 1))
    source = LockedDefinitions(engine_of(a_library()), full, may_add=True)
    both = (source.resolve(asked(path), WEB) for path in ("other.yaml", "ci/p.yaml"))
    answers = await asyncio.gather(*both, return_exceptions=True)
    (refusal,) = (each for each in answers if isinstance(each, ResolutionError))
    assert (refusal.reason, refusal.message) == (Reason.TOO_LARGE, "a lock file has at most 1000 entries")
    assert len(Lock.read(source.lock.text().encode(), file="l")) == MAX_LOCK_ENTRIES


def test_a_lock_file_that_could_not_be_read_again_is_not_written(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("konverge.resolution.lock.MAX_LOCK_ENTRIES", 3)
    monkeypatch.setattr("konverge.resolution.lock.MAX_LOCK_BYTES", 1 << 20)
    entry = LockEntry(resolver="shelf", digest=str(Digest.of(b"")), source=Source(ROOT, {}))
    many = Lock(msgspec.structs.replace(entry, params={"url": str(number)}) for number in range(4))
    large = Lock([msgspec.structs.replace(entry, params={"url": "x" * (1 << 20)})])
    for lock in (many, large):
        with pytest.raises(ConfigurationError, match="expected a lock file of at most 3 entries and 1 MiB, found"):
            lock.text()


async def test_a_default_that_is_written_out_is_the_same_reference_whichever_was_locked() -> None:
    written, left_out = asked("other.yaml"), Reference("library", {"path": "other.yaml"})
    for first, second in ((written, left_out), (left_out, written)):
        library = a_library()
        source = LockedDefinitions(engine_of(library), Lock(), may_add=True)
        await source.resolve(first, WEB)
        library.heads["main"] = "2"
        again = LockedDefinitions(engine_of(library), Lock.read(source.lock.text().encode(), file="l"))
        assert (await again.resolve(second, WEB)).resolved.data == OTHER
        assert len(again.lock) == len(again.used) == 1


async def test_a_default_counts_as_it_was_when_it_was_locked() -> None:
    left_out = Reference("library", {"path": "other.yaml"})
    engine = engine_of(a_library())
    entry = make_entry(left_out, await engine.resolve(left_out, WEB), engine.registry)
    source = LockedDefinitions(engine, Lock([msgspec.structs.replace(entry, defaults={"version": "dev"})]))
    with pytest.raises(ResolutionError, match="differs in 'version'; lock it first"):
        await source.resolve(asked("other.yaml"), WEB)
    assert (await source.resolve(left_out, WEB)).resolved.data == OTHER


@pytest.mark.parametrize(
    ("reference", "told"),
    [
        (
            asked("other.yaml", "v2"),
            f"to resolver 'library'; the nearest, for {ROOT}, differs in 'version'; lock it first",
        ),
        (asked("x.yaml", "main", token="hunter2"), "differs in 'path', 'token'; lock it first"),
        (asked("x.yaml", "v2"), "for this reference to resolver 'library'; lock it first"),
        (asked("other.yaml", resolver="shelf"), "for this reference to resolver 'shelf'; lock it first"),
    ],
)
async def test_what_has_no_entry_is_told_with_what_the_nearest_has_otherwise(reference: Reference, told: str) -> None:
    engine = engine_of(a_library())
    source = LockedDefinitions(engine, Lock(), may_add=True)
    await source.resolve(asked("other.yaml"), WEB)
    await source.resolve(Reference("library", {"path": "tasks/t.yaml"}), WEB)
    with pytest.raises(ResolutionError) as caught:
        await LockedDefinitions(engine, source.lock).resolve(reference, WEB)
    assert str(caught.value).endswith(told)
    assert "hunter2" not in str(caught.value)


async def test_what_is_elsewhere_in_the_end_is_locked_by_the_name_of_that_place() -> None:
    moved = Reference("shelf", {"url": "https://a.example/box", "from": "https://b.example/box"})
    source = LockedDefinitions(engine_of(Shelf()), Lock(), may_add=True)
    told = "https://a.example/box leads to https://b.example/box, which a lock file needs: name that place"
    with pytest.raises(ResolutionError, match=told):
        await source.resolve(moved, WEB)
    assert len(source.lock) == 0


class PinsSomethingElse(Library):
    async def resolve(self, fetch: Fetch) -> Resolved:
        found = await super().resolve(fetch)
        return msgspec.structs.replace(found, pinned={**found.pinned, **self.heads})


@pytest.mark.parametrize(
    ("heads", "reason", "told"),
    [
        ({"path": "x"}, Reason.INTERNAL, "pins parameter 'path', which it does not declare as a version"),
        ({"version": "2"}, Reason.INVALID_PARAMETERS, "parameter 'version': 1 stands for 2, which a lock file needs"),
    ],
)
async def test_what_a_lock_file_could_not_be_asked_for_is_not_locked(
    heads: dict[str, str], reason: Reason, told: str
) -> None:
    library = PinsSomethingElse({"1": dict(FILES)}, heads)
    with pytest.raises(ResolutionError, match=told) as caught:
        await LockedDefinitions(engine_of(library), Lock(), may_add=True).resolve(asked("other.yaml", "1"), WEB)
    assert caught.value.reason is reason


async def test_how_it_is_cached_makes_no_other_entry() -> None:
    source = LockedDefinitions(engine_of(a_library()), Lock(), may_add=True)
    await source.resolve(asked("other.yaml"), WEB)
    await source.resolve(asked("other.yaml", cache="never"), WEB)
    assert len(source.lock) == 1


async def test_a_policy_counts_for_what_is_taken_from_the_folder_too(tmp_path: Path) -> None:
    lock = await locked(a_library(), tmp_path)
    policy = Policy("only-b", sources=(SourcePrefix.parse("https://b.example"),))
    source = LockedDefinitions(engine_of(a_library(), policies=[policy]), lock, ContentFolder(tmp_path))
    with pytest.raises(ResolutionError, match="no policy lets") as caught:
        await source.resolve(asked("ci/p.yaml"), WEB)
    assert caught.value.reason is Reason.DENIED


async def test_a_definition_that_cannot_be_had_is_named_with_the_field_that_wants_it() -> None:
    library = a_library()
    del library.versions["1"]["tasks/t.yaml"]
    engine = engine_of(library)
    with pytest.raises(ResolutionError) as caught:
        await tree_of(engine, engine)
    assert caught.value.reason is Reason.NOT_FOUND
    assert caught.value.message == (
        "spec.tasks[0].taskRef of https://library.example#ci/p.yaml: there is no tasks/t.yaml in version 1"
    )


async def test_a_path_out_of_the_source_is_refused_with_the_field_that_has_it() -> None:
    library = Library({"1": {"p": document("p", taskRef={"path": "../../x"})}})
    engine = engine_of(library)
    root = [WrittenReference((asked("p"),))]
    with pytest.raises(ResolutionError, match=r"spec.taskRef of .*: path '../../x': it leads out of its source"):
        await resolve_tree(engine, engine.registry, root, WEB, clock=CLOCK)
    with pytest.raises(ResolutionError, match="expected a definition in which it stands"):
        await resolve_tree(engine, engine.registry, [read_reference({"path": "a"})], WEB, clock=CLOCK)


async def test_one_owner_takes_definitions_from_several_kinds_of_sources_at_once() -> None:
    roots = [WrittenReference((asked("a", resolver=name),)) for name in ("one", "two")]
    roots.append(WrittenReference((Reference("shelf", {"url": "https://a.example/box"}),)))
    one, two = (Library({"1": {"a": document(name)}}, name=name, seconds=5) for name in ("one", "two"))
    engine = engine_of(one, two, Shelf())
    before = CLOCK.monotonic()
    nodes = await resolve_tree(engine, engine.registry, roots, WEB, clock=CLOCK)
    assert [node.answer.outcome.resolver for node in nodes] == ["one", "two", "shelf"]
    assert CLOCK.monotonic() - before < 9


@pytest.mark.parametrize(("depth", "told"), [(40, "at most 16 deep")])
async def test_a_chain_without_end_is_ended(depth: int, told: str) -> None:
    files = {f"f{number}": document("f", nextRef={"path": f"f{number + 1}"}) for number in range(depth)}
    engine = engine_of(Library({"1": files}))
    with pytest.raises(ResolutionError, match=told):
        await resolve_tree(engine, engine.registry, [WrittenReference((asked("f0"),))], WEB, clock=CLOCK)


async def test_a_tree_that_is_too_wide_is_ended() -> None:
    wide = document("w", tasks=[{"taskRef": {"path": f"t{number}"}} for number in range(300)])
    library = Library({"1": {"w": wide}})
    engine = engine_of(library)
    with pytest.raises(ResolutionError, match="expected at most 200 definitions in a tree"):
        await resolve_tree(engine, engine.registry, [WrittenReference((asked("w"),))], WEB, clock=CLOCK)
    assert library.fetched == ["w@1"]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (b"", "a.lock: no lock file: Expected `object`, got `null`"),
        (b"<<<<<<< ours\n", "a.lock: no lock file: Expected `object`, got `str`"),
        (b"a: [\n", "a.lock, line 2: no lock file"),
        (b"entries: []\nentries: []\n", "a.lock, line 2: no lock file: a field stands twice"),
        (b"apiVersion: resolution.konverge.dev/v9\nkind: DefinitionLock\nentries: []\n", "apiVersion: expected"),
        (
            b"apiVersion: resolution.konverge.dev/v1alpha1\nkind: Lock\nentries: []\n",
            "expected DefinitionLock, found Lock",
        ),
        (b"[" * 10_000, "no lock file: "),
        (b" " * (5 << 20), "a.lock: expected a lock file of at most 4 MiB"),
    ],
)
def test_a_broken_lock_file_is_refused_in_one_sentence(text: bytes, told: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        Lock.read(text, file="a.lock")
    assert told in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("before", "after", "told"),
    [
        (
            "digest: sha256:",
            "digest: sha1:",
            "a.lock: no lock file: entries[0].digest: Expected `str` matching regex",
        ),
        ("resolver: library", "resolver: 1", "entries[0].resolver: Expected `str`, got `int`"),
        ("- digest:", "- extra: 1\n  digest:", "entries[0]: Object contains unknown field `extra`"),
        ("version: main", "version: '2'", "two entries are for the same reference"),
    ],
)
def test_a_broken_entry_is_refused_with_its_field(before: str, after: str, told: str) -> None:
    source = Source(ROOT, {})
    digest = str(Digest.of(b"a"))
    lock = Lock(
        LockEntry(resolver="library", digest=digest, source=source, params={"path": "a", "version": version})
        for version in ("main", "2")
    )
    text = lock.text()
    assert before in text
    with pytest.raises(ConfigurationError) as caught:
        Lock.read(text.replace(before, after).encode(), file="a.lock")
    assert told in str(caught.value)


def test_content_is_taken_from_a_folder_only_if_it_is_what_its_name_says(tmp_path: Path) -> None:
    folder = ContentFolder(tmp_path / "made")
    digest = folder.put(b"content")
    assert folder.get(digest) == b"content"
    assert folder.get(Digest.of(b"other")) is None
    (path,) = (tmp_path / "made").iterdir()
    path.write_bytes(b"changed")
    with pytest.raises(ResolutionError, match="its content is not what its name says; remove it") as caught:
        folder.get(digest)
    assert caught.value.reason is Reason.DIGEST_MISMATCH


def test_a_link_and_a_pipe_in_the_folder_are_not_read(tmp_path: Path) -> None:
    folder, digest = ContentFolder(tmp_path), Digest.of(b"content")
    path = tmp_path / f"sha256-{digest.hex}"
    (tmp_path / "elsewhere").write_bytes(b"content")
    path.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(ResolutionError):
        folder.get(digest)
    path.unlink()
    os.mkfifo(path)
    with pytest.raises(ResolutionError, match="it is no file"):
        folder.get(digest)


def test_a_folder_keeps_so_much_and_what_came_last(tmp_path: Path) -> None:
    folder = ContentFolder(tmp_path, max_bytes=2500)
    digests = []
    for number in range(5):
        digests.append(folder.put(b"%d" % number * 1000))
        os.utime(tmp_path / f"sha256-{digests[-1].hex}", ns=(number, number))
    assert [folder.get(digest) is not None for digest in digests] == [False, False, False, True, True]
    few = ContentFolder(tmp_path, max_files=1)
    assert few.get(few.put(b"a")) == b"a"
    assert len(list(tmp_path.iterdir())) == 1
