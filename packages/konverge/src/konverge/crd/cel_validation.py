"""What can be told of a CEL rule before a server sees it: fields that do not exist, and wrong syntax.

Names of fields are checked here, for they are what a typo is most often in. Syntax is checked where the package
common-expression-language is installed (``pip install 'konverge[cel]'``); types and costs are the server's to check.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from konverge.kube import Object

__all__ = ["validate_expression"]

_STRING = re.compile(r"""[rRbB]?('''.*?'''|\"\"\".*?\"\"\"|'(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*")""", re.DOTALL)
# self.a.b.c, also with optional steps; a step before a parenthesis is a function.
_CHAIN = re.compile(r"\b(?:self|oldSelf)((?:\s*\.\??\s*[A-Za-z_]\w*(?!\w|\s*\())+)")
_STEP = re.compile(r"[A-Za-z_]\w*")
_OPTIONAL = re.compile(r"\.\?|\[\?")


def validate_expression(expression: str, schema: Object) -> Iterator[str]:
    """What is wrong with an expression, one sentence each.

    Args:
        expression: The rule, or its message expression.
        schema: What ``self`` is.
    """
    wrong = _find_syntax_error(expression)
    if wrong:
        yield f"the rule {expression!r} is no CEL: {wrong}"
        return
    for chain in dict.fromkeys(_CHAIN.findall(_STRING.sub("''", expression))):
        unknown = _find_unknown_field(_STEP.findall(chain), schema)
        if unknown is not None:
            name, known = unknown
            there = f"there are {', '.join(known)}" if known else "there are none"
            yield f"the rule {expression!r} names a field {name!r} that is not declared ({there})"


def _find_unknown_field(steps: list[str], schema: Object) -> tuple[str, list[str]] | None:
    """The first name that is no field of what is before it, and the fields that that has."""
    for step in steps:
        properties = schema.get("properties")
        # Maps have any key, and what is not an object may have methods of its own type's.
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
        # The server has optional steps and this parser has not; to syntax they are the same as plain ones.
        cel.compile(_OPTIONAL.sub(lambda found: found[0][0], expression))
    except ValueError as error:
        lines = [line for line in str(error).splitlines() if "ERROR:" in line]
        return (lines[0] if lines else str(error)).partition("Syntax error: ")[2] or str(error).splitlines()[0]
    return ""
