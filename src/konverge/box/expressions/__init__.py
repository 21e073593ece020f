"""Expressions of the operator box, and the conditions that decide what of it is there.

An expression is text with ``{{ … }}`` in it. It is compiled once, when the file is loaded: whatever can be wrong with
it without data is an error then, with line and column. An evaluation is a pure function of a scope (names and their
values), of the time of the pass, and of a source of randomness for those few functions that draw. It cannot reach
anything of Python, keeps nothing, and does no more than its limits allow.

What comes from a Secret is `Sensitive`, and so is everything that was made by looking at it.
"""

from konverge.box.expressions.checks import Check, compile_check
from konverge.box.expressions.conditions import (
    Condition,
    Conditions,
    compile_condition,
    compile_conditions,
    compile_field,
    earliest_change,
)
from konverge.box.expressions.errors import ExpressionError, ExpressionSyntaxError
from konverge.box.expressions.run import DEFAULT_LIMITS, Environment, Limits
from konverge.box.expressions.sensitive import MASK, Sensitive, has_sensitive, masked, revealed, sensitive
from konverge.box.expressions.structure import Structure, compile_structure
from konverge.box.expressions.template import Template, compile_expression, is_expression
from konverge.box.expressions.values import OMIT, Absent

__all__ = [
    "DEFAULT_LIMITS",
    "MASK",
    "OMIT",
    "Absent",
    "Check",
    "Condition",
    "Conditions",
    "Environment",
    "ExpressionError",
    "ExpressionSyntaxError",
    "Limits",
    "Sensitive",
    "Structure",
    "Template",
    "compile_check",
    "compile_condition",
    "compile_conditions",
    "compile_expression",
    "compile_field",
    "compile_structure",
    "earliest_change",
    "has_sensitive",
    "is_expression",
    "masked",
    "revealed",
    "sensitive",
]
