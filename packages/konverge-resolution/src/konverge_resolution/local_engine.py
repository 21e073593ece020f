"""An engine that resolves in the own process."""

from __future__ import annotations

from konverge_resolution._internal.local_engine import (
    CredentialSource,
    ErrorHints,
    LocalSecrets,
    LocalSetup,
    local_engine,
)

__all__ = [
    "CredentialSource",
    "ErrorHints",
    "LocalSecrets",
    "LocalSetup",
    "local_engine",
]
