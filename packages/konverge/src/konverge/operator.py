"""The operator, its registrations and the options of a run."""

from __future__ import annotations

from konverge._internal.operator import (
    READ,
    WRITE,
    Change,
    ComponentFactory,
    Kind,
    Operator,
    OwnerContext,
    ReconciledComponent,
    ReconciledComponents,
    Reconciler,
    Result,
    RunOptions,
    StatusFunction,
    generation_changed,
    kind_of,
    labels_changed,
)

__all__ = [
    "READ",
    "WRITE",
    "Change",
    "ComponentFactory",
    "Kind",
    "Operator",
    "OwnerContext",
    "ReconciledComponent",
    "ReconciledComponents",
    "Reconciler",
    "Result",
    "RunOptions",
    "StatusFunction",
    "generation_changed",
    "kind_of",
    "labels_changed",
]
