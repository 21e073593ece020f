"""Simulations: what is done to a cluster in which a box runs, and what is expected to come of it.

A file of the kind `Simulation` stands next to the box. In go its steps: objects are applied, patched, deleted, time
goes by, calls are answered otherwise. Out comes a report of each step: what the operator created, updated and deleted,
what its conditions say, and which expectations do not hold, with what was found instead.

It is the operator itself that runs, against any cluster: the embedded one in simulated time, or a real one. Only calls
are answered by the file; nothing is sent for them. Judging is pure (`konverge_box.simulation.expectations`), running
is not.
"""

from konverge_box.simulation.simulated_box import SimulatedCluster
from konverge_box.simulation.simulation_loader import LoadedSimulation, find_simulation_errors, load_simulation
from konverge_box.simulation.simulation_model import Expectations, Simulation, SimulationStep
from konverge_box.simulation.simulator import simulate
from konverge_box.simulation.steady_state import reconcile_until_steady
from konverge_box.simulation.step_report import RecordedOperation, StepReport

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
