"""One cached object: its metadata as a struct, and the whole object as bytes.

The bytes are the object as the server sent it, but of ``metadata.managedFields`` only the entries of server-side
applies remain. These record what an operator last applied, and the comparison of desired and live state needs no
others. The other entries take up a third of many objects. Decoding the bytes for each reader costs less than copying
a decoded object.

One pass of the parser returns the metadata and the position of the managed fields. They are cut out of the text, which
is neither decoded nor encoded otherwise. This requires JSON as servers write it, without white space. Text in another
form, or with an unexpected value in the metadata, is parsed field by field instead.
"""

from __future__ import annotations

from collections.abc import Mapping
from sys import intern
from typing import Any, TypeAlias

import msgspec

from konverge._internal.client.json_decoding import DECODE_ERRORS
from konverge._internal.kube import Object
from konverge._internal.kube.metadata import ObjectMeta, decode_metadata

__all__ = ["CachedObject", "RawObject", "parse_event", "parse_item", "parse_object", "parse_text"]


class CachedObject(msgspec.Struct, frozen=True, gc=False):
    """One object in the cache.

    The garbage collector does not traverse it: neither part can refer back.
    """

    meta: ObjectMeta
    body: bytes

    def decode(self) -> Object:
        """Return the object as a new value that the reader may change."""
        obj: Object = msgspec.json.decode(self.body, type=dict)
        return obj


class RawObject(msgspec.Struct, frozen=True, gc=False):
    """An object as it was received.

    Attributes:
        meta: The metadata.
        api_version: The ``apiVersion`` field; empty for an item of a list of a built-in kind, where only the list has
            it.
        kind: The ``kind`` field; empty like ``api_version``.
        text: JSON that contains the object.
        start: The offset in the text where the object begins.
        stop: The offset where it ends.
        managed_fields: The ``metadata.managedFields`` as they are in the text; empty if absent.
    """

    meta: ObjectMeta
    api_version: str
    kind: str
    text: bytes
    start: int
    stop: int
    managed_fields: bytes

    def to_body(self, api_version: str, kind: str) -> bytes:
        """Return the bytes to cache: the object with only the apply entries of its managed fields.

        Args:
            api_version: The ``apiVersion`` to add if the object has none.
            kind: The ``kind`` to add if the object has none.
        """
        body = self._strip_managed_fields() if self.managed_fields else self.text[self.start : self.stop]
        if not self.kind:
            head = _encode({"apiVersion": api_version, "kind": kind})
            body = head[:-1] + b"," + body[1:]
        return body

    def to_metadata_body(self, api_version: str, kind: str) -> bytes:
        """Return the bytes to cache for a kind that is cached with its metadata only."""
        fields = _raw_fields.decode(self.to_body(api_version, kind))
        return _encode({"apiVersion": api_version, "kind": kind, "metadata": fields["metadata"]})

    def _strip_managed_fields(self) -> bytes:
        text, managed_fields = self.text, self.managed_fields
        first = text.find(_MANAGED_FIELDS, self.start)
        while not text.startswith(managed_fields, first + len(_MANAGED_FIELDS)):
            first = text.find(_MANAGED_FIELDS, first + 1)  # that was a field of the same name elsewhere
            if first < 0:
                return _compact_object(self)._strip_managed_fields()
        last = first + len(_MANAGED_FIELDS) + len(managed_fields)
        # Most objects were never applied: a search shows it without parsing the field paths. A search for one letter
        # is twenty times as fast as for a word, and most field paths do not contain the letter.
        if b"A" in managed_fields and _APPLY in managed_fields and (applied := _select_apply_entries(managed_fields)):
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
    """Parse an event of a watch: its type and the object.

    Raises:
        msgspec.DecodeError: The line is not JSON, or not an event (`msgspec.ValidationError`).
        ValueError: The object has no metadata, or no name.
    """
    try:
        event = _event.decode(line)
    except msgspec.ValidationError:
        pass
    else:
        head = _EVENT_HEADS.get(event.type)
        if head is not None and line.startswith(head) and line.endswith(b"}}"):
            return event.type, _build_raw_object(event.object, line, len(head), len(line) - 1)
    raw = _raw_event.decode(line)
    return raw.type, _parse_fields(raw.object)


def parse_item(item: msgspec.Raw) -> RawObject:
    """Parse an item of a list.

    Raises:
        ValueError: The item is not an object, or has no metadata, or no name.
    """
    return parse_text(bytes(item))


def parse_object(obj: Mapping[str, Any]) -> RawObject:
    """Parse a decoded object: the response to an own request.

    Raises:
        ValueError: The object has no metadata, or no name.
    """
    return parse_text(_encode(obj))


def parse_text(text: bytes) -> RawObject:
    """Parse an object in JSON.

    Raises:
        ValueError: The text is not an object, or has no metadata, or no name.
    """
    try:
        try:
            return _build_raw_object(_object.decode(text), text, 0, len(text))
        except msgspec.ValidationError:
            return _parse_fields(_raw_fields.decode(text))
    except DECODE_ERRORS as error:
        raise ValueError(f"expected a JSON object: {error}") from error


def _build_raw_object(obj: _ObjectHeader, text: bytes, start: int, stop: int) -> RawObject:
    raw = obj.metadata
    if not raw.name:
        raise ValueError("metadata.name: expected a name, found none")
    # Not `raw` itself: its managed fields refer to the whole received text, and would keep it in memory.
    meta = ObjectMeta(
        raw.name,
        intern(raw.namespace),
        raw.uid,
        raw.resource_version,
        raw.generation,
        raw.creation_timestamp,
        raw.deletion_timestamp,
        raw.labels,
        raw.owner_references,
        raw.finalizers,
    )
    return RawObject(meta, obj.api_version, obj.kind, text, start, stop, bytes(raw.managed_fields))


def _parse_fields(fields: _RawFields) -> RawObject:
    if "metadata" not in fields:
        raise ValueError("metadata: expected an object, found none")
    meta = decode_metadata(fields["metadata"])
    if not meta.name:
        raise ValueError("metadata.name: expected a name, found none")
    return RawObject(
        meta, _decode_string(fields, "apiVersion"), _decode_string(fields, "kind"), *_rewrite_fields(fields)
    )


def _rewrite_fields(fields: _RawFields) -> tuple[bytes, int, int, bytes]:
    """Encode the object without white space between the fields, down to the managed fields.

    Return the text, the object's start and stop in it, and the managed fields.
    """
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
    """Return the entries of server-side applies, in JSON; empty if there are none."""
    try:
        entries = [raw for raw in _raw_list.decode(managed_fields) if _managed_fields.decode(raw).operation == "Apply"]
    except DECODE_ERRORS:
        return b""  # not a form that the API server writes; without a record the engine applies once more
    return _encode(entries) if entries else b""
