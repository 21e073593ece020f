"""Policies judge what was asked for; what that was pinned to passes, and nothing else does."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from konverge_resolution import Digest, Provenance, Reason, Reference, ResolutionError, ResolvedContent
from konverge_resolution._internal.content_store import ContentStore
from konverge_resolution._internal.engine import Requester
from konverge_resolution._internal.lock_file import LockFile
from konverge_resolution._internal.locked_resolver import LockedResolver
from konverge_resolution._internal.policy import Policy
from konverge_resolution._internal.reference_parsing import ParsedReference
from konverge_resolution._internal.reference_tree import resolve_tree
from konverge_resolution._internal.resolver_registry import ResolverRegistry
from konverge_resolution._internal.resolvers.bundles import BundlesResolver
from konverge_resolution._internal.resolvers.git import GitResolver
from konverge_resolution.relative_references import ParentDefinition, build_relative_reference
from tests.resolution.fake_source import CLOCK, WEB, FakeSource, build_document, build_engine, build_reference

pytestmark = pytest.mark.anyio

COMMIT = "c" * 40


def releases(**parameters: tuple[str, ...]) -> Policy:
    """A policy that lets the branch be fetched, and no number by itself."""
    return Policy("releases", parameters={"version": ("main", "v*"), **parameters})


@pytest.fixture
def library() -> FakeSource:
    files = {
        "ci/p.yaml": build_document("p", taskRef={"path": "../t.yaml"}),
        "t.yaml": build_document("t", ref={"path": "u.yaml"}),
    }
    return FakeSource({"1": {**files, "u.yaml": build_document("u")}, "2": {}})


async def expect_denial(engine: Any, reference: Reference, requester: Requester = WEB) -> str:
    with pytest.raises(ResolutionError) as caught:
        await engine.resolve(reference, requester)
    assert caught.value.reason is Reason.DENIED
    return caught.value.message


async def test_a_path_beside_a_definition_of_a_branch_passes_where_the_branch_does(library: FakeSource) -> None:
    engine = build_engine(library, policies=[releases()])
    roots = [ParsedReference((build_reference("ci/p.yaml"),))]
    nodes = await resolve_tree(engine, engine.registry, roots, WEB, clock=CLOCK)
    assert library.fetched == ["ci/p.yaml@1", "t.yaml@1", "u.yaml@1"]
    assert {node.result.policies for node in nodes} == {("releases",)}


async def test_a_path_is_judged_where_it_leads(library: FakeSource) -> None:
    engine = build_engine(library, policies=[releases(path=("ci/*",))])
    roots = [ParsedReference((build_reference("ci/p.yaml"),))]
    with pytest.raises(ResolutionError, match="it allows other values of parameter 'path'"):
        await resolve_tree(engine, engine.registry, roots, WEB, clock=CLOCK)
    assert library.fetched == ["ci/p.yaml@1"]


async def test_what_is_locked_passes_where_the_branch_does(library: FakeSource, tmp_path: Path) -> None:
    contents = await asyncio.to_thread(ContentStore, tmp_path)
    roots = [ParsedReference((build_reference("ci/p.yaml"),))]
    free = build_engine(library)
    locking = LockedResolver(free, LockFile(), contents, may_add=True)
    await resolve_tree(locking, free.registry, roots, WEB, clock=CLOCK)
    library.heads["main"] = "2"
    for policies, offline in (([releases()], False), ([releases()], True)):
        engine = build_engine(library, policies=policies)
        locked = LockedResolver(engine, locking.lock, contents if offline else None, is_offline=offline)
        assert len(await resolve_tree(locked, engine.registry, roots, WEB, clock=CLOCK)) == 3
    other = Policy("tags", parameters={"version": ("v*",)})
    for offline in (False, True):
        engine = build_engine(library, policies=[other])
        locked = LockedResolver(engine, locking.lock, contents if offline else None, is_offline=offline)
        assert "it allows other values of parameter 'version'" in await expect_denial(
            locked, build_reference("ci/p.yaml")
        )


async def test_a_version_that_was_asked_for_by_itself_is_judged_by_itself(library: FakeSource) -> None:
    engine = build_engine(library, policies=[releases()])
    assert "it allows other values of parameter 'version'" in await expect_denial(
        engine, build_reference("u.yaml", "1")
    )
    outcome = await engine.resolve(build_reference("ci/p.yaml"), WEB)
    (first,) = [
        build_relative_reference(
            engine.registry, ParentDefinition(build_reference("ci/p.yaml"), outcome.resolved), "../t.yaml"
        )
    ]
    assert (first.params["version"], first.unpinned) == ("1", {"path": "t.yaml", "version": "main"})
    # By a number that nobody may ask for, no path leads anywhere either.
    by_number = ParentDefinition(build_reference("ci/p.yaml", "1"), outcome.resolved)
    assert await expect_denial(engine, build_relative_reference(engine.registry, by_number, "../t.yaml"))


def test_what_a_path_means_keeps_the_names_that_were_asked_for_and_its_own() -> None:
    given = {"url": "https://a.example/r", "pathInRepo": "ci/p.yaml"}
    pinned = {**given, "revision": COMMIT, "gitUser": "git"}
    container = ParentDefinition(
        Reference("git", {**given, "cache": "never"}), ResolvedContent(b"", Provenance("u", {}), pinned=pinned)
    )
    registry = ResolverRegistry.of([GitResolver()], {"git": {"default-revision": "stable"}})
    first = build_relative_reference(registry, container, "../t.yaml")
    assert first.params["revision"] == COMMIT
    expected = {"url": "https://a.example/r", "gitUser": "git", "revision": "stable", "cache": "never"}
    assert first.unpinned == {**expected, "pathInRepo": "t.yaml"}
    resolved = ResolvedContent(b"", Provenance("u", {}), pinned={**pinned, "pathInRepo": "t.yaml"})
    again = build_relative_reference(registry, ParentDefinition(first, resolved), "u.yaml")
    assert again.unpinned == {**expected, "pathInRepo": "u.yaml"}


def test_another_layer_of_an_image_is_asked_for_by_the_tag_and_by_its_own_name() -> None:
    image = f"registry.example/team/boxes@{Digest.of(b'a')}"
    given = {"bundle": "registry.example/team/boxes:main", "name": "a"}
    resolved = ResolvedContent(b"", Provenance("u", {}), pinned={**given, "kind": "task", "bundle": image})
    found = build_relative_reference(
        ResolverRegistry.of([BundlesResolver()]), ParentDefinition(Reference("bundles", given), resolved), "../pod/b"
    )
    assert found.unpinned == {"bundle": "registry.example/team/boxes:main", "kind": "pod", "name": "b"}
