"""The runtime of a box: its compiled steps, its reconciles, and the operator around them.

The input is an `OperatorBox`, the output a `konverge.Operator`: `build_box_operator`. Each custom resource of the file
has a `Pipeline`, which contains its compiled steps. A reconcile runs them in the order of one table
(`runtime.step_order.STEP_ORDER`). Then it writes the status once, also after an error.

A failure of one custom resource affects another one only through ``dependsOn``. A changed file is applied completely
or not at all.
"""

from konverge_box._internal.runtime.box_controller import BoxController, build_box_operator
from konverge_box._internal.runtime.box_reloader import BoxReloader
from konverge_box._internal.runtime.pipeline import Pipeline
from konverge_box._internal.runtime.step_order import STEP_ORDER

__all__ = ["STEP_ORDER", "BoxController", "BoxReloader", "Pipeline", "build_box_operator"]
