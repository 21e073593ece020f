"""Reconcile of one owner around the author's function: read the owner, track reads, manage the finalizer."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Protocol, TypeAlias

from konverge._internal.cache import Informer
from konverge._internal.client.write_permit import WritePermit
from konverge._internal.kube import GroupVersionKind, Object, ObjectKey, is_deleting, parse_time
from konverge._internal.runtime.cached_client import CachedClient, CachedClientFactory
from konverge._internal.runtime.changes import Predicate
from konverge._internal.runtime.controller import DEFAULT_TIMEOUT, DEFAULT_WORKERS, PartialFailureError, Result
from konverge._internal.runtime.owner_assignment import OwnerAssignment, OwnerFilter
from konverge._internal.runtime.read_tracking import ReadingOwner
from konverge._internal.runtime.terminating_namespaces import TerminatingNamespaces
from konverge.errors import NotFoundError, format_error

__all__ = ["Finalizer", "OwnerKind", "OwnerReconciler", "OwnerReporter", "ReconcileOwner"]

_log = logging.getLogger("konverge.runtime")

ReconcileOwner: TypeAlias = Callable[[Object, CachedClient], Awaitable[Result | None]]
"""Function that reconciles one owner: receives the owner as it was read, and the client for reads and writes."""


class OwnerReporter(Protocol):
    """Port for reports on owners whose reconciles fail. Implementations must neither wait nor raise."""

    def report_failure(self, owner: Object, error: BaseException, times: int) -> bool:
        """Report the latest of `times` consecutive failures; return whether it was reported."""

    def report_recovery(self, owner: Object) -> None:
        """Report a success that follows a reported failure."""


@dataclass(frozen=True, slots=True)
class Finalizer:
    """Work that must be done before an owner is deleted.

    Args:
        names: Entries in ``metadata.finalizers``; they are added and removed together.
        finalize: Reconciles an owner that is being deleted. It returns None when the work is complete, and a `Result`
            while it is not.
        is_needed: Returns whether an owner gets the finalizer before its reconcile; None for every owner. An owner
            keeps its finalizer until its deletion, since the objects that required it may still exist.
    """

    names: tuple[str, ...]
    finalize: ReconcileOwner
    is_needed: Callable[[Object], bool] | None = None


@dataclass(frozen=True, slots=True)
class OwnerKind:
    """A kind whose objects are reconciled.

    Args:
        name: Name of its controller in logs.
        gvk: The kind.
        reconcile: Reconciles one owner.
        workers: Number of owners that are reconciled concurrently.
        timeout: Time limit of one reconcile.
        finalizers: Work before the deletion of an owner, in order: each is complete before the next one begins.
        when: Selects the changes of an owner that trigger its reconcile; None for all.
        report_deletion: Reconciles an owner that is being deleted and has only finalizers of other controllers; None
            skips such owners.
        reporter: Reports owners whose reconciles fail; None reports nothing.
        forget: Called for an owner that is deleted or no longer assigned to this replica; None for no call.
        kinds_of: Returns the kinds that the reconciles of an owner are expected to read; it never raises.
    """

    name: str
    gvk: GroupVersionKind
    reconcile: ReconcileOwner
    workers: int = DEFAULT_WORKERS
    timeout: timedelta = DEFAULT_TIMEOUT
    finalizers: tuple[Finalizer, ...] = ()
    when: Predicate | None = None
    report_deletion: ReconcileOwner | None = None
    reporter: OwnerReporter | None = None
    forget: Callable[[ObjectKey], None] | None = None
    kinds_of: Callable[[Object], Iterable[GroupVersionKind]] | None = None


class OwnerReconciler:
    """Reconciles the owners of one kind.

    Args:
        kind: The kind and its reconcile function.
        clients: Builds the client of each reconcile.
        assignment: Decides which owners are assigned to this replica; None for all.
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

    # Methods of `runtime.controller_observer.FailureReporter`.

    def report_failure(self, key: ObjectKey, error: BaseException, times: int) -> bool:
        """Report a failed reconcile of the owner, if the owner still exists and is assigned to this replica."""
        owner = self._get_assigned_owner(key)
        return (
            owner is not None
            and self.kind.reporter is not None
            and self.kind.reporter.report_failure(owner, error, times)
        )

    def report_recovery(self, key: ObjectKey) -> None:
        """Report the recovery of the owner, unless it is being deleted: then its reconciles have not recovered."""
        owner = self._get_assigned_owner(key)
        if owner is not None and not is_deleting(owner) and self.kind.reporter is not None:
            self.kind.reporter.report_recovery(owner)

    def list_keys(self) -> list[ObjectKey]:
        """Return the keys of all owners that are assigned to this replica."""
        return [meta.key for meta in self._informer.store.iter_metadata() if self._is_assigned(meta.uid)]

    def mark_taken_over(self, keys: Iterable[ObjectKey]) -> None:
        """Mark owners that another replica may have reconciled until now.

        The last writes of that replica may not have arrived through the watch. The next reconcile of each owner
        therefore considers an object absent only after a request to the server confirms it.
        """
        self._taken_over.update(keys)

    def drop(self, part: OwnerFilter) -> None:
        """Forget the owners of a part, which another replica reconciles and reports from now on."""
        for meta in self._informer.store.iter_metadata():
            if part(meta.uid):
                self._drop_key(meta.key)

    async def reconcile(self, key: ObjectKey) -> Result | None:
        """Reconcile the owner with the key, if it exists and is assigned to this replica.

        An owner gets the finalizers before the author's function runs, and loses each when its `Finalizer.finalize`
        returns None. An owner that waits only for finalizers of other controllers goes to `OwnerKind.report_deletion`.
        """
        kind, reads = self.kind, self._clients.read_tracker
        reader, owner = ReadingOwner(kind.gvk, key), self._get_assigned_owner(key)
        if owner is None or (is_deleting(owner) and not self._is_finalized_here(owner)):
            self._forget(reader)
            self._record_deletion(key, owner)
            if owner is None or kind.report_deletion is None:
                return None
            try:
                return await kind.report_deletion(owner, self._clients.build_client(reader, self._get_permit(owner)))
            finally:
                reads.forget(reader)  # a change of an object that it read must not trigger a reconcile
        self._record_deletion(key, owner)
        is_complete = False
        reads.begin(reader)
        terminating = self._take_terminating(owner)
        try:
            permit, doubts_absence = self._get_permit(owner), key in self._taken_over
            client = self._clients.build_client(reader, permit, doubts_absence=doubts_absence, terminating=terminating)
            if is_deleting(owner):
                result = await self._finalize(owner, client)
            else:
                # Before any object exists that requires a finalizer: a crash in between leaves nothing behind.
                for finalizer in kind.finalizers:
                    owner = await self._add_finalizer(owner, finalizer, client)
                result = await kind.reconcile(owner, client)
            is_complete = True
            self._taken_over.discard(key)
        except Exception as error:
            # The remaining work for an owner that is being deleted is retried, even in a terminating namespace.
            if is_deleting(owner) or not terminating.was_hit:
                raise
            _log.info("%s %s: not finished, no retry for now: %s", kind.name, key, format_error(error))
            return _build_terminating_result(error, terminating.compute_requeue_after(self._clients.clock.monotonic()))
        finally:
            if not terminating.is_empty:
                self._terminating[key] = terminating
            reads.finish(reader, complete=is_complete)
        return result

    def list_deletion_times(self) -> list[datetime]:
        """Return the deletion timestamp of each owner that is being deleted and still exists."""
        return list(self._deleted_at.values())

    def _record_deletion(self, key: ObjectKey, owner: Object | None) -> None:
        self._deleted_at.pop(key, None)
        if owner is not None and is_deleting(owner):
            self._deleted_at[key] = parse_time(owner["metadata"]["deletionTimestamp"])

    def _get_permit(self, owner: Object) -> WritePermit | None:
        return None if self._assignment is None else self._assignment.get_permit(owner["metadata"]["uid"])

    def _forget(self, reader: ReadingOwner) -> None:
        self._clients.read_tracker.forget(reader)
        self._drop_key(reader.key)

    def _drop_key(self, key: ObjectKey) -> None:
        self._deleted_at.pop(key, None)
        self._taken_over.discard(key)
        self._terminating.pop(key, None)
        if self.kind.forget is not None:
            self.kind.forget(key)

    def _take_terminating(self, owner: Object) -> TerminatingNamespaces:
        """Return the terminating namespaces that earlier reconciles of the same owner, by its UID, found."""
        key, uid = ObjectKey.of(owner), str(owner["metadata"]["uid"])
        terminating = self._terminating.pop(key, None)
        if terminating is None or terminating.owner_uid != uid:
            return TerminatingNamespaces(uid, key.namespace)
        terminating.was_hit = False
        return terminating

    async def _finalize(self, owner: Object, client: CachedClient) -> Result | None:
        """Do the work of the finalizers that the owner has, in order; remove each when its work is complete."""
        present: Object | None = owner
        for finalizer in self.kind.finalizers:
            if present is None or not _has_finalizer(present, finalizer):
                continue
            result = await finalizer.finalize(present, client)
            if result is not None:
                return result
            present = await self._remove_finalizer(present, finalizer, client)
        return None

    async def _add_finalizer(self, owner: Object, finalizer: Finalizer, client: CachedClient) -> Object:
        metadata = owner["metadata"]
        present = metadata.get("finalizers") or []
        missing = [name for name in finalizer.names if name not in present]
        if not missing or (finalizer.is_needed is not None and not finalizer.is_needed(owner)):
            return owner
        # The patch replaces the whole list: the resource version prevents the loss of another controller's entry.
        body = {"metadata": {"resourceVersion": metadata["resourceVersion"], "finalizers": [*present, *missing]}}
        return await client.patch(self.kind.gvk, ObjectKey.of(owner), body, patch_type="merge")

    async def _remove_finalizer(self, owner: Object, finalizer: Finalizer, client: CachedClient) -> Object | None:
        """Remove the finalizer; return the owner without it, or None if it is gone."""
        key, uid = ObjectKey.of(owner), owner["metadata"]["uid"]
        try:
            # Writes of the finalizer to the owner, such as its status, made the resource version that was read stale.
            current = await client.get(self.kind.gvk, key)
            metadata = current["metadata"]
            if metadata["uid"] != uid:
                return None
            rest = [entry for entry in metadata.get("finalizers") or [] if entry not in finalizer.names]
            body = {"metadata": {"resourceVersion": metadata["resourceVersion"], "finalizers": rest or None}}
            return await client.patch(self.kind.gvk, key, body, patch_type="merge")
        except NotFoundError:
            return None  # a user removed the finalizer by hand

    def _get_assigned_owner(self, key: ObjectKey) -> Object | None:
        """Return the owner with the key if it exists and is assigned to this replica, else None."""
        store = self._informer.store
        meta = store.get_metadata(key)
        return None if meta is None or not self._is_assigned(meta.uid) else store.get(key)

    def _is_assigned(self, uid: str) -> bool:
        return self._assignment is None or self._assignment.is_ours(uid)

    def _is_finalized_here(self, owner: Object) -> bool:
        return any(_has_finalizer(owner, finalizer) for finalizer in self.kind.finalizers)

    @property
    def _informer(self) -> Informer:
        return self._clients.informers.running[self.kind.gvk]


def _has_finalizer(owner: Object, finalizer: Finalizer) -> bool:
    present = owner["metadata"].get("finalizers") or ()
    return any(name in present for name in finalizer.names)


def _build_terminating_result(error: Exception, requeue_after: timedelta | None) -> Result | None:
    """Return the result of a reconcile that could not create an object in a namespace that is being deleted.

    Such a failure needs no repair. The next reconcile comes when the namespace may exist anew, or when a part of the
    reconcile that succeeded requested it.
    """
    if isinstance(error, PartialFailureError):
        requeue_after = error.requeue_after if requeue_after is None else min(requeue_after, error.requeue_after)
    return None if requeue_after is None else Result(requeue_after=requeue_after)
