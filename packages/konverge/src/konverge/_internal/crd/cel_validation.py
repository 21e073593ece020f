"""Validation of CEL rules without a server: unknown fields and wrong syntax.

Field names are checked because most typos are in them. Syntax is checked if the package common-expression-language is
installed (``pip install 'konverge[cel]'``). Only the server checks types and costs.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from konverge._internal.kube import Object

__all__ = ["validate_expression"]

_STRING = re.compile(r"""[rRbB]?('''.*?'''|\"\"\".*?\"\"\"|'(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*")""", re.DOTALL)
# self.a.b.c, also with optional steps; a step before a parenthesis is a function.
_CHAIN = re.compile(r"\b(?:self|oldSelf)((?:\s*\.\??\s*[A-Za-z_]\w*(?!\w|\s*\())+)")
_STEP = re.compile(r"[A-Za-z_]\w*")
_OPTIONAL = re.compile(r"\.\?|\[\?")


def validate_expression(expression: str, schema: Object) -> Iterator[str]:
    """Yield the errors of an expression, one sentence each.

    Args:
        expression: The rule, or its message expression.
        schema: The schema of ``self``.
    """
    syntax_error = _find_syntax_error(expression)
    if syntax_error:
        yield f"rule {expression!r}: expected a CEL expression: {syntax_error}"
        return
    for chain in dict.fromkeys(_CHAIN.findall(_STRING.sub("''", expression))):
        unknown = _find_unknown_field(_STEP.findall(chain), schema)
        if unknown is not None:
            name, declared = unknown
            fields = f"one of {', '.join(declared)}" if declared else "none, because there are none"
            yield f"rule {expression!r}: expected a declared field ({fields}), found {name!r}"


def _find_unknown_field(steps: list[str], schema: Object) -> tuple[str, list[str]] | None:
    """Return the first name that is not a field of its parent, and the fields of the parent."""
    for step in steps:
        properties = schema.get("properties")
        # Maps have any key, and other values than objects can have methods of their types.
        if properties is None or schema.get("x-kubernetes-preserve-unknown-fields"):
            return None
        if step.startswith("__"):  # an escaped name: __namespace__, foo__dash__bar
            return None
        if step not in properties:
            return None if "__" in step else (step, list(properties))
        schema = properties[step]
    return None


@cache
def _load_compiler() -> Any:
    return import_module("cel") if find_spec("cel") is not None else None


def _find_syntax_error(expression: str) -> str:
    cel = _load_compiler()
    if cel is None:
        return ""
    try:
        # The server supports optional steps, but this parser does not; their syntax is that of plain steps.
        cel.compile(_OPTIONAL.sub(lambda match: match[0][0], expression))
    except ValueError as error:
        lines = [line for line in str(error).splitlines() if "ERROR:" in line]
        return (lines[0] if lines else str(error)).partition("Syntax error: ")[2] or str(error).splitlines()[0]
    return ""
