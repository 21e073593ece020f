"""Definitions by a lock file, and the tree of everything that a definition refers to.

`LockedDefinitions` resolves as an engine does, and only to what the lock file says: from a folder with content, or from
the source under the name that is for ever. What has no entry is refused, or resolved and added.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from konverge.clock import Clock
from konverge.errors import ConfigurationError
from konverge.resolution.content_folder import ContentFolder
from konverge.resolution.engine import OF_THE_ENGINE, Engine, Outcome, Requester
from konverge.resolution.errors import ResolutionError
from konverge.resolution.failover import Answer, Resolves, resolve_first
from konverge.resolution.lock import MAX_LOCK_ENTRIES, Lock, LockEntry
from konverge.resolution.lock_lookup import LockLookup, defaults_of
from konverge.resolution.reasons import Reason
from konverge.resolution.reference import Digest, Reference, canonical_json
from konverge.resolution.registry import Registry
from konverge.resolution.relative import Container, relative_reference
from konverge.resolution.result import Resolved
from konverge.resolution.written import WrittenReference, read_reference, references_in

__all__ = ["LockedDefinitions", "Node", "resolve_tree"]

_MAX_DEPTH = 16


class LockedDefinitions:
    """Resolves references to what a lock file has of them (`konverge.resolution.failover.Resolves`).

    Args:
        engine: Asks the sources, and judges what is taken from the folder: policies and signatures count all the same.
        lock: The lock file.
        contents: Content that is here already; None for none.
        is_offline: Ask no source.
        may_add: Resolve what has no entry, and add one.

    Attributes:
        used: What was asked for; a lock file with these entries has nothing that nobody needs.
    """

    def __init__(
        self,
        engine: Engine,
        lock: Lock,
        contents: ContentFolder | None = None,
        *,
        is_offline: bool = False,
        may_add: bool = False,
    ) -> None:
        self.used = Lock()
        self._lookup = LockLookup(lock, engine.registry)
        self._engine = engine
        self._contents = contents
        self._is_offline = is_offline
        self._may_add = may_add and not is_offline

    @property
    def lock(self) -> Lock:
        """The lock file with what was added."""
        return self._lookup.lock

    def find(self, reference: Reference) -> LockEntry | None:
        """The entry of a reference, its resolver's defaults counting as written; None when it is not locked."""
        return self._lookup.find(reference)

    async def resolve(self, reference: Reference, requester: Requester, *, seconds: float | None = None) -> Outcome:
        """Get what the lock file says that a reference names.

        Args:
            reference: The reference.
            requester: Who asks.
            seconds: How long it may take.

        Raises:
            ResolutionError: ``NotFound``: it has no entry; ``DigestMismatch``: its source has something else now, or
                the reference wants something else; ``Unreachable``: nothing may be asked, and the content is not here.
        """
        reference.check()
        entry = self.find(reference)
        if entry is None:
            outcome = await self._added(reference, requester, seconds)
            entry = LockEntry.of(reference, outcome, defaults_of(reference, self._engine.registry))
            self._lookup.add(entry)
        else:
            outcome = await self._locked(reference, entry, requester, seconds)
        self.used = self.used.having(entry)
        return outcome

    async def _added(self, reference: Reference, requester: Requester, seconds: float | None) -> Outcome:
        if not self._may_add:
            raise ResolutionError(Reason.NOT_FOUND, f"{self._lookup.missing(reference)}; lock it first")
        if len(self.lock) >= MAX_LOCK_ENTRIES:
            raise ResolutionError(Reason.TOO_LARGE, f"a lock file has at most {MAX_LOCK_ENTRIES} entries")
        outcome = await self._engine.resolve(reference, requester, seconds=seconds)
        await self._keep(outcome)
        return outcome

    async def _locked(
        self, reference: Reference, entry: LockEntry, requester: Requester, seconds: float | None
    ) -> Outcome:
        digest = Digest.parse(entry.digest)
        data = None if self._contents is None else await asyncio.to_thread(self._contents.get, digest)
        if data is not None:
            pinned = {name: value for name, value in entry.pinned.items() if name not in OF_THE_ENGINE}
            outcome = await self._engine.judge(entry.reference, requester, Resolved(data, entry.source, pinned=pinned))
        elif self._is_offline:
            told = f"offline, and the content {entry.digest} of {entry.source.uri} is not here"
            raise ResolutionError(Reason.UNREACHABLE, told)
        else:
            try:
                outcome = await self._engine.resolve(entry.reference, requester, seconds=seconds)
            except ResolutionError as error:
                if error.reason is not Reason.DIGEST_MISMATCH:
                    raise
                told = f"{entry.source.uri} has other content now than the {entry.digest} of the lock file"
                raise ResolutionError(
                    Reason.DIGEST_MISMATCH, f"{told}; if that is meant, lock it again with --update"
                ) from None
            await self._keep(outcome)
        if reference.digest is not None and not reference.digest.fits(outcome.resolved.data):
            told = f"the reference asks for {reference.digest}, and the lock file has {entry.digest}"
            raise ResolutionError(Reason.DIGEST_MISMATCH, told)
        return outcome

    async def _keep(self, outcome: Outcome) -> None:
        if self._contents is None:
            return
        try:
            await asyncio.to_thread(self._contents.put, outcome.resolved.data)
        except OSError as error:
            raise ConfigurationError(f"{self._contents.folder}: {error.strerror}") from error


@dataclass(frozen=True, slots=True)
class Node:
    """One definition of a tree.

    Args:
        where: The field that refers to it, in the definition of `parent`; empty for a root.
        reference: What it was asked for by: what a path meant, and of several sources the one that answered.
        answer: What came.
        parent: The index of the definition that refers to it first; None for a root.
    """

    where: str
    reference: Reference
    answer: Answer
    parent: int | None = None

    @property
    def container(self) -> Container:
        """It, for what it refers to."""
        return Container(self.reference, self.answer.outcome.resolved)


async def resolve_tree(
    source: Resolves,
    registry: Registry,
    roots: Sequence[WrittenReference],
    requester: Requester,
    *,
    clock: Clock,
    seconds: float | None = None,
    default_resolvers: Sequence[str] = (),
    max_nodes: int = 200,
) -> list[Node]:
    """Get definitions and everything that they refer to, each once, also where they refer to each other in a circle.

    What one definition refers to is asked for at once.

    Args:
        source: Resolves each.
        registry: The resolvers, for paths.
        roots: Where to begin.
        requester: Who asks.
        clock: The time.
        seconds: How long all of it may take.
        default_resolvers: Who is asked, in order, when a reference names nobody.
        max_nodes: How many definitions it may have.

    Returns:
        The roots in their order, then what they refer to, level by level.

    Raises:
        ResolutionError: Something of it cannot be had; the message says which field of which definition names it.
    """
    ends = None if seconds is None else clock.monotonic() + seconds
    wanted: list[tuple[str, int | None, WrittenReference]] = [("", None, root) for root in roots]
    found: list[Node] = []
    seen: set[bytes] = set()
    for _ in range(_MAX_DEPTH):
        level: list[tuple[str, int | None, tuple[Reference, ...]]] = []
        for where, parent, written in wanted:
            with _placed(where, parent, found):
                choices = written.choices or (_beside(registry, found, parent, written),)
            key = canonical_json([[each.resolver, each.params, str(each.digest)] for each in choices])
            if key not in seen or parent is None:
                seen.add(key)
                level.append((where, parent, choices))
        if len(found) + len(level) > max_nodes:
            raise ResolutionError(Reason.TOO_LARGE, f"expected at most {max_nodes} definitions in a tree, found more")
        left = None if ends is None else max(0.0, ends - clock.monotonic())
        answers = await asyncio.gather(
            *(resolve_first(source, choices, requester, clock=clock, seconds=left) for *_, choices in level),
            return_exceptions=True,
        )
        wanted = []
        first = len(found)
        for (where, parent, _), answer in zip(level, answers, strict=True):
            with _placed(where, parent, found):
                if isinstance(answer, BaseException):
                    raise answer
            found.append(Node(where, answer.reference, answer, parent))
        for index in range(first, len(found)):
            for where, value in references_in(found[index].answer.outcome.object):
                with _placed(where, index, found):
                    written = read_reference(value, default_resolvers=default_resolvers, where=where)
                wanted.append((where, index, written))
        if not wanted:
            return found
    raise ResolutionError(Reason.TOO_LARGE, f"expected definitions that refer to each other at most {_MAX_DEPTH} deep")


def _beside(registry: Registry, found: Sequence[Node], parent: int | None, written: WrittenReference) -> Reference:
    if parent is None:
        told = f"path {written.path[:120]!r}: expected a definition in which it stands; name a resolver"
        raise ResolutionError(Reason.INVALID_PARAMETERS, told)
    return relative_reference(registry, found[parent].container, written.path, digest=written.digest)


@contextmanager
def _placed(where: str, parent: int | None, found: Sequence[Node]) -> Iterator[None]:
    """Say of a failure in the block which field of which definition it concerns."""
    try:
        yield
    except ResolutionError as error:
        if parent is None:
            raise
        told = f"{where} of {_named(found[parent])}: {error.message}"
        raise ResolutionError(error.reason, told, retry_after_seconds=error.retry_after_seconds, where=where) from None


def _named(node: Node) -> str:
    source = node.answer.outcome.resolved.source
    return f"{source.uri}#{source.entry_point}" if source.entry_point else source.uri
