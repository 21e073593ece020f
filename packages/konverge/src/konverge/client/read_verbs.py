"""The verbs that read: objects, collections, watches and logs."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass

from konverge.client.object_list import (
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
from konverge.client.pod_logs import MAX_LOG_LINE_BYTES, PodLog
from konverge.client.request_bodies import POD
from konverge.client.rest_client import RestClient
from konverge.client.transport import StreamingResponse
from konverge.client.watch import Watch
from konverge.errors import ConnectionFailedError, ExpiredError
from konverge.kube import GroupVersionKind, Object, ObjectKey, RestMapping

__all__ = ["ReadVerbs"]


class ReadVerbs:
    """What can be asked of a server; see `konverge.client.Client`."""

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
            live: Here for the protocol's sake: this client always asks the server.
            subresource: Read that instead, for example ``scale``.
            metadata_only: Leave everything out but its apiVersion, kind and metadata.

        Raises:
            konverge.errors.NotFoundError: There is none.
        """
        headers = {"accept": METADATA_OBJECT} if metadata_only else {}
        found, _ = await self._rest_client.request_object("GET", gvk, key, subresource=subresource, headers=headers)
        return extract_metadata(found, gvk) if metadata_only else found

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
        """Read a collection, page by page, as it was at one moment.

        When the pages take longer than the server keeps its history, it is read again in one piece.

        Args:
            gvk: The kind.
            namespace: Narrows it to one; empty for all.
            label_selector: Narrows it by labels, for example ``app=web,tier!=db``.
            field_selector: Narrows it by fields, for example ``metadata.name=web``.
            shard_selector: Narrows it by ranges of hashes, where the server can (see `list_page`).
            metadata_only: Leave everything out but each object's apiVersion, kind and metadata.
            limit: How many objects a page holds.
        """
        narrowing = selector_query(label_selector, field_selector, shard_selector)
        collection = _ListRequest(gvk, namespace, narrowing, metadata_only)
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
        raise ConnectionFailedError(f"listing {gvk}: a list without a limit came in pages that expired")

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
        """Read a collection object by object, as it was at one moment; no more than a page of it is in memory.

        ::

            async for pod in client.items(POD, label_selector="app=web"): ...

        The arguments are those of `list`.

        Raises:
            konverge.errors.ExpiredError: Going through it took longer than the server keeps its history (5 minutes by
                default). What comes after another start may repeat what there was, so it is for the caller to decide.
        """
        narrowing = selector_query(label_selector, field_selector, shard_selector)
        collection = _ListRequest(gvk, namespace, narrowing, metadata_only)
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
                f"listing {gvk}: the list expired after {count} objects, since going through them took too long. "
                "Start again, take larger pages, or use list()",
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
        """Read one page of a collection, as fresh as the first page was (a quorum read); for who decodes by himself.

        Args:
            gvk: The kind.
            namespace: Narrows it to one; empty for all.
            label_selector: Narrows it by labels.
            field_selector: Narrows it by fields.
            shard_selector: Narrows it by ranges of hashes of the UID or the namespace (KEP-5866, alpha in Kubernetes
                1.36, feature gate ``ShardedListAndWatch``), for example
                ``shardRange(object.metadata.uid, '0x0000000000000000', '0x8000000000000000')``: 16 digits, the end
                excluded and at most ``0x10000000000000000``, several joined by ``||``. A server that does not know of
                it sends everything: `ListPage.shard_selector` tells. A wrong one is answered with HTTP status 500.
            metadata_only: Leave everything out but each object's metadata. A server that cannot sends whole objects.
            limit: How many objects the page holds; 0 for all.
            continue_token: From the page before; empty for the first. A server at fault may name one that came before.

        Raises:
            konverge.errors.ExpiredError: The continue token is too old: start again.
        """
        narrowing = selector_query(label_selector, field_selector, shard_selector)
        return await self._fetch_page(_ListRequest(gvk, namespace, narrowing, metadata_only), limit, continue_token)

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

            async with client.watch(gvk, resource_version=found.resource_version) as events:
                async for event in events: ...

        Args:
            gvk: The kind.
            namespace: Narrows it to one; empty for all.
            resource_version: Events after that; empty for an ``ADDED`` of everything that exists, and then on.
            label_selector: Narrows it by labels.
            field_selector: Narrows it by fields.
            shard_selector: Narrows it by ranges of hashes (see `list_page`). No answer tells whether the server went
                by it: list first.
            metadata_only: Leave everything out but each object's apiVersion, kind and metadata. A server that cannot
                sends whole objects.
            initial_events: Ask for a streaming list (``sendInitialEvents``): everything that exists, then a bookmark
                with the annotation `konverge.client.watch.INITIAL_EVENTS_END`, then on.
            timeout_seconds: After how long the server shall end the watch.
            idle_timeout_seconds: How long the server may be silent (it sends a bookmark about once a minute).

        Raises:
            konverge.errors.InvalidError: The server cannot send initial events.
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
            container: Whose log; may be empty when the Pod has one.
            follow: Go on with what is still to come, until the container ends.
            previous: Of the container before the last restart.
            since_seconds: Only what is not older than that.
            tail_lines: Only so many lines from the end.
            limit_bytes: No more than that.
            timestamps: Put the time before each line.
            timeout_seconds: After how long reading fails; None for never, since a log may be silent for long.
            max_line_bytes: Longer lines come in pieces of that size.

        Raises:
            konverge.errors.BadRequestError: There is no such container, or it has no log yet.
            konverge.errors.NotFoundError: There is no such Pod.
            konverge.errors.ServerError: The node does not answer.
        """
        mapping = await self._rest_client.mapping(POD)
        numbers = {"sinceSeconds": since_seconds, "tailLines": tail_lines, "limitBytes": limit_bytes}
        switches = {"follow": follow, "previous": previous, "timestamps": timestamps}
        query = {"container": container}
        query |= {name: str(value) for name, value in numbers.items() if value is not None}
        query |= {name: "true" for name, value in switches.items() if value}
        # The log itself is plain text, and a refusal is JSON: a server asked for text alone answers 406.
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
            answer = await self._rest_client.sender.send("GET", path, query=query, headers=headers)
        return decode_page(answer.body, path)

    @asynccontextmanager
    async def _open_stream(
        self, stream: AbstractAsyncContextManager[StreamingResponse], mapping: RestMapping, subresource: str = ""
    ) -> AsyncIterator[StreamingResponse]:
        """Open a stream; only of what fails until it is open, the kind's absence can be the cause."""
        async with AsyncExitStack() as opened:
            async with self._rest_client.explain_not_found(mapping, subresource):
                response = await opened.enter_async_context(stream)
            yield response


@dataclass(frozen=True, slots=True)
class _ListRequest:
    """What is to be listed."""

    gvk: GroupVersionKind
    namespace: str
    query: dict[str, str]
    metadata_only: bool

    def decode_items(self, page: ListPage) -> Iterator[Object]:
        for item in page.items:
            obj = decode_item(item, self.gvk)
            yield extract_metadata(obj, self.gvk) if self.metadata_only else obj
