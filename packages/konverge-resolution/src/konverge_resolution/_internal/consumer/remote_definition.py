"""Copy of a definition for its owner: an immutable ConfigMap. Pure."""

from __future__ import annotations

import base64
import binascii
import hashlib
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import msgspec

from konverge._internal.kube import GroupVersionKind, Object, ObjectKey, build_owner_reference
from konverge_resolution._internal.content_validation import parse_content
from konverge_resolution._internal.errors import ResolutionError
from konverge_resolution._internal.reasons import Reason
from konverge_resolution._internal.reference import Digest, to_canonical_json
from konverge_resolution._internal.reference_parsing import ParsedReference
from konverge_resolution._internal.resolved_content import Provenance, ResolvedContent

__all__ = [
    "CONFIG_MAP",
    "RemoteDefinition",
    "build_config_map",
    "build_config_map_key",
    "build_labels",
    "parse_config_map",
]

CONFIG_MAP = GroupVersionKind("", "v1", "ConfigMap")

_OWNER = "resolution.konverge.dev/owner"
_NAME = "resolution.konverge.dev/definition"
_CONTENT = "content"
_RECORD = "record"


@dataclass(frozen=True, slots=True)
class RemoteDefinition:
    """Copy of a definition in an owner's ConfigMap.

    Args:
        data: The content, byte for byte.
        object: The content as an object.
        digest: The digest of the content.
        source: The source of the content.
        resolver: The name of the resolver.
    """

    data: bytes
    object: Object
    digest: Digest
    source: Provenance
    resolver: str

    def __repr__(self) -> str:
        # The content may be confidential and must not be logged.
        return f"RemoteDefinition({len(self.data)} bytes of {self.source.uri})"


class _ContentRecord(msgspec.Struct, frozen=True, rename="camel"):
    """Record beside the content in the ConfigMap."""

    digest: str
    source: Provenance
    resolver: str


def build_config_map_key(name: str, written: ParsedReference, owner: Object) -> ObjectKey:
    """Return the name of the copy, which differs for each owner, name and reference."""
    choices = [[choice.resolver, choice.params, str(choice.digest)] for choice in written.choices]
    identity = to_canonical_json([owner["metadata"]["uid"], name, choices])
    return ObjectKey(str(owner["metadata"]["namespace"]), f"definition-{hashlib.sha256(identity).hexdigest()[:32]}")


def build_labels(name: str, owner: Object) -> dict[str, str]:
    """Return the labels of all copies under that name, including those of other references."""
    return {_OWNER: str(owner["metadata"]["uid"]), _NAME: name}


def build_config_map(
    name: str, written: ParsedReference, owner: Object, content: ResolvedContent, resolver: str
) -> Object:
    """Build the ConfigMap with an owner's copy of a definition.

    Args:
        name: The owner's name for the definition.
        written: The reference of the owner.
        owner: The owner.
        content: The content.
        resolver: The resolver that returned it.
    """
    key = build_config_map_key(name, written, owner)
    record = _ContentRecord(str(Digest.of(content.data)), content.source, resolver)
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": key.name,
            "namespace": key.namespace,
            "labels": build_labels(name, owner),
            "ownerReferences": [build_owner_reference(owner)],
        },
        "immutable": True,
        "binaryData": {_CONTENT: base64.b64encode(content.data).decode("ascii")},
        "data": {_RECORD: msgspec.json.encode(record, order="sorted").decode()},
    }


def parse_config_map(copy: Object, owner_uid: str) -> RemoteDefinition:
    """Parse a copy and compare its content with its record.

    Args:
        copy: The ConfigMap.
        owner_uid: The UID of the expected owner.

    Raises:
        ResolutionError: ``DigestMismatch``: the ConfigMap was changed, or has another owner.
    """
    name = copy["metadata"]["name"]
    controllers = [owner for owner in copy["metadata"].get("ownerReferences") or [] if owner.get("controller")]
    if [owner.get("uid") for owner in controllers] != [owner_uid]:
        raise _build_mismatch_error(name, "expected this owner as its controller, found another one")
    try:
        record = msgspec.json.decode((copy.get("data") or {}).get(_RECORD) or "", type=_ContentRecord)
        encoded: Any = (copy.get("binaryData") or {}).get(_CONTENT)
        data = base64.b64decode(encoded, validate=True)
        digest = Digest.parse(record.digest)
    except (msgspec.MsgspecError, ValueError, TypeError, binascii.Error):
        raise _build_mismatch_error(name, "expected content with a valid record, found none") from None
    if not digest.matches(data):
        raise _build_mismatch_error(name, "the content does not match the digest of its record")
    return RemoteDefinition(data, msgspec.json.decode(_parse_content(data)), digest, record.source, record.resolver)


@lru_cache(maxsize=32)
def _parse_content(data: bytes) -> bytes:
    """Return the content as JSON for repeated reads: a megabyte of YAML takes half a second."""
    return msgspec.json.encode(parse_content(data))


def _build_mismatch_error(name: str, why: str) -> ResolutionError:
    return ResolutionError(Reason.DIGEST_MISMATCH, f"ConfigMap {name}: {why}; delete it to fetch the content again")
