"""References that are relative to another definition."""

from __future__ import annotations

from konverge_resolution._internal.relative_references import (
    ParentDefinition,
    RelativeResolver,
    build_relative_reference,
    join_path,
)

__all__ = [
    "ParentDefinition",
    "RelativeResolver",
    "build_relative_reference",
    "join_path",
]
