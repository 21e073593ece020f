"""Signatures that an object carries itself: annotations, over all the rest of it in one canonical form. Pure.

What is signed is the object and not its text: whoever formats the YAML anew breaks nothing, whoever changes a value
does. The form is JSON without blanks, the members of each object sorted by their names, text in UTF-8.
"""

from __future__ import annotations

import base64
import binascii
from typing import Any

from konverge.kube import Object
from konverge_resolution.reference import to_canonical_json

__all__ = [
    "BUNDLE",
    "MAX_SIGNATURES",
    "SIGNATURE",
    "TEKTON",
    "encode_for_signing",
    "has_tekton_signature",
    "read_bundle",
    "read_signatures",
    "sign",
]

SIGNATURE = "resolution.konverge.dev/signature"
"""Signatures by keys, in base64; several between commas."""

BUNDLE = "resolution.konverge.dev/sigstore-bundle"
"""A keyless signature: a bundle of sigstore, as JSON."""

TEKTON = "tekton.dev/signature"
"""Tekton's own. It is over a text that only Go programs with Tekton's types can write again: here it proves nothing."""

MAX_SIGNATURES = 10
"""Of one object; what comes after these is not looked at."""


def encode_for_signing(obj: Object) -> bytes:
    """What a signature of an object is over: the object without the annotations that sign it."""
    metadata: Any = obj.get("metadata")
    if not isinstance(metadata, dict) or not isinstance(metadata.get("annotations"), dict):
        return to_canonical_json(obj)
    kept = {name: value for name, value in metadata["annotations"].items() if name not in (SIGNATURE, BUNDLE)}
    rest = {name: value for name, value in metadata.items() if name != "annotations"}
    return to_canonical_json({**obj, "metadata": {**rest, "annotations": kept} if kept else rest})


def read_signatures(obj: Object) -> tuple[bytes, ...]:
    """The signatures that it carries; what is no base64 is none."""
    found = []
    for text in _get_annotation(obj, SIGNATURE).split(",")[:MAX_SIGNATURES]:
        try:
            found.append(base64.b64decode("".join(text.split()), validate=True))
        except (binascii.Error, ValueError):
            continue
    return tuple(each for each in found if each)


def read_bundle(obj: Object) -> str:
    """The keyless signature that it carries; empty for none."""
    return _get_annotation(obj, BUNDLE)


def has_tekton_signature(obj: Object) -> bool:
    """Tell whether it is signed in Tekton's own way."""
    return bool(_get_annotation(obj, TEKTON))


def sign(obj: Object, private_key_pem: str) -> Object:
    """The object with one signature more.

    Args:
        obj: What to sign.
        private_key_pem: By which key.

    Raises:
        ValueError: The key is none that signs.
    """
    from konverge_resolution.signatures.keys import sign_with

    signature = base64.b64encode(sign_with(private_key_pem, encode_for_signing(obj))).decode()
    metadata = dict(obj.get("metadata") or {})
    before = _get_annotation(obj, SIGNATURE)
    annotations = {**(metadata.get("annotations") or {}), SIGNATURE: f"{before},{signature}" if before else signature}
    return {**obj, "metadata": {**metadata, "annotations": annotations}}


def _get_annotation(obj: Object, name: str) -> str:
    metadata: Any = obj.get("metadata")
    annotations = metadata.get("annotations") if isinstance(metadata, dict) else None
    value = annotations.get(name) if isinstance(annotations, dict) else None
    return value if isinstance(value, str) else ""
