"""What surrounds an author's pass over one owner: reading it, noting what is read, its finalizer."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Protocol, TypeAlias

from konverge.cache import Informer
from konverge.client.write_permit import WritePermit
from konverge.errors import NotFoundError, format_error
from konverge.kube import GroupVersionKind, Object, ObjectKey, is_deleting, parse_time
from konverge.runtime.cached_client import CachedClient, CachedClientFactory
from konverge.runtime.changes import Predicate
from konverge.runtime.controller import DEFAULT_TIMEOUT, DEFAULT_WORKERS, PartialFailureError, Result
from konverge.runtime.owner_assignment import OwnerAssignment
from konverge.runtime.read_tracking import ReadingOwner
from konverge.runtime.terminating_namespaces import TerminatingNamespaces

__all__ = ["Finalizer", "OwnerKind", "OwnerReconciler", "OwnerReporter", "ReconcileOwner"]

_log = logging.getLogger("konverge.runtime")

ReconcileOwner: TypeAlias = Callable[[Object, CachedClient], Awaitable[Result | None]]
"""One pass: the owner as it was read, and the client to read and write with."""


class OwnerReporter(Protocol):
    """Reports on owners whose passes fail; it must neither wait nor raise."""

    def report_failure(self, owner: Object, error: BaseException, times: int) -> bool:
        """A pass has failed, so many `times` in a row; tells whether that was reported."""

    def report_recovery(self, owner: Object) -> None:
        """A pass has succeeded after a failure that was reported."""


@dataclass(frozen=True, slots=True)
class Finalizer:
    """What has to be done before an owner may go.

    Args:
        names: The entries in ``metadata.finalizers``, which come and go together.
        finalize: One pass over an owner that is being deleted. None says that all is done; a `Result` that it is not.
        is_needed: Tells whether an owner gets it before its pass; None for every owner. Who has it keeps it until the
            end, since what it was needed for may still be there.
    """

    names: tuple[str, ...]
    finalize: ReconcileOwner
    is_needed: Callable[[Object], bool] | None = None


@dataclass(frozen=True, slots=True)
class OwnerKind:
    """A kind whose objects are reconciled.

    Args:
        name: What its controller is called in logs.
        gvk: The kind.
        reconcile: One pass.
        workers: How many owners at once.
        timeout: How long a pass may take.
        finalizer: What has to be done before an owner may go; None for nothing.
        when: Which of an owner's own changes call for a pass; None for all.
        report_deletion: One pass over an owner that is being deleted and that only others hold; None for nothing.
        reporter: Reports which owners fail; None reports nothing.
        forget: Is told of an owner that is gone, or not ours any more; None when nobody needs to know.
        kinds_of: Names the kinds that the passes over an owner will read, as far as that can be told; it never raises.
    """

    name: str
    gvk: GroupVersionKind
    reconcile: ReconcileOwner
    workers: int = DEFAULT_WORKERS
    timeout: timedelta = DEFAULT_TIMEOUT
    finalizer: Finalizer | None = None
    when: Predicate | None = None
    report_deletion: ReconcileOwner | None = None
    reporter: OwnerReporter | None = None
    forget: Callable[[ObjectKey], None] | None = None
    kinds_of: Callable[[Object], Iterable[GroupVersionKind]] | None = None


class OwnerReconciler:
    """The passes over the owners of one kind.

    Args:
        kind: The kind and its reconcile.
        clients: Make the client of each pass.
        assignment: Decides which owners are this process's to reconcile; None for all.
    """

    def __init__(
        self, kind: OwnerKind, clients: CachedClientFactory, assignment: OwnerAssignment | None = None
    ) -> None:
        self.kind = kind
        self._clients = clients
        self._assignment = assignment
        self._taken_over: set[ObjectKey] = set()
        self._deleted_at: dict[ObjectKey, datetime] = {}
        self._terminating: dict[ObjectKey, TerminatingNamespaces] = {}

    # What the controller reports (`konverge.runtime.controller_observer.FailureReporter`).

    def report_failure(self, key: ObjectKey, error: BaseException, times: int) -> bool:
        """Report that a pass over the owner of that key has failed, if there still is one, and it is ours."""
        owner = self._get_assigned_owner(key)
        return (
            owner is not None
            and self.kind.reporter is not None
            and self.kind.reporter.report_failure(owner, error, times)
        )

    def report_recovery(self, key: ObjectKey) -> None:
        """Report that a pass has succeeded again; for an owner that is being deleted, none has."""
        owner = self._get_assigned_owner(key)
        if owner is not None and not is_deleting(owner) and self.kind.reporter is not None:
            self.kind.reporter.report_recovery(owner)

    def list_keys(self) -> list[ObjectKey]:
        """The keys of all owners that there are and that are ours."""
        return [meta.key for meta in self._informer.store.iter_metadata() if self._is_assigned(meta.uid)]

    def mark_taken_over(self, keys: Iterable[ObjectKey]) -> None:
        """Another process may have worked on these owners until just now.

        What it wrote last may not have come through the watch yet: the next pass over each takes no object for absent
        before it has asked the server.
        """
        self._taken_over.update(keys)

    async def reconcile(self, key: ObjectKey) -> Result | None:
        """One pass over the owner of that key, if there is one, and it is ours."""
        reader = ReadingOwner(self.kind.gvk, key)
        reads, owner = self._clients.read_tracker, self._get_assigned_owner(key)
        self._record_deletion(key, owner)
        if owner is None or (is_deleting(owner) and not self._is_finalized_here(owner)):
            reads.forget(reader)
            self._taken_over.discard(key)
            self._terminating.pop(key, None)
            if self.kind.forget is not None:
                self.kind.forget(key)
            return None if owner is None else await self._report_deletion(owner, reader)
        is_complete = False
        reads.begin(reader)
        terminating = self._take_terminating(owner)
        try:
            permit = self._get_permit(owner)
            client = self._clients.build_client(
                reader, permit, doubts_absence=key in self._taken_over, terminating=terminating
            )
            result = await self._run_reconcile(owner, client)
            is_complete = True
            self._taken_over.discard(key)
        except Exception as error:
            # What is left to do for an owner that is being deleted is tried again, whatever becomes of its namespace.
            if is_deleting(owner) or not terminating.was_hit:
                raise
            return self._handle_refusal(key, terminating, error)
        finally:
            if not terminating.is_empty:
                self._terminating[key] = terminating
            reads.finish(reader, complete=is_complete)
        return result

    def _take_terminating(self, owner: Object) -> TerminatingNamespaces:
        """What earlier passes over this very owner have found out."""
        key, uid = ObjectKey.of(owner), str(owner["metadata"]["uid"])
        known = self._terminating.pop(key, None)
        if known is None or known.owner_uid != uid:
            return TerminatingNamespaces(uid, key.namespace)
        known.was_hit = False
        return known

    def _handle_refusal(self, key: ObjectKey, terminating: TerminatingNamespaces, error: Exception) -> Result | None:
        """A pass could not make what it should in a namespace that is being deleted: nobody has to mend that."""
        _log.info("%s %s: not finished, and not tried again for now: %s", self.kind.name, key, format_error(error))
        pause = terminating.compute_requeue_after(self._clients.clock.monotonic())
        if isinstance(error, PartialFailureError):
            pause = error.requeue_after if pause is None else min(pause, error.requeue_after)
        return None if pause is None else Result(requeue_after=pause)

    def list_deletion_times(self) -> list[datetime]:
        """Since when each owner is being deleted that is still there."""
        return list(self._deleted_at.values())

    def _record_deletion(self, key: ObjectKey, owner: Object | None) -> None:
        self._deleted_at.pop(key, None)
        if owner is not None and is_deleting(owner):
            self._deleted_at[key] = parse_time(owner["metadata"]["deletionTimestamp"])

    async def _report_deletion(self, owner: Object, reader: ReadingOwner) -> Result | None:
        if self.kind.report_deletion is None:
            return None
        result = await self.kind.report_deletion(owner, self._clients.build_client(reader, self._get_permit(owner)))
        self._clients.read_tracker.forget(reader)  # it reads nothing that it would have to be told of
        return result

    def _get_permit(self, owner: Object) -> WritePermit | None:
        return None if self._assignment is None else self._assignment.get_permit(owner["metadata"]["uid"])

    async def _run_reconcile(self, owner: Object, client: CachedClient) -> Result | None:
        finalizer = self.kind.finalizer
        if finalizer is None:
            return await self.kind.reconcile(owner, client)
        if not is_deleting(owner):
            # Before anything exists that would need it: a crash in between leaves nothing behind.
            return await self.kind.reconcile(await self._add_finalizer(owner, finalizer, client), client)
        result = await finalizer.finalize(owner, client)
        if result is None:
            await self._remove_finalizer(owner, finalizer, client)
        return result

    async def _add_finalizer(self, owner: Object, finalizer: Finalizer, client: CachedClient) -> Object:
        metadata = owner["metadata"]
        present = metadata.get("finalizers") or []
        missing = [name for name in finalizer.names if name not in present]
        if not missing or (finalizer.is_needed is not None and not finalizer.is_needed(owner)):
            return owner
        # The whole list is replaced: the version makes sure that nobody else's entry gets lost.
        body = {"metadata": {"resourceVersion": metadata["resourceVersion"], "finalizers": [*present, *missing]}}
        return await client.patch(self.kind.gvk, ObjectKey.of(owner), body, patch_type="merge")

    async def _remove_finalizer(self, owner: Object, finalizer: Finalizer, client: CachedClient) -> None:
        key, uid = ObjectKey.of(owner), owner["metadata"]["uid"]
        try:
            # What finalizing wrote to the owner, its status for one, has made the version that was read an old one.
            current = await client.get(self.kind.gvk, key)
            metadata = current["metadata"]
            if metadata["uid"] != uid:
                return
            rest = [entry for entry in metadata.get("finalizers") or [] if entry not in finalizer.names]
            body = {"metadata": {"resourceVersion": metadata["resourceVersion"], "finalizers": rest or None}}
            await client.patch(self.kind.gvk, key, body, patch_type="merge")
        except NotFoundError:
            return  # somebody has taken the finalizer away by hand

    def _get_assigned_owner(self, key: ObjectKey) -> Object | None:
        """The owner of that key, if there is one, and it is ours."""
        store = self._informer.store
        meta = store.get_metadata(key)
        return None if meta is None or not self._is_assigned(meta.uid) else store.get(key)

    def _is_assigned(self, uid: str) -> bool:
        return self._assignment is None or self._assignment.is_ours(uid)

    def _is_finalized_here(self, owner: Object) -> bool:
        finalizer = self.kind.finalizer
        present = owner["metadata"].get("finalizers") or ()
        return finalizer is not None and any(name in present for name in finalizer.names)

    @property
    def _informer(self) -> Informer:
        return self._clients.informers.running[self.kind.gvk]
