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
from konverge.resolution.lock_checks import LockedReference, make_entry, names_credential
from konverge.resolution.lock_lookup import LockLookup
from konverge.resolution.reasons import Reason
from konverge.resolution.reference import Reference

__all__ = ["LockedDefinitions"]


class LockedDefinitions:
    """Resolves references to what a lock file has of them (`konverge.resolution.failover.Resolves`).

    Args:
        engine: Asks the sources, and judges what is taken from the folder: policies and signatures count all the same.
        lock: The lock file.
        contents: Content that is here already; None for none.
        is_offline: Ask no source.
        may_add: Resolve what has no entry, and add one.
        is_asked_by_lock: The references come from the lock file itself. Then no credential that they name is sent: who
            can change a lock file could have it sent to a server of their own.
        is_verifying: Get all content from its source again, also what is here, and compare it.

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
        is_asked_by_lock: bool = False,
        is_verifying: bool = False,
    ) -> None:
        self.used = Lock()
        self._lookup = LockLookup(lock, engine.registry)
        self._engine = engine
        self._contents = contents
        self._is_offline = is_offline
        self._may_add = may_add and not is_offline
        self._is_asked_by_lock = is_asked_by_lock
        self._is_verifying = is_verifying

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
            ResolutionError: ``NotFound``: it has no entry; ``DigestMismatch``: its entry does not fit, its source has
                something else now, or the reference wants something else; ``Unreachable``: nothing may be asked, and
                the content is not here; ``AuthRequired``: a credential is named by the lock file alone.
        """
        reference.check()
        entry = self.find(reference)
        if entry is None:
            entry, outcome = await self._added(reference, requester, seconds)
        else:
            outcome = await self._locked(self._lookup.check(entry, reference), requester, seconds)
        self.used = self.used.having(entry)
        return outcome

    async def _added(
        self, reference: Reference, requester: Requester, seconds: float | None
    ) -> tuple[LockEntry, Outcome]:
        if not self._may_add:
            raise ResolutionError(Reason.NOT_FOUND, f"{self._lookup.missing(reference)}; lock it first")
        self._check_room()
        self._check_credential(reference)
        outcome = await self._engine.resolve(reference, requester, seconds=seconds)
        await self._keep(outcome)
        self._check_room()  # others have been added meanwhile
        entry = make_entry(reference, outcome, self._engine.registry)
        self._lookup.add(entry)
        return entry, outcome

    def _check_room(self) -> None:
        if len(self.lock) >= MAX_LOCK_ENTRIES:
            raise ResolutionError(Reason.TOO_LARGE, f"a lock file has at most {MAX_LOCK_ENTRIES} entries")

    def _check_credential(self, reference: Reference) -> None:
        if self._is_asked_by_lock and names_credential(reference, self._engine.registry):
            told = f"{self.lock.file} names a credential, and none is sent to a place that only a lock file names"
            raise ResolutionError(
                Reason.AUTHENTICATION_REQUIRED, f"{told}; give the reference itself: konverge resolve RESOLVER … --lock"
            )

    async def _locked(self, locked: LockedReference, requester: Requester, seconds: float | None) -> Outcome:
        entry = locked.entry
        data = await self._held(locked)
        if data is not None:
            locked.check_content(data)
            return await self._engine.judge(locked.settled, requester, locked.held(data))
        if self._is_offline:
            told = f"offline, and the content {entry.digest} of {entry.source} is not here"
            raise ResolutionError(Reason.UNREACHABLE, told)
        self._check_credential(locked.asked)
        try:
            outcome = await self._engine.resolve(locked.settled, requester, seconds=seconds)
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
        locked.check_content(outcome.resolved.data)
        await self._keep(outcome)
        return outcome

    async def _held(self, locked: LockedReference) -> bytes | None:
        """The content, if it is here and that is enough."""
        if self._contents is None or self._is_verifying:
            return None
        assert locked.settled.digest is not None, "a locked reference has the digest of its entry"
        return await asyncio.to_thread(self._contents.get, locked.settled.digest)

    async def _keep(self, outcome: Outcome) -> None:
        if self._contents is None:
            return
        try:
            await asyncio.to_thread(self._contents.put, outcome.resolved.data)
        except OSError as error:
            raise ConfigurationError(f"{self._contents.folder}: {error.strerror}") from error
