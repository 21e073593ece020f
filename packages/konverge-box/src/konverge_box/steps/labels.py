"""By which labels and annotations a box knows again what it has made."""

from __future__ import annotations

import hashlib
import re

__all__ = [
    "CREATED",
    "ENTRY",
    "GENERATED_AT",
    "MANAGED_BY",
    "OWNER_UID",
    "RAN",
    "compute_short_hash",
    "to_label_value",
]

MANAGED_BY = "app.kubernetes.io/managed-by"
"""Label of every object: the box."""

OWNER_UID = "konverge.dev/owner-uid"
"""Label of every object: the UID of its custom resource. An owner reference says the same where there may be one."""

ENTRY = "konverge.dev/entry"
"""Label of every object: a short hash of the entry of the file that it was made from."""

CREATED = "konverge.dev/created"
"""Annotation of the custom resource: what was made once and is not to be made again, as short hashes in a JSON list."""

GENERATED_AT = "konverge.dev/generated-at"
"""Annotation of a Secret: when its values were made."""

RAN = "konverge.dev/ran"
"""Annotation of a custom resource that is being deleted: which Jobs of its deletion have run, as short hashes in a JSON
list. A Job may go with what is deleted after it, its namespace for one; it is not to run again for that."""

_LABEL_LENGTH = 63
_LABEL = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")
_HASH_LENGTH = 12


def compute_short_hash(*texts: str) -> str:
    """By which a label or an annotation knows these texts again."""
    return hashlib.sha256("\0".join(texts).encode()).hexdigest()[:_HASH_LENGTH]


def to_label_value(text: str) -> str:
    """A text as the value of a label: itself where that is allowed, else its beginning and a hash."""
    if _LABEL.fullmatch(text):
        return text
    begin = re.sub(r"[^A-Za-z0-9]+", "-", text)[: _LABEL_LENGTH - _HASH_LENGTH - 1].strip("-")
    return f"{begin}-{compute_short_hash(text)}".lstrip("-")
