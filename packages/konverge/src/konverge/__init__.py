"""Kubernetes operators in Python: components, and a runtime with shared caches.

What most operators need is here; the kinds of `konverge.primitives` and everything rarer are in their packages. Names
are loaded when they are first used, so that ``import konverge`` costs next to nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from konverge.cache import (
        CacheOptions,
    )
    from konverge.component import (
        MET,
        Component,
        ComponentBuilder,
        Option,
        Prerequisite,
        ReconcileContext,
        adopt,
        aggregate,
        auxiliary,
        block_on_absence,
        block_on_foreign_controller,
        delete,
        delete_when,
        depends_on,
        gated_by,
        ignore_if_absent,
        not_met,
        orphan_when,
        read_only,
        suppress_grace_inconsistency_warning,
        unowned,
    )
    from konverge.crd import (
        CelRule,
        Metadata,
        PrintColumn,
        Scale,
        class_rules,
        custom_resource,
        immutable,
    )
    from konverge.errors import (
        KonvergeError,
        NotFoundError,
        TerminalError,
    )
    from konverge.feature import (
        BooleanGate,
        Gate,
        VersionGate,
        VersionRange,
    )
    from konverge.kube import (
        Condition,
        GroupVersionKind,
        Object,
        ObjectKey,
    )
    from konverge.mutation import (
        Mutation,
        WorkloadMutator,
    )
    from konverge.operator import (
        Change,
        Operator,
        OwnerContext,
        Result,
        RunOptions,
        generation_changed,
        kind_of,
        labels_changed,
    )
    from konverge.operator.webhook_registry import (
        AdmissionRequest,
    )
    from konverge.primitives import (
        UNBLOCKED,
        Data,
        blocked,
    )
    from konverge.runtime.election import (
        LeaderElection,
        Sharding,
    )
    from konverge.runtime.observability import (
        ObservabilityOptions,
    )
    from konverge.runtime.webhooks import (
        AdmissionDeniedError,
        Violation,
        WebhookOptions,
    )

_HOMES = {
    "konverge.cache": ("CacheOptions",),
    "konverge.component": (
        "MET",
        "Component",
        "ComponentBuilder",
        "Option",
        "Prerequisite",
        "ReconcileContext",
        "adopt",
        "aggregate",
        "auxiliary",
        "block_on_absence",
        "block_on_foreign_controller",
        "delete",
        "delete_when",
        "depends_on",
        "gated_by",
        "ignore_if_absent",
        "not_met",
        "orphan_when",
        "read_only",
        "suppress_grace_inconsistency_warning",
        "unowned",
    ),
    "konverge.crd": (
        "Metadata",
        "PrintColumn",
        "CelRule",
        "Scale",
        "class_rules",
        "custom_resource",
        "immutable",
    ),
    "konverge.errors": (
        "KonvergeError",
        "NotFoundError",
        "TerminalError",
    ),
    "konverge.feature": (
        "BooleanGate",
        "Gate",
        "VersionGate",
        "VersionRange",
    ),
    "konverge.kube": (
        "Condition",
        "GroupVersionKind",
        "Object",
        "ObjectKey",
    ),
    "konverge.mutation": (
        "Mutation",
        "WorkloadMutator",
    ),
    "konverge.operator": (
        "Change",
        "Operator",
        "OwnerContext",
        "Result",
        "RunOptions",
        "generation_changed",
        "kind_of",
        "labels_changed",
    ),
    "konverge.operator.webhook_registry": ("AdmissionRequest",),
    "konverge.primitives": (
        "UNBLOCKED",
        "Data",
        "blocked",
    ),
    "konverge.runtime.election": (
        "LeaderElection",
        "Sharding",
    ),
    "konverge.runtime.observability": ("ObservabilityOptions",),
    "konverge.runtime.webhooks": (
        "AdmissionDeniedError",
        "Violation",
        "WebhookOptions",
    ),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [
    "MET",
    "UNBLOCKED",
    "AdmissionDeniedError",
    "AdmissionRequest",
    "BooleanGate",
    "CacheOptions",
    "CelRule",
    "Change",
    "Component",
    "ComponentBuilder",
    "Condition",
    "Data",
    "Gate",
    "GroupVersionKind",
    "KonvergeError",
    "LeaderElection",
    "Metadata",
    "Mutation",
    "NotFoundError",
    "Object",
    "ObjectKey",
    "ObservabilityOptions",
    "Operator",
    "Option",
    "OwnerContext",
    "Prerequisite",
    "PrintColumn",
    "ReconcileContext",
    "Result",
    "RunOptions",
    "Scale",
    "Sharding",
    "TerminalError",
    "VersionGate",
    "VersionRange",
    "Violation",
    "WebhookOptions",
    "WorkloadMutator",
    "adopt",
    "aggregate",
    "auxiliary",
    "block_on_absence",
    "block_on_foreign_controller",
    "blocked",
    "class_rules",
    "custom_resource",
    "delete",
    "delete_when",
    "depends_on",
    "gated_by",
    "generation_changed",
    "ignore_if_absent",
    "immutable",
    "kind_of",
    "labels_changed",
    "not_met",
    "orphan_when",
    "read_only",
    "suppress_grace_inconsistency_warning",
    "unowned",
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
