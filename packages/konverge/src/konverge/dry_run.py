"""Reports of reconciles that write nothing."""

from __future__ import annotations

from konverge._internal.component.dry_run import (
    ConditionReport,
    DryRun,
    DryRunClient,
    DryRunReport,
    DryRunServer,
    FieldChange,
    FieldManagerInfo,
    FieldRead,
    FunctionEvaluation,
    ObjectChange,
    OwnershipConflict,
    PrerequisiteReport,
    ResourceReport,
    dry_run_component,
)

__all__ = [
    "ConditionReport",
    "DryRun",
    "DryRunClient",
    "DryRunReport",
    "DryRunServer",
    "FieldChange",
    "FieldManagerInfo",
    "FieldRead",
    "FunctionEvaluation",
    "ObjectChange",
    "OwnershipConflict",
    "PrerequisiteReport",
    "ResourceReport",
    "dry_run_component",
]
