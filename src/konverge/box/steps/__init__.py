"""The steps of a box's pipeline, each compiled once from what the file declares of it.

A step gets a `Scope` (what the steps before it have made) and answers with what it makes; it decides, and writes
nothing. Steps that look at the cluster do it through a `Reader`, whose reads come from shared caches. The exception is
the deletion, which has a client and does what its decisions say.
"""

from konverge.box.steps.conditional import conditions_of
from konverge.box.steps.errors import StepError
from konverge.box.steps.reader import Reader
from konverge.box.steps.scope import Scope, scope_of

__all__ = ["Reader", "Scope", "StepError", "conditions_of", "scope_of"]
