"""What is recorded of items, before they are made: on the owner, in an annotation.

An annotation, since it has the fate of the finalizer: the same object, the same ``metadata``, kept by back-ups, in no
way dependent on a status subresource or on a further object that could be deleted by itself. An entry says that the
item *may* be there. It is written before the provider is called, and taken away after the provider has said that the
item is gone; so whatever moment a crash comes at, the next pass or the deletion asks for all that may be there.

Who may edit the owner may edit the annotation. That gives nobody power over other people's things: a provider touches
only what is marked with the owner's UID.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec
from msgspec import Struct

from konverge.errors import ConfigurationError
from konverge_box.providers.plugin import OnDelete

__all__ = ["PROVIDERS_ANNOTATION", "ItemRecord", "ItemRecords"]

PROVIDERS_ANNOTATION = "konverge.dev/providers"
"""Annotation of the custom resource: its items outside of the cluster."""

_MAX_ANNOTATION_LENGTH = 128 * 1024  # of the 256 KiB that all annotations of an object may have together


class ItemRecord(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    """An item that may be there.

    Args:
        provider: Who keeps it.
        kind: One of the provider's kinds.
        name: What it is called outside.
        item: What the file calls it.
        identity: What else tells it from others.
        on_delete: What is to happen when it is not wanted any more.
        handle: What the provider has called it.
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
        """By what it is the same item in two passes."""
        told = [self.provider, self.kind, self.name, sorted(self.identity.items())]
        return msgspec.json.encode(told).decode()

    def build_token(self, uid: str) -> str:
        """A text that no other item of any owner has."""
        return hashlib.sha256(f"{uid} {self.key}".encode()).hexdigest()[:32]


class ItemRecords:
    """The entries of one owner, in the order in which they came; a value.

    Args:
        entries: One for each key.
    """

    def __init__(self, entries: Iterable[ItemRecord] = ()) -> None:
        self._entries = {entry.key: entry for entry in entries}

    @classmethod
    def from_owner(cls, owner: Mapping[str, Any]) -> ItemRecords:
        """Those of an object.

        Raises:
            konverge.errors.ConfigurationError: Somebody has written something else there.
        """
        written = (owner["metadata"].get("annotations") or {}).get(PROVIDERS_ANNOTATION) or "[]"
        try:
            return cls(msgspec.json.decode(written, type=list[ItemRecord]))
        except (msgspec.DecodeError, UnicodeError) as error:
            raise ConfigurationError(
                f"annotation {PROVIDERS_ANNOTATION}: expected the list of items that konverge has "
                f"written ({error}). Write back "
                "what it was, or [] if nothing of the owner is left outside of the cluster"
            ) from error

    def __iter__(self) -> Iterator[ItemRecord]:
        return iter(self._entries.values())

    def __len__(self) -> int:
        return len(self._entries)

    def get(self, key: str) -> ItemRecord | None:
        """The entry of that key."""
        return self._entries.get(key)

    def with_intended(self, wanted: Iterable[ItemRecord]) -> ItemRecords:
        """With entries for these too; what is known of an item's handle stays."""
        entries = dict(self._entries)
        for record in wanted:
            known = entries.get(record.key)
            entries[record.key] = record if known is None else msgspec.structs.replace(record, handle=known.handle)
        return ItemRecords(entries.values())

    def with_results(self, handles: Mapping[str, str], gone: Iterable[str]) -> ItemRecords:
        """With what has been learned: the handles of some keys, and the keys of what is gone."""
        entries = dict(self._entries)
        for key, handle in handles.items():
            if key in entries and handle:
                entries[key] = msgspec.structs.replace(entries[key], handle=handle)
        for key in gone:
            entries.pop(key, None)
        return ItemRecords(entries.values())

    def to_annotation(self) -> str | None:
        """The annotation's text; None if there are no entries.

        Raises:
            konverge.errors.ConfigurationError: It would be too long.
        """
        if not self._entries:
            return None
        text = msgspec.json.encode(list(self._entries.values()))
        if len(text) > _MAX_ANNOTATION_LENGTH:
            raise ConfigurationError(
                f"{len(self)} items take {len(text)} bytes to record; expected at most "
                f"{_MAX_ANNOTATION_LENGTH}: split the owner"
            )
        return text.decode()
