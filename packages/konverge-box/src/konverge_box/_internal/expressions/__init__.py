"""Expressions of the operator box, and the conditions that decide which parts of it apply.

An expression is a string that contains ``{{ … }}``. It is compiled once, when the file is loaded: every error that
needs no data is found then, with line and column. An evaluation is a pure function of a scope (names and their values),
the time of the reconcile, and a source of randomness for the few functions that need one. It has no access to Python,
keeps no state, and stays within its limits.

A value from a Secret is `Sensitive`, and so is every value that is computed from it.
"""

from konverge_box._internal.expressions.conditions import (
    CompiledCondition,
    ConditionSet,
    compile_condition,
    compile_conditions,
    compile_field,
    find_earliest_change,
)
from konverge_box._internal.expressions.errors import ExpressionError, ExpressionSyntaxError
from konverge_box._internal.expressions.evaluation import DEFAULT_LIMITS, EvaluationEnvironment, EvaluationLimits
from konverge_box._internal.expressions.sensitive import (
    MASK,
    Sensitive,
    has_sensitive,
    mask_sensitive,
    reveal_sensitive,
    to_sensitive,
)
from konverge_box._internal.expressions.structure import Structure, compile_structure
from konverge_box._internal.expressions.template import Template, compile_expression, is_expression
from konverge_box._internal.expressions.value_checks import ValueCheck, compile_check
from konverge_box._internal.expressions.values import OMIT, Absent

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
