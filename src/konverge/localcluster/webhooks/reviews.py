"""Admission reviews: what a webhook is sent, and what its answer means (admission.k8s.io/v1)."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from konverge.errors import ApiError, ServerError
from konverge.kube import GroupVersionKind, Object
from konverge.localcluster.access.users import User
from konverge.localcluster.resources import Resource
from konverge.localcluster.validation.mistakes import quoted
from konverge.localcluster.webhooks.clients import CallFailedError, review_of
from konverge.localcluster.webhooks.configurations import Operation
from konverge.localcluster.webhooks.consulting import Call, Reply

__all__ = ["Admission", "Verdict", "denial", "internal_error", "request_review", "verdict_of"]

_API_VERSION = "admission.k8s.io/v1"
_KIND = "AdmissionReview"
_LOWEST_FAILURE, _BAD_REQUEST = 400, 400


@dataclass(frozen=True, slots=True)
class Admission:
    """A write that webhooks may be asked about.

    Attributes:
        operation: What is done.
        resource: What it is done to.
        namespace: Where; empty for the cluster.
        name: The name in the request; empty for a collection, and while a name is still to be generated.
        object: What the object is to be; None for a deletion.
        old: What it was; None for a creation.
        subresource: Which part of it is written; empty for the object itself.
        user: Who asks.
        options: The options of the request, as the API has them.
        dry_run: Whether it is only tried.
        told: Gets the warnings of the webhooks.
    """

    operation: Operation
    resource: Resource
    namespace: str
    name: str
    object: Object | None
    old: Object | None
    subresource: str
    user: User
    options: Object
    dry_run: bool
    told: list[str]


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a webhook answered.

    Attributes:
        allowed: Whether it lets the request pass.
        status: Why not.
        warnings: What the user is to be told.
        patch: What it changes: the operations of a JSON patch; None for nothing.
    """

    allowed: bool
    status: Mapping[str, Any]
    warnings: tuple[str, ...]
    patch: list[Any] | None


def request_review(
    admission: Admission, asked: Resource, uid: str, *, obj: Object | None, old: Object | None
) -> Object:
    """The review to send.

    Args:
        admission: The write.
        asked: The version of the resource that the webhook wants to be asked about.
        uid: The identifier of the question.
        obj: The object in that version.
        old: The object before, in that version.
    """
    own = admission.resource
    request: Object = {
        "uid": uid,
        "kind": _kind(asked.gvk),
        "resource": _resource(asked),
        "requestKind": _kind(own.gvk),
        "requestResource": _resource(own),
        "operation": admission.operation,
        "userInfo": admission.user.info(),
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


def _kind(gvk: GroupVersionKind) -> Object:
    return {"group": gvk.group, "version": gvk.version, "kind": gvk.kind}


def _resource(resource: Resource) -> Object:
    return {"group": resource.gvk.group, "version": resource.gvk.version, "resource": resource.mapping.plural}


def verdict_of(call: Call, reply: Reply, uid: str, *, is_mutating: bool) -> Verdict:
    """What a webhook said.

    Args:
        call: The call.
        reply: What came of it.
        uid: The identifier of the question.
        is_mutating: Whether it may change the object; a patch of another is not looked at.

    Raises:
        CallFailedError: It said nothing that can be understood.
    """
    try:
        response = _response(review_of(call, reply))
    except CallFailedError as error:
        raise CallFailedError(f"failed to call webhook: {error}") from None
    invalid = "received invalid webhook response"
    if response is None:
        raise CallFailedError(f"{invalid}: webhook response was absent")
    if response.get("uid") != uid:
        told = f"expected response.uid={quoted(uid)}, got {quoted(str(response.get('uid', '')))}"
        raise CallFailedError(f"{invalid}: {told}")
    patch = _patch(response, invalid) if is_mutating else None
    warnings = response.get("warnings")
    status = response.get("status")
    return Verdict(
        allowed=response.get("allowed", False),
        status=status if isinstance(status, Mapping) else {},
        warnings=tuple(map(str, warnings)) if isinstance(warnings, list) else (),
        patch=patch,
    )


def _response(review: Mapping[str, Any]) -> Mapping[str, Any] | None:
    version, kind = review.get("apiVersion", _API_VERSION), review.get("kind", _KIND)
    if (version, kind) != (_API_VERSION, _KIND):
        found = f"{str(version).rpartition('/')[2]}.{kind}"
        raise CallFailedError(f"converting ({found}) to (v1.AdmissionReview): unknown conversion")
    response = review.get("response")
    if response is None:
        return None
    for what, value, wanted, name in (
        ("response", response, Mapping, "v1.AdmissionResponse"),
        ("response.allowed", response.get("allowed", False) if isinstance(response, Mapping) else False, bool, "bool"),
    ):
        if not isinstance(value, wanted):
            found = {str: "string", int: "number", float: "number", list: "array", bool: "bool"}.get(
                type(value), "object"
            )
            owner = "AdmissionReview" if what == "response" else "AdmissionResponse"
            raise CallFailedError(f"json: cannot unmarshal {found} into Go struct field {owner}.{what} of type {name}")
    checked: Mapping[str, Any] = response
    return checked


def _patch(response: Mapping[str, Any], invalid: str) -> list[Any] | None:
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
    except (TypeError, ValueError, binascii.Error, msgspec.DecodeError, RecursionError) as mistake:
        raise CallFailedError(f"{undecodable}: {mistake}") from None
    if not isinstance(decoded, list):
        raise CallFailedError(f"{undecodable}: json: cannot unmarshal object into Go value of type jsonpatch.Patch")
    if kind != "JSONPatch":
        raise CallFailedError(f"webhook returned unsupported patch type {quoted(str(kind))}")
    return decoded


def denial(webhook: str, status: Mapping[str, Any]) -> ApiError:
    """The refusal of a webhook, as its user reads it."""
    message, reason, code = status.get("message"), status.get("reason"), status.get("code")
    why = f": {message or reason}" if message or reason else " without explanation"
    details = status.get("details")
    return ApiError(
        f"admission webhook {quoted(webhook)} denied the request{why}",
        reason=str(reason or ""),
        code=code if isinstance(code, int) and code >= _LOWEST_FAILURE else _BAD_REQUEST,
        details=details if isinstance(details, Mapping) else None,
    )


def internal_error(why: str) -> ServerError:
    """500: a webhook did not do its part."""
    return ServerError(f"Internal error occurred: {why}", details={"causes": [{"message": why}]})
