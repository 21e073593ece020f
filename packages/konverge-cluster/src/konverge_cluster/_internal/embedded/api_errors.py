"""The error responses of the server, with the texts of kube-apiserver: one function for each cause."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from konverge.errors import (
    AlreadyExistsError,
    ApiError,
    BadRequestError,
    ConflictError,
    ForbiddenError,
    InvalidError,
    NotFoundError,
    ServerError,
)
from konverge_cluster._internal.embedded.resource_registry import ServedResource
from konverge_cluster._internal.embedded.validation.field_errors import field_invalid, new_invalid

__all__ = [
    "new_already_exists",
    "new_conflict",
    "new_method_not_allowed",
    "new_missing_name",
    "new_modified",
    "new_not_found",
    "new_resource_version_precondition_failed",
    "new_terminating_definition",
    "new_terminating_namespace",
    "new_too_large_resource_version",
    "new_uid_mismatch",
    "new_uid_precondition_failed",
    "new_undeletable_namespace",
    "new_unknown_patch_type",
    "new_unknown_path",
    "new_unreadable_patch",
    "new_unserved",
    "new_unsupported_media_type",
    "new_unversioned_update",
    "new_wrong_name",
    "new_wrong_namespace",
]


def _build_details(resource: ServedResource, name: str) -> dict[str, Any]:
    details = {"name": name, "group": resource.gvk.group, "kind": resource.mapping.plural}
    return {key: value for key, value in details.items() if value}


def new_not_found(resource: ServedResource, name: str) -> NotFoundError:
    """Return 404: the object does not exist."""
    return NotFoundError(f'{resource.qualified_name} "{name}" not found', details=_build_details(resource, name))


def new_already_exists(resource: ServedResource, name: str) -> AlreadyExistsError:
    """Return 409: the name is already in use."""
    return AlreadyExistsError(
        f'{resource.qualified_name} "{name}" already exists', details=_build_details(resource, name)
    )


def _build_conflict(what: str, name: str, why: str, details: Mapping[str, Any]) -> ConflictError:
    return ConflictError(f'Operation cannot be fulfilled on {what} "{name}": {why}', details=details)


def new_conflict(resource: ServedResource, name: str, why: str) -> ConflictError:
    """Return 409 for another reason."""
    return _build_conflict(resource.qualified_name, name, why, _build_details(resource, name))


def new_modified(resource: ServedResource, name: str) -> ConflictError:
    """Return 409: the resourceVersion in the body is not the stored one."""
    why = "the object has been modified; please apply your changes to the latest version and try again"
    return new_conflict(resource, name, why)


def new_uid_mismatch(resource: ServedResource, name: str, expected: str, actual: str) -> ConflictError:
    """Return 409: the UID in the body of an update is not the stored one."""
    why = f"Precondition failed: UID in precondition: {expected}, UID in object meta: {actual}"
    return new_conflict(resource, name, why)


def new_unversioned_update(resource: ServedResource, name: str) -> InvalidError:
    """Return 422: the resource accepts no update without a resourceVersion."""
    error = field_invalid("metadata.resourceVersion", 0, "must be specified for an update")
    return new_invalid(resource.gvk.group, resource.mapping.plural, name, [error])


def new_uid_precondition_failed(resource: ServedResource, name: str, expected: str, actual: str) -> ConflictError:
    """Return 409: a delete's UID precondition is not met."""
    why = (
        f"the UID in the precondition ({expected}) does not match the UID in record ({actual}). "
        "The object might have been deleted and then recreated"
    )
    return _build_conflict(resource.qualified_kind, name, why, _build_kind_details(resource, name))


def new_resource_version_precondition_failed(
    resource: ServedResource, name: str, expected: str, actual: str
) -> ConflictError:
    """Return 409: a delete's resourceVersion precondition is not met."""
    why = (
        f"the ResourceVersion in the precondition ({expected}) does not match the ResourceVersion in record "
        f"({actual}). The object might have been modified"
    )
    return _build_conflict(resource.qualified_kind, name, why, _build_kind_details(resource, name))


def _build_kind_details(resource: ServedResource, name: str) -> dict[str, Any]:
    return _build_details(resource, name) | {"kind": resource.gvk.kind}


def new_terminating_namespace(resource: ServedResource, name: str, namespace: str) -> ForbiddenError:
    """Return 403: the namespace is being deleted and accepts no new objects."""
    because = f"namespace {namespace} is being terminated"
    cause = {"reason": "NamespaceTerminating", "message": because, "field": "metadata.namespace"}
    return ForbiddenError(
        f'{resource.qualified_name} "{name}" is forbidden: '
        f"unable to create new content in namespace {namespace} because it is being terminated",
        details=_build_details(resource, name) | {"causes": [cause]},
    )


def new_too_large_resource_version(expected: int, current: int) -> ServerError:
    """Return 504: the resourceVersion is newer than the current one."""
    cause = {"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}
    return ServerError(
        f"Timeout: Too large resource version: {expected}, current: {current}",
        reason="Timeout",
        code=504,
        details={"causes": [cause]},
        retry_after_seconds=1,
    )


def new_method_not_allowed() -> ApiError:
    """Return 405: the resource does not have this verb."""
    return ApiError(
        "the server does not allow this method on the requested resource", reason="MethodNotAllowed", code=405
    )


def new_unsupported_media_type(*accepted: str) -> ApiError:
    """Return 415: the server cannot read this body format."""
    return ApiError(
        f"the body of the request was in an unknown format - accepted media types include: {', '.join(accepted)}",
        reason="UnsupportedMediaType",
        code=415,
    )


def new_unknown_path() -> NotFoundError:
    """Return 404: the server does not serve this path."""
    return NotFoundError("the server could not find the requested resource")


def new_unserved(what: str) -> NotFoundError:
    """Return 404: a real API server serves this resource, the embedded cluster does not."""
    hint = f"konverge: the embedded cluster does not serve {what}; konverge local capabilities lists what it lacks"
    return NotFoundError(f"the server could not find the requested resource ({hint})")


def new_unreadable_patch(why: str) -> InvalidError:
    """Return 422: the patched object is not a valid object of its kind. The object itself is not shown."""
    return new_invalid("", "", "", [field_invalid("patch", "", why)])


def new_unknown_patch_type() -> ApiError:
    """Return 415: the server does not know this patch format."""
    return ApiError("415: Unsupported Media Type", reason="UnsupportedMediaType", code=415)


def new_missing_name(expected: str) -> BadRequestError:
    """Return 400: the object that replaces another has no name."""
    message = f"the name of the object ({expected} based on URL) was undeterminable: name must be provided"
    return BadRequestError(message)


def new_wrong_name(actual: str, expected: str) -> BadRequestError:
    """Return 400: the object's name differs from the path."""
    return BadRequestError(f"the name of the object ({actual}) does not match the name on the URL ({expected})")


def new_undeletable_namespace(name: str) -> ForbiddenError:
    """Return 403: this namespace cannot be deleted."""
    details = {"name": name, "kind": "namespaces"}
    return ForbiddenError(f'namespaces "{name}" is forbidden: this namespace may not be deleted', details=details)


def new_terminating_definition() -> ApiError:
    """Return 405: the definition of the kind is being deleted."""
    return ApiError(
        "create not allowed while custom resource definition is terminating", reason="MethodNotAllowed", code=405
    )


def new_wrong_namespace() -> BadRequestError:
    """Return 400: the object's namespace differs from the path."""
    return BadRequestError("the namespace of the provided object does not match the namespace sent on the request")
