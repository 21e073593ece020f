"""A PodDisruptionBudget for each Deployment and StatefulSet with the label example.com/budget.

The value of the label is the number of Pods that may be absent at the same time.
"""

from konverge import CacheOptions, Component, ComponentBuilder, Object, Operator, TerminalError
from konverge.primitives import PodDisruptionBudget

LABEL = "example.com/budget"

operator = Operator("budgets", adopt=False)


def budget(workload: Object) -> Component:
    """Build the budget of a workload; a budget that a user has created stays, and the condition says so."""
    metadata = workload["metadata"]
    text = metadata["labels"][LABEL]
    if not text.isdecimal():
        raise TerminalError(f"label {LABEL}: expected a number of Pods, found {text!r}")
    builder = ComponentBuilder("budget", condition_type="BudgetReady")
    obj = {
        "metadata": {"name": metadata["name"], "namespace": metadata["namespace"]},
        "spec": {"maxUnavailable": int(text), "selector": workload["spec"]["selector"]},
    }
    return builder.with_resource(PodDisruptionBudget(obj)).build()


for kind in ("apps/v1/Deployment", "apps/v1/StatefulSet"):
    operator.manages(kind, budget)
    operator.caches(kind, CacheOptions(label_selector=LABEL))
