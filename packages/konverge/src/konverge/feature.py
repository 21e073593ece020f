"""Feature gates and version ranges."""

from __future__ import annotations

from konverge._internal.feature import (
    BooleanGate,
    Gate,
    VersionConstraint,
    VersionGate,
    VersionRange,
    is_enabled,
)

__all__ = [
    "BooleanGate",
    "Gate",
    "VersionConstraint",
    "VersionGate",
    "VersionRange",
    "is_enabled",
]
