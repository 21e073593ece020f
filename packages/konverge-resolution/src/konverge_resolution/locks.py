"""Lock files for resolvers: pins, their checks and the provenance that follows from them."""

from __future__ import annotations

from konverge_resolution._internal.lock_validation import (
    LockedReference,
    PinValidator,
    ProvenanceBuilder,
    build_entry,
    check_entry,
    find_defaults,
    has_credential,
)

__all__ = [
    "LockedReference",
    "PinValidator",
    "ProvenanceBuilder",
    "build_entry",
    "check_entry",
    "find_defaults",
    "has_credential",
]
