"""What the cache holds of one object: its metadata as a struct, and the whole as bytes.

The bytes are the object without ``metadata.managedFields``, except for the entries of server-side applies: those are
the record of what an operator last sent (and all that comparing desired with live needs), the others are more than half
of many objects. Decoding them anew for each reader costs less than copying a decoded object would.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import msgspec

from konverge.client.decoding import UNREADABLE
from konverge.kube import GroupVersionKind, Object
from konverge.kube.metadata import ObjectMeta, decode_metadata

__all__ = ["Entry", "RawObject", "encode_entry", "entry_body", "entry_metadata", "split_object"]

RawObject = dict[str, msgspec.Raw]
"""An object's top-level fields, undecoded."""


class Entry(NamedTuple):
    """One object as the cache holds it."""

    meta: ObjectMeta
    body: bytes

    def decode(self) -> Object:
        """The object as a fresh value that the reader may change."""
        found: Object = msgspec.json.decode(self.body, type=dict)
        return found


class _ManagedFields(msgspec.Struct, frozen=True):
    operation: str = ""


_raw_object = msgspec.json.Decoder(RawObject)
_raw_list = msgspec.json.Decoder(list[msgspec.Raw])
_managed_fields = msgspec.json.Decoder(_ManagedFields)
_encode = msgspec.json.Encoder().encode


def split_object(raw: bytes | msgspec.Raw) -> RawObject:
    """An object's top-level fields, undecoded.

    Raises:
        ValueError: It is not a JSON object.
    """
    try:
        return _raw_object.decode(raw)
    except UNREADABLE as error:
        raise ValueError(f"not a JSON object: {error}") from error


def entry_metadata(fields: RawObject) -> ObjectMeta:
    """The metadata, leniently.

    Raises:
        ValueError: It is missing, no object, or has no name.
    """
    raw = fields.get("metadata")
    if raw is None:
        raise ValueError("an object without metadata")
    meta = decode_metadata(raw)
    if not meta.name:
        raise ValueError("an object without a name")
    return meta


def entry_body(fields: RawObject, gvk: GroupVersionKind) -> bytes:
    """The bytes to hold; they share no memory with what was received.

    Items of a list of a built-in kind do not say what they are: `gvk` does.
    """
    metadata = _raw_object.decode(fields["metadata"])
    managed_fields = metadata.pop("managedFields", None)
    if managed_fields is not None:
        applied = _applied(managed_fields)
        if applied:
            metadata["managedFields"] = msgspec.Raw(_encode(applied))
    body: dict[str, Any] = {"apiVersion": gvk.api_version, "kind": gvk.kind, **fields}
    body["metadata"] = metadata
    return _encode(body)


def encode_entry(obj: Mapping[str, Any]) -> Entry:
    """The entry for a decoded object: what an own write was answered with.

    Raises:
        ValueError: It has no name or no kind.
    """
    gvk = GroupVersionKind.of(obj)
    fields = split_object(_encode(obj))
    return Entry(entry_metadata(fields), entry_body(fields, gvk))


def _applied(managed_fields: msgspec.Raw) -> list[msgspec.Raw]:
    # Most objects were never applied: one search tells, without looking at each field path.
    if b'"Apply"' not in bytes(managed_fields):
        return []
    try:
        return [raw for raw in _raw_list.decode(managed_fields) if _managed_fields.decode(raw).operation == "Apply"]
    except UNREADABLE:
        return []  # not what the API server writes; without a record the engine applies once more
