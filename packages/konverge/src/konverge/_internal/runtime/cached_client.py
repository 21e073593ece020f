"""The client of a reconcile: it reads from shared informers and writes through, and its reads include its own writes.

Informers start with the first read of a kind. Each read is recorded, so that a later change of the object triggers the
reading owner.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from konverge._internal.cache import Informer, InformerFactory
from konverge._internal.client import ApplyResponse, Client, PatchType, Propagation
from konverge._internal.client.write_permit import WritePermit
from konverge._internal.kube import GroupVersionKind, Object, ObjectKey, RestMapping
from konverge._internal.kube.secret_values import SecretValues
from konverge._internal.kube.selectors import LabelSelector
from konverge._internal.runtime.event_router import EventRouter
from konverge._internal.runtime.read_tracking import ReadingOwner, ReadList, ReadObject, ReadTracker
from konverge._internal.runtime.terminating_namespaces import TerminatingNamespaces
from konverge.clock import Clock
from konverge.errors import ConnectionFailedError, ForbiddenError, KonvergeError, NotConnectedError, NotFoundError

__all__ = ["CachedClient", "CachedClientFactory"]

_log = logging.getLogger("konverge.runtime")

_EVERYTHING = LabelSelector.parse("")


class CachedClientFactory:
    """State that the clients of all reconciles share.

    Args:
        client: Sends the requests.
        informers: Serve the reads.
        reads: Records the reads of each owner.
        routing: Receives the kinds that are read.
        clock: Source of time.
        namespaces: The namespaces that the informers cover; empty for all. Objects in other namespaces are read live.
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
        """The recorded lists that the caches contain completely; a new list may include dropped objects."""
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
        """Build the client for a reconcile of one owner.

        Args:
            reader: The owner.
            permit: Permit for the writes of the reconcile; None permits all.
            doubts_absence: Confirm the absence of an object with the server.
            terminating: Terminating namespaces that earlier reconciles found; None for none.
        """
        client = self.client if permit is None else self.client.with_permit(permit)
        return CachedClient(self, reader, client, doubts_absence=doubts_absence, terminating=terminating)

    def covers(self, key: ObjectKey) -> bool:
        """Return whether the informers cover an object with the key."""
        return not self._namespaces or not key.namespace or key.namespace in self._namespaces

    async def get_informer(self, gvk: GroupVersionKind) -> Informer:
        """Return the kind's informer, synced (`InformerFactory.get_informer`)."""
        informer = await self.informers.get_informer(gvk)
        self._routing.open_kind(gvk)
        return informer

    def find_informer(self, gvk: GroupVersionKind) -> Informer | None:
        """Return the kind's informer if it is running, else None."""
        return self.informers.running.get(gvk)


class CachedClient:
    """Client that reads from the cache and writes to the server, for the reconciles of one owner.

    It has the five verbs that components need (`konverge.component.ComponentClient`), and further ones for an author's
    own reconcile function. The caller owns the returned objects: changing them changes no cache.

    Args:
        shared: The state that all clients share.
        reader: The owner.
        client: Sends the requests of this reconcile.
        doubts_absence: Confirm the absence of an object with the server.
        triggers: Whether later changes of the objects that are read trigger the owner.
        terminating: Terminating namespaces that earlier reconciles found; None for none.
    """

    def __init__(
        self,
        shared: CachedClientFactory,
        reader: ReadingOwner,
        client: Client,
        *,
        doubts_absence: bool = False,
        triggers: bool = True,
        terminating: TerminatingNamespaces | None = None,
    ) -> None:
        self._triggers = triggers
        self._shared = shared
        self._reader = reader
        self._client = client
        self._confirms_absence = doubts_absence
        self._terminating = TerminatingNamespaces("", reader.key.namespace) if terminating is None else terminating

    @property
    def live(self) -> Client:
        """The underlying client without caches. Its reads trigger no reconciles, and no cache records its writes."""
        return self._client

    @property
    def secret_values(self) -> SecretValues:
        """The values of the Secrets that were read or written (`konverge.client.Client.secret_values`)."""
        return self._client.secret_values

    def without_read_tracking(self) -> CachedClient:
        """Return the same client without read tracking: its reads trigger no reconciles of the owner."""
        return CachedClient(
            self._shared,
            self._reader,
            self._client,
            doubts_absence=self._confirms_absence,
            triggers=False,
            terminating=self._terminating,
        )

    async def mapping(self, gvk: GroupVersionKind) -> RestMapping:
        """Return where the kind is served and whether it is namespaced, from the client's discovery cache."""
        return await self._client.mapping(gvk)

    async def get(self, gvk: GroupVersionKind, key: ObjectKey, *, live: bool = False) -> Object:
        """Read one object, own writes included; its later changes trigger the owner.

        Args:
            gvk: The kind; its first reader starts the informer and waits for the first list.
            key: The object.
            live: Read from the server. The response does not enter the cache.

        Raises:
            konverge.errors.NotFoundError: The object does not exist.
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
        """Read the objects that an index of the kind (`konverge.Operator.index`) lists under a value.

        Later changes of any object of the kind trigger the owner: the future values of an object are unknown.

        Raises:
            KeyError: The kind has no such index.
        """
        informer = await self._track_list(ReadList(gvk, "", _EVERYTHING, self._triggers))
        objects = (informer.store.get(key) for key in informer.list_keys_by_index(index, value))
        return [self._remember_secret_values(obj) for obj in objects if obj is not None]

    async def list(
        self, gvk: GroupVersionKind, *, namespace: str = "", labels: Mapping[str, str] | LabelSelector | str = ""
    ) -> list[Object]:
        """Read the objects that match, own writes included; later changes of matching objects trigger the owner.

        It covers the namespaces of the operator.

        Args:
            gvk: The kind; its first reader starts the informer and waits for the first list.
            namespace: Only objects of this namespace; empty for all.
            labels: Only objects with these labels, or that match a selector, for example ``app in (a, b), !legacy``.

        Raises:
            konverge.errors.ApiError: The server refuses to list or watch the kind.
            ValueError: The selector is invalid.
        """
        selector = _parse_selector(labels)
        if not self._shared.covers(ObjectKey(namespace, "")):
            live = await self._client.list(gvk, namespace=namespace, label_selector=str(selector))
            return live.items
        informer = await self._track_list(ReadList(gvk, namespace, selector, self._triggers))
        if self._confirms_absence:
            for obj in (await self._client.list(gvk, namespace=namespace, label_selector=str(selector))).items:
                informer.record_write(obj)
        return [self._remember_secret_values(obj) for obj in informer.list(namespace=namespace, labels=selector)]

    async def apply(self, obj: Object, *, field_manager: str) -> ApplyResponse:
        """Apply the object (server-side apply with force); its later changes trigger the owner.

        Raises:
            konverge.errors.ForbiddenError: The object would be new in a namespace that is being deleted. After the
                first such response in a reconcile of this owner, no further request is sent.
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
        """Create an object; its later changes trigger the owner.

        Raises:
            konverge.errors.ConflictError: An object with the name exists.
            konverge.errors.ForbiddenError: For example, its namespace is being deleted. After the first such response
                in a reconcile of this owner, no further request is sent.
        """
        gvk, key = GroupVersionKind.of(obj), ObjectKey.of(obj)
        self._terminating.check(key.namespace, self._shared.clock.monotonic())
        with self._mark_uncertain_on_lost_response(gvk, key), self._record_terminating_namespace(key):
            response = await self._client.create(obj)
        try:
            await self._ensure_watched(gvk, ObjectKey.of(response))  # only the response has a generated name
        finally:
            self._record_write(gvk, response)  # also for the reconcile after one that is cancelled here
        return response

    async def update(self, obj: Object, *, subresource: str = "") -> Object:
        """Replace the object (or its ``status``), guarded by its resourceVersion.

        Raises:
            konverge.errors.NotFoundError: The object was deleted; reads reflect that from now on, before the watch
                does. The deletion of an owner is detected in this way: the objects that its reconcile wrote are garbage
                collected, which triggers the owner again.
            konverge.errors.ConflictError: The object has changed, or is another one with that name.
        """
        gvk, key = GroupVersionKind.of(obj), ObjectKey.of(obj)
        try:
            with self._mark_uncertain_on_lost_response(gvk, key):
                response = await self._client.update(obj, subresource=subresource)
        except NotFoundError as error:
            informer = self._shared.find_informer(gvk)
            # A 404 from a proxy names no object.
            if informer is not None and error.details.get("name") == key.name:
                informer.record_delete(key, str(obj["metadata"].get("uid") or ""))
            raise
        self._record_write(gvk, response)
        return response

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
        """Patch an object as `konverge.client.Client.patch` does; the cache records the response."""
        with self._mark_uncertain_on_lost_response(gvk, key):
            response = await self._client.patch(
                gvk, key, body, patch_type=patch_type, subresource=subresource, field_manager=field_manager
            )
        if response.get("kind") == gvk.kind:  # a subresource with its own kind, such as Scale, is another object
            self._record_write(gvk, response)
        return response

    async def delete(
        self, gvk: GroupVersionKind, key: ObjectKey, *, uid: str, propagation: Propagation = "Background"
    ) -> Object | None:
        """Delete the object if it still has the UID; return it if finalizers keep it, else None.

        Args:
            gvk: The kind.
            key: The object.
            uid: An object with the same name and another UID stays.
            propagation: The deletion policy for the objects that it owns.

        Raises:
            konverge.errors.NotFoundError: The object does not exist.
            konverge.errors.ConflictError: Another object has the name now.
        """
        with self._mark_uncertain_on_lost_response(gvk, key):
            remaining = await self._client.delete(gvk, key, uid=uid, propagation=propagation)
        informer = self._shared.find_informer(gvk)
        if remaining is not None:
            self._record_write(gvk, remaining)
        elif informer is not None:
            informer.record_delete(key, uid)
        return remaining

    async def _ensure_watched(self, gvk: GroupVersionKind, key: ObjectKey) -> None:
        """Start a watch for the object: otherwise its deletion would be unnoticed. A failure prevents no write."""
        if not self._shared.covers(key) or "watch" not in (await self._client.mapping(gvk)).verbs:
            return
        # The objects of an owner's task are not those of its reconciles.
        self._shared.read_tracker.record(self._reader, ReadObject(gvk, key, not self._reader.task))
        try:
            await self._shared.get_informer(gvk)
        except KonvergeError as error:
            _log.debug("%s: the watch did not start: %s", gvk, error)

    async def _track_list(self, read: ReadList) -> Informer:
        """Record a list, and return its informer with all objects of the list."""
        shared = self._shared
        if not shared.read_tracker.is_recorded(read):
            shared.complete_lists.discard(read)  # objects that were added without a reader were dropped
        is_complete = read in shared.complete_lists
        shared.read_tracker.record(self._reader, read)
        informer = await shared.get_informer(read.gvk)
        if not is_complete:
            await informer.load_dropped(namespace=read.namespace, labels=read.labels)
            shared.complete_lists = {kept for kept in shared.complete_lists if shared.read_tracker.is_recorded(kept)}
            shared.complete_lists.add(read)
        return informer

    def _remember_secret_values(self, obj: Object) -> Object:
        """Add the values of a Secret that was read to the client's secret values."""
        self.secret_values.add(obj)
        return obj

    def _record_write(self, gvk: GroupVersionKind, response: Object) -> None:
        informer = self._shared.find_informer(gvk)
        if informer is not None:
            informer.record_write(response)

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
        """Read the object from the server next time, if the response to a write is lost and its outcome unknown.

        Otherwise a reconcile could use a cache that is older than its own write (invariant 2).
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
