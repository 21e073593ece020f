"""The server's refusals, in its words: one function for each way in which a request can fail."""

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
from konverge.localcluster.resources import Resource
from konverge.localcluster.validation.mistakes import invalid, refusal

__all__ = [
    "already_exists",
    "conflict",
    "immortal_namespace",
    "mismatched_resource_version",
    "mismatched_uid",
    "missing_name",
    "modified",
    "not_found",
    "stored_uid_differs",
    "terminating_definition",
    "terminating_namespace",
    "too_large_resource_version",
    "unknown_patch_type",
    "unknown_path",
    "unreadable_patch",
    "unsupported_media_type",
    "unsupported_method",
    "unversioned_update",
    "wrong_name",
    "wrong_namespace",
]


def _details(resource: Resource, name: str) -> dict[str, Any]:
    details = {"name": name, "group": resource.gvk.group, "kind": resource.mapping.plural}
    return {key: value for key, value in details.items() if value}


def not_found(resource: Resource, name: str) -> NotFoundError:
    """404: no such object."""
    return NotFoundError(f'{resource.qualified_name} "{name}" not found', details=_details(resource, name))


def already_exists(resource: Resource, name: str) -> AlreadyExistsError:
    """409: the name is taken."""
    return AlreadyExistsError(f'{resource.qualified_name} "{name}" already exists', details=_details(resource, name))


def _conflict(what: str, name: str, why: str, details: Mapping[str, Any]) -> ConflictError:
    return ConflictError(f'Operation cannot be fulfilled on {what} "{name}": {why}', details=details)


def conflict(resource: Resource, name: str, why: str) -> ConflictError:
    """409 for some other reason."""
    return _conflict(resource.qualified_name, name, why, _details(resource, name))


def modified(resource: Resource, name: str) -> ConflictError:
    """409: the resourceVersion in the body is not the stored one."""
    why = "the object has been modified; please apply your changes to the latest version and try again"
    return conflict(resource, name, why)


def stored_uid_differs(resource: Resource, name: str, wanted: str, found: str) -> ConflictError:
    """409: the UID in the body of an update is not the stored one."""
    why = f"Precondition failed: UID in precondition: {wanted}, UID in object meta: {found}"
    return conflict(resource, name, why)


def unversioned_update(resource: Resource, name: str) -> InvalidError:
    """422: the resource takes no update without a resourceVersion."""
    mistake = invalid("metadata.resourceVersion", 0, "must be specified for an update")
    return refusal(resource.gvk.group, resource.mapping.plural, name, [mistake])


def mismatched_uid(resource: Resource, name: str, wanted: str, found: str) -> ConflictError:
    """409: a delete's UID precondition does not hold."""
    why = (
        f"the UID in the precondition ({wanted}) does not match the UID in record ({found}). "
        "The object might have been deleted and then recreated"
    )
    return _conflict(resource.qualified_kind, name, why, _kind_details(resource, name))


def mismatched_resource_version(resource: Resource, name: str, wanted: str, found: str) -> ConflictError:
    """409: a delete's resourceVersion precondition does not hold."""
    why = (
        f"the ResourceVersion in the precondition ({wanted}) does not match the ResourceVersion in record ({found}). "
        "The object might have been modified"
    )
    return _conflict(resource.qualified_kind, name, why, _kind_details(resource, name))


def _kind_details(resource: Resource, name: str) -> dict[str, Any]:
    return _details(resource, name) | {"kind": resource.gvk.kind}


def terminating_namespace(resource: Resource, name: str, namespace: str) -> ForbiddenError:
    """403: nothing is created in a namespace that is being deleted."""
    because = f"namespace {namespace} is being terminated"
    cause = {"reason": "NamespaceTerminating", "message": because, "field": "metadata.namespace"}
    return ForbiddenError(
        f'{resource.qualified_name} "{name}" is forbidden: '
        f"unable to create new content in namespace {namespace} because it is being terminated",
        details=_details(resource, name) | {"causes": [cause]},
    )


def too_large_resource_version(wanted: int, current: int) -> ServerError:
    """504: the resourceVersion lies in the future."""
    cause = {"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}
    return ServerError(
        f"Timeout: Too large resource version: {wanted}, current: {current}",
        reason="Timeout",
        code=504,
        details={"causes": [cause]},
        retry_after_seconds=1,
    )


def unsupported_method() -> ApiError:
    """405: the resource has no such verb."""
    return ApiError(
        "the server does not allow this method on the requested resource", reason="MethodNotAllowed", code=405
    )


def unsupported_media_type(*accepted: str) -> ApiError:
    """415: the body is in a form that the server does not read."""
    return ApiError(
        f"the body of the request was in an unknown format - accepted media types include: {', '.join(accepted)}",
        reason="UnsupportedMediaType",
        code=415,
    )


def unknown_path() -> NotFoundError:
    """404: nothing is served there."""
    return NotFoundError("the server could not find the requested resource")


def unreadable_patch(why: str) -> InvalidError:
    """422: what a patch makes of the object is no object of its kind. The object itself is not shown."""
    return refusal("", "", "", [invalid("patch", "", why)])


def unknown_patch_type() -> ApiError:
    """415: the patch is in a form that the server does not know."""
    return ApiError("415: Unsupported Media Type", reason="UnsupportedMediaType", code=415)


def missing_name(wanted: str) -> BadRequestError:
    """400: the object that is to replace another does not say its name."""
    told = f"the name of the object ({wanted} based on URL) was undeterminable: name must be provided"
    return BadRequestError(told)


def wrong_name(found: str, wanted: str) -> BadRequestError:
    """400: the object says another name than the path."""
    return BadRequestError(f"the name of the object ({found}) does not match the name on the URL ({wanted})")


def immortal_namespace(name: str) -> ForbiddenError:
    """403: this namespace is always there."""
    details = {"name": name, "kind": "namespaces"}
    return ForbiddenError(f'namespaces "{name}" is forbidden: this namespace may not be deleted', details=details)


def terminating_definition() -> ApiError:
    """405: the definition of the kind is being deleted."""
    return ApiError(
        "create not allowed while custom resource definition is terminating", reason="MethodNotAllowed", code=405
    )


def wrong_namespace() -> BadRequestError:
    """400: the object says another namespace than the path."""
    return BadRequestError("the namespace of the provided object does not match the namespace sent on the request")
