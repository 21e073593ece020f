"""A rehearsal: what a pass of a component would do and say now, and why, without writing anything.

In go a component, its owner and a client; out comes a `DryRunReport`: the objects that would be written, field by
field,
with who owns the fields now; and the story: gate, prerequisites, guards, the fields that decided over each resource's
health, the rule that made the condition, and what happens next. ``konverge diff`` and ``konverge explain`` show it.

It is the engine itself that runs, over a client that turns each apply into a dry run of the server's and only notes
deletions and updates (`DryRunClient`), and over a component whose parts take note of what they are asked. So a
rehearsal cannot differ from the pass that it rehearses, but for what else happens meanwhile.
"""

from konverge.component.dry_run.dry_run_client import DryRunClient, DryRunServer
from konverge.component.dry_run.report import (
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
from konverge.component.dry_run.runner import DryRun, dry_run_component

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
