"""What an author of an operator registers, and the run of it.

`Operator` takes custom resource classes with either components (`manages`) or a reconcile function (`reconciles`), and
runs them on `konverge.runtime`: each owner is decoded into its class and reconciled with a context whose client reads
from shared caches.
"""

from konverge.operator.operator import Operator
from konverge.operator.reconciling import ComponentFactory, Reconciler
from konverge.runtime import Result

__all__ = ["ComponentFactory", "Operator", "Reconciler", "Result"]
