"""Requests to the API server: what they ask for, done, and answered. Knows HTTP's words but no network."""

from __future__ import annotations

import logging

from konverge.clock import Clock, Entropy
from konverge.errors import (
    ApiError,
    BadRequestError,
    ExpiredError,
    KindNotServedError,
    ServerError,
    TooManyRequestsError,
)
from konverge.kube import Object
from konverge.localcluster import failures
from konverge.localcluster.answers import Answer, Request, StreamAnswer, failure, json_answer
from konverge.localcluster.apiserver import ApiServer
from konverge.localcluster.audit import AuditLog, Entry
from konverge.localcluster.deletion import JOB_WARNING, is_released
from konverge.localcluster.documents import Documents
from konverge.localcluster.incoming import FieldValidation
from konverge.localcluster.media import APPLY_TYPES, PATCH_TYPES, Body, accept_of, decode_body, media_type_of
from konverge.localcluster.parameters import DeleteParameters, ListParameters, WriteParameters, is_true
from konverge.localcluster.pods import bind, evict
from konverge.localcluster.rendering import Renderer
from konverge.localcluster.routes import Target, Verb, target_of, verb_of
from konverge.localcluster.selection import Selection
from konverge.localcluster.streams import WatchStream, expired

__all__ = ["RequestHandler"]

_log = logging.getLogger(__name__)

_MAXIMUM_WATCHES = 1_000
_MANAGER_LIMIT = 128
# Kinds of which a delete answers the object, not only that it worked.
_DELETED_IS_SHOWN = frozenset({"pods", "services", "persistentvolumeclaims", "persistentvolumes", "serviceaccounts"})


class RequestHandler:
    """Answers requests, and remembers them.

    Args:
        api: The server behind it.
        clock: Times the record, and the bookmarks and ends of watches.
        entropy: Spreads the ends of watches.
        audit: Gets an entry for each request.
    """

    def __init__(self, api: ApiServer, *, clock: Clock, entropy: Entropy, audit: AuditLog) -> None:
        self._api = api
        self._clock = clock
        self._entropy = entropy
        self._audit = audit
        self._documents = Documents(api.resources)
        self._watches: set[WatchStream] = set()

    def handle(self, request: Request) -> Answer | StreamAnswer:
        """Answer one request; whatever goes wrong is an answer, too."""
        verb: str = request.method.lower()
        warnings: list[str] = []
        try:
            target = target_of(request.path, self._api.resources)
            if target is None:
                answer: Answer | StreamAnswer = self._documents.answer(request)
            else:
                found = verb_of(request.method, target, is_watch=is_true(request.query, "watch"))
                if found is None:
                    raise failures.unsupported_method()
                verb = found
                answer = self._do(found, target, request, warnings)
        except ApiError as error:
            answer = failure(error)
        except KindNotServedError:
            answer = failure(failures.unknown_path())
        except Exception as error:  # noqa: BLE001 - a mistake of ours must be an answer, not a dead connection; it is logged
            _log.exception("%s %s failed", request.method, request.path)
            answer = failure(ServerError(f"an error on the server has prevented the request: {type(error).__name__}"))
        if warnings and isinstance(answer, Answer):
            answer = Answer(answer.status, answer.body, answer.headers, tuple(warnings))
        agent = request.headers.get("user-agent", "")
        self._audit.record(Entry(self._clock.now(), agent, verb, request.path, answer.status))
        return answer

    def close(self) -> None:
        """End all watches."""
        for stream in tuple(self._watches):
            stream.end()

    def _do(self, verb: Verb, target: Target, request: Request, warnings: list[str]) -> Answer | StreamAnswer:
        match verb:
            case "get":
                return self._get(target, request)
            case "list":
                return self._list(target, request)
            case "watch":
                return self._watch(target, request)
            case "create":
                return self._create(target, request, warnings)
            case "update":
                return self._update(target, request, warnings)
            case "patch":
                return self._patch(target, request, warnings)
            case "delete":
                return self._delete(target, request, warnings)
            case "deletecollection":
                return self._delete_collection(target, request)

    def _get(self, target: Target, request: Request) -> Answer:
        if target.subresource == "scale":
            return json_answer(self._api.scale(target.resource.mapping, target.key))
        renderer = self._renderer(target, request)
        return Answer(200, renderer.object(self._api.get(target.resource.mapping, target.key)))

    def _list(self, target: Target, request: Request) -> Answer:
        parameters = ListParameters.parse(request.query, is_watch=False)
        wanted, current = parameters.revision, self._api.storage.revision
        if wanted is not None and wanted > current:
            raise failures.too_large_resource_version(wanted, current)
        page = self._api.page(
            target.resource,
            _selection(target, parameters),
            limit=parameters.limit,
            token=parameters.token,
            revision=wanted if parameters.match == "Exact" else None,
        )
        return Answer(200, self._renderer(target, request).page(page))

    def _watch(self, target: Target, request: Request) -> StreamAnswer:
        if len(self._watches) >= _MAXIMUM_WATCHES:
            raise TooManyRequestsError("there are too many watches already", retry_after_seconds=1)
        parameters = ListParameters.parse(request.query, is_watch=True)
        selection = _selection(target, parameters)
        renderer = self._renderer(target, request)
        revision = parameters.revision
        begins_with_state = parameters.initial_events or not revision
        try:
            watch = self._api.watch(target.resource, selection, after=None if begins_with_state else revision)
        except ExpiredError as error:
            return StreamAnswer(expired(renderer, error))
        stream = WatchStream(
            watch,
            renderer,
            self._clock,
            timeout_seconds=parameters.timeout_seconds or self._entropy.uniform(1800, 3600),
            bookmarks=parameters.bookmarks,
            tells_initial_end=parameters.bookmarks and (bool(parameters.initial_events) or revision == 0),
            on_end=self._watches.discard,
        )
        self._watches.add(stream)
        return StreamAnswer(stream)

    def _create(self, target: Target, request: Request, warnings: list[str]) -> Answer:
        parameters = WriteParameters.parse(request.query, "CreateOptions")
        body, fields = self._body(target, request, parameters, warnings)
        if target.subresource == "binding":
            return json_answer(bind(self._api, target.key, body.value, self._clock.now()), 201)
        if target.subresource == "eviction":
            return json_answer(evict(self._api, target.key, body.value), 201)
        _check_says_kind(target, body.value)
        obj = _addressed(target, body.value)
        created = self._api.create(
            target.resource.mapping,
            obj,
            manager=_manager(parameters, request),
            dry_run=parameters.dry_run,
            fields=fields,
        )
        return self._written(target, request, created, 201)

    def _update(self, target: Target, request: Request, warnings: list[str]) -> Answer:
        parameters = WriteParameters.parse(request.query, "UpdateOptions")
        body, fields = self._body(target, request, parameters, warnings)
        obj = _addressed(target, body.value, needs_name=True)
        existed = self._api.find(target.resource.mapping, target.key) is not None
        updated = self._api.update(
            target.resource.mapping,
            obj,
            subresource=target.subresource,
            manager=_manager(parameters, request),
            dry_run=parameters.dry_run,
            fields=fields,
        )
        return self._written(target, request, updated, 200 if existed else 201)

    def _patch(self, target: Target, request: Request, warnings: list[str]) -> Answer:
        media_type = media_type_of(request.headers.get("content-type", ""))
        is_apply = media_type in APPLY_TYPES
        patch_type = PATCH_TYPES.get(media_type)
        known = [kind for kind in PATCH_TYPES if not (target.resource.is_custom and PATCH_TYPES[kind] == "strategic")]
        if not is_apply and patch_type is None:
            raise failures.unknown_patch_type()
        if not is_apply and media_type not in known:
            raise failures.unsupported_media_type(*known, *APPLY_TYPES)
        parameters = WriteParameters.parse(request.query, "PatchOptions", is_apply=is_apply)
        subject = "error decoding YAML" if is_apply else "error decoding patch"
        body, fields = self._body(target, request, parameters, warnings, subject=subject)
        manager = _manager(parameters, request)
        existed = self._api.find(target.resource.mapping, target.key) is not None
        if patch_type is None:
            patched = self._api.apply(
                target.resource.mapping,
                _addressed(target, body.value),
                manager=manager,
                force=parameters.force,
                subresource=target.subresource,
                dry_run=parameters.dry_run,
                fields=fields,
            )
        else:
            patched = self._api.patch(
                target.resource.mapping,
                target.key,
                body.value,
                patch_type=patch_type,
                subresource=target.subresource,
                manager=manager,
                dry_run=parameters.dry_run,
                fields=fields,
            )
        return self._written(target, request, patched, 200 if existed else 201)

    def _delete(self, target: Target, request: Request, warnings: list[str]) -> Answer:
        resource = target.resource
        parameters = self._delete_parameters(request)
        if resource.storage == "jobs.batch" and parameters.propagation is None:
            warnings.append(JOB_WARNING)
        last = self._api.delete(
            resource.mapping,
            target.key,
            uid=parameters.uid,
            resource_version=parameters.resource_version,
            propagation=parameters.propagation,
            grace_seconds=parameters.grace_seconds,
            dry_run=parameters.dry_run,
        )
        is_gone = is_released(last) or "deletionTimestamp" not in last["metadata"]
        if not is_gone or resource.storage in _DELETED_IS_SHOWN:
            return Answer(200, self._renderer(target, request).object(last))
        details = {"name": target.name, "group": resource.gvk.group, "kind": resource.mapping.plural}
        details = {name: value for name, value in details.items() if value} | {"uid": last["metadata"]["uid"]}
        status = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details}
        return json_answer(status)

    def _delete_collection(self, target: Target, request: Request) -> Answer:
        parameters = self._delete_parameters(request)
        listed = ListParameters.parse(request.query, is_watch=False)
        page = self._api.page(target.resource, _selection(target, listed), limit=listed.limit, token=listed.token)
        for stored in page.items:
            if self._api.storage.get(target.resource.storage, stored.key) is not None:
                self._api.delete(
                    target.resource.mapping,
                    stored.key,
                    propagation=parameters.propagation,
                    grace_seconds=parameters.grace_seconds,
                    dry_run=parameters.dry_run,
                )
        return Answer(200, self._renderer(target, request).page(page))

    def _delete_parameters(self, request: Request) -> DeleteParameters:
        value = None
        if request.body:
            content_type = request.headers.get("content-type", "")
            value = decode_body(content_type, request.body, "Ignore", kind="DeleteOptions").value
        return DeleteParameters.parse(request.query, value)

    def _body(
        self,
        target: Target,
        request: Request,
        parameters: WriteParameters,
        warnings: list[str],
        *,
        subject: str = "",
    ) -> tuple[Body, FieldValidation]:
        kind = target.resource.gvk.kind
        content_type = request.headers.get("content-type", "")
        body = decode_body(content_type, request.body, parameters.strictness, kind=kind, subject=subject)
        return body, FieldValidation(parameters.strictness, body.duplicates, warnings)

    def _written(self, target: Target, request: Request, obj: Object, status: int) -> Answer:
        if target.subresource == "scale":
            return json_answer(obj, status)
        return Answer(status, self._renderer(target, request).object(obj))

    def _renderer(self, target: Target, request: Request) -> Renderer:
        form = accept_of(request.headers.get("accept", ""))
        included = request.query.get("includeObject", "Metadata")
        return Renderer(target.resource, form, self._clock.now(), included)


def _selection(target: Target, parameters: ListParameters) -> Selection:
    field_selector = parameters.field_selector
    if target.name:
        # A watch of one object, by its path.
        field_selector = ",".join(filter(None, (f"metadata.name={target.name}", field_selector)))
    return Selection.parse(
        target.resource,
        namespace=target.namespace,
        label_selector=parameters.label_selector,
        field_selector=field_selector,
    )


def _check_says_kind(target: Target, value: object) -> None:
    """A new custom resource has to say what it is; for built-in kinds the path says enough."""
    if target.resource.is_custom and isinstance(value, dict):
        for name, shown in (("kind", "Kind"), ("apiVersion", "apiVersion")):
            if not value.get(name):
                what = f"the object provided is unrecognized (must be of type {target.resource.gvk.kind})"
                raise BadRequestError(f"{what}: Object '{shown}' is missing")


def _addressed(target: Target, value: object, *, needs_name: bool = False) -> Object:
    """The body with the namespace and the name of the path, which it may leave out but not contradict.

    A replacement has to say the name.
    """
    if not isinstance(value, dict):
        raise BadRequestError(
            f"the object provided is unrecognized (must be of type {target.resource.gvk.kind}): it is no mapping"
        )
    metadata = value.get("metadata")
    if metadata is not None and not isinstance(metadata, dict):
        return value
    metadata = dict(metadata or {})
    if target.namespace:
        if metadata.get("namespace", target.namespace) not in (target.namespace, ""):
            raise failures.wrong_namespace()
        metadata["namespace"] = target.namespace
    if target.name:
        if needs_name and not metadata.get("name"):
            raise failures.missing_name(target.name)
        if metadata.get("name", target.name) not in (target.name, ""):
            raise failures.wrong_name(str(metadata["name"]), target.name)
        metadata["name"] = target.name
    return {**value, "metadata": metadata}


def _manager(parameters: WriteParameters, request: Request) -> str:
    """Who writes: as it says itself, else by the first word of its user agent."""
    return parameters.manager or request.headers.get("user-agent", "").partition("/")[0][:_MANAGER_LIMIT]
