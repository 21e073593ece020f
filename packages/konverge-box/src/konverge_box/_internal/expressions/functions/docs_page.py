"""The documentation page of the functions, generated from the functions themselves."""

from __future__ import annotations

from konverge_box._internal.expressions.functions import GROUPS, Function

__all__ = ["build_functions_page"]

_HEAD = """\
# Functions of expressions

The functions that expressions of an operator box can call. A function is called or piped into; the piped value is the
first argument:

    {{ truncateName(spec.name, 20) }}
    {{ spec.name | truncateName(20) }}

Arguments are positional. Arguments in brackets are optional, and `…` stands for any number of arguments. An argument of
another type than expected is an error, and so is an absent path, unless the description of the function allows it. The
description also states whether a function needs the time or random values; all others depend only on their arguments.

This page is generated from the functions: `python -m konverge_box._internal.expressions.functions.docs_page >
docs/box-functions.md`.
"""
_NEEDS = {"time": " Needs the time of the reconcile.", "randomness": " Needs random values."}


def build_functions_page() -> str:
    """Return the page in Markdown format."""
    parts = [_HEAD]
    for group in GROUPS:
        parts.append(f"\n## {group.title}\n")
        if group.about:
            parts.append(f"\n{group.about}\n")
        parts += [
            "\n| function | description |\n|---|---|\n",
            *(_format_row(function) for function in group.functions),
        ]
    return "".join(parts)


def _format_row(function: Function) -> str:
    about = " ".join(function.about.split()).replace("|", "\\|") + _NEEDS.get(function.needs, "")
    return f"| `{function.signature}` | {about} |\n"


if __name__ == "__main__":
    print(build_functions_page(), end="")
