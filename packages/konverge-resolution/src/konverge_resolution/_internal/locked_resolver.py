"""Resolver that uses a lock file: it returns only content that matches the locked digests.

The content comes from a folder, or from its source under its permanent name. A reference without an entry is refused,
or resolved and added.
"""

from __future__ import annotations

import asyncio

from konverge.errors import ConfigurationError
from konverge_resolution._internal.content_store import ContentStore
from konverge_resolution._internal.engine import Engine, Requester, ResolutionResult
from konverge_resolution._internal.errors import ResolutionError
from konverge_resolution._internal.lock_file import MAX_LOCK_ENTRIES, LockEntry, LockFile
from konverge_resolution._internal.lock_lookup import LockLookup
from konverge_resolution._internal.lock_validation import LockedReference, build_entry, has_credential
from konverge_resolution._internal.reasons import Reason
from konverge_resolution._internal.reference import Reference

__all__ = ["LockedResolver"]


class LockedResolver:
    """Resolver of references through a lock file (`source_failover.ReferenceResolver`).

    Args:
        engine: Resolves references, and verifies content of the folder with the same policies and signatures.
        lock: The lock file.
        contents: Folder with stored content; None for none.
        is_offline: Contact no source.
        may_add: Resolve references without an entry, and add their entries.
        is_from_lock_file: The references come from the lock file itself. Then no credential that they name is sent: an
            attacker who changes a lock file could otherwise redirect it to another server.
        is_verifying: Fetch all content from its source again, including stored content, and compare it.

    Attributes:
        used: The entries of resolved references; a lock file with only these has no unused entries.
    """

    def __init__(
        self,
        engine: Engine,
        lock: LockFile,
        contents: ContentStore | None = None,
        *,
        is_offline: bool = False,
        may_add: bool = False,
        is_from_lock_file: bool = False,
        is_verifying: bool = False,
    ) -> None:
        self.used = LockFile()
        self._lookup = LockLookup(lock, engine.registry)
        self._engine = engine
        self._contents = contents
        self._is_offline = is_offline
        self._may_add = may_add and not is_offline
        self._is_from_lock_file = is_from_lock_file
        self._is_verifying = is_verifying

    @property
    def lock(self) -> LockFile:
        """The lock file with added entries."""
        return self._lookup.lock

    def find(self, reference: Reference) -> LockEntry | None:
        """Return the entry of a reference, with the resolver's defaults applied; None when it is not locked."""
        return self._lookup.find(reference)

    async def resolve(
        self, reference: Reference, requester: Requester, *, seconds: float | None = None
    ) -> ResolutionResult:
        """Resolve a reference to its locked content.

        Args:
            reference: The reference.
            requester: The namespace and user of the request.
            seconds: Time limit in seconds.

        Raises:
            ResolutionError: ``NotFound``: it has no entry; ``DigestMismatch``: the entry or the reference does not
                match the content of the source; ``Unreachable``: offline, and the content is not stored;
                ``AuthRequired``: only the lock file names a credential.
        """
        reference.check()
        entry = self.find(reference)
        if entry is None:
            entry, outcome = await self._resolve_and_add(reference, requester, seconds)
        else:
            outcome = await self._resolve_entry(self._lookup.check(entry, reference), requester, seconds)
        self.used = self.used.with_entries(entry)
        return outcome

    async def _resolve_and_add(
        self, reference: Reference, requester: Requester, seconds: float | None
    ) -> tuple[LockEntry, ResolutionResult]:
        if not self._may_add:
            raise ResolutionError(Reason.NOT_FOUND, f"{self._lookup.describe_missing(reference)}; lock it first")
        self._check_entry_limit()
        self._check_credential(reference)
        outcome = await self._engine.resolve(reference, requester, seconds=seconds)
        await self._store_content(outcome)
        self._check_entry_limit()  # concurrent resolutions may have added entries
        entry = build_entry(reference, outcome, self._engine.registry)
        self._lookup.add(entry)
        return entry, outcome

    def _check_entry_limit(self) -> None:
        if len(self.lock) >= MAX_LOCK_ENTRIES:
            raise ResolutionError(Reason.TOO_LARGE, f"{self.lock.file}: expected at most {MAX_LOCK_ENTRIES} entries")

    def _check_credential(self, reference: Reference) -> None:
        if self._is_from_lock_file and has_credential(reference, self._engine.registry):
            message = f"{self.lock.file}: no credential is sent to a place that only the lock file names"
            raise ResolutionError(
                Reason.AUTHENTICATION_REQUIRED,
                f"{message}; resolve the reference itself: konverge resolve RESOLVER … --lock",
            )

    async def _resolve_entry(
        self, locked: LockedReference, requester: Requester, seconds: float | None
    ) -> ResolutionResult:
        entry = locked.entry
        data = await self._read_content(locked)
        if data is not None:
            locked.check_content(data)
            return await self._engine.validate_content(locked.pinned_reference, requester, locked.build_content(data))
        if self._is_offline:
            message = f"offline: the content {entry.digest} of {entry.source} is not stored; resolve it online first"
            raise ResolutionError(Reason.UNREACHABLE, message)
        self._check_credential(locked.reference)
        try:
            outcome = await self._engine.resolve(locked.pinned_reference, requester, seconds=seconds)
        except ResolutionError as error:
            if error.reason is Reason.NOT_FOUND:
                message = "the lock file names this version; lock the current version with --update"
                raise ResolutionError(Reason.NOT_FOUND, f"{error.message}; {message}") from None
            if error.reason is not Reason.DIGEST_MISMATCH:
                raise
            message = f"{entry.source}: the content differs from {entry.digest} in the lock file"
            raise ResolutionError(
                Reason.DIGEST_MISMATCH, f"{message}; if the change is intended, lock it again with --update"
            ) from None
        locked.check_content(outcome.resolved.data)
        await self._store_content(outcome)
        return outcome

    async def _read_content(self, locked: LockedReference) -> bytes | None:
        """Return stored content if there is any and it may be used."""
        if self._contents is None or self._is_verifying:
            return None
        assert locked.pinned_reference.digest is not None, "a locked reference has the digest of its entry"
        return await asyncio.to_thread(self._contents.get, locked.pinned_reference.digest)

    async def _store_content(self, outcome: ResolutionResult) -> None:
        if self._contents is None:
            return
        try:
            await asyncio.to_thread(self._contents.add, outcome.resolved.data)
        except OSError as error:
            raise ConfigurationError(f"{self._contents.folder}: {error.strerror}") from error
