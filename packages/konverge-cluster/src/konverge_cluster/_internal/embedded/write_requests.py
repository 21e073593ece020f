"""Requests that write: create, update, patch, apply and delete."""

from __future__ import annotations

from konverge._internal.kube import Object
from konverge.clock import Clock
from konverge.errors import BadRequestError
from konverge_cluster._internal.embedded import api_errors
from konverge_cluster._internal.embedded.access.access_reviews import AccessReviewHandler
from konverge_cluster._internal.embedded.access.authorization import Authorizer
from konverge_cluster._internal.embedded.apiserver import ApiServer
from konverge_cluster._internal.embedded.content_negotiation import (
    APPLY_TYPES,
    PATCH_TYPES,
    DecodedBody,
    decode_body,
    parse_media_type,
)
from konverge_cluster._internal.embedded.deletion import JOB_WARNING, DeleteOptions, is_released
from konverge_cluster._internal.embedded.messages import ServerRequest, ServerResponse, build_json_response
from konverge_cluster._internal.embedded.object_decoding import FieldValidation
from konverge_cluster._internal.embedded.parsed_request import ParsedRequest
from konverge_cluster._internal.embedded.pod_subresources import bind_pod, evict_pod
from konverge_cluster._internal.embedded.query_parameters import DeleteParameters, ListParameters, WriteParameters
from konverge_cluster._internal.embedded.read_requests import ReadHandler
from konverge_cluster._internal.embedded.routes import RequestTarget
from konverge_cluster._internal.embedded.webhooks.pending_calls import CallGenerator
from konverge_cluster._internal.embedded.write_options import WriteOptions

__all__ = ["WriteHandler"]

_MANAGER_LIMIT = 128
# Kinds whose delete returns the object instead of a Status.
_DELETE_RETURNS_OBJECT = frozenset(
    {"pods", "services", "persistentvolumeclaims", "persistentvolumes", "serviceaccounts"}
)


class WriteHandler:
    """Answers requests that write.

    Args:
        api: The API server.
        clock: The clock for timestamps and ages.
        authorizer: Decides which permissions a user may grant.
        reviews: Issues the tokens of ServiceAccounts.
        reads: Reads the objects of a collection to delete.
    """

    def __init__(
        self, api: ApiServer, clock: Clock, authorizer: Authorizer, reviews: AccessReviewHandler, reads: ReadHandler
    ) -> None:
        self._api = api
        self._clock = clock
        self._authorizer = authorizer
        self._reviews = reviews
        self._reads = reads

    def create(self, parsed: ParsedRequest) -> CallGenerator[ServerResponse]:
        """Answer a create, or a subresource that is created: a binding, an eviction or a token."""
        target, request = parsed.target, parsed.request
        parameters = WriteParameters.parse(request.query, "CreateOptions")
        body, fields = _decode_body(parsed, parameters)
        if target.subresource == "binding":
            return build_json_response(
                bind_pod(self._api, target.key, body.value, self._clock.now(), dry_run=parameters.dry_run), 201
            )
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
        return self._build_write_response(parsed, created, 201)

    def update(self, parsed: ParsedRequest) -> CallGenerator[ServerResponse]:
        """Answer a replacement of an object or of a subresource."""
        target, request = parsed.target, parsed.request
        parameters = WriteParameters.parse(request.query, "UpdateOptions")
        body, fields = _decode_body(parsed, parameters)
        obj = _complete_identity(target, body.value, needs_name=True)
        existed = self._exists(target)
        write = self._build_write_options(parsed, parameters, fields)
        updated = yield from self._api.verbs.update(target.resource, obj, write, target.subresource)
        return self._build_write_response(parsed, updated, 200 if existed else 201)

    def patch(self, parsed: ParsedRequest) -> CallGenerator[ServerResponse]:
        """Answer a patch or an apply."""
        target, request = parsed.target, parsed.request
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
        body, fields = _decode_body(parsed, parameters, subject=subject)
        write = self._build_write_options(parsed, parameters, fields)
        existed = self._exists(target)
        verbs, resource = self._api.verbs, target.resource
        if patch_type is None:
            obj = _complete_identity(target, body.value)
            patched = yield from verbs.apply(resource, obj, write, target.subresource, force=parameters.force)
        else:
            patched = yield from verbs.patch(resource, target.key, body.value, patch_type, write, target.subresource)
        return self._build_write_response(parsed, patched, 200 if existed else 201)

    def delete(self, parsed: ParsedRequest) -> CallGenerator[ServerResponse]:
        """Answer a delete of one object."""
        target, request, warnings = parsed.target, parsed.request, parsed.warnings
        resource = target.resource
        parameters = _parse_delete_parameters(request)
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
            return ServerResponse(200, parsed.build_renderer(self._clock.now()).render_object(last))
        details = {"name": target.name, "group": resource.gvk.group, "kind": resource.mapping.plural}
        details = {name: value for name, value in details.items() if value} | {"uid": last["metadata"]["uid"]}
        status = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details}
        return build_json_response(status)

    def delete_collection(self, parsed: ParsedRequest) -> CallGenerator[ServerResponse]:
        """Answer a delete of all selected objects of a collection."""
        target, request = parsed.target, parsed.request
        parameters = _parse_delete_parameters(request)
        listed = ListParameters.parse(request.query, is_watch=False)
        page = self._reads.read_page(target, listed)
        yield from self._api.verbs.conversions.prepare_served_forms(target.resource, page.items)
        options = DeleteOptions(parameters.propagation, parameters.grace_seconds)
        write = _build_delete_options(parameters, parsed, names_object=False)
        for stored in page.items:
            if self._api.storage.get(target.resource.storage, stored.key) is not None:
                yield from self._api.verbs.delete(target.resource, stored.key, options, write)
        return ServerResponse(200, parsed.build_renderer(self._clock.now(), is_list=True).render_page(page))

    def _exists(self, target: RequestTarget) -> bool:
        return self._api.storage.get(target.resource.storage, target.key) is not None

    def _build_write_options(
        self, parsed: ParsedRequest, parameters: WriteParameters, fields: FieldValidation
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
            authorizer=self._authorizer,
        )

    def _build_write_response(self, parsed: ParsedRequest, obj: Object, status: int) -> ServerResponse:
        if parsed.target.subresource == "scale":
            return build_json_response(obj, status)
        return ServerResponse(status, parsed.build_renderer(self._clock.now()).render_object(obj))


def _parse_delete_parameters(request: ServerRequest) -> DeleteParameters:
    value = None
    if request.body:
        content_type = request.headers.get("content-type", "")
        value = decode_body(content_type, request.body, "Ignore", kind="DeleteOptions").value
    return DeleteParameters.parse(request.query, value)


def _decode_body(
    parsed: ParsedRequest, parameters: WriteParameters, *, subject: str = ""
) -> tuple[DecodedBody, FieldValidation]:
    kind, request = parsed.target.resource.gvk.kind, parsed.request
    content_type = request.headers.get("content-type", "")
    body = decode_body(content_type, request.body, parameters.strictness, kind=kind, subject=subject)
    return body, FieldValidation(parameters.strictness, body.duplicates, parsed.warnings)


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
    parameters: DeleteParameters, parsed: ParsedRequest, *, names_object: bool = True
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
