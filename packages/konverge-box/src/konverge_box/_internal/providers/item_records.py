"""The records of items in an annotation of the owner, which are written before the items are created.

An annotation lives as long as the finalizer: it is in the same object and the same ``metadata``, backups keep it, and
it depends neither on the status subresource nor on another object that could be deleted separately. A record means that
the item *may* exist. It is written before the provider is called, and removed after the provider has deleted the item.
So after a crash at any time, the next reconcile or the deletion finds every item that may exist.

A user who may edit the owner may edit the annotation. That grants no access to items of other owners: a provider
changes only items that are marked with the owner's UID.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec
from msgspec import Struct

from konverge.errors import ConfigurationError
from konverge_box._internal.providers.plugin import OnDelete

__all__ = ["PROVIDERS_ANNOTATION", "ItemRecord", "ItemRecords"]

PROVIDERS_ANNOTATION = "konverge.dev/providers"
"""Annotation of the custom resource: the records of its external items."""

_MAX_ANNOTATION_LENGTH = 128 * 1024  # the limit for all annotations of an object together is 256 KiB


class ItemRecord(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    """The record of an item that may exist.

    Args:
        provider: The name of its provider.
        kind: One of the provider's kinds.
        name: Its name outside of the cluster.
        item: Its name in the file.
        identity: The further values that distinguish it from other items.
        on_delete: The action when it is no longer declared.
        handle: The identifier that the provider returned.
    """

    provider: str
    kind: str
    name: str
    item: str
    on_delete: OnDelete
    identity: dict[str, Any] = {}
    handle: str = ""

    @property
    def key(self) -> str:
        """The key by which two reconciles recognize the same item."""
        parts = [self.provider, self.kind, self.name, sorted(self.identity.items())]
        return msgspec.json.encode(parts).decode()

    def build_token(self, uid: str) -> str:
        """Return a token that is unique among the items of all owners."""
        return hashlib.sha256(f"{uid} {self.key}".encode()).hexdigest()[:32]


class ItemRecords:
    """The records of one owner in the order of their creation. It is an immutable value.

    Args:
        entries: One record for each key.
    """

    def __init__(self, entries: Iterable[ItemRecord] = ()) -> None:
        self._entries = {entry.key: entry for entry in entries}

    @classmethod
    def from_owner(cls, owner: Mapping[str, Any]) -> ItemRecords:
        """Read the records of an object.

        Raises:
            konverge.errors.ConfigurationError: The annotation is invalid.
        """
        written = (owner["metadata"].get("annotations") or {}).get(PROVIDERS_ANNOTATION) or "[]"
        try:
            return cls(msgspec.json.decode(written, type=list[ItemRecord]))
        except (msgspec.DecodeError, UnicodeError) as error:
            raise ConfigurationError(
                f"annotation {PROVIDERS_ANNOTATION}: expected the list of items from konverge ({error}). Restore "
                "the old value, or write [] if the owner has no items outside of the cluster"
            ) from error

    def __iter__(self) -> Iterator[ItemRecord]:
        return iter(self._entries.values())

    def __len__(self) -> int:
        return len(self._entries)

    def get(self, key: str) -> ItemRecord | None:
        """Return the record of that key; None without one."""
        return self._entries.get(key)

    def with_intended(self, wanted: Iterable[ItemRecord]) -> ItemRecords:
        """Return the records with additional ones. The handles of existing records stay."""
        entries = dict(self._entries)
        for record in wanted:
            earlier = entries.get(record.key)
            entries[record.key] = record if earlier is None else msgspec.structs.replace(record, handle=earlier.handle)
        return ItemRecords(entries.values())

    def with_results(self, handles: Mapping[str, str], gone: Iterable[str]) -> ItemRecords:
        """Return the records with new handles by key, and without the records of deleted items."""
        entries = dict(self._entries)
        for key, handle in handles.items():
            if key in entries and handle:
                entries[key] = msgspec.structs.replace(entries[key], handle=handle)
        for key in gone:
            entries.pop(key, None)
        return ItemRecords(entries.values())

    def to_annotation(self) -> str | None:
        """Return the text of the annotation; None without records.

        Raises:
            konverge.errors.ConfigurationError: The text is too long.
        """
        if not self._entries:
            return None
        text = msgspec.json.encode(list(self._entries.values()))
        if len(text) > _MAX_ANNOTATION_LENGTH:
            raise ConfigurationError(
                f"annotation {PROVIDERS_ANNOTATION}: expected at most {_MAX_ANNOTATION_LENGTH} bytes for "
                f"{len(self)} items, found {len(text)}; split the owner"
            )
        return text.decode()
