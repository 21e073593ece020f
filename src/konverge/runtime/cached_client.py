"""The client of a pass: reads from shared informers, writes through, and lets the next read see what was written.

Informers start on the first read of a kind. Each read is noted, so that a later change of the object wakes the reader;
so is each write that an earlier read of the same pass could not know of.
"""

from __future__ import annotations

from konverge.cache import Informer, Informers
from konverge.client import Applied, Client
from konverge.kube import GroupVersionKind, Object, ObjectKey, ResourceMapping
from konverge.runtime.reads import Reader, ReadObject, Reads
from konverge.runtime.waking import Waking

__all__ = ["CachedClient", "CachedClients"]


class CachedClients:
    """What the clients of all passes share.

    Args:
        client: Sends the requests.
        informers: Answer the reads.
        reads: Notes who read what.
        waking: Hears of each write before and after.
        namespace: The one namespace that the informers cover; empty for all. What is in another is read live.
    """

    def __init__(
        self, client: Client, informers: Informers, reads: Reads, waking: Waking, *, namespace: str = ""
    ) -> None:
        self.client = client
        self.informers = informers
        self.reads = reads
        self.waking = waking
        self._namespace = namespace
        self._overtaken: set[Reader] = set()

    def for_owner(self, reader: Reader) -> CachedClient:
        """The client for the passes of one owner."""
        return CachedClient(self, reader)

    def covers(self, key: ObjectKey) -> bool:
        """Tell whether the informers see an object of that key."""
        return not self._namespace or key.namespace in ("", self._namespace)

    async def started(self, gvk: GroupVersionKind) -> Informer:
        """The kind's informer, ready to be read (`Informers.started`)."""
        informer = await self.informers.started(gvk)
        self.waking.kind_is_read(gvk)
        return informer

    def mark_overtaken(self, reader: Reader) -> None:
        """The pass under way has made out of date what it had read before."""
        self._overtaken.add(reader)

    def take_overtaken(self, reader: Reader) -> bool:
        """Tell whether the pass has made out of date what it had read, and start anew."""
        was_overtaken = reader in self._overtaken
        self._overtaken.discard(reader)
        return was_overtaken


class CachedClient:
    """The five verbs that components need (`konverge.component.Client`), for the passes of one owner.

    A write that fails, or is cancelled, may have happened all the same: then its event wakes the owner like any other.

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
        if live or not self._shared.covers(key):
            return await self._shared.client.get(gvk, key)
        informer = await self._shared.started(gvk)
        return await informer.read(key)

    async def apply(self, obj: Object, *, field_manager: str) -> Applied:
        """Server-side apply with force."""
        with _Write(self._shared, self._reader, GroupVersionKind.of(obj), ObjectKey.of(obj)) as write:
            applied = await self._shared.client.apply(obj, field_manager=field_manager)
            write.answered(applied.object)
        return applied

    async def update(self, obj: Object, *, subresource: str = "") -> Object:
        """Replace the object (or its ``status``), guarded by its resourceVersion."""
        gvk, key = GroupVersionKind.of(obj), ObjectKey.of(obj)
        with _Write(self._shared, self._reader, gvk, key, is_status=subresource == "status") as write:
            answer = await self._shared.client.update(obj, subresource=subresource)
            write.answered(answer)
        return answer

    async def delete(self, gvk: GroupVersionKind, key: ObjectKey, *, uid: str) -> Object | None:
        """Delete the object in the background if it still is the one of that UID; answers what still holds on."""
        with _Write(self._shared, self._reader, gvk, key) as write:
            held = await self._shared.client.delete(gvk, key, uid=uid)
            if held is not None:
                write.answered(held)
            else:
                write.deleted(uid)
        return held


class _Write:
    """One write, from before it is sent until all who need to know its answer do."""

    def __init__(
        self,
        shared: CachedClients,
        writer: Reader,
        gvk: GroupVersionKind,
        key: ObjectKey,
        *,
        is_status: bool = False,
    ) -> None:
        self._shared = shared
        self._writer = writer
        self._written = ReadObject(gvk, key)
        self._is_status = is_status
        self._version = ""
        self._deleted_uid = ""

    def __enter__(self) -> _Write:
        self._shared.waking.write_begins(self._writer, self._written)
        return self

    def __exit__(self, *_: object) -> None:
        self._shared.waking.write_ends(
            self._writer, self._written, version=self._version, deleted_uid=self._deleted_uid
        )

    def answered(self, obj: Object) -> None:
        """The server stores the object like that now."""
        self._version = obj["metadata"].get("resourceVersion", "")
        self._tell_own_pass()
        informer = self._shared.informers.running.get(self._written.gvk)
        if informer is not None:
            informer.record_write(obj)

    def deleted(self, uid: str) -> None:
        """Nothing holds the object any more."""
        self._deleted_uid = uid
        self._tell_own_pass()
        informer = self._shared.informers.running.get(self._written.gvk)
        if informer is not None:
            informer.record_delete(self._written.key, uid)

    def _tell_own_pass(self) -> None:
        # Read once, then written: that is one step, which knows what it wrote. Read more often, another step of the
        # pass has seen the object as it was. The status of the owner is what a pass is there to write.
        is_owner = self._writer == Reader(*self._written)
        times_read = self._shared.reads.times_read(self._writer, self._written)
        if times_read > 1 or (is_owner and not self._is_status):
            self._shared.mark_overtaken(self._writer)
