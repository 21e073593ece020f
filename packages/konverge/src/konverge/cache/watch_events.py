"""The lines of a watch that are about no object: bookmarks and errors. Those about one are `cached_object`. Pure."""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from konverge.client.json_decoding import DECODE_ERRORS
from konverge.client.watch import INITIAL_EVENTS_END, build_watch_error
from konverge.errors import ApiError
from konverge.kube import Object

__all__ = ["Bookmark", "parse_bookmark", "parse_error", "parse_type"]


class Bookmark(NamedTuple):
    """Up to where the watch has told everything.

    Args:
        resource_version: That point.
        ends_list: Whether a streaming list is complete with it (KEP-3157).
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
    """What kind of event it is.

    Raises:
        msgspec.ValidationError: It says none.
        msgspec.DecodeError: It is not JSON.
        UnicodeDecodeError: It is no text.
        RecursionError: It is nested too deep.
    """
    return _type.decode(line).type


def parse_bookmark(line: bytes) -> Bookmark:
    """A bookmark. Raises as `type_of` does."""
    found = _bookmark.decode(line).object.metadata
    return Bookmark(found.resource_version, found.annotations.get(INITIAL_EVENTS_END) == "true")


def parse_error(line: bytes) -> ApiError:
    """An error of the server; one that cannot be read is one all the same."""
    try:
        return build_watch_error(_any_event.decode(line).object)
    except DECODE_ERRORS:
        return build_watch_error({})
