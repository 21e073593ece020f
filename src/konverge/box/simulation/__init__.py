"""Simulations: what is done to a cluster in which a box runs, and what is expected to come of it.

A file of the kind `Simulation` stands next to the box. In go its steps: objects are applied, patched, deleted, time
goes by, calls are answered otherwise. Out comes a report of each step: what the operator created, updated and deleted,
what its conditions say, and which expectations do not hold, with what was found instead.

It is the operator itself that runs, against any cluster: the embedded one in simulated time, or a real one. Only calls
are answered by the file; nothing is sent for them. Judging is pure (`konverge.box.simulation.judging`), running is not.
"""

from konverge.box.simulation.cycles import run_cycles
from konverge.box.simulation.loading import LoadedSimulation, find_simulation_mistakes, load_simulation
from konverge.box.simulation.model import Expectations, Simulation, SimulationStep
from konverge.box.simulation.report import Operation, StepReport
from konverge.box.simulation.running import simulate
from konverge.box.simulation.stage import SimulatedCluster

__all__ = [
    "Expectations",
    "LoadedSimulation",
    "Operation",
    "SimulatedCluster",
    "Simulation",
    "SimulationStep",
    "StepReport",
    "find_simulation_mistakes",
    "load_simulation",
    "run_cycles",
    "simulate",
]
