"""The client of a pass: reads from shared informers, writes through, and lets the next read see what was written.

Informers start on the first read of a kind. Each read is noted, so that a later change of the object wakes the reader;
so is each write that an earlier read of the same pass could not know of.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from konverge.cache.informer import Informer
from konverge.cache.informers import Informers
from konverge.client import Applied, Client
from konverge.kube import GroupVersionKind, Object, ObjectKey, ResourceMapping
from konverge.runtime.reads import Reader, ReadObject, Reads

__all__ = ["CachedClient", "CachedClients"]


class CachedClients:
    """What the clients of all passes share.

    Args:
        client: Sends the requests.
        informers: Answer the reads.
        reads: Notes who read what.
        namespace: The one namespace that the informers cover; empty for all. What is in another is read live.
    """

    def __init__(self, client: Client, informers: Informers, reads: Reads, *, namespace: str = "") -> None:
        self.client = client
        self.informers = informers
        self.reads = reads
        self.namespace = namespace
        self._writer: Reader | None = None
        self._started: set[GroupVersionKind] = set()
        self._overtaken: set[Reader] = set()

    def for_owner(self, reader: Reader) -> CachedClient:
        """The client for the passes of one owner."""
        return CachedClient(self, reader)

    @property
    def writer(self) -> Reader | None:
        """Whose write is being told to the informers' subscribers right now; None for what others did.

        The writer has the server's answer in hand and need not be woken by it.
        """
        return self._writer

    def has_started(self, gvk: GroupVersionKind) -> bool:
        """Tell whether a read of that kind was ever answered from its informer.

        Until then nobody can have seen what its changes would make out of date.
        """
        return gvk in self._started

    async def started(self, gvk: GroupVersionKind) -> Informer:
        """The kind's informer, ready to be read (`Informers.started`)."""
        informer = await self.informers.started(gvk)
        self._started.add(gvk)
        return informer

    def mark_overtaken(self, reader: Reader) -> None:
        """The pass under way has made out of date what it had read before."""
        self._overtaken.add(reader)

    def take_overtaken(self, reader: Reader) -> bool:
        """Tell whether the pass has made out of date what it had read, and start anew."""
        was_overtaken = reader in self._overtaken
        self._overtaken.discard(reader)
        return was_overtaken

    @contextmanager
    def writing(self, reader: Reader) -> Iterator[None]:
        """Mark what the block tells the informers as the reader's own write. The block must not await."""
        self._writer = reader
        try:
            yield
        finally:
            self._writer = None


class CachedClient:
    """The five verbs that components need (`konverge.component.Client`), for the passes of one owner.

    Args:
        shared: What all clients share.
        reader: The owner.
    """

    def __init__(self, shared: CachedClients, reader: Reader) -> None:
        self._shared = shared
        self._reader = reader

    async def mapping(self, gvk: GroupVersionKind) -> ResourceMapping:
        """Where the kind is served and whether it is namespaced; from the client's own cache of discovery."""
        return await self._shared.client.mapping(gvk)

    async def get(self, gvk: GroupVersionKind, key: ObjectKey, *, live: bool = False) -> Object:
        """Read one object, own writes included; its later changes wake the owner.

        Args:
            gvk: The kind; its first reader starts the informer and waits for the first list.
            key: The object.
            live: Ask the server. What it answers is for this caller alone.

        Raises:
            konverge.errors.NotFoundError: There is none.
            konverge.errors.ApiError: The server refuses to list or watch the kind.
        """
        self._shared.reads.note(self._reader, ReadObject(gvk, key))
        covered = not self._shared.namespace or key.namespace in ("", self._shared.namespace)
        if live or not covered:
            return await self._shared.client.get(gvk, key)
        informer = await self._shared.started(gvk)
        return await informer.read(key)

    async def apply(self, obj: Object, *, field_manager: str) -> Applied:
        """Server-side apply with force."""
        applied = await self._shared.client.apply(obj, field_manager=field_manager)
        self._record(applied.object)
        return applied

    async def update(self, obj: Object, *, subresource: str = "") -> Object:
        """Replace the object (or its ``status``), guarded by its resourceVersion."""
        answer = await self._shared.client.update(obj, subresource=subresource)
        self._record(answer, is_status=subresource == "status")
        return answer

    async def delete(self, gvk: GroupVersionKind, key: ObjectKey, *, uid: str) -> None:
        """Delete the object in the background, if it still is the one of that UID."""
        held = await self._shared.client.delete(gvk, key, uid=uid)
        if held is not None:
            self._record(held)
        else:
            self._tell(gvk, key, lambda informer: informer.record_delete(key, uid))

    def _record(self, obj: Object, *, is_status: bool = False) -> None:
        gvk, key = GroupVersionKind.of(obj), ObjectKey.of(obj)
        self._tell(gvk, key, lambda informer: informer.record_write(obj), is_status=is_status)

    def _tell(
        self,
        gvk: GroupVersionKind,
        key: ObjectKey,
        record: Callable[[Informer], None],
        *,
        is_status: bool = False,
    ) -> None:
        """Let reads see the answer to a write, and readers other than the writer hear of it."""
        is_owner = self._reader == Reader(gvk, key)
        # Read once, then written: that is one step, which knows what it wrote. Read more often, another step of the
        # pass has seen the object as it was. The status of the owner is what a pass is there to write.
        if (is_owner and not is_status) or self._shared.reads.times_read(self._reader, ReadObject(gvk, key)) > 1:
            self._shared.mark_overtaken(self._reader)
        informer = self._shared.informers.running.get(gvk)
        if informer is not None:
            with self._shared.writing(self._reader):
                record(informer)
