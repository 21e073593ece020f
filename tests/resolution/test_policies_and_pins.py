"""Policies judge what was asked for; what that was pinned to passes, and nothing else does."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from konverge.resolution import Digest, Reason, Reference, ResolutionError, Resolved, Source
from konverge.resolution.content_folder import ContentFolder
from konverge.resolution.engine import Requester
from konverge.resolution.lock import Lock
from konverge.resolution.locking import LockedDefinitions
from konverge.resolution.policy import Policy
from konverge.resolution.registry import Registry
from konverge.resolution.relative import Container, relative_reference
from konverge.resolution.resolvers.bundles import BundlesResolver
from konverge.resolution.resolvers.git import GitResolver
from konverge.resolution.tree import resolve_tree
from konverge.resolution.written import WrittenReference
from tests.resolution.library import CLOCK, WEB, Library, asked, document, engine_of

pytestmark = pytest.mark.anyio

COMMIT = "c" * 40


def releases(**parameters: tuple[str, ...]) -> Policy:
    """A policy that lets the branch be fetched, and no number by itself."""
    return Policy("releases", parameters={"version": ("main", "v*"), **parameters})


@pytest.fixture
def library() -> Library:
    files = {"ci/p.yaml": document("p", taskRef={"path": "../t.yaml"}), "t.yaml": document("t", ref={"path": "u.yaml"})}
    return Library({"1": {**files, "u.yaml": document("u")}, "2": {}})


async def refused(engine: Any, reference: Reference, requester: Requester = WEB) -> str:
    with pytest.raises(ResolutionError) as caught:
        await engine.resolve(reference, requester)
    assert caught.value.reason is Reason.DENIED
    return caught.value.message


async def test_a_path_beside_a_definition_of_a_branch_passes_where_the_branch_does(library: Library) -> None:
    engine = engine_of(library, policies=[releases()])
    roots = [WrittenReference((asked("ci/p.yaml"),))]
    nodes = await resolve_tree(engine, engine.registry, roots, WEB, clock=CLOCK)
    assert library.fetched == ["ci/p.yaml@1", "t.yaml@1", "u.yaml@1"]
    assert {node.answer.outcome.policies for node in nodes} == {("releases",)}


async def test_a_path_is_judged_where_it_leads(library: Library) -> None:
    engine = engine_of(library, policies=[releases(path=("ci/*",))])
    roots = [WrittenReference((asked("ci/p.yaml"),))]
    with pytest.raises(ResolutionError, match="it allows other values of parameter 'path'"):
        await resolve_tree(engine, engine.registry, roots, WEB, clock=CLOCK)
    assert library.fetched == ["ci/p.yaml@1"]


async def test_what_is_locked_passes_where_the_branch_does(library: Library, tmp_path: Path) -> None:
    contents = await asyncio.to_thread(ContentFolder, tmp_path)
    roots = [WrittenReference((asked("ci/p.yaml"),))]
    free = engine_of(library)
    locking = LockedDefinitions(free, Lock(), contents, may_add=True)
    await resolve_tree(locking, free.registry, roots, WEB, clock=CLOCK)
    library.heads["main"] = "2"
    for policies, offline in (([releases()], False), ([releases()], True)):
        engine = engine_of(library, policies=policies)
        locked = LockedDefinitions(engine, locking.lock, contents if offline else None, is_offline=offline)
        assert len(await resolve_tree(locked, engine.registry, roots, WEB, clock=CLOCK)) == 3
    other = Policy("tags", parameters={"version": ("v*",)})
    for offline in (False, True):
        engine = engine_of(library, policies=[other])
        locked = LockedDefinitions(engine, locking.lock, contents if offline else None, is_offline=offline)
        assert "it allows other values of parameter 'version'" in await refused(locked, asked("ci/p.yaml"))


async def test_a_version_that_was_asked_for_by_itself_is_judged_by_itself(library: Library) -> None:
    engine = engine_of(library, policies=[releases()])
    assert "it allows other values of parameter 'version'" in await refused(engine, asked("u.yaml", "1"))
    outcome = await engine.resolve(asked("ci/p.yaml"), WEB)
    (first,) = [relative_reference(engine.registry, Container(asked("ci/p.yaml"), outcome.resolved), "../t.yaml")]
    assert (first.params["version"], first.unpinned) == ("1", {"path": "t.yaml", "version": "main"})
    # By a number that nobody may ask for, no path leads anywhere either.
    by_number = Container(asked("ci/p.yaml", "1"), outcome.resolved)
    assert await refused(engine, relative_reference(engine.registry, by_number, "../t.yaml"))


def test_what_a_path_means_keeps_the_names_that_were_asked_for_and_its_own() -> None:
    given = {"url": "https://a.example/r", "pathInRepo": "ci/p.yaml"}
    pinned = {**given, "revision": COMMIT, "gitUser": "git"}
    container = Container(Reference("git", {**given, "cache": "never"}), Resolved(b"", Source("u", {}), pinned=pinned))
    registry = Registry.of([GitResolver()], {"git": {"default-revision": "stable"}})
    first = relative_reference(registry, container, "../t.yaml")
    assert first.params["revision"] == COMMIT
    expected = {"url": "https://a.example/r", "gitUser": "git", "revision": "stable", "cache": "never"}
    assert first.unpinned == {**expected, "pathInRepo": "t.yaml"}
    resolved = Resolved(b"", Source("u", {}), pinned={**pinned, "pathInRepo": "t.yaml"})
    again = relative_reference(registry, Container(first, resolved), "u.yaml")
    assert again.unpinned == {**expected, "pathInRepo": "u.yaml"}


def test_another_layer_of_an_image_is_asked_for_by_the_tag_and_by_its_own_name() -> None:
    image = f"registry.example/team/boxes@{Digest.of(b'a')}"
    given = {"bundle": "registry.example/team/boxes:main", "name": "a"}
    resolved = Resolved(b"", Source("u", {}), pinned={**given, "kind": "task", "bundle": image})
    found = relative_reference(
        Registry.of([BundlesResolver()]), Container(Reference("bundles", given), resolved), "../pod/b"
    )
    assert found.unpinned == {"bundle": "registry.example/team/boxes:main", "kind": "pod", "name": "b"}
