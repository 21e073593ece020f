"""AdmissionReview v1 and ConversionReview v1, between bytes and values. Pure.

The input is checked before a handler sees it: a malformed review is a `BadRequestError` with a sentence, never another
exception. The output satisfies the checks of the API server (apiserver, admission/plugin/webhook/request;
apiextensions-apiserver, apiserver/conversion): the UID of the request, a patch only together with its type, as many
objects as in the request.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal, TypeAlias

import msgspec

from konverge._internal.kube import GroupVersionKind, Object, ObjectKey
from konverge._internal.runtime.webhooks.responses import AdmissionResponse, limit_warnings
from konverge.errors import BadRequestError

__all__ = [
    "AdmissionOperation",
    "AdmissionReview",
    "ConversionReview",
    "UserInfo",
    "build_conversion_failure",
    "build_conversion_review",
    "encode_admission_response",
    "encode_strict_json",
    "parse_admission_review",
    "parse_conversion_review",
]

AdmissionOperation: TypeAlias = Literal["CREATE", "UPDATE", "DELETE"]

_ADMISSION = "admission.k8s.io/v1"
_CONVERSION = "apiextensions.k8s.io/v1"
_MESSAGE_CHARACTERS = 8192
_UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)

_encode = msgspec.json.Encoder().encode
_Uid: TypeAlias = Annotated[str, msgspec.Meta(min_length=1, max_length=256)]


@dataclass(frozen=True, slots=True)
class UserInfo:
    """The client of a request, as the API server authenticated it."""

    username: str = ""
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


def _build_empty_key() -> ObjectKey:
    return ObjectKey("", "")


@dataclass(frozen=True, slots=True)
class AdmissionReview:
    """The API server's review of one request.

    Args:
        uid: Identifier of the review.
        operation: The operation on the object.
        gvk: The kind, in the version of the webhook's rule: `object` has that form.
        plural: The resource.
        subresource: For example ``status``; empty for the object itself.
        key: The object. A create with ``generateName`` has no name yet.
        user: The client of the request.
        object: The object as it would be stored; None for a deletion.
        old_object: The object as it is stored; None for a creation.
        dry_run: Whether the server stores nothing: then there must be no side effects.
        options: The options of the operation, for example a ``DeleteOptions``.
        request_gvk: The kind in the version of the original request.
    """

    uid: str
    operation: AdmissionOperation
    gvk: GroupVersionKind
    plural: str
    subresource: str = ""
    key: ObjectKey = field(default_factory=_build_empty_key)
    user: UserInfo = field(default_factory=UserInfo)
    object: Object | None = None
    old_object: Object | None = None
    dry_run: bool = False
    options: Object = field(default_factory=dict)
    request_gvk: GroupVersionKind | None = None


@dataclass(frozen=True, slots=True)
class ConversionReview:
    """The objects that the API server requests to convert, in order, and their desired version."""

    uid: str
    desired_api_version: str
    objects: tuple[Object, ...]


class _ReviewKind(msgspec.Struct, frozen=True):
    version: str
    kind: str
    group: str = ""

    def to_gvk(self) -> GroupVersionKind:
        return GroupVersionKind(self.group, self.version, self.kind)


class _ReviewResource(msgspec.Struct, frozen=True):
    resource: str


class _UserInfo(msgspec.Struct, frozen=True):
    username: str = ""
    uid: str = ""
    groups: tuple[str, ...] | None = None
    extra: dict[str, tuple[str, ...]] | None = None


class _RawAdmissionRequest(msgspec.Struct, frozen=True, rename="camel"):
    uid: _Uid
    kind: _ReviewKind
    resource: _ReviewResource
    operation: AdmissionOperation
    user_info: _UserInfo = _UserInfo()
    sub_resource: str = ""
    request_kind: _ReviewKind | None = None
    name: str = ""
    namespace: str = ""
    object: dict[str, Any] | None = None
    old_object: dict[str, Any] | None = None
    dry_run: bool | None = None
    options: dict[str, Any] | None = None


class _AdmissionEnvelope(msgspec.Struct, frozen=True, rename="camel"):
    api_version: str
    kind: str
    request: _RawAdmissionRequest


class _RawConversionRequest(msgspec.Struct, frozen=True):
    uid: _Uid
    desired_api_version: str = msgspec.field(name="desiredAPIVersion")
    objects: list[dict[str, Any]]


class _ConversionEnvelope(msgspec.Struct, frozen=True, rename="camel"):
    api_version: str
    kind: str
    request: _RawConversionRequest


_admission = msgspec.json.Decoder(_AdmissionEnvelope)
_conversion = msgspec.json.Decoder(_ConversionEnvelope)


def encode_strict_json(value: Any) -> bytes:
    """Encode a value from author code as strict JSON.

    msgspec would write null for a number that JSON does not have (NaN, the infinities).

    Raises:
        ValueError: It contains such a number, a lone surrogate in a text, or itself.
        TypeError: It contains a value of a type that JSON does not have.
        RecursionError: It nests too deeply.
    """
    return json.dumps(value, allow_nan=False, ensure_ascii=False, separators=(",", ":")).encode()


def parse_admission_review(body: bytes) -> AdmissionReview:
    """Parse the body of a request.

    Raises:
        BadRequestError: It is not an AdmissionReview of version v1, or it has no object.
    """
    request = _decode_review(_admission, body, _ADMISSION, "AdmissionReview").request
    if request.operation != "DELETE" and request.object is None:
        raise BadRequestError(
            f"AdmissionReview: request.object: expected an object for {request.operation}, found none"
        )
    if request.operation != "CREATE" and request.old_object is None:
        raise BadRequestError(
            f"AdmissionReview: request.oldObject: expected an object for {request.operation}, found none"
        )
    user = request.user_info
    return AdmissionReview(
        uid=request.uid,
        operation=request.operation,
        gvk=request.kind.to_gvk(),
        plural=request.resource.resource,
        subresource=request.sub_resource,
        key=ObjectKey(request.namespace, request.name),
        user=UserInfo(user.username, user.uid, user.groups or (), user.extra or {}),
        object=request.object if request.operation != "DELETE" else None,
        old_object=request.old_object if request.operation != "CREATE" else None,
        dry_run=bool(request.dry_run),
        options=request.options or {},
        request_gvk=None if request.request_kind is None else request.request_kind.to_gvk(),
    )


def encode_admission_response(uid: str, admission: AdmissionResponse) -> bytes:
    """Return the body of the response: an AdmissionReview with the admission response.

    Raises:
        ValueError, TypeError, RecursionError: The patch cannot be encoded as JSON.
    """
    response: Object = {"uid": uid, "allowed": admission.allowed}
    if not admission.allowed:
        status: Object = {
            "status": "Failure",
            "message": _replace_surrogates(admission.message),
            "reason": _replace_surrogates(admission.reason),
            "code": admission.code,
        }
        if admission.causes:
            status["details"] = {
                "causes": [
                    {
                        "reason": cause.reason,
                        "message": _replace_surrogates(cause.message),
                        "field": _replace_surrogates(cause.field),
                    }
                    for cause in admission.causes
                ]
            }
        response["status"] = status
    elif admission.patch:
        # The server refuses a type without a patch, and a patch without a type.
        response["patchType"] = "JSONPatch"
        response["patch"] = base64.b64encode(encode_strict_json(admission.patch)).decode("ascii")
    if warnings := limit_warnings(admission.warnings):
        response["warnings"] = [_replace_surrogates(text) for text in warnings]
    return _encode({"apiVersion": _ADMISSION, "kind": "AdmissionReview", "response": response})


def parse_conversion_review(body: bytes) -> ConversionReview:
    """Parse the body of a request.

    Raises:
        BadRequestError: It is not a ConversionReview of version v1, or an object in it has no kind.
    """
    request = _decode_review(_conversion, body, _CONVERSION, "ConversionReview").request
    for index, obj in enumerate(request.objects):
        try:
            GroupVersionKind.of(obj)
        except ValueError as problem:
            raise BadRequestError(f"ConversionReview: request.objects[{index}]: {problem}") from None
        if not isinstance(obj.get("metadata", {}), Mapping):
            raise BadRequestError(f"ConversionReview: request.objects[{index}].metadata: expected an object")
    return ConversionReview(request.uid, request.desired_api_version, tuple(request.objects))


def build_conversion_review(uid: str, objects: Sequence[Object]) -> bytes:
    """Return the body of a response with all converted objects, in the order of the request.

    Raises:
        ValueError, TypeError, RecursionError: An object cannot be encoded as JSON.
    """
    response = {"uid": uid, "result": {"status": "Success"}, "convertedObjects": list(objects)}
    return encode_strict_json({"apiVersion": _CONVERSION, "kind": "ConversionReview", "response": response})


def build_conversion_failure(uid: str, message: str) -> bytes:
    """Return the body of a response without objects: the conversion failed, and the server passes the message on."""
    response = {
        "uid": uid,
        "result": {"status": "Failure", "message": _replace_surrogates(message[:_MESSAGE_CHARACTERS])},
    }
    return _encode({"apiVersion": _CONVERSION, "kind": "ConversionReview", "response": response})


def _replace_surrogates(text: str) -> str:
    """Return the text with a question mark for each lone surrogate, which UTF-8 cannot encode."""
    return text.encode("utf-8", "replace").decode()


def _decode_review(decoder: msgspec.json.Decoder[Any], body: bytes, api_version: str, kind: str) -> Any:
    try:
        request = decoder.decode(body)
    except _UNREADABLE as problem:
        cause = "it nests too deeply" if isinstance(problem, RecursionError) else str(problem)
        raise BadRequestError(f"the body is not a valid {kind}: {cause}") from None
    if (request.api_version, request.kind) != (api_version, kind):
        raise BadRequestError(
            f"the body is not a valid {kind}: expected {api_version} {kind}, found {request.api_version} {request.kind}"
        )
    return request
