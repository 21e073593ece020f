"""Requests that read: get, list and watch, and the logs of containers."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from konverge._internal.kube import Object
from konverge.clock import Clock, Entropy
from konverge.errors import BadRequestError, ExpiredError, ServerError, TooManyRequestsError
from konverge_cluster._internal.embedded import api_errors
from konverge_cluster._internal.embedded.apiserver import ApiServer
from konverge_cluster._internal.embedded.container_logs import LogOptions, LogStream, find_container, format_log
from konverge_cluster._internal.embedded.list_pages import ListPage
from konverge_cluster._internal.embedded.messages import (
    ServerRequest,
    ServerResponse,
    StreamingResponse,
    build_json_response,
)
from konverge_cluster._internal.embedded.parsed_request import ParsedRequest
from konverge_cluster._internal.embedded.query_parameters import ListParameters, parse_revision
from konverge_cluster._internal.embedded.resource_registry import ServedResource
from konverge_cluster._internal.embedded.routes import RequestTarget
from konverge_cluster._internal.embedded.scale import build_scale
from konverge_cluster._internal.embedded.selection import Selection
from konverge_cluster._internal.embedded.storage import StoredObject
from konverge_cluster._internal.embedded.storage_conversion import WebhookConversion
from konverge_cluster._internal.embedded.watch_stream import WatchStream, stream_error
from konverge_cluster._internal.embedded.webhooks.pending_calls import CallFunction, CallGenerator, run_with_calls

__all__ = ["ReadHandler"]

_TEXT = {"content-type": "text/plain"}
_MAXIMUM_WATCHES = 1_000


class ReadHandler:
    """Answers requests that read: get, list and watch.

    Args:
        api: The API server.
        clock: The clock for bookmarks, ages and the ends of watches.
        entropy: The source of randomness for the ends of watches.
        caller: Calls conversion webhooks.
    """

    def __init__(self, api: ApiServer, clock: Clock, entropy: Entropy, caller: CallFunction) -> None:
        self._api = api
        self._clock = clock
        self._entropy = entropy
        self._caller = caller
        self._watches: set[WatchStream] = set()

    def close(self) -> None:
        """End all watches."""
        for stream in tuple(self._watches):
            stream.end()

    def get(self, parsed: ParsedRequest) -> CallGenerator[ServerResponse | StreamingResponse]:
        """Answer a read of one object, of its scale or of its log."""
        target, request = parsed.target, parsed.request
        self._check_reached(parse_revision(request.query))
        obj = yield from self._api.verbs.get(target.resource, target.key)
        if target.subresource == "log":
            return self._log(target, request, obj)
        if target.subresource == "scale":
            return build_json_response(build_scale(target.resource, obj))
        return ServerResponse(200, parsed.build_renderer(self._clock.now()).render_object(obj))

    def list_objects(self, parsed: ParsedRequest) -> CallGenerator[ServerResponse]:
        """Answer a list."""
        target, request = parsed.target, parsed.request
        parameters = ListParameters.parse(request.query, is_watch=False)
        page = self.read_page(target, parameters)
        yield from self._api.verbs.conversions.prepare_served_forms(target.resource, page.items)
        return ServerResponse(200, parsed.build_renderer(self._clock.now(), is_list=True).render_page(page))

    def watch(self, parsed: ParsedRequest) -> StreamingResponse:
        """Answer a watch; its stream ends at the latest with `close`."""
        target, request = parsed.target, parsed.request
        if len(self._watches) >= _MAXIMUM_WATCHES:
            raise TooManyRequestsError("there are too many watches already", retry_after_seconds=1)
        parameters = ListParameters.parse(request.query, is_watch=True)
        selection = _parse_selection(target, parameters)
        renderer = parsed.build_renderer(self._clock.now(), is_watch=True)
        revision = parameters.revision
        begins_with_state = parameters.initial_events or (parameters.initial_events is None and not revision)
        after = None if begins_with_state else revision or self._api.storage.revision
        try:
            if begins_with_state:
                self._check_reached(revision)
            watch = self._api.watch(target.resource, selection, after=after)
        except (ExpiredError, ServerError) as error:
            return StreamingResponse(stream_error(renderer, error))
        stream = WatchStream(
            watch,
            renderer,
            self._clock,
            timeout_seconds=parameters.timeout_seconds or self._entropy.uniform(1800, 3600),
            bookmarks=parameters.bookmarks,
            sends_initial_events_end=parameters.bookmarks and begins_with_state,
            on_end=self._watches.discard,
            prepare=self._build_preparation(target.resource),
        )
        self._watches.add(stream)
        return StreamingResponse(stream)

    def read_page(self, target: RequestTarget, parameters: ListParameters) -> ListPage:
        """Return the page of a list at its resource version.

        Raises:
            ApiError: The resource version is unknown or no longer available, or the parameters contradict each other.
        """
        requested = parameters.revision
        if parameters.token and requested:
            raise BadRequestError("specifying resource version is not allowed when using continue")
        self._check_reached(requested)
        # Version zero means the cache of the real server, which has no pages; a page at another version is exact.
        from_cache = requested == 0 and not parameters.token
        is_exact = parameters.match == "Exact" or (parameters.match == "" and parameters.limit > 0)
        return self._api.list_page(
            target.resource,
            _parse_selection(target, parameters),
            limit=0 if from_cache else parameters.limit,
            token=parameters.token,
            revision=requested if requested and is_exact else None,
        )

    def _log(self, target: RequestTarget, request: ServerRequest, pod: Object) -> ServerResponse | StreamingResponse:
        options = LogOptions.parse(request.query, target.name)
        container = find_container(pod, options)
        if not pod["spec"].get("nodeName"):
            return ServerResponse(204, b"", {})
        if options.follow:
            mapping = target.resource.mapping
            stream = LogStream(lambda: self._api.get(mapping, target.key), container, options, self._clock)
            return StreamingResponse(stream, headers=_TEXT)
        return ServerResponse(200, format_log(pod, container, options, self._clock.now()), _TEXT)

    def _check_reached(self, requested: int | None) -> None:
        current = self._api.storage.revision
        if requested is not None and requested > current:
            raise api_errors.new_too_large_resource_version(requested, current)

    def _build_preparation(self, resource: ServedResource) -> Callable[[list[StoredObject]], Awaitable[None]] | None:
        """Return a function that prepares stored objects for rendering by calling the conversion webhook, or None."""
        if not isinstance(resource.conversion, WebhookConversion):
            return None

        async def prepare(items: list[StoredObject]) -> None:
            await run_with_calls(self._api.verbs.conversions.prepare_served_forms(resource, items), self._caller)

        return prepare


def _parse_selection(target: RequestTarget, parameters: ListParameters) -> Selection:
    field_selector = parameters.field_selector
    if target.name:
        # A watch of one object by its path.
        field_selector = ",".join(filter(None, (f"metadata.name={target.name}", field_selector)))
    return Selection.parse(
        target.resource,
        namespace=target.namespace,
        label_selector=parameters.label_selector,
        field_selector=field_selector,
    )
