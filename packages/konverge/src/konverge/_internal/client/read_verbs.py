"""The read verbs of a client: objects, collections, watches and logs."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass

from konverge._internal.client.object_list import (
    METADATA_LIST,
    METADATA_OBJECT,
    ContinueTokens,
    ListPage,
    ObjectList,
    decode_item,
    decode_page,
    extract_metadata,
    selector_query,
)
from konverge._internal.client.pod_logs import MAX_LOG_LINE_BYTES, PodLog
from konverge._internal.client.request_bodies import POD
from konverge._internal.client.rest_client import RestClient
from konverge._internal.client.sender import decode_object
from konverge._internal.client.transport import StreamingResponse
from konverge._internal.client.watch import Watch
from konverge._internal.kube import GroupVersionKind, Object, ObjectKey, RestMapping
from konverge.errors import ConnectionFailedError, ExpiredError

__all__ = ["ReadVerbs"]


class ReadVerbs:
    """The read verbs of `konverge.client.Client`."""

    _rest_client: RestClient

    async def get(
        self,
        gvk: GroupVersionKind,
        key: ObjectKey,
        *,
        live: bool = False,
        subresource: str = "",
        metadata_only: bool = False,
    ) -> Object:
        """Read one object.

        Args:
            gvk: The kind.
            key: The object.
            live: Part of the protocol; this client always reads from the server.
            subresource: The subresource to read instead, for example ``scale``.
            metadata_only: Whether to return only apiVersion, kind and metadata.

        Raises:
            konverge.errors.NotFoundError: The object does not exist.
        """
        headers = {"accept": METADATA_OBJECT} if metadata_only else {}
        obj, _ = await self._rest_client.request_object("GET", gvk, key, subresource=subresource, headers=headers)
        return extract_metadata(obj, gvk) if metadata_only else obj

    async def list(
        self,
        gvk: GroupVersionKind,
        *,
        namespace: str = "",
        label_selector: str = "",
        field_selector: str = "",
        shard_selector: str = "",
        metadata_only: bool = False,
        limit: int = 500,
    ) -> ObjectList:
        """Read a collection page by page, at one resource version.

        If the pages take longer than the server keeps its history, the collection is read again without pages.

        Args:
            gvk: The kind.
            namespace: The namespace to select; empty for all.
            label_selector: The labels to select, for example ``app=web,tier!=db``.
            field_selector: The fields to select, for example ``metadata.name=web``.
            shard_selector: The ranges of hashes to select, if the server supports it (see `list_page`).
            metadata_only: Whether to return only apiVersion, kind and metadata of each object.
            limit: The number of objects in a page.
        """
        query = selector_query(label_selector, field_selector, shard_selector)
        collection = _ListRequest(gvk, namespace, query, metadata_only)
        remember = self._rest_client.sender.texts.remember_object
        for page_limit in (limit, 0):
            items: list[Object] = []
            page: ListPage | None = None
            try:
                async for page in self._iter_pages(collection, page_limit):
                    items += map(remember, collection.decode_items(page))
            except ExpiredError:
                if page is None:
                    raise
            else:
                assert page is not None, "a list has a first page"
                return ObjectList(items, page.resource_version, page.shard_selector)
        raise ConnectionFailedError(f"{gvk}: the list failed: expected one page without a limit, found expired pages")

    async def items(
        self,
        gvk: GroupVersionKind,
        *,
        namespace: str = "",
        label_selector: str = "",
        field_selector: str = "",
        shard_selector: str = "",
        metadata_only: bool = False,
        limit: int = 500,
    ) -> AsyncIterator[Object]:
        """Read a collection object by object, at one resource version; at most one page is in memory.

        ::

            async for pod in client.items(POD, label_selector="app=web"): ...

        The arguments are those of `list`.

        Raises:
            konverge.errors.ExpiredError: The iteration took longer than the server keeps its history (5 minutes by
                default). A new iteration may repeat objects, so the caller must decide about it.
        """
        query = selector_query(label_selector, field_selector, shard_selector)
        collection = _ListRequest(gvk, namespace, query, metadata_only)
        page: ListPage | None = None
        count = 0
        try:
            async for page in self._iter_pages(collection, limit):
                for obj in collection.decode_items(page):
                    yield self._rest_client.sender.texts.remember_object(obj)
                count += len(page.items)
        except ExpiredError as error:
            if page is None:
                raise
            raise ExpiredError(
                f"{gvk}: the list expired after {count} objects: the iteration took too long. "
                "Start again, use larger pages, or use list()",
                details=error.details,
            ) from error

    async def list_page(
        self,
        gvk: GroupVersionKind,
        *,
        namespace: str = "",
        label_selector: str = "",
        field_selector: str = "",
        shard_selector: str = "",
        metadata_only: bool = False,
        limit: int = 500,
        continue_token: str = "",
    ) -> ListPage:
        """Read one page of a collection with undecoded items. The first page is a quorum read.

        Args:
            gvk: The kind.
            namespace: The namespace to select; empty for all.
            label_selector: The labels to select.
            field_selector: The fields to select.
            shard_selector: The ranges of hashes of the UID or the namespace to select (KEP-5866, alpha in Kubernetes
                1.36, feature gate ``ShardedListAndWatch``), for example
                ``shardRange(object.metadata.uid, '0x0000000000000000', '0x8000000000000000')``: 16 digits, the end
                excluded and at most ``0x10000000000000000``, several joined by ``||``. A server without support sends
                everything: see `ListPage.shard_selector`. The response to an invalid selector is HTTP status 500.
            metadata_only: Whether to request only the metadata. A server without support sends whole objects.
            limit: The number of objects in the page; 0 for all.
            continue_token: The token of the previous page; empty for the first. A faulty server may repeat a token.

        Raises:
            konverge.errors.ExpiredError: The continue token is too old: start again.
        """
        query = selector_query(label_selector, field_selector, shard_selector)
        return await self._fetch_page(_ListRequest(gvk, namespace, query, metadata_only), limit, continue_token)

    async def storage_version_hash(self, gvk: GroupVersionKind) -> str:
        """Return the hash of the version in which the server stores this kind; empty if it publishes none.

        It is the start of a SHA-256 of ``group/version/kind``. Each API server publishes its own.

        Args:
            gvk: The kind in any served version.

        Raises:
            konverge.errors.KindNotServedError: The server does not serve the kind.
        """
        mapping = await self._rest_client.mapping(gvk)
        path = f"/apis/{gvk.group}/{gvk.version}" if gvk.group else f"/api/{gvk.version}"
        document = decode_object(await self._rest_client.sender.send("GET", path), "GET", path)
        resources = [entry for entry in document.get("resources") or () if isinstance(entry, dict)]
        found = (entry.get("storageVersionHash") for entry in resources if entry.get("name") == mapping.plural)
        return str(next(found, None) or "")

    @asynccontextmanager
    async def watch(
        self,
        gvk: GroupVersionKind,
        *,
        namespace: str = "",
        resource_version: str = "",
        label_selector: str = "",
        field_selector: str = "",
        shard_selector: str = "",
        metadata_only: bool = False,
        initial_events: bool = False,
        timeout_seconds: float = 300.0,
        idle_timeout_seconds: float = 150.0,
    ) -> AsyncIterator[Watch]:
        """Open a watch; leaving the block closes it.

        ::

            async with client.watch(gvk, resource_version=pods.resource_version) as events:
                async for event in events: ...

        Args:
            gvk: The kind.
            namespace: The namespace to select; empty for all.
            resource_version: The version after which events begin; empty for an ``ADDED`` event of every existing
                object first.
            label_selector: The labels to select.
            field_selector: The fields to select.
            shard_selector: The ranges of hashes to select (see `list_page`). The response does not show whether the
                server applied it: list first.
            metadata_only: Whether to return only apiVersion, kind and metadata of each object. A server without support
                sends whole objects.
            initial_events: Whether to request a streaming list (``sendInitialEvents``): every existing object, then a
                bookmark with the annotation `client.watch.INITIAL_EVENTS_END`, then later events.
            timeout_seconds: The time after which the server ends the watch.
            idle_timeout_seconds: The maximum silence of the server (it sends a bookmark about once a minute).

        Raises:
            konverge.errors.InvalidError: The server does not support initial events.
        """
        mapping = await self._rest_client.mapping(gvk)
        query = selector_query(label_selector, field_selector, shard_selector) | {
            "watch": "true",
            "allowWatchBookmarks": "true",
            "timeoutSeconds": str(max(1, round(timeout_seconds))),
            "resourceVersion": resource_version,
        }
        if initial_events:
            query |= {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan"}
        headers = {"accept": METADATA_OBJECT} if metadata_only else {}
        path = mapping.build_path(namespace=namespace)
        opened = self._rest_client.sender.stream(path, query=query, headers=headers)
        async with self._open_stream(opened, mapping) as response:
            yield Watch(
                response,
                idle_timeout_seconds=idle_timeout_seconds,
                metadata_of=gvk if metadata_only else None,
                texts=self._rest_client.sender.texts,
                path=path,
            )

    @asynccontextmanager
    async def logs(
        self,
        key: ObjectKey,
        *,
        container: str = "",
        follow: bool = False,
        previous: bool = False,
        since_seconds: int | None = None,
        tail_lines: int | None = None,
        limit_bytes: int | None = None,
        timestamps: bool = False,
        timeout_seconds: float | None = None,
        max_line_bytes: int = MAX_LOG_LINE_BYTES,
    ) -> AsyncIterator[PodLog]:
        """Open the log of a Pod's container; leaving the block closes it.

        ::

            async with client.logs(key, container="app", tail_lines=100) as lines:
                async for line in lines: ...

        Args:
            key: The Pod.
            container: The container; may be empty if the Pod has only one.
            follow: Whether to continue with later lines until the container ends.
            previous: Whether to read the log of the container before its last restart.
            since_seconds: The maximum age of lines; None for no limit.
            tail_lines: The number of lines from the end; None for all.
            limit_bytes: The maximum size; None for no limit.
            timestamps: Whether to prefix each line with its time.
            timeout_seconds: The time limit for the whole log; None for none, because a log may be silent for long.
            max_line_bytes: The size of the pieces of longer lines.

        Raises:
            konverge.errors.BadRequestError: The container does not exist, or has no log yet.
            konverge.errors.NotFoundError: The Pod does not exist.
            konverge.errors.ServerError: The node does not respond.
        """
        mapping = await self._rest_client.mapping(POD)
        numbers = {"sinceSeconds": since_seconds, "tailLines": tail_lines, "limitBytes": limit_bytes}
        switches = {"follow": follow, "previous": previous, "timestamps": timestamps}
        query = {"container": container}
        query |= {name: str(value) for name, value in numbers.items() if value is not None}
        query |= {name: "true" for name, value in switches.items() if value}
        # The log is plain text, and an error is JSON: if only text is accepted, the server responds with 406.
        headers = {"accept": "*/*"}
        opened = self._rest_client.sender.stream(
            mapping.build_path(key, subresource="log"), query=query, headers=headers
        )
        async with self._open_stream(opened, mapping, "log") as response:
            yield PodLog(
                response,
                name=f"Pod {key}",
                clock=self._rest_client.sender.clock,
                timeout_seconds=timeout_seconds,
                max_line_bytes=max_line_bytes,
            )

    async def _iter_pages(self, collection: _ListRequest, limit: int) -> AsyncIterator[ListPage]:
        token, tokens = "", ContinueTokens(collection.gvk)
        while True:
            page = await self._fetch_page(collection, limit, token)
            token = tokens.check_next(page)
            yield page
            if not token:
                return

    async def _fetch_page(self, collection: _ListRequest, limit: int, continue_token: str) -> ListPage:
        mapping = await self._rest_client.mapping(collection.gvk)
        query = collection.query | {"continue": continue_token}
        if limit:
            query["limit"] = str(limit)
        path = mapping.build_path(namespace=collection.namespace)
        headers = {"accept": METADATA_LIST} if collection.metadata_only else {}
        async with self._rest_client.explain_not_found(mapping):
            response = await self._rest_client.sender.send("GET", path, query=query, headers=headers)
        return decode_page(response.body, path)

    @asynccontextmanager
    async def _open_stream(
        self, stream: AbstractAsyncContextManager[StreamingResponse], mapping: RestMapping, subresource: str = ""
    ) -> AsyncIterator[StreamingResponse]:
        """Open a stream; only an error before it is open can mean that the kind is missing."""
        async with AsyncExitStack() as opened:
            async with self._rest_client.explain_not_found(mapping, subresource):
                response = await opened.enter_async_context(stream)
            yield response


@dataclass(frozen=True, slots=True)
class _ListRequest:
    """The collection of a list request."""

    gvk: GroupVersionKind
    namespace: str
    query: dict[str, str]
    metadata_only: bool

    def decode_items(self, page: ListPage) -> Iterator[Object]:
        for item in page.items:
            obj = decode_item(item, self.gvk)
            yield extract_metadata(obj, self.gvk) if self.metadata_only else obj
