"""The operator: the registrations of an author, and their run.

`Operator` takes custom resource classes with either components (`manages`) or a reconcile function (`reconciles`), and
runs them on `konverge.runtime`: each owner is decoded into its class and reconciled with a context whose client reads
from shared caches.
"""

from konverge._internal.operator.component_factories import ComponentFactory
from konverge._internal.operator.function_calls import Reconciler
from konverge._internal.operator.kind_argument import Kind, kind_of
from konverge._internal.operator.operator import Operator
from konverge._internal.operator.owner_context import OwnerContext
from konverge._internal.operator.owner_status import StatusFunction
from konverge._internal.operator.rbac_rules import READ, WRITE
from konverge._internal.operator.reconciled_components import ReconciledComponent, ReconciledComponents
from konverge._internal.operator.run_options import RunOptions
from konverge._internal.runtime import Change, Result, generation_changed, labels_changed

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
