"""The conformance tests of providers."""

from __future__ import annotations

from konverge_box._internal.testing import (
    PROVIDER_CASES,
    ProviderCase,
    ProviderSubject,
)

__all__ = [
    "PROVIDER_CASES",
    "ProviderCase",
    "ProviderSubject",
]
