"""A box at work: its steps as one pipeline, its passes, the operator that it is.

In comes an `OperatorBox`, out comes a `konverge.Operator`: `build_box_operator`. Each custom resource of the file has a
`Pipeline`, all its steps compiled; a pass runs them in the order of one table
(`konverge_box.runtime.step_order.ORDER`),
and writes the status once, last, whatever happened.

What one custom resource of a box does, or fails to do, changes nothing for another one, unless it says ``dependsOn``. A
changed file is taken over as a whole or not at all.
"""

from konverge_box.runtime.box_controller import BoxController, build_box_operator
from konverge_box.runtime.box_reloader import BoxReloader
from konverge_box.runtime.pipeline import Pipeline
from konverge_box.runtime.step_order import STEP_ORDER

__all__ = ["STEP_ORDER", "BoxController", "BoxReloader", "Pipeline", "build_box_operator"]
