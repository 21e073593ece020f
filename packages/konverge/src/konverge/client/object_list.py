"""What a server says of a collection: whole, or a page of it, or only its objects' metadata. Pure."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from konverge.client.json_decoding import DECODE_ERRORS, check_text
from konverge.client.sender import JSON, build_not_json_error
from konverge.errors import ConnectionFailedError
from konverge.kube import GroupVersionKind, Object

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

# With plain JSON behind: a server that cannot leave anything out sends whole objects, which hold what was asked for.
METADATA_LIST = f"{JSON};as=PartialObjectMetadataList;g=meta.k8s.io;v=v1, {JSON}"
METADATA_OBJECT = f"{JSON};as=PartialObjectMetadata;g=meta.k8s.io;v=v1, {JSON}"
"""What to accept for metadata alone, of a list and of an object or the objects of a watch."""


@dataclass(frozen=True, slots=True)
class ObjectList:
    """A whole collection, and the resource version at which it was so.

    Args:
        items: The objects.
        resource_version: A watch from there on misses nothing.
        shard_selector: What `ListPage` says of it.
    """

    items: list[Object]
    resource_version: str
    shard_selector: str = ""


@dataclass(frozen=True, slots=True)
class ListPage:
    """Part of a collection, its items undecoded.

    Args:
        items: The objects as the server sent them: those of built-in kinds say neither apiVersion nor kind, those that
            were reduced to metadata say ``PartialObjectMetadata``.
        resource_version: The same for all pages.
        continue_token: Asks for the next page; empty when this was the last.
        shard_selector: The shard selector that the server went by. Empty although one was sent means that the server
            knows none, and that the list is of everything (KEP-5866).
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
    # Neither has a default: anything that is an object would tell of a cluster without objects.
    metadata: _ListMetadata
    items: list[msgspec.Raw] | None


_decoder = msgspec.json.Decoder(_List)


class ContinueTokens:
    """The continue tokens of one list so far: one that comes again would lead around for ever.

    Args:
        gvk: The kind, for messages.
    """

    def __init__(self, gvk: GroupVersionKind) -> None:
        self._gvk = gvk
        self._seen: set[str] = set()

    def check_next(self, page: ListPage) -> str:
        """The token that asks for the page after this one; empty when it was the last.

        Raises:
            konverge.errors.ConnectionFailedError: Another page has named it before.
        """
        token = page.continue_token
        if token in self._seen:
            raise ConnectionFailedError(
                f"listing {self._gvk}: the next page is one that came before; the list would never end"
            )
        if token:
            self._seen.add(token)
        return token


def decode_page(body: bytes, path: str) -> ListPage:
    """Read one page.

    Args:
        body: The answer.
        path: What was asked, for messages.

    Raises:
        konverge.errors.ConnectionFailedError: It is no list.
    """
    try:
        check_text(body)
        found = _decoder.decode(body)
    except DECODE_ERRORS as error:
        raise build_not_json_error("GET", path, error) from error
    metadata = found.metadata
    shard_selector = metadata.shard_info.selector if metadata.shard_info is not None else ""
    return ListPage(found.items or [], metadata.resource_version, metadata.continue_, shard_selector)


def decode_item(item: msgspec.Raw, gvk: GroupVersionKind) -> Object:
    """An item of a list; those of built-in kinds leave out what the list says already.

    Raises:
        konverge.errors.ConnectionFailedError: It is no object.
    """
    try:
        fields: Object = msgspec.json.decode(item, type=dict)
    except DECODE_ERRORS as error:
        raise ConnectionFailedError(
            f"a list of {gvk} holds what is no object ({error}). Check the server's address"
        ) from error
    return {"apiVersion": gvk.api_version, "kind": gvk.kind, **fields}


def extract_metadata(obj: Object, gvk: GroupVersionKind) -> Object:
    """An object's metadata as an object of its own kind, and nothing else."""
    return {"apiVersion": gvk.api_version, "kind": gvk.kind, "metadata": obj.get("metadata") or {}}


def selector_query(label_selector: str, field_selector: str, shard_selector: str = "") -> dict[str, str]:
    """The query that narrows a collection; what is empty is not sent."""
    return {"labelSelector": label_selector, "fieldSelector": field_selector, "shardSelector": shard_selector}
