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

from konverge.client.json_decoding import DECODE_ERRORS
from konverge.kube import Object
from konverge.kube.metadata import ObjectMeta, decode_metadata

__all__ = ["CachedObject", "RawObject", "parse_event", "parse_item", "parse_object", "parse_text"]


class CachedObject(msgspec.Struct, frozen=True, gc=False):
    """One object as the cache holds it.

    The garbage collector need not look into it: neither part can refer back.
    """

    meta: ObjectMeta
    body: bytes

    def decode(self) -> Object:
        """The object as a fresh value that the reader may change."""
        found: Object = msgspec.json.decode(self.body, type=dict)
        return found


class RawObject(msgspec.Struct, frozen=True, gc=False):
    """An object as it came.

    Attributes:
        meta: Its metadata.
        api_version: What it says; empty for an item of a list of a built-in kind, which leaves that to the list.
        kind: The same.
        text: JSON that contains it.
        start: Where in the text it begins.
        stop: Where it ends.
        managed_fields: Its ``metadata.managedFields``, as they are in the text; empty without.
    """

    meta: ObjectMeta
    api_version: str
    kind: str
    text: bytes
    start: int
    stop: int
    managed_fields: bytes

    def to_body(self, api_version: str, kind: str) -> bytes:
        """The bytes to hold: the object without what is not held of the managed fields.

        Args:
            api_version: What the object shall say if it does not say it itself.
            kind: The same.
        """
        body = self._strip_managed_fields() if self.managed_fields else self.text[self.start : self.stop]
        if not self.kind:
            head = _encode({"apiVersion": api_version, "kind": kind})
            body = head[:-1] + b"," + body[1:]
        return body

    def to_metadata_body(self, api_version: str, kind: str) -> bytes:
        """The same of an object of which only the metadata is held, whether or not more has come."""
        fields = _raw_fields.decode(self.to_body(api_version, kind))
        return _encode({"apiVersion": api_version, "kind": kind, "metadata": fields["metadata"]})

    def _strip_managed_fields(self) -> bytes:
        text, found = self.text, self.managed_fields
        first = text.find(_MANAGED_FIELDS, self.start)
        while not text.startswith(found, first + len(_MANAGED_FIELDS)):
            first = text.find(_MANAGED_FIELDS, first + 1)  # that was a field of the same name elsewhere
            if first < 0:
                return _compact_object(self)._strip_managed_fields()
        last = first + len(_MANAGED_FIELDS) + len(found)
        # Most objects were never applied: a search tells, without looking at each field path. For one letter it is
        # twenty times as fast as for a word, and most field paths have no such letter.
        if b"A" in found and _APPLY in found and (applied := _select_apply_entries(found)):
            return b"%b%b%b%b" % (text[self.start : first], _MANAGED_FIELDS, applied, text[last : self.stop])
        if text[first - 1] == _COMMA:
            first -= 1
        elif text[last] == _COMMA:
            last += 1
        return text[self.start : first] + text[last : self.stop]


class _RawMetadata(ObjectMeta, frozen=True, gc=False, rename="camel"):
    managed_fields: msgspec.Raw = msgspec.Raw()


class _ObjectHeader(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    metadata: _RawMetadata
    api_version: str = ""
    kind: str = ""


class _ObjectEvent(msgspec.Struct, frozen=True, gc=False, forbid_unknown_fields=True):
    type: str
    object: _ObjectHeader


_RawFields: TypeAlias = dict[str, msgspec.Raw]


class _RawEvent(msgspec.Struct, frozen=True, gc=False):
    type: str
    object: _RawFields


class _ManagedFields(msgspec.Struct, frozen=True):
    operation: str = ""


_object = msgspec.json.Decoder(_ObjectHeader)
_event = msgspec.json.Decoder(_ObjectEvent)
_raw_event = msgspec.json.Decoder(_RawEvent)
_raw_fields = msgspec.json.Decoder(_RawFields)
_raw_list = msgspec.json.Decoder(list[msgspec.Raw])
_managed_fields = msgspec.json.Decoder(_ManagedFields)
_text = msgspec.json.Decoder(str)
_encode = msgspec.json.Encoder().encode

_MANAGED_FIELDS = b'"managedFields":'
_APPLY = b'"Apply"'
_COMMA = ord(",")
_EVENT_HEADS = {name: b'{"type":"%s","object":' % name.encode() for name in ("ADDED", "MODIFIED", "DELETED")}


def parse_event(line: bytes) -> tuple[str, RawObject]:
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
            return event.type, _build_raw_object(event.object, line, len(head), len(line) - 1)
    found = _raw_event.decode(line)
    return found.type, _parse_fields(found.object)


def parse_item(item: msgspec.Raw) -> RawObject:
    """An item of a list.

    Raises:
        ValueError: It is no object, or has no metadata, or no name.
    """
    return parse_text(bytes(item))


def parse_object(obj: Mapping[str, Any]) -> RawObject:
    """A decoded object: what a request of ours was answered with.

    Raises:
        ValueError: It has no metadata, or no name.
    """
    return parse_text(_encode(obj))


def parse_text(text: bytes) -> RawObject:
    """An object in JSON.

    Raises:
        ValueError: It is no object, or has no metadata, or no name.
    """
    try:
        try:
            return _build_raw_object(_object.decode(text), text, 0, len(text))
        except msgspec.ValidationError:
            return _parse_fields(_raw_fields.decode(text))
    except DECODE_ERRORS as error:
        raise ValueError(f"not a JSON object: {error}") from error


def _build_raw_object(obj: _ObjectHeader, text: bytes, start: int, stop: int) -> RawObject:
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
    return RawObject(meta, obj.api_version, obj.kind, text, start, stop, bytes(found.managed_fields))


def _parse_fields(fields: _RawFields) -> RawObject:
    if "metadata" not in fields:
        raise ValueError("an object without metadata")
    meta = decode_metadata(fields["metadata"])
    if not meta.name:
        raise ValueError("an object without a name")
    return RawObject(
        meta, _decode_string(fields, "apiVersion"), _decode_string(fields, "kind"), *_rewrite_fields(fields)
    )


def _rewrite_fields(fields: _RawFields) -> tuple[bytes, int, int, bytes]:
    """The object without white space between the fields, down to the managed fields; where it is, and those."""
    metadata = _raw_fields.decode(fields["metadata"])
    managed_fields = bytes(metadata.get("managedFields", b""))
    text = _encode({**fields, "metadata": msgspec.Raw(_encode(metadata))})
    return text, 0, len(text), managed_fields


def _compact_object(received: RawObject) -> RawObject:
    fields = _raw_fields.decode(received.text[received.start : received.stop])
    return RawObject(received.meta, received.api_version, received.kind, *_rewrite_fields(fields))


def _decode_string(fields: _RawFields, name: str) -> str:
    try:
        return _text.decode(fields.get(name, b'""'))
    except msgspec.DecodeError:
        return ""


def _select_apply_entries(managed_fields: bytes) -> bytes:
    """Those of server-side applies, in JSON; empty when there are none."""
    try:
        found = [raw for raw in _raw_list.decode(managed_fields) if _managed_fields.decode(raw).operation == "Apply"]
    except DECODE_ERRORS:
        return b""  # not what the API server writes; without a record the engine applies once more
    return _encode(found) if found else b""
