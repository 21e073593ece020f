"""Pages of a list, all taken at one revision, and the tokens with which a client asks for the next one."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

from konverge.errors import BadRequestError, ExpiredError
from konverge.kube import ObjectKey
from konverge_cluster.embedded.selection import Selection
from konverge_cluster.embedded.storage import Storage, StoredObject

__all__ = ["ListPage", "read_page"]


class _ContinueToken(msgspec.Struct, frozen=True):
    """Where the next page starts: after which key, and in the state of which revision."""

    v: str
    rv: int
    namespace: str
    name: str


_FORM = "konverge/v1"


@dataclass(frozen=True, slots=True)
class ListPage:
    """One page.

    Attributes:
        items: The objects, in the order of their keys.
        revision: The revision at which they are so.
        next: The token for the next page, empty on the last.
        remaining: How many come after; None when that is not told (with a selector, or on the last page).
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
    """The page that a request asks for.

    Args:
        storage: The store.
        resource: The storage name of the resource.
        selection: Which objects.
        limit: At most so many; zero for all.
        token: The token of an earlier page; empty for the first.
        revision: The exact revision to list at; None for the present one.

    Raises:
        BadRequestError: The token is none of ours.
        ExpiredError: The state of that revision is no longer known.
    """
    after: ObjectKey | None = None
    if token:
        start = _decode_token(token)
        after, revision = ObjectKey(start.namespace, start.name), start.rv
    at = storage.revision if revision is None else revision
    try:
        found = (
            storage.list_objects(resource, selection.namespace)
            if at == storage.revision
            else storage.list_objects_at(resource, at, selection.namespace)
        )
    except ExpiredError:
        if not token:
            raise
        told = (
            "The provided continue parameter is too old to display a consistent list result. "
            "You can start a new list without the continue parameter."
        )
        raise ExpiredError(told) from None
    items = [stored for stored in found if (after is None or stored.key > after) and selection.matches(stored.object)]
    if not limit or len(items) <= limit:
        return ListPage(items, at)
    kept = items[:limit]
    remaining = None if selection.labels.requirements or selection.fields.requirements else len(items) - limit
    return ListPage(kept, at, _encode_token(at, kept[-1].key), remaining)


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
