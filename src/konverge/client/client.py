"""The verbs of the Kubernetes API over a `Transport`."""

from __future__ import annotations

import copy
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, replace
from types import TracebackType
from typing import Any, Literal, Self, TypeAlias

import msgspec

from konverge.client.decoding import UNREADABLE, check_text
from konverge.client.observing import RequestObserver
from konverge.client.permits import WritePermit
from konverge.client.rest_mapper import RestMapper
from konverge.client.sending import Sender, decode_object, not_json
from konverge.client.transport import SeparableTransport, Transport
from konverge.client.watch import Watch
from konverge.clock import Clock, Entropy, SystemClock, SystemEntropy
from konverge.errors import ConnectionFailedError, ExpiredError, KindNotServedError, NotFoundError
from konverge.kube import GroupVersionKind, Object, ObjectKey, ResourceMapping, is_deleting

__all__ = ["Applied", "Client", "ListPage", "ObjectList", "PatchType", "Propagation"]

PatchType: TypeAlias = Literal["apply", "json", "merge", "strategic"]
Propagation: TypeAlias = Literal["Background", "Foreground", "Orphan"]

_PATCH_CONTENT_TYPES: dict[str, str] = {
    "apply": "application/apply-patch+yaml",  # JSON is YAML
    "json": "application/json-patch+json",
    "merge": "application/merge-patch+json",
    "strategic": "application/strategic-merge-patch+json",
}


@dataclass(frozen=True, slots=True)
class Applied:
    """The answer to a server-side apply."""

    object: Object
    created: bool


@dataclass(frozen=True, slots=True)
class ObjectList:
    """A whole collection, and the resource version at which it was so."""

    items: list[Object]
    resource_version: str


@dataclass(frozen=True, slots=True)
class ListPage:
    """Part of a collection, its items undecoded. An empty continue token says that it was the last part."""

    items: list[msgspec.Raw]
    resource_version: str
    continue_token: str


class _ListMetadata(msgspec.Struct, frozen=True, rename="camel"):
    resource_version: str = ""
    continue_: str = msgspec.field(default="", name="continue")


class _List(msgspec.Struct, frozen=True):
    # Neither has a default: anything that is an object would tell of a cluster without objects.
    metadata: _ListMetadata
    items: list[msgspec.Raw] | None


_list_decoder = msgspec.json.Decoder(_List)


class Client:
    """One user's access to one cluster. It sends each request; it holds no objects.

    Every verb has a deadline that covers its retries, and raises `konverge.errors.ApiError` when the server refuses,
    `konverge.errors.ConnectionFailedError` when it cannot be reached or the deadline passes, and
    `konverge.errors.KindNotServedError` for a kind that it does not serve. Cancelling a write leaves open whether it
    happened.

    Args:
        transport: What carries the requests; the client closes it.
        user_agent: Who asks, as the server's audit log shows it. A field manager that is not named is its first part.
        timeout_seconds: The deadline of a verb.
        clock: Measures deadlines and waits between retries.
        entropy: Draws the jitter of those waits.
        observer: Hears of each attempt to send a request.
        permit: Is asked before each attempt to write (all but GET, dry runs included); None for writing at any time.
            A write that it forbids raises `konverge.errors.NoPermitError`, and one that it permits is given no more
            time than the permit is sure to last.
    """

    def __init__(
        self,
        transport: Transport,
        *,
        user_agent: str = "konverge",
        timeout_seconds: float = 30.0,
        clock: Clock | None = None,
        entropy: Entropy | None = None,
        observer: RequestObserver | None = None,
        permit: WritePermit | None = None,
    ) -> None:
        self._is_borrowing = False
        self._sender = Sender(
            transport,
            user_agent,
            timeout_seconds,
            clock or SystemClock(),
            entropy or SystemEntropy(),
            observer,
            permit,
        )
        self._mapper = RestMapper(self._sender)

    def with_permit(self, permit: WritePermit | None) -> Client:
        """A client that differs in its permit alone.

        Both share the transport and what they know of the server's kinds; closing one closes both.
        """
        return self._derived(replace(self._sender, permit=permit))

    def with_observer(self, observer: RequestObserver | None) -> Client:
        """A client that differs in its observer alone; shared is what `with_permit` says."""
        return self._derived(replace(self._sender, observer=observer))

    def with_own_connections(self) -> Client:
        """A client for the same cluster, user and settings that shares no connection, permit or observer with this one.

        It may be used in another thread's event loop, and is closed by itself: what a lease is renewed with must not
        wait for the requests of everybody else. A transport without connections (the embedded cluster in process) is
        shared, for the same event loop only.
        """
        found = self._sender.transport
        transport = found.with_own_connections() if isinstance(found, SeparableTransport) else found
        other = copy.copy(self)
        other._is_borrowing = transport is found
        other._sender = replace(self._sender, transport=transport, observer=None, permit=None)
        other._mapper = self._mapper.copied(other._sender)
        return other

    def _derived(self, sender: Sender) -> Client:
        other = copy.copy(self)
        other._sender = sender
        other._mapper = self._mapper.through(sender)
        return other

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the transport."""
        if not self._is_borrowing:
            await self._sender.transport.close()

    async def mapping(self, gvk: GroupVersionKind) -> ResourceMapping:
        """Where the kind is served and whether it is namespaced."""
        return await self._mapper.mapping(gvk)

    async def mappings(self) -> list[ResourceMapping]:
        """Every kind that the server serves, each version of it, preferred versions first."""
        return list((await self._mapper.served()).mappings)

    async def get(self, gvk: GroupVersionKind, key: ObjectKey, *, live: bool = False, subresource: str = "") -> Object:
        """Read one object.

        Args:
            gvk: The kind.
            key: The object.
            live: Here for the protocol's sake: this client always asks the server.
            subresource: Read that instead, for example ``scale``.

        Raises:
            konverge.errors.NotFoundError: There is none.
        """
        return (await self._on_object("GET", gvk, key, subresource=subresource))[0]

    async def list(
        self,
        gvk: GroupVersionKind,
        *,
        namespace: str = "",
        label_selector: str = "",
        field_selector: str = "",
        limit: int = 500,
    ) -> ObjectList:
        """Read a collection, page by page, as it was at one moment.

        Args:
            gvk: The kind.
            namespace: Narrows it to one; empty for all.
            label_selector: Narrows it by labels, for example ``app=web,tier!=db``.
            field_selector: Narrows it by fields, for example ``metadata.name=web``.
            limit: How many objects a page holds.
        """
        for page_limit in (limit, 0):
            items: list[Object] = []
            token = ""
            try:
                while True:
                    page = await self.list_page(
                        gvk,
                        namespace=namespace,
                        label_selector=label_selector,
                        field_selector=field_selector,
                        limit=page_limit,
                        continue_token=token,
                    )
                    items += (_decode_item(item, gvk) for item in page.items)
                    token = page.continue_token
                    if not token:
                        return ObjectList(items, page.resource_version)
            except ExpiredError:
                # The pages took longer than the server keeps its history: take all at once.
                if not token:
                    raise
        raise ConnectionFailedError(f"listing {gvk}: a list without a limit came in pages that expired")

    async def list_page(
        self,
        gvk: GroupVersionKind,
        *,
        namespace: str = "",
        label_selector: str = "",
        field_selector: str = "",
        limit: int = 500,
        continue_token: str = "",
    ) -> ListPage:
        """Read one page of a collection, as fresh as the first page was (a quorum read); for who decodes by himself.

        Raises:
            konverge.errors.ExpiredError: The continue token is too old: start again.
        """
        mapping = await self.mapping(gvk)
        query = {"labelSelector": label_selector, "fieldSelector": field_selector, "continue": continue_token}
        if limit:
            query["limit"] = str(limit)
        path = mapping.path(namespace=namespace)
        with self._noticing_absence(mapping):
            answer = await self._sender.send("GET", path, query=query)
        try:
            check_text(answer.body)
            found = _list_decoder.decode(answer.body)
        except UNREADABLE as error:
            raise not_json("GET", path, error) from error
        if continue_token and found.metadata.continue_ == continue_token:
            raise ConnectionFailedError(f"GET {path}: the next page is the same page again; the list would never end")
        return ListPage(found.items or [], found.metadata.resource_version, found.metadata.continue_)

    async def create(self, obj: Object, *, field_manager: str = "") -> Object:
        """Create the object; with a ``generateName`` and no name the server completes the name.

        Raises:
            konverge.errors.AlreadyExistsError: The name is taken.
        """
        mapping = await self.mapping(GroupVersionKind.of(obj))
        path = mapping.path(namespace=ObjectKey.of(obj).namespace)
        with self._noticing_absence(mapping):
            answer = await self._sender.send("POST", path, query={"fieldManager": field_manager}, body=obj)
        return decode_object(answer, "POST", path)

    async def update(self, obj: Object, *, subresource: str = "", field_manager: str = "") -> Object:
        """Replace the object (or its ``status``), guarded by its resourceVersion if it has one.

        The server's record of field managers stays as it is: what the object says in ``metadata.managedFields`` is not
        sent, since a partial record (as the cache holds it) would erase the rest.

        Raises:
            konverge.errors.ConflictError: It has changed since it was read.
        """
        gvk, key = GroupVersionKind.of(obj), ObjectKey.of(obj)
        body = _without_managed_fields(obj)
        query = {"fieldManager": field_manager}
        return (await self._on_object("PUT", gvk, key, subresource=subresource, query=query, body=body))[0]

    async def patch(
        self,
        gvk: GroupVersionKind,
        key: ObjectKey,
        body: Object | Sequence[Object],
        *,
        patch_type: PatchType,
        subresource: str = "",
        field_manager: str = "",
        force: bool = False,
    ) -> Object:
        """Change part of an object.

        Args:
            gvk: The kind.
            key: The object.
            body: The patch: a list of operations for ``json``, an object for the others.
            patch_type: How the server reads it; ``strategic`` is for built-in kinds only.
            subresource: Patch that instead, for example ``status``.
            field_manager: Who is recorded as the fields' manager.
            force: Take fields from other managers; for ``apply`` alone.
        """
        query = {"fieldManager": field_manager}
        if patch_type == "apply":
            query["force"] = "true" if force else "false"
        headers = {"content-type": _PATCH_CONTENT_TYPES[patch_type]}
        found, _ = await self._on_object(
            "PATCH", gvk, key, subresource=subresource, query=query, headers=headers, body=body
        )
        return found

    async def apply(
        self, obj: Object, *, field_manager: str, force: bool = True, subresource: str = "", dry_run: bool = False
    ) -> Applied:
        """Server-side apply: the object's fields become the manager's, those it no longer names are taken away.

        Args:
            obj: What the manager wants, and nothing else.
            field_manager: The manager.
            force: Take fields over from other managers instead of failing.
            subresource: Apply to that instead, for example ``status``.
            dry_run: Let the server say what it would store, without storing it.

        Raises:
            konverge.errors.ConflictError: Without force, another manager owns a field with another value.
        """
        gvk, key = GroupVersionKind.of(obj), ObjectKey.of(obj)
        query = {"fieldManager": field_manager, "force": "true" if force else "false"}
        if dry_run:
            query["dryRun"] = "All"
        found, status = await self._on_object(
            "PATCH",
            gvk,
            key,
            subresource=subresource,
            query=query,
            headers={"content-type": _PATCH_CONTENT_TYPES["apply"]},
            body=_without_managed_fields(obj),
        )
        return Applied(found, created=status == 201)

    async def delete(
        self,
        gvk: GroupVersionKind,
        key: ObjectKey,
        *,
        uid: str | None = None,
        propagation: Propagation = "Background",
    ) -> Object | None:
        """Delete an object.

        Args:
            gvk: The kind.
            key: The object.
            uid: Delete it only if it still is the one of that UID.
            propagation: What happens to the objects that it owns.

        Returns:
            The object as it is now, when something (a finalizer, its grace period) still holds it; None when it is
            gone.

        Raises:
            konverge.errors.NotFoundError: There is none.
            konverge.errors.ConflictError: Another object has the name now.
        """
        options: Object = {"apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": propagation}
        if uid is not None:
            options["preconditions"] = {"uid": uid}
        found, _ = await self._on_object("DELETE", gvk, key, body=options)
        return found if found.get("kind") == gvk.kind and _is_held(found) else None

    @asynccontextmanager
    async def watch(
        self,
        gvk: GroupVersionKind,
        *,
        namespace: str = "",
        resource_version: str = "",
        label_selector: str = "",
        field_selector: str = "",
        initial_events: bool = False,
        timeout_seconds: float = 300.0,
        idle_timeout_seconds: float = 150.0,
    ) -> AsyncIterator[Watch]:
        """Open a watch; leaving the block closes it.

        ::

            async with client.watch(gvk, resource_version=found.resource_version) as events:
                async for event in events: ...

        Args:
            gvk: The kind.
            namespace: Narrows it to one; empty for all.
            resource_version: Events after that; empty for an ``ADDED`` of everything that exists, and then on.
            label_selector: Narrows it by labels.
            field_selector: Narrows it by fields.
            initial_events: Ask for a streaming list (``sendInitialEvents``): everything that exists, then a bookmark
                with the annotation `konverge.client.watch.INITIAL_EVENTS_END`, then on.
            timeout_seconds: After how long the server shall end the watch.
            idle_timeout_seconds: How long the server may be silent (it sends a bookmark about once a minute).

        Raises:
            konverge.errors.InvalidError: The server cannot send initial events.
        """
        mapping = await self.mapping(gvk)
        query = {
            "watch": "true",
            "allowWatchBookmarks": "true",
            "timeoutSeconds": str(max(1, round(timeout_seconds))),
            "resourceVersion": resource_version,
            "labelSelector": label_selector,
            "fieldSelector": field_selector,
        }
        if initial_events:
            query |= {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan"}
        async with AsyncExitStack() as opened:
            with self._noticing_absence(mapping):
                stream = self._sender.stream(mapping.path(namespace=namespace), query=query)
                response = await opened.enter_async_context(stream)
            yield Watch(response, idle_timeout_seconds=idle_timeout_seconds)

    async def _on_object(
        self,
        method: str,
        gvk: GroupVersionKind,
        key: ObjectKey,
        *,
        subresource: str = "",
        query: Mapping[str, str] = {},
        headers: Mapping[str, str] = {},
        body: Any = None,
    ) -> tuple[Object, int]:
        """Send a request about one object; the decoded answer and its status."""
        mapping = await self.mapping(gvk)
        path = mapping.path(key, subresource=subresource)
        with self._noticing_absence(mapping):
            answer = await self._sender.send(method, path, query=query, headers=headers, body=body)
        return decode_object(answer, method, path), answer.status

    @contextmanager
    def _noticing_absence(self, mapping: ResourceMapping) -> Iterator[None]:
        """Tell a path that is gone, since the kind's definition is, from an object that is."""
        try:
            yield
        except NotFoundError as error:
            if error.details.get("name"):
                raise
            self._mapper.forget(mapping.gvk)
            raise KindNotServedError(f"the server does not serve {mapping.gvk} any more: {error.message}") from error


def _without_managed_fields(obj: Object) -> Object:
    metadata = obj.get("metadata")
    if not (isinstance(metadata, Mapping) and "managedFields" in metadata):
        return obj
    return {**obj, "metadata": {name: value for name, value in metadata.items() if name != "managedFields"}}


def _is_held(obj: Object) -> bool:
    """Tell whether an object that a DELETE answered with still exists.

    Some kinds answer with the object also when it is gone for good: then nothing holds it any more.
    """
    metadata = obj.get("metadata") or {}
    return is_deleting(obj) and bool(metadata.get("finalizers") or metadata.get("deletionGracePeriodSeconds"))


def _decode_item(item: msgspec.Raw, gvk: GroupVersionKind) -> Object:
    """An item of a list; those of built-in kinds leave out what the list says already."""
    return {"apiVersion": gvk.api_version, "kind": gvk.kind, **msgspec.json.decode(item, type=dict)}
