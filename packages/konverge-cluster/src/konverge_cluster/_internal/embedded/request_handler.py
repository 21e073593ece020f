"""The handler of API requests: it parses a request, runs its verb and renders the response. It uses no network."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import NamedTuple

from konverge._internal.kube import Object
from konverge.clock import Clock, Entropy
from konverge.errors import (
    ApiError,
    BadRequestError,
    ExpiredError,
    KindNotServedError,
    ServerError,
    TooManyRequestsError,
)
from konverge_cluster._internal.embedded import api_errors
from konverge_cluster._internal.embedded.access.access_filter import AccessFilter
from konverge_cluster._internal.embedded.access.access_reviews import AccessReviewHandler
from konverge_cluster._internal.embedded.access.authorization import AlwaysAllowAuthorizer
from konverge_cluster._internal.embedded.access.request_attributes import parse_attributes
from konverge_cluster._internal.embedded.access.service_account_tokens import ServiceAccountTokens
from konverge_cluster._internal.embedded.access.users import User
from konverge_cluster._internal.embedded.apiserver import ApiServer
from konverge_cluster._internal.embedded.audit_log import AuditEntry, AuditLog
from konverge_cluster._internal.embedded.container_logs import LogOptions, LogStream, find_container, format_log
from konverge_cluster._internal.embedded.content_negotiation import (
    APPLY_TYPES,
    PATCH_TYPES,
    DecodedBody,
    decode_body,
    negotiate_form,
    parse_media_type,
)
from konverge_cluster._internal.embedded.deletion import JOB_WARNING, DeleteOptions, is_released
from konverge_cluster._internal.embedded.list_pages import ListPage
from konverge_cluster._internal.embedded.messages import (
    ServerRequest,
    ServerResponse,
    StreamingResponse,
    build_error_response,
    build_json_response,
)
from konverge_cluster._internal.embedded.non_resource import NonResourceHandler
from konverge_cluster._internal.embedded.object_decoding import FieldValidation
from konverge_cluster._internal.embedded.pod_subresources import bind_pod, evict_pod
from konverge_cluster._internal.embedded.query_parameters import (
    DeleteParameters,
    ListParameters,
    WriteParameters,
    is_true,
    parse_revision,
)
from konverge_cluster._internal.embedded.resource_registry import ServedResource
from konverge_cluster._internal.embedded.response_renderer import ResponseRenderer
from konverge_cluster._internal.embedded.routes import RequestTarget, Verb, find_verb, parse_target
from konverge_cluster._internal.embedded.scale import build_scale
from konverge_cluster._internal.embedded.selection import Selection
from konverge_cluster._internal.embedded.storage import StoredObject
from konverge_cluster._internal.embedded.storage_conversion import WebhookConversion
from konverge_cluster._internal.embedded.watch_stream import WatchStream, stream_error
from konverge_cluster._internal.embedded.webhooks.pending_calls import (
    CallFunction,
    CallGenerator,
    WebhookCall,
    WebhookReply,
    run_with_calls,
    run_without_calls,
)
from konverge_cluster._internal.embedded.write_options import WriteOptions

__all__ = ["RequestHandler"]

_log = logging.getLogger(__name__)

_TEXT = {"content-type": "text/plain"}
_MAXIMUM_WATCHES = 1_000
_MANAGER_LIMIT = 128
# Kinds whose delete returns the object instead of a Status.
_DELETE_RETURNS_OBJECT = frozenset(
    {"pods", "services", "persistentvolumeclaims", "persistentvolumes", "serviceaccounts"}
)


class _ParsedRequest(NamedTuple):
    """A parsed request with its user.

    Attributes:
        target: The resource and object of the path.
        request: The original request.
        user: The user who sends the request.
        warnings: Receives the warnings for the response.
    """

    target: RequestTarget
    request: ServerRequest
    user: User
    warnings: list[str]


class RequestHandler:
    """Answers requests and records them in the audit log.

    Args:
        api: The API server.
        clock: The clock for the audit log, bookmarks and the ends of watches.
        entropy: The source of randomness for the ends of watches.
        audit: The log that receives an entry for each request.
        caller: Calls webhooks; None if webhooks cannot be called.
        gate: The filter for authentication and authorization; None to allow everything.
    """

    def __init__(
        self,
        api: ApiServer,
        *,
        clock: Clock,
        entropy: Entropy,
        audit: AuditLog,
        caller: CallFunction | None = None,
        gate: AccessFilter | None = None,
    ) -> None:
        self._api = api
        self._clock = clock
        self._entropy = entropy
        self._audit = audit
        self._caller = caller or _fail_calls
        tokens = ServiceAccountTokens(api.storage, clock, entropy, {})
        self._gate = gate or AccessFilter(tokens, AlwaysAllowAuthorizer(), is_open=True)
        self._reviews = AccessReviewHandler(self._gate, clock)
        self._documents = NonResourceHandler(api.resources, self._reviews)
        self._watches: set[WatchStream] = set()

    async def handle_request(self, request: ServerRequest) -> ServerResponse | StreamingResponse:
        """Answer one request and call the necessary webhooks; every failure becomes a response too."""
        return await run_with_calls(self._handle(request), self._caller)

    def handle_without_webhooks(self, request: ServerRequest) -> ServerResponse | StreamingResponse:
        """Answer one request that needs no webhook.

        Raises:
            WebhookCallNeededError: A webhook must be called.
        """
        return run_without_calls(self._handle(request))

    def _handle(self, request: ServerRequest) -> CallGenerator[ServerResponse | StreamingResponse]:
        verb: str = request.method.lower()
        warnings: list[str] = []
        try:
            is_watch = is_true(request.query, "watch")
            user = self._gate.authenticate(request.headers, trusted=request.trusted)
            self._gate.check_access(
                user, parse_attributes(request.method, request.path, request.query, is_watch=is_watch)
            )
            target = parse_target(request.path, self._api.resources)
            if target is None:
                answer: ServerResponse | StreamingResponse = self._documents.handle(request, user)
            else:
                matched_verb = find_verb(request.method, target, is_watch=is_watch)
                if matched_verb is None:
                    raise api_errors.new_method_not_allowed()
                verb = matched_verb
                answer = yield from self._dispatch(matched_verb, _ParsedRequest(target, request, user, warnings))
        except ApiError as error:
            answer = build_error_response(error)
        except KindNotServedError:
            answer = build_error_response(api_errors.new_unknown_path())
        except Exception as error:  # noqa: BLE001 - a mistake of ours must be an answer, not a dead connection; it is logged
            _log.exception("%s %s failed", request.method, request.path)
            answer = build_error_response(
                ServerError(f"an error on the server has prevented the request: {type(error).__name__}")
            )
        if warnings and isinstance(answer, ServerResponse):
            answer = ServerResponse(answer.status, answer.body, answer.headers, tuple(dict.fromkeys(warnings)))
        agent = request.headers.get("user-agent", "")
        self._audit.record(AuditEntry(self._clock.now(), agent, verb, request.path, answer.status))
        return answer

    def close(self) -> None:
        """End all watches of this server."""
        for stream in tuple(self._watches):
            stream.end()

    def _dispatch(self, verb: Verb, parsed: _ParsedRequest) -> CallGenerator[ServerResponse | StreamingResponse]:
        match verb:
            case "get":
                return (yield from self._get(parsed.target, parsed.request))
            case "list":
                return (yield from self._list(parsed.target, parsed.request))
            case "watch":
                return self._watch(parsed.target, parsed.request)
            case "create":
                return (yield from self._create(parsed))
            case "update":
                return (yield from self._update(parsed))
            case "patch":
                return (yield from self._patch(parsed))
            case "delete":
                return (yield from self._delete(parsed))
            case "deletecollection":
                return (yield from self._delete_collection(parsed))

    def _get(self, target: RequestTarget, request: ServerRequest) -> CallGenerator[ServerResponse | StreamingResponse]:
        self._check_reached(parse_revision(request.query))
        obj = yield from self._api.verbs.get(target.resource, target.key)
        if target.subresource == "log":
            return self._log(target, request, obj)
        if target.subresource == "scale":
            return build_json_response(build_scale(target.resource, obj))
        return ServerResponse(200, self._build_renderer(target, request).render_object(obj))

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

    def _list(self, target: RequestTarget, request: ServerRequest) -> CallGenerator[ServerResponse]:
        parameters = ListParameters.parse(request.query, is_watch=False)
        page = self._read_page(target, parameters)
        yield from self._api.verbs.conversions.prepare_served_forms(target.resource, page.items)
        return ServerResponse(200, self._build_renderer(target, request, is_list=True).render_page(page))

    def _read_page(self, target: RequestTarget, parameters: ListParameters) -> ListPage:
        """Return the page of a list at its resource version."""
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

    def _check_reached(self, requested: int | None) -> None:
        current = self._api.storage.revision
        if requested is not None and requested > current:
            raise api_errors.new_too_large_resource_version(requested, current)

    def _watch(self, target: RequestTarget, request: ServerRequest) -> StreamingResponse:
        if len(self._watches) >= _MAXIMUM_WATCHES:
            raise TooManyRequestsError("there are too many watches already", retry_after_seconds=1)
        parameters = ListParameters.parse(request.query, is_watch=True)
        selection = _parse_selection(target, parameters)
        renderer = self._build_renderer(target, request, is_watch=True)
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

    def _build_preparation(self, resource: ServedResource) -> Callable[[list[StoredObject]], Awaitable[None]] | None:
        """Return a function that prepares stored objects for rendering by calling the conversion webhook, or None."""
        if not isinstance(resource.conversion, WebhookConversion):
            return None

        async def prepare(items: list[StoredObject]) -> None:
            await run_with_calls(self._api.verbs.conversions.prepare_served_forms(resource, items), self._caller)

        return prepare

    def _create(self, parsed: _ParsedRequest) -> CallGenerator[ServerResponse]:
        target, request, warnings = parsed.target, parsed.request, parsed.warnings
        parameters = WriteParameters.parse(request.query, "CreateOptions")
        body, fields = self._decode_body(target, request, parameters, warnings)
        if target.subresource == "binding":
            return build_json_response(bind_pod(self._api, target.key, body.value, self._clock.now()), 201)
        if target.subresource == "eviction":
            evicted = evict_pod(self._api, target.key, body.value, self._clock.now(), dry_run=parameters.dry_run)
            return build_json_response(evicted, 201)
        if target.subresource == "token":
            account = yield from self._api.verbs.get(target.resource, target.key)
            return build_json_response(self._reviews.create_token(account, body.value), 201)
        _check_has_kind(target, body.value)
        obj = _complete_identity(target, body.value)
        write = self._build_write_options(parsed, parameters, fields)
        created = yield from self._api.verbs.create(target.resource, obj, write)
        return self._build_write_response(target, request, created, 201)

    def _update(self, parsed: _ParsedRequest) -> CallGenerator[ServerResponse]:
        target, request, warnings = parsed.target, parsed.request, parsed.warnings
        parameters = WriteParameters.parse(request.query, "UpdateOptions")
        body, fields = self._decode_body(target, request, parameters, warnings)
        obj = _complete_identity(target, body.value, needs_name=True)
        existed = self._exists(target)
        write = self._build_write_options(parsed, parameters, fields)
        updated = yield from self._api.verbs.update(target.resource, obj, write, target.subresource)
        return self._build_write_response(target, request, updated, 200 if existed else 201)

    def _patch(self, parsed: _ParsedRequest) -> CallGenerator[ServerResponse]:
        target, request, warnings = parsed.target, parsed.request, parsed.warnings
        media_type = parse_media_type(request.headers.get("content-type", ""))
        is_apply = media_type in APPLY_TYPES
        patch_type = PATCH_TYPES.get(media_type)
        accepted = [
            kind for kind in PATCH_TYPES if not (target.resource.is_custom and PATCH_TYPES[kind] == "strategic")
        ]
        if not is_apply and patch_type is None:
            raise api_errors.new_unknown_patch_type()
        if not is_apply and media_type not in accepted:
            raise api_errors.new_unsupported_media_type(*accepted, *APPLY_TYPES)
        parameters = WriteParameters.parse(request.query, "PatchOptions", is_apply=is_apply)
        subject = "error decoding YAML" if is_apply else "error decoding patch"
        body, fields = self._decode_body(target, request, parameters, warnings, subject=subject)
        write = self._build_write_options(parsed, parameters, fields)
        existed = self._exists(target)
        verbs, resource = self._api.verbs, target.resource
        if patch_type is None:
            obj = _complete_identity(target, body.value)
            patched = yield from verbs.apply(resource, obj, write, target.subresource, force=parameters.force)
        else:
            patched = yield from verbs.patch(resource, target.key, body.value, patch_type, write, target.subresource)
        return self._build_write_response(target, request, patched, 200 if existed else 201)

    def _delete(self, parsed: _ParsedRequest) -> CallGenerator[ServerResponse]:
        target, request, warnings = parsed.target, parsed.request, parsed.warnings
        resource = target.resource
        parameters = self._parse_delete_parameters(request)
        if resource.storage == "jobs.batch" and parameters.propagation is None:
            warnings.append(JOB_WARNING)
        last = yield from self._api.verbs.delete(
            resource,
            target.key,
            DeleteOptions(parameters.propagation, parameters.grace_seconds),
            _build_delete_options(parameters, parsed),
            uid=parameters.uid,
            resource_version=parameters.resource_version,
        )
        is_gone = is_released(last) or "deletionTimestamp" not in last["metadata"]
        if not is_gone or resource.storage in _DELETE_RETURNS_OBJECT:
            return ServerResponse(200, self._build_renderer(target, request).render_object(last))
        details = {"name": target.name, "group": resource.gvk.group, "kind": resource.mapping.plural}
        details = {name: value for name, value in details.items() if value} | {"uid": last["metadata"]["uid"]}
        status = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details}
        return build_json_response(status)

    def _delete_collection(self, parsed: _ParsedRequest) -> CallGenerator[ServerResponse]:
        target, request = parsed.target, parsed.request
        parameters = self._parse_delete_parameters(request)
        listed = ListParameters.parse(request.query, is_watch=False)
        page = self._read_page(target, listed)
        yield from self._api.verbs.conversions.prepare_served_forms(target.resource, page.items)
        options = DeleteOptions(parameters.propagation, parameters.grace_seconds)
        write = _build_delete_options(parameters, parsed, names_object=False)
        for stored in page.items:
            if self._api.storage.get(target.resource.storage, stored.key) is not None:
                yield from self._api.verbs.delete(target.resource, stored.key, options, write)
        return ServerResponse(200, self._build_renderer(target, request, is_list=True).render_page(page))

    def _exists(self, target: RequestTarget) -> bool:
        return self._api.storage.get(target.resource.storage, target.key) is not None

    def _parse_delete_parameters(self, request: ServerRequest) -> DeleteParameters:
        value = None
        if request.body:
            content_type = request.headers.get("content-type", "")
            value = decode_body(content_type, request.body, "Ignore", kind="DeleteOptions").value
        return DeleteParameters.parse(request.query, value)

    def _decode_body(
        self,
        target: RequestTarget,
        request: ServerRequest,
        parameters: WriteParameters,
        warnings: list[str],
        *,
        subject: str = "",
    ) -> tuple[DecodedBody, FieldValidation]:
        kind = target.resource.gvk.kind
        content_type = request.headers.get("content-type", "")
        body = decode_body(content_type, request.body, parameters.strictness, kind=kind, subject=subject)
        return body, FieldValidation(parameters.strictness, body.duplicates, warnings)

    def _build_write_options(
        self, parsed: _ParsedRequest, parameters: WriteParameters, fields: FieldValidation
    ) -> WriteOptions:
        query = parsed.request.query
        options = {name: query[name] for name in ("fieldManager", "fieldValidation") if query.get(name)}
        return WriteOptions(
            manager=_find_field_manager(parameters, parsed.request),
            dry_run=parameters.dry_run,
            fields=fields,
            user=parsed.user,
            options=options,
            warnings=fields.warnings,
            authorizer=self._gate.authorizer,
        )

    def _build_write_response(
        self, target: RequestTarget, request: ServerRequest, obj: Object, status: int
    ) -> ServerResponse:
        if target.subresource == "scale":
            return build_json_response(obj, status)
        return ServerResponse(status, self._build_renderer(target, request).render_object(obj))

    def _build_renderer(
        self, target: RequestTarget, request: ServerRequest, *, is_list: bool = False, is_watch: bool = False
    ) -> ResponseRenderer:
        accepted, group = request.headers.get("accept", ""), target.resource.gvk.group.partition(".")[0] or "core"
        kind = f"{group}.{target.resource.gvk.kind}"
        if is_list:
            why = f"the requested object is a list (*{kind}List)"
            form = negotiate_form(accepted, unfit="PartialObjectMetadata", why=why)
        else:
            why = f"the requested object is not a list (*{kind})"
            form = negotiate_form(accepted, unfit="" if is_watch else "PartialObjectMetadataList", why=why)
        included = request.query.get("includeObject", "Metadata")
        return ResponseRenderer(target.resource, form, self._clock.now(), included)


async def _fail_calls(calls: tuple[WebhookCall, ...]) -> tuple[WebhookReply, ...]:
    return tuple(WebhookReply(problem="this server cannot call webhooks") for _ in calls)


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


def _check_has_kind(target: RequestTarget, value: object) -> None:
    """Check that a new custom resource has kind and apiVersion; for built-in kinds the path is enough."""
    if target.resource.is_custom and isinstance(value, dict):
        for name, label in (("kind", "Kind"), ("apiVersion", "apiVersion")):
            if not value.get(name):
                what = f"the object provided is unrecognized (must be of type {target.resource.gvk.kind})"
                raise BadRequestError(f"{what}: Object '{label}' is missing")


def _complete_identity(target: RequestTarget, value: object, *, needs_name: bool = False) -> Object:
    """Return the body with the namespace and the name of the path; the body may omit but not contradict them.

    The body of a replacement must contain the name.
    """
    if not isinstance(value, dict):
        raise BadRequestError(
            f"the object provided is unrecognized (must be of type {target.resource.gvk.kind}): expected a mapping"
        )
    metadata = value.get("metadata")
    if metadata is not None and not isinstance(metadata, dict):
        return value
    metadata = dict(metadata or {})
    if target.namespace:
        if metadata.get("namespace", target.namespace) not in (target.namespace, ""):
            raise api_errors.new_wrong_namespace()
        metadata["namespace"] = target.namespace
    if target.name:
        if needs_name and not metadata.get("name"):
            raise api_errors.new_missing_name(target.name)
        if metadata.get("name", target.name) not in (target.name, ""):
            raise api_errors.new_wrong_name(str(metadata["name"]), target.name)
        metadata["name"] = target.name
    return {**value, "metadata": metadata}


def _build_delete_options(
    parameters: DeleteParameters, parsed: _ParsedRequest, *, names_object: bool = True
) -> WriteOptions:
    options: Object = {}
    if parameters.grace_seconds is not None:
        options["gracePeriodSeconds"] = parameters.grace_seconds
    if parameters.propagation is not None:
        options["propagationPolicy"] = parameters.propagation
    guards = {"uid": parameters.uid, "resourceVersion": parameters.resource_version}
    if any(guards.values()):
        options["preconditions"] = {name: value for name, value in guards.items() if value}
    return WriteOptions(
        dry_run=parameters.dry_run,
        user=parsed.user,
        options=options,
        warnings=parsed.warnings,
        names_object=names_object,
    )


def _find_field_manager(parameters: WriteParameters, request: ServerRequest) -> str:
    """Return the field manager: the one in the request, else the first part of the user agent."""
    return parameters.manager or request.headers.get("user-agent", "").partition("/")[0][:_MANAGER_LIMIT]
