"""The steps of a box's pipeline, each compiled once from what the file declares of it.

A step gets a `Scope` (what the steps before it have made) and answers with what it makes; it decides, and writes
nothing. Steps that look at the cluster do it through a `Reader`, whose reads come from shared caches. The exception is
the deletion, which has a client and does what its decisions say.
"""

from konverge_box.steps.entry_conditions import compile_entry_conditions
from konverge_box.steps.errors import StepError
from konverge_box.steps.object_reader import ObjectReader
from konverge_box.steps.scope import Scope, build_scope

__all__ = ["ObjectReader", "Scope", "StepError", "build_scope", "compile_entry_conditions"]
