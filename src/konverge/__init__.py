"""Kubernetes operators in Python: components, a runtime, and an embedded cluster to run them on.

What most operators need is here; the kinds of `konverge.primitives` and everything rarer are in their packages. Names
are loaded when they are first used, so that ``import konverge`` costs next to nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from konverge.component import (
        Component,
        ComponentBuilder,
        Option,
        Prerequisite,
        ReconcileContext,
        aggregate,
        auxiliary,
        block_on_absence,
        delete,
        delete_when,
        depends_on,
        gated_by,
        ignore_if_absent,
        orphan_when,
        read_only,
        suppress_grace_inconsistency_warning,
    )
    from konverge.crd import Metadata, PrintColumn, Rule, Scale, class_rules, custom_resource, immutable
    from konverge.errors import KonvergeError, TerminalError
    from konverge.feature import BooleanGate, Gate, VersionGate
    from konverge.kube import Condition, Object
    from konverge.mutation import Mutation, WorkloadMutator
    from konverge.operator import Operator, OwnerContext, Result, RunOptions

_HOMES = {
    "konverge.component": (
        "Component",
        "ComponentBuilder",
        "Option",
        "Prerequisite",
        "ReconcileContext",
        "aggregate",
        "auxiliary",
        "block_on_absence",
        "delete",
        "delete_when",
        "depends_on",
        "gated_by",
        "ignore_if_absent",
        "orphan_when",
        "read_only",
        "suppress_grace_inconsistency_warning",
    ),
    "konverge.crd": ("Metadata", "PrintColumn", "Rule", "Scale", "class_rules", "custom_resource", "immutable"),
    "konverge.errors": ("KonvergeError", "TerminalError"),
    "konverge.feature": ("BooleanGate", "Gate", "VersionGate"),
    "konverge.kube": ("Condition", "Object"),
    "konverge.mutation": ("Mutation", "WorkloadMutator"),
    "konverge.operator": ("Operator", "OwnerContext", "Result", "RunOptions"),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [
    "BooleanGate",
    "Component",
    "ComponentBuilder",
    "Condition",
    "Gate",
    "KonvergeError",
    "Metadata",
    "Mutation",
    "Object",
    "Operator",
    "Option",
    "OwnerContext",
    "Prerequisite",
    "PrintColumn",
    "ReconcileContext",
    "Result",
    "Rule",
    "RunOptions",
    "Scale",
    "TerminalError",
    "VersionGate",
    "WorkloadMutator",
    "aggregate",
    "auxiliary",
    "block_on_absence",
    "class_rules",
    "custom_resource",
    "delete",
    "delete_when",
    "depends_on",
    "gated_by",
    "ignore_if_absent",
    "immutable",
    "orphan_when",
    "read_only",
    "suppress_grace_inconsistency_warning",
]


# Hidden from type checkers: they would take any name for granted.
if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        """Load a public name from its package (PEP 562); the next access finds it here."""
        home = _HOME_OF.get(name)
        if home is None:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        value = getattr(import_module(home), name)
        globals()[name] = value
        return value

    def __dir__() -> list[str]:
        return sorted({*globals(), *__all__})
