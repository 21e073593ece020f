"""Content negotiation: what a request's body is in, and in which form its answer is wanted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from konverge.errors import ApiError, BadRequestError
from konverge_cluster.embedded import api_errors, protobuf, request_bodies
from konverge_cluster.embedded.object_decoding import Strictness
from konverge_cluster.embedded.request_bodies import decode_json, decode_yaml, find_duplicate_keys

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
    """One form of answer that the client takes.

    Attributes:
        media_type: For example ``application/json``.
        parameters: What stands behind it, for example ``as=Table``.
    """

    media_type: str
    parameters: Mapping[str, str]


def parse_accept(header: str) -> list[AcceptedType]:
    """The forms that an Accept header names, in its order (weights are rare there, and left aside)."""
    found = []
    for part in header.split(","):
        media_type, *rest = (step.strip() for step in part.split(";"))
        if media_type:
            pairs = (step.partition("=") for step in rest)
            found.append(AcceptedType(media_type, {name.strip(): value.strip() for name, _, value in pairs}))
    return found


def negotiate_form(header: str, *, unfit: str = "", why: str = "") -> Form:
    """The first form that the client takes and the server has.

    Args:
        header: The Accept header.
        unfit: The shape that this answer cannot have: that of a list for an object, or the other way round.
        why: What to say then.

    Raises:
        ApiError: 406: there is none, or the wish makes no sense.
    """
    wanted = parse_accept(header)
    for each in wanted:
        if each.media_type not in (_JSON, "*/*", "application/*"):
            continue
        shape = each.parameters.get("as")
        if shape is None:
            return "object"
        if shape == unfit:
            raise ApiError(f"you requested {shape}, but {why}", reason="NotAcceptable", code=406)
        if shape in _FORMS and each.parameters.get("g") == "meta.k8s.io" and each.parameters.get("v") == "v1":
            return _FORMS[shape]
    if wanted:
        told = f"406: Not Acceptable\n\nAvailable representations: {_JSON}"
        raise ApiError(told, reason="NotAcceptable", code=406)
    return "object"


@dataclass(frozen=True, slots=True)
class DecodedBody:
    """A decoded body.

    Attributes:
        value: The value.
        duplicates: The paths of keys that stand twice in a mapping.
    """

    value: Any
    duplicates: tuple[str, ...] = ()


def parse_media_type(header: str) -> str:
    """The media type of a Content-Type header, without its parameters; JSON when it says none."""
    return header.partition(";")[0].strip().lower() or _JSON


def decode_body(content_type: str, body: bytes, strictness: Strictness, *, kind: str, subject: str = "") -> DecodedBody:
    """Decode the body of a write.

    Args:
        content_type: The Content-Type header.
        body: The bytes.
        strictness: Keys that stand twice are looked for unless they are ignored.
        kind: What the body is to be, for messages.
        subject: What to say before the parser's own words, instead of what is said of an object.

    Raises:
        ApiError: The body is too large, in another form, or broken.
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
            return DecodedBody(decode_yaml(body))  # it may begin with a brace, too
    except BadRequestError as mistake:
        if subject:
            raise BadRequestError(f"{subject}: {mistake.message.removeprefix('json parse error: ')}") from None
        told = f"the object provided is unrecognized (must be of type {kind})"
        raise BadRequestError(f"{told}: couldn't get version/kind; {mistake.message}") from None
    return DecodedBody(value, tuple(find_duplicate_keys(body)) if strictness != "Ignore" else ())
