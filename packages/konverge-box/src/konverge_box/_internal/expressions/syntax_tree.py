"""Properties of a syntax tree before its compilation: positions, names and paths."""

from __future__ import annotations

from typing import NoReturn

from jinja2 import nodes

from konverge_box._internal.expressions.grammar import GrammarError
from konverge_box._internal.expressions.operations import format_child_path

__all__ = [
    "find_path_root",
    "find_single_expression",
    "format_node_path",
    "get_constant_key",
    "list_loop_names",
    "reject_node",
]

_NAMES = {
    "Assign": "set",
    "AssignBlock": "set",
    "CallBlock": "call",
    "ExprStmt": "do",
    "FilterBlock": "filter",
    "FromImport": "from",
    "Pow": "**",
    "ScopedEvalContextModifier": "autoescape",
}


def find_single_expression(tree: nodes.Template) -> nodes.Expr | None:
    """Return the expression if the string contains only it and whitespace; None for other strings."""
    parts = [part for node in tree.body for part in (node.nodes if isinstance(node, nodes.Output) else [node])]
    filled = [part for part in parts if not (isinstance(part, nodes.TemplateData) and not part.data.strip())]
    only = filled[0] if len(filled) == 1 else None
    return only if isinstance(only, nodes.Expr) and not isinstance(only, nodes.TemplateData) else None


def find_path_root(node: nodes.Node) -> nodes.Node:
    """Return the root node of a path."""
    while isinstance(node, nodes.Getattr | nodes.Getitem):
        node = node.node
    return node


def get_constant_key(node: nodes.Node) -> str | int | None:
    """Return the constant key of an item; None if the key is computed."""
    if isinstance(node, nodes.Getattr):
        return node.attr
    if isinstance(node, nodes.Getitem) and isinstance(node.arg, nodes.Const) and type(node.arg.value) in (str, int):
        key: str | int = node.arg.value
        return key
    return None


def format_node_path(node: nodes.Node) -> str:
    """Return the path of a node in the form of messages."""
    key = get_constant_key(node)
    if isinstance(node, nodes.Getattr | nodes.Getitem) and key is not None:
        return format_child_path(format_node_path(node.node), key)
    return node.name if isinstance(node, nodes.Name) else "…"


def list_loop_names(target: nodes.Node) -> list[str]:
    """Return the names that a loop assigns."""
    names = target.items if isinstance(target, nodes.Tuple) else [target]
    return [reject_node(each) if not isinstance(each, nodes.Name) else each.name for each in names]


def reject_node(node: nodes.Node) -> NoReturn:
    """Reject a construct that expressions do not support.

    Raises:
        GrammarError: Always.
    """
    name = type(node).__name__
    raise GrammarError(node.lineno, f"expected a value, if or for; found {_NAMES.get(name, name.lower())}")
