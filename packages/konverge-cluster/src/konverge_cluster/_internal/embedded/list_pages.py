"""Pages of a list, all read at one revision, and the tokens for the next page."""

from __future__ import annotations

import base64
import posixpath
import string
from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

from konverge._internal.kube import ObjectKey
from konverge.errors import BadRequestError, ExpiredError
from konverge_cluster._internal.embedded import api_errors
from konverge_cluster._internal.embedded.selection import Selection
from konverge_cluster._internal.embedded.storage import Storage, StoredObject, build_storage_key

__all__ = ["ListPage", "read_page"]


class _ContinueToken(msgspec.Struct, frozen=True):
    """The start of the next page: the revision of the list, and the last key of this page with the next letter."""

    v: str = ""
    rv: int = 0
    start: str = ""


_FORM = "meta.k8s.io/v1"
# The next key after a key is the same key with this letter.
_NEXT = "\0"
_BASE64 = frozenset(string.ascii_letters + string.digits + "-_")
_JSON_STARTS = '{["-0123456789tfn \t\r\n'


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
    begin = ""
    if token:
        start = _decode_token(token)
        begin = f"/{selection.namespace}{start.start}" if selection.namespace else start.start
        # A negative revision continues in the current state.
        revision = start.rv if start.rv > 0 else None
    if revision is not None and revision > storage.revision:
        raise api_errors.new_too_large_resource_version(revision, storage.revision)
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
    items = [stored for stored in listed if build_storage_key(stored.key) >= begin and selection.matches(stored.object)]
    if not limit or len(items) <= limit:
        return ListPage(items, at)
    page_items = items[:limit]
    remaining = None if selection.labels.requirements or selection.fields.requirements else len(items) - limit
    return ListPage(page_items, at, _encode_token(at, page_items[-1].key, selection.namespace), remaining)


def _encode_token(revision: int, key: ObjectKey, namespace: str) -> str:
    """Return the token of the next page; its key is relative to the namespace of the list."""
    text = build_storage_key(key).removeprefix(f"/{namespace}" if namespace else "")
    token = _ContinueToken(_FORM, revision, text + _NEXT)
    return base64.urlsafe_b64encode(msgspec.json.encode(token)).decode().rstrip("=")


def _decode_token(text: str) -> _ContinueToken:
    try:
        token = msgspec.json.decode(_decode_base64(text), type=_ContinueToken)
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise _new_bad_token(_find_json_error(_decode_base64(text))) from None
    if token.v != _FORM:
        raise _new_bad_token(f"server does not recognize this encoded version {token.v}")
    if token.rv == 0:
        raise _new_bad_token(f"incorrect encoded start resourceVersion (version {_FORM})")
    if not token.start:
        raise _new_bad_token(f"encoded start key empty (version {_FORM})")
    if posixpath.normpath(f"/{token.start.lstrip('/')}") != f"/{token.start.lstrip('/')}":
        raise _new_bad_token(token.start)
    return token


def _decode_base64(text: str) -> bytes:
    wrong = next((index for index, letter in enumerate(text) if letter not in _BASE64), None)
    if wrong is None and len(text) % 4 == 1:
        wrong = len(text)
    if wrong is not None:
        raise _new_bad_token(f"illegal base64 data at input byte {wrong}")
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def _find_json_error(content: bytes) -> str:
    text = content.decode(errors="replace").lstrip()
    if not text:
        return "unexpected end of JSON input"
    if text[0] not in _JSON_STARTS:
        return f"invalid character {text[0]!r} looking for beginning of value"
    return "the token is not the JSON of a continue token"


def _new_bad_token(reason: str) -> BadRequestError:
    return BadRequestError(f"invalid continue token: continue key is not valid: {reason}")
