"""Dry runs: the writes and the condition of the next reconcile of a component, with reasons and without any write.

The input is a component, its owner and a client. The output is a `DryRunReport` with the objects that would be written,
field by field, and the present owners of the fields. The report also has the gate, prerequisites and guards, the fields
that decided the health of each resource, the rule behind the condition, and the next events. ``konverge diff`` and
``konverge explain`` show it.

The engine itself runs. Its client turns each apply into a dry run on the server and only records deletions and updates
(`DryRunClient`); the parts of the component record their results. So a dry run differs from the reconcile only by
changes that happen between the two.
"""

from konverge._internal.component.dry_run.dry_run_client import DryRunClient, DryRunServer
from konverge._internal.component.dry_run.report import (
    ConditionReport,
    DryRunReport,
    FieldChange,
    FieldManagerInfo,
    FieldRead,
    FunctionEvaluation,
    ObjectChange,
    OwnershipConflict,
    PrerequisiteReport,
    ResourceReport,
)
from konverge._internal.component.dry_run.runner import DryRun, dry_run_component
from konverge._internal.component.dry_run.status_diff import find_status_changes

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
    "find_status_changes",
]
