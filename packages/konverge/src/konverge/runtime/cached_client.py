"""The client of a pass: reads from shared informers, writes through, and lets the next read see what was written.

Informers start on the first read of a kind. Each read is noted, so that a later change of the object wakes the reader.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from konverge.cache import Informer, InformerFactory
from konverge.client import ApplyResponse, Client, PatchType, Propagation
from konverge.client.write_permit import WritePermit
from konverge.clock import Clock
from konverge.errors import ConnectionFailedError, ForbiddenError, KonvergeError, NotConnectedError, NotFoundError
from konverge.kube import GroupVersionKind, Object, ObjectKey, RestMapping
from konverge.kube.secret_values import SecretValues
from konverge.kube.selectors import LabelSelector
from konverge.runtime.event_router import EventRouter
from konverge.runtime.read_tracking import ReadingOwner, ReadList, ReadObject, ReadTracker
from konverge.runtime.terminating_namespaces import TerminatingNamespaces

__all__ = ["CachedClient", "CachedClientFactory"]

_log = logging.getLogger("konverge.runtime")

_EVERYTHING = LabelSelector.parse("")


class CachedClientFactory:
    """What the clients of all passes share.

    Args:
        client: Sends the requests.
        informers: Answer the reads.
        read_tracker: Notes who read what.
        routing: Is told which kinds are read.
        clock: The time.
        namespaces: The namespaces that the informers cover; empty for all. What is in another is read live.
    """

    def __init__(
        self,
        client: Client,
        informers: InformerFactory,
        reads: ReadTracker,
        routing: EventRouter,
        clock: Clock,
        *,
        namespaces: Collection[str] = (),
    ) -> None:
        self.client = client
        self.informers = informers
        self.read_tracker = reads
        self.clock = clock
        self.complete_lists: set[ReadList] = set()
        """The noted lists of which the caches miss nothing; what was dropped earlier may belong to a new one."""
        self._routing = routing
        self._namespaces = frozenset(namespaces)

    def build_client(
        self,
        reader: ReadingOwner,
        permit: WritePermit | None = None,
        *,
        doubts_absence: bool = False,
        terminating: TerminatingNamespaces | None = None,
    ) -> CachedClient:
        """The client for a pass of one owner.

        Args:
            reader: The owner.
            permit: What the pass may write with; None writes without asking.
            doubts_absence: Ask the server before an object is taken for absent.
            terminating: Where nothing new can be made, as far as earlier passes have found out; None knows of nothing.
        """
        client = self.client if permit is None else self.client.with_permit(permit)
        return CachedClient(self, reader, client, doubts_absence=doubts_absence, terminating=terminating)

    def covers(self, key: ObjectKey) -> bool:
        """Tell whether the informers see an object of that key."""
        return not self._namespaces or not key.namespace or key.namespace in self._namespaces

    async def get_informer(self, gvk: GroupVersionKind) -> Informer:
        """The kind's informer, ready to be read (`InformerFactory.started`)."""
        informer = await self.informers.get_informer(gvk)
        self._routing.open_kind(gvk)
        return informer

    def find_informer(self, gvk: GroupVersionKind) -> Informer | None:
        """The kind's informer, if there is one."""
        return self.informers.running.get(gvk)


class CachedClient:
    """Reads from memory and writes to the server, for the passes of one owner.

    It has the five verbs that components need (`konverge.component.ComponentClient`), and what else an author's own
    reconcile
    does with objects. What it returns is the caller's own: changing it changes no cache.

    Args:
        shared: What all clients share.
        reader: The owner.
        client: Sends the requests of this pass.
        doubts_absence: Ask the server before an object is taken for absent.
        wakes: Later changes of what is read wake the owner.
        terminating: Where nothing new can be made, as far as earlier passes have found out; None knows of nothing.
    """

    def __init__(
        self,
        shared: CachedClientFactory,
        reader: ReadingOwner,
        client: Client,
        *,
        doubts_absence: bool = False,
        wakes: bool = True,
        terminating: TerminatingNamespaces | None = None,
    ) -> None:
        self._triggers = wakes
        self._shared = shared
        self._reader = reader
        self._client = client
        self._confirms_absence = doubts_absence
        self._terminating = TerminatingNamespaces("", reader.key.namespace) if terminating is None else terminating

    @property
    def live(self) -> Client:
        """The client underneath, for what no cache can do. Its reads wake nobody and its writes are in no cache."""
        return self._client

    @property
    def secret_values(self) -> SecretValues:
        """The values of the Secrets that were read or written (`konverge.client.Client.secret_values`)."""
        return self._client.secret_values

    def without_read_tracking(self) -> CachedClient:
        """The same client, but later changes of what is read through this one do not wake the owner."""
        return CachedClient(
            self._shared,
            self._reader,
            self._client,
            doubts_absence=self._confirms_absence,
            wakes=False,
            terminating=self._terminating,
        )

    async def mapping(self, gvk: GroupVersionKind) -> RestMapping:
        """Where the kind is served and whether it is namespaced; from the client's own cache of discovery."""
        return await self._client.mapping(gvk)

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
        self._shared.read_tracker.record(self._reader, ReadObject(gvk, key, self._triggers))
        if live or not self._shared.covers(key):
            return await self._client.get(gvk, key)
        informer = await self._shared.get_informer(gvk)
        if self._confirms_absence and key not in informer.store:
            informer.mark_uncertain(key)
        return self._remember_secret_values(await informer.read(key))

    async def list_by_index(self, gvk: GroupVersionKind, index: str, value: str) -> list[Object]:
        """Read the objects that an index of the kind (`konverge.Operator.index`) has under a value.

        Later changes of any object of the kind wake the owner: which value an object will have cannot be told.

        Raises:
            KeyError: The kind has no such index.
        """
        informer = await self._track_list(ReadList(gvk, "", _EVERYTHING, self._triggers))
        found = (informer.store.get(key) for key in informer.list_keys_by_index(index, value))
        return [self._remember_secret_values(obj) for obj in found if obj is not None]

    async def list(
        self, gvk: GroupVersionKind, *, namespace: str = "", labels: Mapping[str, str] | LabelSelector | str = ""
    ) -> list[Object]:
        """Read the objects that match, own writes included; later changes of what matches wake the owner.

        Within the namespaces that the operator looks after.

        Args:
            gvk: The kind; its first reader starts the informer and waits for the first list.
            namespace: Narrows it to one; empty for all.
            labels: Narrows it: labels to have, or a selector, for example ``app in (a, b), !legacy``.

        Raises:
            konverge.errors.ApiError: The server refuses to list or watch the kind.
            ValueError: The selector is none.
        """
        selector = _parse_selector(labels)
        if not self._shared.covers(ObjectKey(namespace, "")):
            found = await self._client.list(gvk, namespace=namespace, label_selector=str(selector))
            return found.items
        informer = await self._track_list(ReadList(gvk, namespace, selector, self._triggers))
        if self._confirms_absence:
            for obj in (await self._client.list(gvk, namespace=namespace, label_selector=str(selector))).items:
                informer.record_write(obj)
        return [self._remember_secret_values(obj) for obj in informer.list(namespace=namespace, labels=selector)]

    async def apply(self, obj: Object, *, field_manager: str) -> ApplyResponse:
        """Server-side apply with force; later changes of the object wake the owner.

        Raises:
            konverge.errors.ForbiddenError: It would be new in a namespace that is being deleted. Once the server has
                said so in a pass of this owner, it is not asked again.
        """
        gvk, key = GroupVersionKind.of(obj), ObjectKey.of(obj)
        await self._ensure_watched(gvk, key)
        if not self._terminating.is_empty and not await self._exists(gvk, key):
            self._terminating.check(key.namespace, self._shared.clock.monotonic())
        with self._mark_uncertain_on_lost_response(gvk, key), self._record_terminating_namespace(key):
            applied = await self._client.apply(obj, field_manager=field_manager)
        self._record_write(gvk, applied.object)
        return applied

    async def create(self, obj: Object) -> Object:
        """Create an object; its later changes wake the owner.

        Raises:
            konverge.errors.ConflictError: There is one of that name.
            konverge.errors.ForbiddenError: Its namespace is being deleted, for one. Once the server has said so in a
                pass of this owner, it is not asked again.
        """
        gvk, key = GroupVersionKind.of(obj), ObjectKey.of(obj)
        self._terminating.check(key.namespace, self._shared.clock.monotonic())
        with self._mark_uncertain_on_lost_response(gvk, key), self._record_terminating_namespace(key):
            answer = await self._client.create(obj)
        try:
            await self._ensure_watched(gvk, ObjectKey.of(answer))  # only the answer has the name that the server made
        finally:
            self._record_write(gvk, answer)  # also for the pass after one that is cancelled meanwhile
        return answer

    async def update(self, obj: Object, *, subresource: str = "") -> Object:
        """Replace the object (or its ``status``), guarded by its resourceVersion.

        Raises:
            konverge.errors.NotFoundError: It has gone; reads know it from now on, before the watch tells. An owner is
                found out in this way: whatever its pass wrote for it is collected as garbage, which wakes it again.
            konverge.errors.ConflictError: It has changed, or is another one of that name.
        """
        gvk, key = GroupVersionKind.of(obj), ObjectKey.of(obj)
        try:
            with self._mark_uncertain_on_lost_response(gvk, key):
                answer = await self._client.update(obj, subresource=subresource)
        except NotFoundError as error:
            informer = self._shared.find_informer(gvk)
            # A 404 of something on the way names no object.
            if informer is not None and error.details.get("name") == key.name:
                informer.record_delete(key, str(obj["metadata"].get("uid") or ""))
            raise
        self._record_write(gvk, answer)
        return answer

    async def patch(
        self,
        gvk: GroupVersionKind,
        key: ObjectKey,
        body: Any,
        *,
        patch_type: PatchType,
        subresource: str = "",
        field_manager: str = "",
    ) -> Object:
        """Patch an object (`konverge.client.Client.patch`)."""
        with self._mark_uncertain_on_lost_response(gvk, key):
            answer = await self._client.patch(
                gvk, key, body, patch_type=patch_type, subresource=subresource, field_manager=field_manager
            )
        if answer.get("kind") == gvk.kind:  # a subresource of its own kind, such as Scale, is another object
            self._record_write(gvk, answer)
        return answer

    async def delete(
        self, gvk: GroupVersionKind, key: ObjectKey, *, uid: str, propagation: Propagation = "Background"
    ) -> Object | None:
        """Delete the object if it still is the one of that UID; answers what still holds on.

        Args:
            gvk: The kind.
            key: The object.
            uid: Another one of that name stays.
            propagation: What happens to the objects that it owns.

        Raises:
            konverge.errors.NotFoundError: There is none.
            konverge.errors.ConflictError: Another object has the name now.
        """
        with self._mark_uncertain_on_lost_response(gvk, key):
            held = await self._client.delete(gvk, key, uid=uid, propagation=propagation)
        informer = self._shared.find_informer(gvk)
        if held is not None:
            self._record_write(gvk, held)
        elif informer is not None:
            informer.record_delete(key, uid)
        return held

    async def _ensure_watched(self, gvk: GroupVersionKind, key: ObjectKey) -> None:
        """Have the object watched: otherwise nobody would hear of its end. That it cannot be stops no write."""
        if not self._shared.covers(key) or "watch" not in (await self._client.mapping(gvk)).verbs:
            return
        self._shared.read_tracker.record(self._reader, ReadObject(gvk, key))
        try:
            await self._shared.get_informer(gvk)
        except KonvergeError as error:
            _log.debug("%s is not watched: %s", gvk, error)

    async def _track_list(self, read: ReadList) -> Informer:
        """The informer of a list that is noted, with all in it that the list names."""
        shared = self._shared
        if not shared.read_tracker.is_recorded(read):
            shared.complete_lists.discard(read)  # what came while nobody read it was dropped
        is_complete = read in shared.complete_lists
        shared.read_tracker.record(self._reader, read)
        informer = await shared.get_informer(read.gvk)
        if not is_complete:
            await informer.load_dropped(namespace=read.namespace, labels=read.labels)
            shared.complete_lists = {known for known in shared.complete_lists if shared.read_tracker.is_recorded(known)}
            shared.complete_lists.add(read)
        return informer

    def _remember_secret_values(self, obj: Object) -> Object:
        """Have the client know the values of what is read, if that is a Secret."""
        self.secret_values.add(obj)
        return obj

    def _record_write(self, gvk: GroupVersionKind, answer: Object) -> None:
        informer = self._shared.find_informer(gvk)
        if informer is not None:
            informer.record_write(answer)

    async def _exists(self, gvk: GroupVersionKind, key: ObjectKey) -> bool:
        try:
            await self.get(gvk, key)
        except NotFoundError:
            return False
        return True

    @contextmanager
    def _record_terminating_namespace(self, key: ObjectKey) -> Iterator[None]:
        try:
            yield
        except ForbiddenError as error:
            self._terminating.record_refusal(key.namespace, error, self._shared.clock.monotonic())
            raise

    @contextmanager
    def _mark_uncertain_on_lost_response(self, gvk: GroupVersionKind, key: ObjectKey) -> Iterator[None]:
        """Have the next read ask the server when nobody can say whether it has done what it was asked for.

        Otherwise a pass could go by a cache that is older than a write of its own (invariant 2).
        """
        try:
            yield
        except NotConnectedError:
            raise
        except (ConnectionFailedError, asyncio.CancelledError):
            informer = self._shared.find_informer(gvk)
            if informer is not None:
                informer.mark_uncertain(key)
            raise


def _parse_selector(labels: Mapping[str, str] | LabelSelector | str) -> LabelSelector:
    if isinstance(labels, LabelSelector):
        return labels
    return LabelSelector.parse(labels) if isinstance(labels, str) else LabelSelector.from_labels(labels)
