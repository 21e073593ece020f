"""Pages of a list, all read at one revision, and the tokens for the next page."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

from konverge._internal.kube import ObjectKey
from konverge.errors import BadRequestError, ExpiredError
from konverge_cluster._internal.embedded.selection import Selection
from konverge_cluster._internal.embedded.storage import Storage, StoredObject

__all__ = ["ListPage", "read_page"]


class _ContinueToken(msgspec.Struct, frozen=True):
    """The start of the next page: the last key of this page and the revision of the list."""

    v: str
    rv: int
    namespace: str
    name: str


_FORM = "konverge/v1"


@dataclass(frozen=True, slots=True)
class ListPage:
    """One page of a list.

    Attributes:
        items: The objects in the order of their keys.
        revision: The revision of the list.
        next: The token for the next page; empty on the last page.
        remaining: The number of later objects; None if it is not reported (with a selector, or on the last page).
    """

    items: Sequence[StoredObject]
    revision: int
    next: str = ""
    remaining: int | None = None


def read_page(
    storage: Storage,
    resource: str,
    selection: Selection,
    *,
    limit: int = 0,
    token: str = "",
    revision: int | None = None,
) -> ListPage:
    """Return the requested page.

    Args:
        storage: The storage.
        resource: The storage name of the resource.
        selection: The selection of objects.
        limit: The maximum number of objects; zero for all.
        token: The token from the previous page; empty for the first page.
        revision: The exact revision to list; None for the current one.

    Raises:
        BadRequestError: The token is invalid.
        ExpiredError: The state at that revision is no longer available.
    """
    after: ObjectKey | None = None
    if token:
        start = _decode_token(token)
        after, revision = ObjectKey(start.namespace, start.name), start.rv
    at = storage.revision if revision is None else revision
    try:
        listed = (
            storage.list_objects(resource, selection.namespace)
            if at == storage.revision
            else storage.list_objects_at(resource, at, selection.namespace)
        )
    except ExpiredError:
        if not token:
            raise
        message = (
            "The provided continue parameter is too old to display a consistent list result. "
            "You can start a new list without the continue parameter."
        )
        raise ExpiredError(message) from None
    items = [stored for stored in listed if (after is None or stored.key > after) and selection.matches(stored.object)]
    if not limit or len(items) <= limit:
        return ListPage(items, at)
    page_items = items[:limit]
    remaining = None if selection.labels.requirements or selection.fields.requirements else len(items) - limit
    return ListPage(page_items, at, _encode_token(at, page_items[-1].key), remaining)


def _encode_token(revision: int, key: ObjectKey) -> str:
    token = _ContinueToken(_FORM, revision, key.namespace, key.name)
    return base64.urlsafe_b64encode(msgspec.json.encode(token)).decode().rstrip("=")


def _decode_token(text: str) -> _ContinueToken:
    try:
        token = msgspec.json.decode(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)), type=_ContinueToken)
    except (binascii.Error, ValueError, msgspec.DecodeError):
        raise BadRequestError("invalid continue token: continue key is not valid") from None
    if token.v != _FORM:
        raise BadRequestError("invalid continue token: continue key is not valid: unrecognized version")
    return token
