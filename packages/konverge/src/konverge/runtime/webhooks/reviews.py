"""AdmissionReview v1 and ConversionReview v1, between bytes and values. Pure.

What comes in is checked before a handler sees it: a review that is no review is a `BadRequestError` with a sentence,
never another exception. What goes out is what the API server verifies (apiserver, admission/plugin/webhook/request;
apiextensions-apiserver, apiserver/conversion): the UID of the request, a patch only together with its type, as many
objects as came in.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal, TypeAlias

import msgspec

from konverge.errors import BadRequestError
from konverge.kube import GroupVersionKind, Object, ObjectKey
from konverge.runtime.webhooks.responses import AdmissionResponse, limit_warnings

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
    """Who sent a request, as the API server authenticated it."""

    username: str = ""
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


def _build_empty_key() -> ObjectKey:
    return ObjectKey("", "")


@dataclass(frozen=True, slots=True)
class AdmissionReview:
    """What the API server asks about one request.

    Args:
        uid: Of this question.
        operation: What happens to the object.
        gvk: The kind, in the version of the webhook's rule: `object` has that form.
        plural: The resource.
        subresource: For example ``status``; empty for the object itself.
        key: The object. A create with ``generateName`` has no name yet.
        user: Who sent the request.
        object: The object as it would be stored; None for a deletion.
        old_object: The object as it is stored; None for a creation.
        dry_run: Whether nothing will be stored: no side effects, then.
        options: The options of the operation, for example a ``DeleteOptions``.
        request_gvk: The kind in the version in which the request was sent.
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
    """What the API server wants converted: these objects, each to that version, in that order."""

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
    """A value that an author's code made, as JSON that says just that.

    msgspec would write null for a number that JSON does not have (NaN, the infinities).

    Raises:
        ValueError: It has no form in JSON: such a number, a lone surrogate in a text, an object within itself.
        TypeError: It has one of another type.
        RecursionError: It nests too deeply.
    """
    return json.dumps(value, allow_nan=False, ensure_ascii=False, separators=(",", ":")).encode()


def parse_admission_review(body: bytes) -> AdmissionReview:
    """The question in the body of a request.

    Raises:
        BadRequestError: It is no AdmissionReview of version v1, or one that asks about nothing.
    """
    found = _decode_review(_admission, body, _ADMISSION, "AdmissionReview").request
    if found.operation != "DELETE" and found.object is None:
        raise BadRequestError(f"AdmissionReview: request.object: expected an object for {found.operation}, found none")
    if found.operation != "CREATE" and found.old_object is None:
        raise BadRequestError(
            f"AdmissionReview: request.oldObject: expected an object for {found.operation}, found none"
        )
    user = found.user_info
    return AdmissionReview(
        uid=found.uid,
        operation=found.operation,
        gvk=found.kind.to_gvk(),
        plural=found.resource.resource,
        subresource=found.sub_resource,
        key=ObjectKey(found.namespace, found.name),
        user=UserInfo(user.username, user.uid, user.groups or (), user.extra or {}),
        object=found.object if found.operation != "DELETE" else None,
        old_object=found.old_object if found.operation != "CREATE" else None,
        dry_run=bool(found.dry_run),
        options=found.options or {},
        request_gvk=None if found.request_kind is None else found.request_kind.to_gvk(),
    )


def encode_admission_response(uid: str, verdict: AdmissionResponse) -> bytes:
    """The body of the answer: an AdmissionReview with the verdict as its response.

    Raises:
        ValueError, TypeError, RecursionError: The patch has no form in JSON.
    """
    response: Object = {"uid": uid, "allowed": verdict.allowed}
    if not verdict.allowed:
        status: Object = {
            "status": "Failure",
            "message": _replace_surrogates(verdict.message),
            "reason": _replace_surrogates(verdict.reason),
            "code": verdict.code,
        }
        if verdict.causes:
            status["details"] = {
                "causes": [
                    {
                        "reason": cause.reason,
                        "message": _replace_surrogates(cause.message),
                        "field": _replace_surrogates(cause.field),
                    }
                    for cause in verdict.causes
                ]
            }
        response["status"] = status
    elif verdict.patch:
        # A type without a patch is refused as much as a patch without a type.
        response["patchType"] = "JSONPatch"
        response["patch"] = base64.b64encode(encode_strict_json(verdict.patch)).decode("ascii")
    if warnings := limit_warnings(verdict.warnings):
        response["warnings"] = [_replace_surrogates(text) for text in warnings]
    return _encode({"apiVersion": _ADMISSION, "kind": "AdmissionReview", "response": response})


def parse_conversion_review(body: bytes) -> ConversionReview:
    """The question in the body of a request.

    Raises:
        BadRequestError: It is no ConversionReview of version v1, or an object in it does not say what it is.
    """
    found = _decode_review(_conversion, body, _CONVERSION, "ConversionReview").request
    for place, obj in enumerate(found.objects):
        try:
            GroupVersionKind.of(obj)
        except ValueError as problem:
            raise BadRequestError(f"ConversionReview: request.objects[{place}]: {problem}") from None
        if not isinstance(obj.get("metadata", {}), Mapping):
            raise BadRequestError(f"ConversionReview: request.objects[{place}].metadata: expected an object")
    return ConversionReview(found.uid, found.desired_api_version, tuple(found.objects))


def build_conversion_review(uid: str, objects: Sequence[Object]) -> bytes:
    """The body of the answer with every object converted, in the order of the question.

    Raises:
        ValueError, TypeError, RecursionError: An object has no form in JSON.
    """
    response = {"uid": uid, "result": {"status": "Success"}, "convertedObjects": list(objects)}
    return encode_strict_json({"apiVersion": _CONVERSION, "kind": "ConversionReview", "response": response})


def build_conversion_failure(uid: str, message: str) -> bytes:
    """The body of the answer when not all objects could be converted: none is, and the server passes the message on."""
    response = {
        "uid": uid,
        "result": {"status": "Failure", "message": _replace_surrogates(message[:_MESSAGE_CHARACTERS])},
    }
    return _encode({"apiVersion": _CONVERSION, "kind": "ConversionReview", "response": response})


def _replace_surrogates(text: str) -> str:
    """The text with a question mark for each lone surrogate, which has no form in UTF-8."""
    return text.encode("utf-8", "replace").decode()


def _decode_review(decoder: msgspec.json.Decoder[Any], body: bytes, api_version: str, kind: str) -> Any:
    try:
        found = decoder.decode(body)
    except _UNREADABLE as problem:
        told = "it nests too deeply" if isinstance(problem, RecursionError) else str(problem)
        raise BadRequestError(f"the body is no {kind}: {told}") from None
    if (found.api_version, found.kind) != (api_version, kind):
        raise BadRequestError(
            f"the body is no {kind}: expected {api_version} {kind}, found {found.api_version} {found.kind}"
        )
    return found
