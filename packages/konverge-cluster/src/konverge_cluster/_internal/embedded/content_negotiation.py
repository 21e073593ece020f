"""Content negotiation: the media type of a request's body and the form of its response."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from konverge.errors import ApiError, BadRequestError
from konverge_cluster._internal.embedded import api_errors, protobuf, request_bodies
from konverge_cluster._internal.embedded.object_decoding import Strictness
from konverge_cluster._internal.embedded.request_bodies import decode_json, decode_yaml, find_duplicate_keys

__all__ = [
    "APPLY_TYPES",
    "PATCH_TYPES",
    "AcceptedType",
    "DecodedBody",
    "Form",
    "decode_body",
    "negotiate_form",
    "parse_accept",
    "parse_media_type",
]

Form: TypeAlias = Literal["object", "table", "metadata"]

APPLY_TYPES = ("application/apply-patch+yaml",)
PATCH_TYPES: Mapping[str, Literal["json", "merge", "strategic"]] = {
    "application/json-patch+json": "json",
    "application/merge-patch+json": "merge",
    "application/strategic-merge-patch+json": "strategic",
}
_JSON = "application/json"
_BODY_TYPES = (_JSON, "application/yaml", protobuf.MEDIA_TYPE)
_FORMS: Mapping[str, Form] = {
    "Table": "table",
    "PartialObjectMetadata": "metadata",
    "PartialObjectMetadataList": "metadata",
}


@dataclass(frozen=True, slots=True)
class AcceptedType:
    """One response form that the client accepts.

    Attributes:
        media_type: The media type, for example ``application/json``.
        parameters: The parameters, for example ``as=Table``.
    """

    media_type: str
    parameters: Mapping[str, str]


def parse_accept(header: str) -> list[AcceptedType]:
    """Return the forms of an Accept header in its order; weights are rare there and ignored."""
    types = []
    for part in header.split(","):
        media_type, *rest = (step.strip() for step in part.split(";"))
        if media_type:
            pairs = (step.partition("=") for step in rest)
            types.append(AcceptedType(media_type, {name.strip(): value.strip() for name, _, value in pairs}))
    return types


def negotiate_form(header: str, *, unfit: str = "", why: str = "") -> Form:
    """Return the first form that both the client and the server support.

    Args:
        header: The Accept header.
        unfit: The form that this response cannot have: that of a list for an object, or the reverse.
        why: The explanation in the error for an unfit form.

    Raises:
        ApiError: 406: no form is acceptable, or the requested form is unfit.
    """
    accepted = parse_accept(header)
    for form in accepted:
        if form.media_type not in (_JSON, "*/*", "application/*"):
            continue
        shape = form.parameters.get("as")
        if shape is None:
            return "object"
        if shape == unfit:
            raise ApiError(f"you requested {shape}, but {why}", reason="NotAcceptable", code=406)
        if shape in _FORMS and form.parameters.get("g") == "meta.k8s.io" and form.parameters.get("v") == "v1":
            return _FORMS[shape]
    if accepted:
        message = f"406: Not Acceptable\n\nAvailable representations: {_JSON}"
        raise ApiError(message, reason="NotAcceptable", code=406)
    return "object"


@dataclass(frozen=True, slots=True)
class DecodedBody:
    """A decoded body and its duplicate keys.

    Attributes:
        value: The decoded value.
        duplicates: The paths of keys that occur twice in a mapping.
    """

    value: Any
    duplicates: tuple[str, ...] = ()


def parse_media_type(header: str) -> str:
    """Return the media type of a Content-Type header without its parameters; JSON if it is empty."""
    return header.partition(";")[0].strip().lower() or _JSON


def decode_body(content_type: str, body: bytes, strictness: Strictness, *, kind: str, subject: str = "") -> DecodedBody:
    """Decode the body of a write.

    Args:
        content_type: The Content-Type header.
        body: The bytes.
        strictness: The handling of unknown and duplicate fields; duplicate keys are only searched if needed.
        kind: The expected kind of the body, for messages.
        subject: The start of the error message, instead of the text for objects.

    Raises:
        ApiError: The body is too large, in another format, or invalid.
    """
    request_bodies.check_size(body)
    media_type = parse_media_type(content_type)
    try:
        if media_type == protobuf.MEDIA_TYPE:
            return DecodedBody(protobuf.decode_protobuf(body))
        if media_type not in (*_BODY_TYPES, *APPLY_TYPES, *PATCH_TYPES):
            raise api_errors.new_unsupported_media_type(*_BODY_TYPES)
        is_yaml = media_type in ("application/yaml", *APPLY_TYPES)
        if is_yaml and not body.lstrip().startswith(b"{"):
            return DecodedBody(decode_yaml(body))
        try:
            value = decode_json(body)
        except BadRequestError:
            if not is_yaml:
                raise
            return DecodedBody(decode_yaml(body))  # YAML can also begin with a brace
    except BadRequestError as error:
        if subject:
            raise BadRequestError(f"{subject}: {error.message.removeprefix('json parse error: ')}") from None
        message = f"the object provided is unrecognized (must be of type {kind})"
        raise BadRequestError(f"{message}: couldn't get version/kind; {error.message}") from None
    return DecodedBody(value, tuple(find_duplicate_keys(body)) if strictness != "Ignore" else ())
