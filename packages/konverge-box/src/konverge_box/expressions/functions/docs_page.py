"""The page of the documentation that lists the functions, made from the functions themselves."""

from __future__ import annotations

from konverge_box.expressions.functions import GROUPS, Function

__all__ = ["build_functions_page"]

_HEAD = """\
# Functions of expressions

The functions that an expression of an operator box can call. A function is called or piped into; what is piped is the
first argument:

    {{ truncateName(spec.name, 20) }}
    {{ spec.name | truncateName(20) }}

Arguments are given by position; those in brackets may be left out, and `…` stands for any number. An argument of
another kind than expected is an error, as is a path that is absent, except where a function says what it makes of it.
A function that needs the time or random values says so; the others give the same result for the same arguments.

This page is made from the functions: `python -m konverge_box.expressions.functions.docs_page > docs/box-functions.md`.
"""
_NEEDS = {"time": " It needs the time of the pass.", "randomness": " It needs random values."}


def build_functions_page() -> str:
    """The page, in Markdown."""
    parts = [_HEAD]
    for group in GROUPS:
        parts.append(f"\n## {group.title}\n")
        if group.about:
            parts.append(f"\n{group.about}\n")
        parts += [
            "\n| function | what it gives |\n|---|---|\n",
            *(_format_row(function) for function in group.functions),
        ]
    return "".join(parts)


def _format_row(function: Function) -> str:
    about = " ".join(function.about.split()).replace("|", "\\|") + _NEEDS.get(function.needs, "")
    return f"| `{function.signature}` | {about} |\n"


if __name__ == "__main__":
    print(build_functions_page(), end="")
