"""Simulations: changes to a cluster in which a box runs, and the expected results.

A file of the kind `Simulation` belongs to a box. Its steps apply, patch and delete objects, advance the time, and
change the responses to calls. The result is a report for each step: the objects that the operator created, updated and
deleted, its conditions, and the expectations that are not met, with the actual values.

The operator itself runs, against any cluster: the embedded one in simulated time, or a real one. Only the responses to
calls come from the file; no call is sent. The comparison is pure (`simulation.expectations`), the run is
not.
"""

from konverge_box._internal.simulation.simulated_box import SimulatedCluster
from konverge_box._internal.simulation.simulation_loader import (
    LoadedSimulation,
    find_simulation_errors,
    load_simulation,
)
from konverge_box._internal.simulation.simulation_model import Expectations, Simulation, SimulationStep
from konverge_box._internal.simulation.simulator import simulate
from konverge_box._internal.simulation.steady_state import reconcile_until_steady
from konverge_box._internal.simulation.step_report import RecordedOperation, StepReport

__all__ = [
    "Expectations",
    "LoadedSimulation",
    "RecordedOperation",
    "SimulatedCluster",
    "Simulation",
    "SimulationStep",
    "StepReport",
    "find_simulation_errors",
    "load_simulation",
    "reconcile_until_steady",
    "simulate",
]
