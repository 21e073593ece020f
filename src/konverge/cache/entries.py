"""What the cache holds of one object: its metadata as a struct, and the whole as bytes.

The bytes are the object as the server sent it, without ``metadata.managedFields``, except for the entries of
server-side applies: those are the record of what an operator last sent (and all that comparing desired with live
needs), the others are a third of many objects. Decoding them anew for each reader costs less than copying a decoded
object would.

One pass of the parser gives the metadata and shows where the managed fields are; they are cut out of the text, which is
neither decoded nor encoded otherwise. That takes JSON as servers write it, without white space. What is written in
another way, or holds an odd value where the metadata should be, is taken apart field by field instead.
"""

from __future__ import annotations

from collections.abc import Mapping
from sys import intern
from typing import Any, TypeAlias

import msgspec

from konverge.client.decoding import UNREADABLE
from konverge.kube import Object
from konverge.kube.metadata import ObjectMeta, decode_metadata

__all__ = ["Entry", "Received", "received_event", "received_item", "received_object", "received_text"]


class Entry(msgspec.Struct, frozen=True, gc=False):
    """One object as the cache holds it.

    The garbage collector need not look into it: neither part can refer back.
    """

    meta: ObjectMeta
    body: bytes

    def decode(self) -> Object:
        """The object as a fresh value that the reader may change."""
        found: Object = msgspec.json.decode(self.body, type=dict)
        return found


class Received(msgspec.Struct, frozen=True, gc=False):
    """An object as it came.

    Attributes:
        meta: Its metadata.
        api_version: What it says; empty for an item of a list of a built-in kind, which leaves that to the list.
        kind: The same.
        text: All of it in JSON.
        managed_fields: Its ``metadata.managedFields``, as they are in the text; empty without.
    """

    meta: ObjectMeta
    api_version: str
    kind: str
    text: bytes
    managed_fields: bytes = b""

    def body(self, api_version: str, kind: str) -> bytes:
        """The bytes to hold: the text without what is not held of the managed fields.

        Args:
            api_version: What the object shall say if it does not say it itself.
            kind: The same.
        """
        text = self.text if not self.managed_fields else _without_managed_fields(self.text, self.managed_fields)
        if not self.kind:
            head = _encode({"apiVersion": api_version, "kind": kind})
            text = head[:-1] + b"," + text[1:]
        return text

    def metadata_body(self, api_version: str, kind: str) -> bytes:
        """The same of an object of which only the metadata is held, whether or not more has come."""
        fields = _raw_fields.decode(self.body(api_version, kind))
        return _encode({"apiVersion": api_version, "kind": kind, "metadata": fields["metadata"]})


class _Metadata(ObjectMeta, frozen=True, gc=False, rename="camel"):
    managed_fields: msgspec.Raw = msgspec.Raw()


class _Object(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    metadata: _Metadata
    api_version: str = ""
    kind: str = ""


class _Event(msgspec.Struct, frozen=True, gc=False, forbid_unknown_fields=True):
    type: str
    object: _Object


_RawFields: TypeAlias = dict[str, msgspec.Raw]


class _RawEvent(msgspec.Struct, frozen=True, gc=False):
    type: str
    object: _RawFields


class _ManagedFields(msgspec.Struct, frozen=True):
    operation: str = ""


_object = msgspec.json.Decoder(_Object)
_event = msgspec.json.Decoder(_Event)
_raw_event = msgspec.json.Decoder(_RawEvent)
_raw_fields = msgspec.json.Decoder(_RawFields)
_raw_list = msgspec.json.Decoder(list[msgspec.Raw])
_managed_fields = msgspec.json.Decoder(_ManagedFields)
_text = msgspec.json.Decoder(str)
_encode = msgspec.json.Encoder().encode

_MANAGED_FIELDS = b'"managedFields":'
_EVENT_HEADS = {name: b'{"type":"%s","object":' % name.encode() for name in ("ADDED", "MODIFIED", "DELETED")}


def received_event(line: bytes) -> tuple[str, Received]:
    """An event of a watch: its type, and the object.

    Raises:
        msgspec.DecodeError: It is no JSON, or no event (`msgspec.ValidationError`).
        ValueError: Its object has no metadata, or no name.
    """
    try:
        event = _event.decode(line)
    except msgspec.ValidationError:
        pass
    else:
        head = _EVENT_HEADS.get(event.type)
        if head is not None and line.startswith(head) and line.endswith(b"}}"):
            return event.type, _received(event.object, line[len(head) : -1])
    found = _raw_event.decode(line)
    return found.type, _taken_apart(found.object)


def received_item(item: msgspec.Raw) -> Received:
    """An item of a list.

    Raises:
        ValueError: It is no object, or has no metadata, or no name.
    """
    return received_text(bytes(item))


def received_object(obj: Mapping[str, Any]) -> Received:
    """A decoded object: what a request of ours was answered with.

    Raises:
        ValueError: It has no metadata, or no name.
    """
    return received_text(_encode(obj))


def received_text(text: bytes) -> Received:
    """An object in JSON.

    Raises:
        ValueError: It is no object, or has no metadata, or no name.
    """
    try:
        try:
            return _received(_object.decode(text), text)
        except msgspec.ValidationError:
            return _taken_apart(_raw_fields.decode(text))
    except UNREADABLE as error:
        raise ValueError(f"not a JSON object: {error}") from error


def _received(obj: _Object, text: bytes) -> Received:
    found = obj.metadata
    if not found.name:
        raise ValueError("an object without a name")
    # Not `found` itself: its managed fields refer to the whole of what was received, and would keep it.
    meta = ObjectMeta(
        found.name,
        intern(found.namespace),
        found.uid,
        found.resource_version,
        found.generation,
        found.creation_timestamp,
        found.deletion_timestamp,
        found.labels,
        found.owner_references,
        found.finalizers,
    )
    return Received(meta, obj.api_version, obj.kind, text, bytes(found.managed_fields))


def _taken_apart(fields: _RawFields) -> Received:
    if "metadata" not in fields:
        raise ValueError("an object without metadata")
    meta = decode_metadata(fields["metadata"])
    if not meta.name:
        raise ValueError("an object without a name")
    metadata = _raw_fields.decode(fields["metadata"])
    managed_fields = bytes(metadata.get("managedFields", b""))
    text = _encode({**fields, "metadata": msgspec.Raw(_encode(metadata))})
    return Received(meta, _string(fields, "apiVersion"), _string(fields, "kind"), text, managed_fields)


def _string(fields: _RawFields, name: str) -> str:
    try:
        return _text.decode(fields.get(name, b'""'))
    except msgspec.DecodeError:
        return ""


def _without_managed_fields(text: bytes, managed_fields: bytes) -> bytes:
    start = text.find(_MANAGED_FIELDS)
    while start >= 0 and not text.startswith(managed_fields, start + len(_MANAGED_FIELDS)):
        start = text.find(_MANAGED_FIELDS, start + 1)  # that was a field of the same name elsewhere
    if start < 0:
        return _without_managed_fields(_compact(text), managed_fields)
    end = start + len(_MANAGED_FIELDS) + len(managed_fields)
    applied = _applied(managed_fields)
    if applied:
        return b"%b%b%b%b" % (text[:start], _MANAGED_FIELDS, _encode(applied), text[end:])
    if text[start - 1 : start] == b",":
        start -= 1
    elif text[end : end + 1] == b",":
        end += 1
    return text[:start] + text[end:]


def _compact(text: bytes) -> bytes:
    """The text without white space between the fields, as far down as the managed fields."""
    fields = _raw_fields.decode(text)
    return _encode({**fields, "metadata": msgspec.Raw(_encode(_raw_fields.decode(fields["metadata"])))})


def _applied(managed_fields: bytes) -> list[msgspec.Raw]:
    # Most objects were never applied: one search tells, without looking at each field path.
    if b'"Apply"' not in managed_fields:
        return []
    try:
        return [raw for raw in _raw_list.decode(managed_fields) if _managed_fields.decode(raw).operation == "Apply"]
    except UNREADABLE:
        return []  # not what the API server writes; without a record the engine applies once more
