"""Expressions of the operator box, and the conditions that decide what of it is there.

An expression is text with ``{{ … }}`` in it. It is compiled once, when the file is loaded: whatever can be wrong with
it without data is an error then, with line and column. An evaluation is a pure function of a scope (names and their
values), of the time of the pass, and of a source of randomness for those few functions that draw. It cannot reach
anything of Python, keeps nothing, and does no more than its limits allow.

What comes from a Secret is `Sensitive`, and so is everything that was made by looking at it.
"""

from konverge_box.expressions.conditions import (
    CompiledCondition,
    ConditionSet,
    compile_condition,
    compile_conditions,
    compile_field,
    find_earliest_change,
)
from konverge_box.expressions.errors import ExpressionError, ExpressionSyntaxError
from konverge_box.expressions.evaluation import DEFAULT_LIMITS, EvaluationEnvironment, EvaluationLimits
from konverge_box.expressions.sensitive import (
    MASK,
    Sensitive,
    has_sensitive,
    mask_sensitive,
    reveal_sensitive,
    to_sensitive,
)
from konverge_box.expressions.structure import Structure, compile_structure
from konverge_box.expressions.template import Template, compile_expression, is_expression
from konverge_box.expressions.value_checks import ValueCheck, compile_check
from konverge_box.expressions.values import OMIT, Absent

__all__ = [
    "DEFAULT_LIMITS",
    "MASK",
    "OMIT",
    "Absent",
    "CompiledCondition",
    "ConditionSet",
    "EvaluationEnvironment",
    "EvaluationLimits",
    "ExpressionError",
    "ExpressionSyntaxError",
    "Sensitive",
    "Structure",
    "Template",
    "ValueCheck",
    "compile_check",
    "compile_condition",
    "compile_conditions",
    "compile_expression",
    "compile_field",
    "compile_structure",
    "find_earliest_change",
    "has_sensitive",
    "is_expression",
    "mask_sensitive",
    "reveal_sensitive",
    "to_sensitive",
]
