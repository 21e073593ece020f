"""Remote definitions in an operator."""

from __future__ import annotations

from konverge_resolution._internal.consumer import (
    CONDITION,
    DefinitionClient,
    DefinitionRecord,
    RemoteDefinition,
    RequestedDefinition,
)

__all__ = [
    "CONDITION",
    "DefinitionClient",
    "DefinitionRecord",
    "RemoteDefinition",
    "RequestedDefinition",
]
