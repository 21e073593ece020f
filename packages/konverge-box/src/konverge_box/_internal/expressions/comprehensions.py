"""Loops that compute values: comprehensions, and ``map``, ``filter``, ``any``, ``all`` with an expression for an item.

``map(spec.members, m, m.name)`` is ``[m.name for m in spec.members]``; the function form can be piped. Every item
counts as a step and by its size, so that loops in loops end soon and stay small.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, Protocol, TypeAlias, TypeVar

from jinja2 import nodes

from konverge._internal.message_text import quote
from konverge_box._internal.expressions.evaluation import Evaluation, EvaluationError
from konverge_box._internal.expressions.grammar import GrammarError
from konverge_box._internal.expressions.operations import Evaluator, list_iterations
from konverge_box._internal.expressions.syntax_tree import list_loop_names
from konverge_box._internal.expressions.values import OMIT, describe_value_type

__all__ = ["LOOP_FUNCTIONS", "NodeCompiler", "compile_dict_loop", "compile_list_loop", "compile_loop_function"]

C = TypeVar("C")
_Filler: TypeAlias = Callable[[Evaluation, C], None]

LOOP_FUNCTIONS = ("map", "filter", "any", "all")
"""The functions whose last argument is an expression that is evaluated for each item."""

_MAX_QUOTED_LENGTH = 60


class NodeCompiler(Protocol):
    """The compiler of the nodes inside a loop."""

    def compile_node(self, node: nodes.Node) -> Evaluator:
        """Compile a node."""

    def local_names(self, names: list[str]) -> AbstractContextManager[None]:
        """Make the names of a loop visible to the nodes that are compiled in the block."""


def compile_list_loop(compiler: NodeCompiler, loop: nodes.For) -> Evaluator:
    """Compile a list comprehension; an item whose value is ``omit`` is left out."""
    at = loop.lineno

    def compile_element(node: nodes.Node) -> _Filler[list[Any]]:
        step = compiler.compile_node(node)

        def add(run: Evaluation, made: list[Any]) -> None:
            value = step(run)
            if value is not OMIT:
                run.count_value(value, at)
                made.append(value)

        return add

    fill = _compile_loop(compiler, loop, compile_element)

    def build_list(run: Evaluation) -> list[Any]:
        made: list[Any] = []
        fill(run, made)
        return made

    return build_list


def compile_dict_loop(compiler: NodeCompiler, loop: nodes.For) -> Evaluator:
    """Compile a mapping comprehension. A key that occurs twice is an error: one of the values would be lost."""

    def compile_pair(node: nodes.Node) -> _Filler[dict[str, Any]]:
        assert isinstance(node, nodes.Pair)
        key, value, at = compiler.compile_node(node.key), compiler.compile_node(node.value), node.lineno

        def add(run: Evaluation, made: dict[str, Any]) -> None:
            name = run.unwrap_value(key(run), at)
            if type(name) is not str:
                raise EvaluationError(at, f"expected a string for a key, found {describe_value_type(name)}")
            if name in made:
                raise EvaluationError(
                    at, f"expected different keys: {quote(name, _MAX_QUOTED_LENGTH)} occurs twice", shows=True
                )
            item = value(run)
            if item is not OMIT:
                run.count_value(name, at)
                run.count_value(item, at)
                made[name] = item

        return add

    fill = _compile_loop(compiler, loop, compile_pair)

    def build_dict(run: Evaluation) -> dict[str, Any]:
        made: dict[str, Any] = {}
        fill(run, made)
        return made

    return build_dict


def compile_loop_function(compiler: NodeCompiler, name: str, written: list[nodes.Expr], at: int) -> Evaluator:
    """Compile one of `LOOP_FUNCTIONS`: the items, one name or several, and the expression.

    Raises:
        GrammarError: The arguments have another form.
    """
    usage = f"{name}(items, name, expression)"
    if len(written) < 3:
        raise GrammarError(at, f"{usage}: expected at least 3 arguments, found {len(written)}")
    items, *targets, expression = written
    for target in targets:
        if not isinstance(target, nodes.Name):
            raise GrammarError(target.lineno, f"{usage}: expected a name for the items of the list, found a value")
    target = targets[0] if len(targets) == 1 else nodes.Tuple(targets, "store", lineno=at)
    if name == "map":
        return compile_list_loop(compiler, nodes.For(target, items, [expression], [], None, False, lineno=at))
    if name == "filter":
        element = targets[0] if len(targets) == 1 else nodes.List(targets, lineno=at)
        return compile_list_loop(compiler, nodes.For(target, items, [element], [], expression, False, lineno=at))
    return _compile_quantifier(compiler, nodes.For(target, items, [expression], [], None, False, lineno=at), name)


def _compile_quantifier(compiler: NodeCompiler, loop: nodes.For, name: str) -> Evaluator:
    at, is_any = loop.lineno, name == "any"
    names, items = list_loop_names(loop.target), compiler.compile_node(loop.iter)
    with compiler.local_names(names):
        test = compiler.compile_node(loop.body[0])

    def quantify(run: Evaluation) -> bool:
        outside = run.locals
        for turn in list_iterations(run, items(run), names, None, at):
            run.locals = {**outside, **turn}
            holds = bool(run.unwrap_value(test(run), at))
            if holds is is_any:
                break
        else:
            holds = not is_any
        run.locals = outside
        return holds

    return quantify


def _compile_loop(
    compiler: NodeCompiler, loop: nodes.For, compile_element: Callable[[nodes.Node], _Filler[C]]
) -> _Filler[C]:
    """Compile the loops of a comprehension from the outer to the inner one."""
    at, names = loop.lineno, list_loop_names(loop.target)
    items = compiler.compile_node(loop.iter)
    with compiler.local_names(names):
        test = compiler.compile_node(loop.test) if loop.test is not None else None
        inner = loop.body[0]
        body = (
            _compile_loop(compiler, inner, compile_element) if isinstance(inner, nodes.For) else compile_element(inner)
        )

    def fill(run: Evaluation, made: C) -> None:
        outside = run.locals
        for turn in list_iterations(run, items(run), names, test, at):
            run.consume_step(at)
            run.locals = {**outside, **turn}
            body(run, made)
        run.locals = outside

    return fill
