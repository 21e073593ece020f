"""A box at work: its steps as one pipeline, its passes, the operator that it is.

In comes an `OperatorBox`, out comes a `konverge.Operator`: `box_operator`. Each custom resource of the file has a
`Pipeline`, all its steps compiled; a pass runs them in the order of one table (`konverge.box.running.order.ORDER`),
and writes the status once, last, whatever happened.

What one custom resource of a box does, or fails to do, changes nothing for another one, unless it says ``dependsOn``. A
changed file is taken over as a whole or not at all.
"""

from konverge.box.running.box import RunningBox, box_operator
from konverge.box.running.order import ORDER
from konverge.box.running.pipeline import Pipeline
from konverge.box.running.reloading import BoxReloader

__all__ = ["ORDER", "BoxReloader", "Pipeline", "RunningBox", "box_operator"]
