"""The copy of a definition that an owner has: an immutable ConfigMap, and what is read from it. Pure."""

from __future__ import annotations

import base64
import binascii
import hashlib
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import msgspec

from konverge.kube import GroupVersionKind, Object, ObjectKey, build_owner_reference
from konverge_resolution.content_validation import parse_content
from konverge_resolution.errors import ResolutionError
from konverge_resolution.reasons import Reason
from konverge_resolution.reference import Digest, to_canonical_json
from konverge_resolution.reference_parsing import ParsedReference
from konverge_resolution.resolved_content import Provenance, ResolvedContent

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
    """A definition, as its owner has it.

    Args:
        data: The content, byte for byte.
        object: It as an object.
        digest: Of the content.
        source: Where it came from.
        resolver: Who got it.
    """

    data: bytes
    object: Object
    digest: Digest
    source: Provenance
    resolver: str

    def __repr__(self) -> str:
        # The content is somebody's; it has no business in a log.
        return f"Definition({len(self.data)} bytes of {self.source.uri})"


class _ContentRecord(msgspec.Struct, frozen=True, rename="camel"):
    """What is written beside the content."""

    digest: str
    source: Provenance
    resolver: str


def build_config_map_key(name: str, written: ParsedReference, owner: Object) -> ObjectKey:
    """Where the copy of a definition is: another one for each owner, name and reference."""
    asked = [[each.resolver, each.params, str(each.digest)] for each in written.choices]
    message = to_canonical_json([owner["metadata"]["uid"], name, asked])
    return ObjectKey(str(owner["metadata"]["namespace"]), f"definition-{hashlib.sha256(message).hexdigest()[:32]}")


def build_labels(name: str, owner: Object) -> dict[str, str]:
    """The labels of all copies under that name, also those of other references."""
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
    """What a copy has, compared with its record.

    Args:
        copy: The ConfigMap.
        owner_uid: Whose it has to be.

    Raises:
        ResolutionError: ``DigestMismatch``: somebody has put something else there.
    """
    name = copy["metadata"]["name"]
    controllers = [each for each in copy["metadata"].get("ownerReferences") or [] if each.get("controller")]
    if [each.get("uid") for each in controllers] != [owner_uid]:
        raise _build_mismatch_error(name, "it belongs to somebody else")
    try:
        record = msgspec.json.decode((copy.get("data") or {}).get(_RECORD) or "", type=_ContentRecord)
        encoded: Any = (copy.get("binaryData") or {}).get(_CONTENT)
        data = base64.b64decode(encoded, validate=True)
        digest = Digest.parse(record.digest)
    except (msgspec.MsgspecError, ValueError, TypeError, binascii.Error):
        raise _build_mismatch_error(name, "it has no content that can be checked") from None
    if not digest.matches(data):
        raise _build_mismatch_error(name, "its content is not what its record says")
    return RemoteDefinition(data, msgspec.json.decode(_parse_content(data)), digest, record.source, record.resolver)


@lru_cache(maxsize=32)
def _parse_content(data: bytes) -> bytes:
    """The content as JSON, which every pass reads: a megabyte of YAML takes half a second."""
    return msgspec.json.encode(parse_content(data))


def _build_mismatch_error(name: str, why: str) -> ResolutionError:
    return ResolutionError(Reason.DIGEST_MISMATCH, f"ConfigMap {name}: {why}; delete it, and it is fetched again")
