"""The conditions of any entry of the file that can have conditions."""

from __future__ import annotations

from konverge_box._internal.expressions import ConditionSet, compile_conditions
from konverge_box._internal.file import ConditionalEntry, ValidationRule

__all__ = ["compile_entry_conditions"]


def compile_entry_conditions(declared: ConditionalEntry | ValidationRule, where: str) -> ConditionSet:
    """Compile the ``when`` and ``or`` of an entry.

    Args:
        declared: A part of a loaded file.
        where: Its path in the file.

    Raises:
        konverge_box.expressions.ExpressionSyntaxError: A condition is invalid. Loading the file reports that earlier.
    """
    written = {
        "when": [condition.to_mapping() for condition in declared.when],
        "or": [condition.to_mapping() for condition in declared.alternatives],
    }
    return compile_conditions(written, where=where)
