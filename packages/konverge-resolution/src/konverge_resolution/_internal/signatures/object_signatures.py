"""Signatures in annotations of an object; they cover the rest of the object in a canonical form. Pure.

The signature covers the object and not its text: a new format of the YAML is harmless, a changed value is not. The form
is JSON without blanks, with sorted members, in UTF-8.
"""

from __future__ import annotations

import base64
import binascii
from typing import Any

from konverge._internal.kube import Object
from konverge_resolution._internal.reference import to_canonical_json
from konverge_resolution._internal.signatures.tekton_signatures import TEKTON_SIGNATURE

__all__ = [
    "BUNDLE",
    "MAX_SIGNATURES",
    "SIGNATURE",
    "encode_for_signing",
    "read_bundle",
    "read_signatures",
    "read_tekton_signature",
    "sign",
]

SIGNATURE = "resolution.konverge.dev/signature"
"""Annotation with signatures by keys, in base64, separated by commas."""

BUNDLE = "resolution.konverge.dev/sigstore-bundle"
"""Annotation with a keyless signature: a sigstore bundle as JSON."""

MAX_SIGNATURES = 10
"""Maximum number of signatures of one object; further ones are ignored."""


def encode_for_signing(obj: Object) -> bytes:
    """Return the bytes that a signature of an object covers: the object without its signature annotations."""
    metadata: Any = obj.get("metadata")
    if not isinstance(metadata, dict) or not isinstance(metadata.get("annotations"), dict):
        return to_canonical_json(obj)
    kept = {name: value for name, value in metadata["annotations"].items() if name not in (SIGNATURE, BUNDLE)}
    rest = {name: value for name, value in metadata.items() if name != "annotations"}
    return to_canonical_json({**obj, "metadata": {**rest, "annotations": kept} if kept else rest})


def read_signatures(obj: Object) -> tuple[bytes, ...]:
    """Return the signatures of an object; skip invalid base64."""
    texts = _get_annotation(obj, SIGNATURE).split(",")[:MAX_SIGNATURES]
    return tuple(signature for text in texts if (signature := _decode_base64(text)))


def read_bundle(obj: Object) -> str:
    """Return the keyless signature of an object; empty without one."""
    return _get_annotation(obj, BUNDLE)


def read_tekton_signature(obj: Object) -> bytes:
    """Return Tekton's own signature of an object; empty without a valid one."""
    return _decode_base64(_get_annotation(obj, TEKTON_SIGNATURE))


def sign(obj: Object, private_key_pem: str) -> Object:
    """Return a copy of the object with another signature.

    Args:
        obj: The object.
        private_key_pem: The private key in PEM.

    Raises:
        ValueError: The key cannot sign.
    """
    from konverge_resolution._internal.signatures.keys import sign_with

    signature = base64.b64encode(sign_with(private_key_pem, encode_for_signing(obj))).decode()
    metadata = dict(obj.get("metadata") or {})
    before = _get_annotation(obj, SIGNATURE)
    annotations = {**(metadata.get("annotations") or {}), SIGNATURE: f"{before},{signature}" if before else signature}
    return {**obj, "metadata": {**metadata, "annotations": annotations}}


def _decode_base64(text: str) -> bytes:
    try:
        return base64.b64decode("".join(text.split()), validate=True)
    except (binascii.Error, ValueError):
        return b""


def _get_annotation(obj: Object, name: str) -> str:
    metadata: Any = obj.get("metadata")
    annotations = metadata.get("annotations") if isinstance(metadata, dict) else None
    value = annotations.get(name) if isinstance(annotations, dict) else None
    return value if isinstance(value, str) else ""
