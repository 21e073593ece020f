"""Signatures that a registry keeps beside an image, in cosign's layouts. Pure.

They cover a digest. So a signature is valid only if its key matches *and* it covers the digest of the image with the
content. Otherwise any signature of the same key would be valid for every image.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import msgspec

from konverge._internal.client.json_decoding import DECODE_ERRORS
from konverge_resolution._internal.resolved_content import AttachedSignature

if TYPE_CHECKING:
    from konverge_resolution._internal.policy import Attestation
    from konverge_resolution._internal.signatures.keys import PublicKey

__all__ = [
    "SIGSTORE_BUNDLE",
    "SIMPLE_SIGNING",
    "is_attached_signature",
    "is_signed_by",
    "is_statement_for",
]

SIMPLE_SIGNING = "application/vnd.dev.cosign.simplesigning.v1+json"
"""Media type of a document with the image's digest; the signature is beside it."""

SIGSTORE_BUNDLE = "application/vnd.dev.sigstore.bundle"
"""Prefix of the media type of a signed statement that includes the signature; a version follows."""

_SIMPLE_TYPE = "cosign container image signature"
_IN_TOTO = "application/vnd.in-toto+json"
_STATEMENT = "https://in-toto.io/Statement/v1"
_OLDER_STATEMENT = "https://in-toto.io/Statement/v0.1"
_PREDICATE = "https://sigstore.dev/cosign/sign/v1"
_BUILDERS = (("runDetails", "builder", "id"), ("builder", "id"))
"""Paths of the builder in statements of SLSA's provenance: of version 1, and of older ones."""


class _Signature(msgspec.Struct, frozen=True):
    sig: str = ""


class _Envelope(msgspec.Struct, frozen=True):
    payload: str = ""
    payload_type: str = msgspec.field(name="payloadType", default="")
    signatures: tuple[_Signature, ...] = ()


class _Bundle(msgspec.Struct, frozen=True):
    envelope: _Envelope | None = msgspec.field(name="dsseEnvelope", default=None)


def is_attached_signature(media_type: str) -> bool:
    """Tell whether a layer of that type is a supported signature."""
    return media_type == SIMPLE_SIGNING or media_type.startswith(SIGSTORE_BUNDLE)


def is_signed_by(
    keys: Iterable[PublicKey], attached: AttachedSignature, attestation: Attestation | None = None
) -> bool:
    """Tell whether one of the keys has signed the image that a signature is attached to.

    Args:
        keys: The keys; one match is enough.
        attached: The signature, with the digest of its image.
        attestation: The statement that must be signed; None for the image itself.
    """
    if attached.media_type == SIMPLE_SIGNING:
        if attestation is not None:
            return False
        signature = _decode_base64(attached.signature)
        is_valid = any(key.has_signed(signature, attached.payload) for key in keys)
        return is_valid and _is_document_for(attached.payload, attached.subject)
    try:
        envelope = msgspec.json.decode(attached.payload, type=_Bundle).envelope
    except DECODE_ERRORS:
        return False
    if envelope is None or len(envelope.signatures) != 1:
        return False
    statement, signature = _decode_base64(envelope.payload), _decode_base64(envelope.signatures[0].sig)
    message = _encode_dsse_payload(envelope.payload_type, statement)
    is_valid = any(key.has_signed(signature, message) for key in keys)
    return is_valid and is_statement_for(envelope.payload_type, statement, attached.subject, attestation)


def is_statement_for(payload_type: str, statement: bytes, subject: str, attestation: Attestation | None = None) -> bool:
    """Tell whether an in-toto statement is the required one about the image of that digest.

    Args:
        payload_type: The type of the statement in its envelope.
        statement: The statement; its signature is valid.
        subject: The digest of the image.
        attestation: The required statement; None for the one that declares the image as signed.
    """
    document = _parse_json(statement)
    kind, predicate_type = _get_member(document, "_type"), _get_member(document, "predicateType")
    if attestation is None:
        is_required = (kind, predicate_type) == (_STATEMENT, _PREDICATE)
    else:
        is_required = kind in (_STATEMENT, _OLDER_STATEMENT) and predicate_type == attestation.predicate_type
        is_required = is_required and _has_builder(document, attestation.builders)
    if payload_type != _IN_TOTO or not is_required:
        return False
    algorithm, _, digest = subject.partition(":")
    subjects = _get_member(document, "subject")
    return isinstance(subjects, list) and any(
        _get_member(_get_member(entry, "digest"), algorithm) == digest for entry in subjects
    )


def _has_builder(document: Any, builders: tuple[str, ...]) -> bool:
    """Tell whether a provenance statement names one of the builders; True without any required builder."""
    found: list[Any] = []
    for path in _BUILDERS:
        value = _get_member(document, "predicate")
        for name in path:
            value = _get_member(value, name)
        found.append(value)
    return not builders or any(builder in found for builder in builders)


def _is_document_for(payload: bytes, subject: str) -> bool:
    """Tell whether a document of simple signing is for the image of that digest."""
    critical = _get_member(_parse_json(payload), "critical")
    is_type: bool = _get_member(critical, "type") == _SIMPLE_TYPE
    digest: object = _get_member(_get_member(critical, "image"), "docker-manifest-digest")
    return is_type and digest == subject


def _encode_dsse_payload(payload_type: str, payload: bytes) -> bytes:
    """Return the bytes that the signature of a DSSE envelope covers."""
    type_ = payload_type.encode()
    return b"DSSEv1 %d %b %d %b" % (len(type_), type_, len(payload), payload)


def _decode_base64(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return b""


def _parse_json(data: bytes) -> Any:
    try:
        return msgspec.json.decode(data)
    except DECODE_ERRORS:
        return None


def _get_member(value: Any, name: str) -> Any:
    return value.get(name) if isinstance(value, dict) else None
