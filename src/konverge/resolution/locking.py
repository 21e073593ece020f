"""Definitions by a lock file: resolved as an engine does, and only to what the lock file says.

They come from a folder with content, or from their source under the name that is for ever. What has no entry is
refused, or resolved and added.
"""

from __future__ import annotations

import asyncio

from konverge.errors import ConfigurationError
from konverge.resolution.content_folder import ContentFolder
from konverge.resolution.engine import Engine, Outcome, Requester
from konverge.resolution.errors import ResolutionError
from konverge.resolution.lock import MAX_LOCK_ENTRIES, Lock, LockEntry
from konverge.resolution.lock_lookup import LockLookup, defaults_of
from konverge.resolution.planning import OF_THE_ENGINE
from konverge.resolution.reasons import Reason
from konverge.resolution.reference import Digest, Reference
from konverge.resolution.result import Resolved

__all__ = ["LockedDefinitions"]


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
            entry, outcome = await self._added(reference, requester, seconds)
        else:
            outcome = await self._locked(reference, entry, requester, seconds)
        self.used = self.used.having(entry)
        return outcome

    async def _added(
        self, reference: Reference, requester: Requester, seconds: float | None
    ) -> tuple[LockEntry, Outcome]:
        if not self._may_add:
            raise ResolutionError(Reason.NOT_FOUND, f"{self._lookup.missing(reference)}; lock it first")
        self._check_room()
        outcome = await self._engine.resolve(reference, requester, seconds=seconds)
        await self._keep(outcome)
        self._check_room()  # others have been added meanwhile
        entry = LockEntry.of(reference, outcome, defaults_of(reference, self._engine.registry))
        self._lookup.add(entry)
        return entry, outcome

    def _check_room(self) -> None:
        if len(self.lock) >= MAX_LOCK_ENTRIES:
            raise ResolutionError(Reason.TOO_LARGE, f"a lock file has at most {MAX_LOCK_ENTRIES} entries")

    async def _locked(
        self, reference: Reference, entry: LockEntry, requester: Requester, seconds: float | None
    ) -> Outcome:
        digest = Digest.parse(entry.digest)
        data = None if self._contents is None else await asyncio.to_thread(self._contents.get, digest)
        if data is not None:
            pinned = {name: value for name, value in entry.pinned.items() if name not in OF_THE_ENGINE}
            outcome = await self._engine.judge(entry.reference, requester, Resolved(data, entry.source, pinned=pinned))
        elif self._is_offline:
            told = f"offline, and the content {entry.digest} of {entry.source} is not here"
            raise ResolutionError(Reason.UNREACHABLE, told)
        else:
            try:
                outcome = await self._engine.resolve(entry.reference, requester, seconds=seconds)
            except ResolutionError as error:
                if error.reason is Reason.NOT_FOUND:
                    told = "it is what the lock file has: lock it again with --update for what is there now"
                    raise ResolutionError(Reason.NOT_FOUND, f"{error.message}; {told}") from None
                if error.reason is not Reason.DIGEST_MISMATCH:
                    raise
                told = f"{entry.source} has other content now than the {entry.digest} of the lock file"
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
