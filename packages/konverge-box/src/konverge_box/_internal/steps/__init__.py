"""The steps of a box's pipeline. Each is compiled once from its part of the file.

A step gets a `Scope` (the results of earlier steps) and returns its result. It decides and writes nothing. Steps that
read the cluster use an `ObjectReader`, whose reads come from shared caches. The exception is the deletion: it has a
client and carries out its decisions.
"""

from konverge_box._internal.steps.entry_conditions import compile_entry_conditions
from konverge_box._internal.steps.errors import StepError
from konverge_box._internal.steps.object_reader import ObjectReader
from konverge_box._internal.steps.scope import Scope, build_scope

__all__ = ["ObjectReader", "Scope", "StepError", "build_scope", "compile_entry_conditions"]
