"""Admission reviews: the request to a webhook and the interpretation of its response (admission.k8s.io/v1)."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from konverge._internal.kube import GroupVersionKind, Object
from konverge.errors import ApiError, ServerError
from konverge_cluster._internal.embedded.access.users import User
from konverge_cluster._internal.embedded.resource_registry import ServedResource
from konverge_cluster._internal.embedded.validation.field_errors import quote
from konverge_cluster._internal.embedded.webhooks.client_config import CallFailedError, parse_review
from konverge_cluster._internal.embedded.webhooks.configurations import Operation
from konverge_cluster._internal.embedded.webhooks.pending_calls import WebhookCall, WebhookReply

__all__ = [
    "AdmissionAttributes",
    "WebhookResponse",
    "build_review",
    "new_denial",
    "new_internal_error",
    "parse_webhook_response",
]

_API_VERSION = "admission.k8s.io/v1"
_KIND = "AdmissionReview"
_LOWEST_FAILURE, _BAD_REQUEST = 400, 400


@dataclass(frozen=True, slots=True)
class AdmissionAttributes:
    """The attributes of a write for admission.

    Attributes:
        operation: The operation.
        resource: The resource of the object.
        namespace: The namespace; empty for cluster scope.
        name: The name in the request; empty for a collection and for a name that is not generated yet.
        object: The new object; None for a delete.
        old: The previous object; None for a create.
        subresource: The subresource; empty for the object itself.
        user: The user who sends the request.
        options: The options of the request in their API form.
        dry_run: True if the result is not stored.
        warnings: Receives the warnings of the webhooks.
    """

    operation: Operation
    resource: ServedResource
    namespace: str
    name: str
    object: Object | None
    old: Object | None
    subresource: str
    user: User
    options: Object
    dry_run: bool
    warnings: list[str]


@dataclass(frozen=True, slots=True)
class WebhookResponse:
    """The response of a webhook.

    Attributes:
        allowed: True if the request is admitted.
        status: The status of a denial.
        warnings: The warnings for the user.
        patch: The operations of a JSON patch; None for no change.
    """

    allowed: bool
    status: Mapping[str, Any]
    warnings: tuple[str, ...]
    patch: list[Any] | None


def build_review(
    admission: AdmissionAttributes, target: ServedResource, uid: str, *, obj: Object | None, old: Object | None
) -> Object:
    """Return the review for a webhook.

    Args:
        admission: The attributes of the write.
        target: The resource in the version that the webhook expects.
        uid: The UID of the review.
        obj: The object in that version.
        old: The previous object in that version.
    """
    own = admission.resource
    request: Object = {
        "uid": uid,
        "kind": _build_kind(target.gvk),
        "resource": _build_resource(target),
        "requestKind": _build_kind(own.gvk),
        "requestResource": _build_resource(own),
        "operation": admission.operation,
        "userInfo": admission.user.to_user_info(),
        "object": obj,
        "oldObject": old,
        "dryRun": admission.dry_run,
        "options": admission.options,
    }
    for name, value in (("name", admission.name), ("namespace", admission.namespace)):
        if value:
            request[name] = value
    if admission.subresource:
        request["subResource"] = request["requestSubResource"] = admission.subresource
    return {"kind": _KIND, "apiVersion": _API_VERSION, "request": request}


def _build_kind(gvk: GroupVersionKind) -> Object:
    return {"group": gvk.group, "version": gvk.version, "kind": gvk.kind}


def _build_resource(resource: ServedResource) -> Object:
    return {"group": resource.gvk.group, "version": resource.gvk.version, "resource": resource.mapping.plural}


def parse_webhook_response(call: WebhookCall, reply: WebhookReply, uid: str, *, is_mutating: bool) -> WebhookResponse:
    """Return the response in a webhook's reply.

    Args:
        call: The call of the webhook.
        reply: The reply.
        uid: The UID of the review.
        is_mutating: True if the webhook can change the object; otherwise a patch is ignored.

    Raises:
        CallFailedError: The reply is not a valid response.
    """
    try:
        response = _find_response(parse_review(call, reply))
    except CallFailedError as error:
        raise CallFailedError(f"failed to call webhook: {error}") from None
    invalid = "received invalid webhook response"
    if response is None:
        raise CallFailedError(f"{invalid}: webhook response was absent")
    if response.get("uid") != uid:
        message = f"expected response.uid={quote(uid)}, got {quote(str(response.get('uid', '')))}"
        raise CallFailedError(f"{invalid}: {message}")
    patch = _decode_patch(response, invalid) if is_mutating else None
    warnings = response.get("warnings")
    status = response.get("status")
    return WebhookResponse(
        allowed=response.get("allowed", False),
        status=status if isinstance(status, Mapping) else {},
        warnings=tuple(map(str, warnings)) if isinstance(warnings, list) else (),
        patch=patch,
    )


def _find_response(review: Mapping[str, Any]) -> Mapping[str, Any] | None:
    version, kind = review.get("apiVersion", _API_VERSION), review.get("kind", _KIND)
    if (version, kind) != (_API_VERSION, _KIND):
        found = f"{str(version).rpartition('/')[2]}.{kind}"
        raise CallFailedError(f"converting ({found}) to (v1.AdmissionReview): unknown conversion")
    response = review.get("response")
    if response is None:
        return None
    for what, value, expected_type, name in (
        ("response", response, Mapping, "v1.AdmissionResponse"),
        ("response.allowed", response.get("allowed", False) if isinstance(response, Mapping) else False, bool, "bool"),
    ):
        if not isinstance(value, expected_type):
            found = {str: "string", int: "number", float: "number", list: "array", bool: "bool"}.get(
                type(value), "object"
            )
            owner = "AdmissionReview" if what == "response" else "AdmissionResponse"
            raise CallFailedError(f"json: cannot unmarshal {found} into Go struct field {owner}.{what} of type {name}")
    checked: Mapping[str, Any] = response
    return checked


def _decode_patch(response: Mapping[str, Any], invalid: str) -> list[Any] | None:
    text, kind = response.get("patch"), response.get("patchType")
    if text and kind is None:
        raise CallFailedError(f"{invalid}: webhook returned response.patch but not response.patchType")
    if kind is not None and not text:
        raise CallFailedError(f"{invalid}: webhook returned response.patchType but not response.patch")
    if not text or not response.get("allowed"):
        return None
    undecodable = "received undecodable patch in webhook response"
    try:
        decoded = msgspec.json.decode(base64.b64decode(text, validate=True))
    except (TypeError, ValueError, binascii.Error, msgspec.DecodeError, RecursionError) as error:
        raise CallFailedError(f"{undecodable}: {error}") from None
    if not isinstance(decoded, list):
        raise CallFailedError(f"{undecodable}: json: cannot unmarshal object into Go value of type jsonpatch.Patch")
    if kind != "JSONPatch":
        raise CallFailedError(f"webhook returned unsupported patch type {quote(str(kind))}")
    return decoded


def new_denial(webhook: str, status: Mapping[str, Any]) -> ApiError:
    """Return the error of a denied request."""
    message, reason, code = status.get("message"), status.get("reason"), status.get("code")
    why = f": {message or reason}" if message or reason else " without explanation"
    details = status.get("details")
    return ApiError(
        f"admission webhook {quote(webhook)} denied the request{why}",
        reason=str(reason or ""),
        code=code if isinstance(code, int) and code >= _LOWEST_FAILURE else _BAD_REQUEST,
        details=details if isinstance(details, Mapping) else None,
    )


def new_internal_error(why: str) -> ServerError:
    """Return 500: the call of a webhook failed."""
    return ServerError(f"Internal error occurred: {why}", details={"causes": [{"message": why}]})
