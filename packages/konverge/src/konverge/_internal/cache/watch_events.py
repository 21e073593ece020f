"""The watch events without an object: bookmarks and errors. `cached_object` parses the others. Pure."""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from konverge._internal.client.json_decoding import DECODE_ERRORS
from konverge._internal.client.watch import INITIAL_EVENTS_END, build_watch_error
from konverge._internal.kube import Object
from konverge.errors import ApiError

__all__ = ["Bookmark", "parse_bookmark", "parse_error", "parse_type"]


class Bookmark(NamedTuple):
    """A bookmark: the watch has reported everything up to a version.

    Args:
        resource_version: The version.
        ends_list: Whether the bookmark ends a streaming list (KEP-3157).
    """

    resource_version: str
    ends_list: bool


class _Type(msgspec.Struct, frozen=True):
    type: str


class _AnyEvent(msgspec.Struct, frozen=True):
    object: Object


class _BookmarkMetadata(msgspec.Struct, frozen=True, rename="camel"):
    resource_version: str = ""
    annotations: dict[str, str] = {}


class _BookmarkObject(msgspec.Struct, frozen=True):
    metadata: _BookmarkMetadata = _BookmarkMetadata()


class _BookmarkEvent(msgspec.Struct, frozen=True):
    object: _BookmarkObject


_type = msgspec.json.Decoder(_Type)
_any_event = msgspec.json.Decoder(_AnyEvent)
_bookmark = msgspec.json.Decoder(_BookmarkEvent)


def parse_type(line: bytes) -> str:
    """Parse the type of the event.

    Raises:
        msgspec.ValidationError: The line has no type.
        msgspec.DecodeError: The line is not JSON.
        UnicodeDecodeError: The line is not UTF-8 text.
        RecursionError: The JSON is nested too deep.
    """
    return _type.decode(line).type


def parse_bookmark(line: bytes) -> Bookmark:
    """Parse a bookmark; raise the same errors as `parse_type`."""
    metadata = _bookmark.decode(line).object.metadata
    return Bookmark(metadata.resource_version, metadata.annotations.get(INITIAL_EVENTS_END) == "true")


def parse_error(line: bytes) -> ApiError:
    """Parse an error of the server; return a generic one if its object cannot be parsed."""
    try:
        return build_watch_error(_any_event.decode(line).object)
    except DECODE_ERRORS:
        return build_watch_error({})
