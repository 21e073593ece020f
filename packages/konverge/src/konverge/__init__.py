"""Kubernetes operators in Python: components, and a runtime with shared caches.

The names that most operators need are here. The functions for components are in `konverge.options`,
`konverge.guards` and `konverge.prerequisites`, the kinds in `konverge.primitives`, everything rarer in its package.

Names load on first use (PEP 562), so that ``import konverge`` is cheap. Type checkers read ``__init__.pyi`` instead,
which imports the same names.
"""

from __future__ import annotations

from importlib import import_module

_NAMES_BY_PACKAGE = {
    "konverge.cache": ("CacheOptions",),
    "konverge.component": ("Component", "ComponentBuilder", "Prerequisite", "ReconcileContext"),
    "konverge.crd": ("CelRule", "Metadata", "PrintColumn", "Scale", "custom_resource"),
    "konverge.errors": ("KonvergeError", "NotFoundError", "TerminalError"),
    "konverge.feature": ("BooleanGate", "Gate", "VersionGate", "VersionRange"),
    "konverge.kube": ("Condition", "GroupVersionKind", "Object", "ObjectKey"),
    "konverge.mutation": ("Mutation", "WorkloadMutator"),
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
    "konverge._internal.operator.webhook_registry": ("AdmissionRequest",),
    "konverge.primitives": ("Data",),
    "konverge._internal.runtime.election": ("LeaderElection", "Sharding"),
    "konverge._internal.runtime.observability": ("ObservabilityOptions",),
    "konverge._internal.runtime.webhooks": ("AdmissionDeniedError", "Violation", "WebhookOptions"),
}
_PACKAGE_OF = {name: package for package, names in _NAMES_BY_PACKAGE.items() for name in names}

# One list of the names. Type checkers read `__init__.pyi` instead.
__all__ = sorted(_PACKAGE_OF)  # noqa: PLE0605  # pyright: ignore[reportUnsupportedDunderAll]


def __getattr__(name: str) -> object:
    """Load a public name from its package; the module keeps it for the next access."""
    package = _PACKAGE_OF.get(name)
    if package is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(package), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
