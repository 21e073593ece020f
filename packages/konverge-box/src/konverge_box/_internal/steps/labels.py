"""The labels and annotations by which a box recognizes the objects that it created."""

from __future__ import annotations

import hashlib
import re

__all__ = [
    "CREATED",
    "ENTRY",
    "MANAGED_BY",
    "OWNER_UID",
    "RAN",
    "compute_short_hash",
    "to_label_value",
]

MANAGED_BY = "app.kubernetes.io/managed-by"
"""Label of every object: the name of the box."""

OWNER_UID = "konverge.dev/owner-uid"
"""Label of every object: the UID of its custom resource. It is needed where no owner reference is allowed."""

ENTRY = "konverge.dev/entry"
"""Label of every object: a short hash of the file's entry that declares it."""

CREATED = "konverge.dev/created"
"""Annotation of the custom resource: the objects that are never created again, as short hashes in a JSON list."""

RAN = "konverge.dev/ran"
"""Annotation of a custom resource that is being deleted: the completed Jobs of its deletion, as short hashes in a JSON
list. A later deletion can remove a completed Job, for example with its namespace. The Job must not run again."""

_LABEL_LENGTH = 63
_LABEL = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")
_HASH_LENGTH = 12


def compute_short_hash(*texts: str) -> str:
    """Return a short hash of the texts, which fits into a label or an annotation."""
    return hashlib.sha256("\0".join(texts).encode()).hexdigest()[:_HASH_LENGTH]


def to_label_value(text: str) -> str:
    """Convert a text to a valid label value: unchanged if possible, otherwise its beginning and a hash."""
    if _LABEL.fullmatch(text):
        return text
    begin = re.sub(r"[^A-Za-z0-9]+", "-", text)[: _LABEL_LENGTH - _HASH_LENGTH - 1].strip("-")
    return f"{begin}-{compute_short_hash(text)}".lstrip("-")
