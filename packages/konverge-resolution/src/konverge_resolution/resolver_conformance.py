"""The conformance tests of resolvers."""

from __future__ import annotations

from konverge_resolution._internal.resolver_conformance import (
    ResolverConformance,
    Specimen,
    loopback_services,
)

__all__ = [
    "ResolverConformance",
    "Specimen",
    "loopback_services",
]
