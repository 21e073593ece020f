"""The lists that a server returns: whole, in pages, or with only the metadata of objects. Pure."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from konverge._internal.client.json_decoding import DECODE_ERRORS, check_text
from konverge._internal.client.sender import JSON, build_not_json_error
from konverge._internal.kube import GroupVersionKind, Object
from konverge.errors import ConnectionFailedError

__all__ = [
    "METADATA_LIST",
    "METADATA_OBJECT",
    "ContinueTokens",
    "ListPage",
    "ObjectList",
    "decode_item",
    "decode_page",
    "extract_metadata",
    "selector_query",
]

# With plain JSON as the alternative: a server without support sends whole objects, which include the metadata.
METADATA_LIST = f"{JSON};as=PartialObjectMetadataList;g=meta.k8s.io;v=v1, {JSON}"
METADATA_OBJECT = f"{JSON};as=PartialObjectMetadata;g=meta.k8s.io;v=v1, {JSON}"
"""The Accept headers for metadata only: of a list, and of an object or the objects of a watch."""


@dataclass(frozen=True, slots=True)
class ObjectList:
    """A whole collection at one resource version.

    Args:
        items: The objects.
        resource_version: The version from which a watch misses no change.
        shard_selector: The same as in `ListPage`.
    """

    items: list[Object]
    resource_version: str
    shard_selector: str = ""


@dataclass(frozen=True, slots=True)
class ListPage:
    """Part of a collection, with undecoded items.

    Args:
        items: The objects as the server sent them. Objects of built-in kinds have neither apiVersion nor kind; objects
            that were reduced to metadata have the kind ``PartialObjectMetadata``.
        resource_version: The version of the list, the same in all pages.
        continue_token: The token for the next page; empty in the last page.
        shard_selector: The shard selector that the server applied. If it is empty although one was sent, the server
            does not support it, and the list contains everything (KEP-5866).
    """

    items: list[msgspec.Raw]
    resource_version: str
    continue_token: str
    shard_selector: str = ""


class _ShardInfo(msgspec.Struct, frozen=True):
    selector: str = ""


class _ListMetadata(msgspec.Struct, frozen=True, rename="camel"):
    resource_version: str = ""
    continue_: str = msgspec.field(default="", name="continue")
    shard_info: _ShardInfo | None = None


class _List(msgspec.Struct, frozen=True):
    # Neither has a default: otherwise any JSON object would decode as a list without items.
    metadata: _ListMetadata
    items: list[msgspec.Raw] | None


_decoder = msgspec.json.Decoder(_List)


class ContinueTokens:
    """The continue tokens of one list so far: a repeated token would cause an endless loop.

    Args:
        gvk: The kind, for messages.
    """

    def __init__(self, gvk: GroupVersionKind) -> None:
        self._gvk = gvk
        self._seen: set[str] = set()

    def check_next(self, page: ListPage) -> str:
        """Return the token for the page after this one; empty if this is the last page.

        Raises:
            konverge.errors.ConnectionFailedError: An earlier page had the same token.
        """
        token = page.continue_token
        if token in self._seen:
            raise ConnectionFailedError(
                f"{self._gvk}: the list failed: expected a new continue token, found a repeated one"
            )
        if token:
            self._seen.add(token)
        return token


def decode_page(body: bytes, path: str) -> ListPage:
    """Decode one page.

    Args:
        body: The body of the response.
        path: The path of the request, for messages.

    Raises:
        konverge.errors.ConnectionFailedError: The body is not a list.
    """
    try:
        check_text(body)
        decoded = _decoder.decode(body)
    except DECODE_ERRORS as error:
        raise build_not_json_error("GET", path, error) from error
    metadata = decoded.metadata
    shard_selector = metadata.shard_info.selector if metadata.shard_info is not None else ""
    return ListPage(decoded.items or [], metadata.resource_version, metadata.continue_, shard_selector)


def decode_item(item: msgspec.Raw, gvk: GroupVersionKind) -> Object:
    """Decode an item of a list; items of built-in kinds omit apiVersion and kind, which only the list has.

    Raises:
        konverge.errors.ConnectionFailedError: The item is not an object.
    """
    try:
        fields: Object = msgspec.json.decode(item, type=dict)
    except DECODE_ERRORS as error:
        raise ConnectionFailedError(
            f"{gvk}: the list has an invalid item: expected an object ({error}). Check the server's address"
        ) from error
    return {"apiVersion": gvk.api_version, "kind": gvk.kind, **fields}


def extract_metadata(obj: Object, gvk: GroupVersionKind) -> Object:
    """Return an object of the same kind with only the metadata."""
    return {"apiVersion": gvk.api_version, "kind": gvk.kind, "metadata": obj.get("metadata") or {}}


def selector_query(label_selector: str, field_selector: str, shard_selector: str = "") -> dict[str, str]:
    """Return the query that selects objects of a collection; empty values are not sent."""
    return {"labelSelector": label_selector, "fieldSelector": field_selector, "shardSelector": shard_selector}
