"""Compilation of a syntax tree to closures: each node becomes a function of an `Evaluation`, once.

Jinja2 would compile the tree to Python and restrict what that code may access. Here nothing is accessible: a dot reads
only mappings and lists, a call calls only a function of the library, there is no assignment, and every other node is
rejected by name. It also takes a tenth of the time of compiling to Python, which dominates the loading of a file.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple, TypeAlias

from jinja2 import nodes

from konverge_box._internal.expressions.comprehensions import (
    LOOP_FUNCTIONS,
    compile_dict_loop,
    compile_list_loop,
    compile_loop_function,
)
from konverge_box._internal.expressions.evaluation import Evaluation, EvaluationError
from konverge_box._internal.expressions.functions.function import Function
from konverge_box._internal.expressions.grammar import GrammarError, find_comprehension
from konverge_box._internal.expressions.operations import (
    Evaluator,
    TextBuffer,
    build_child_lookup,
    build_path_lookup,
    call_function,
    compare,
    divide,
    format_key,
    get_child,
    list_iterations,
    to_text,
)
from konverge_box._internal.expressions.sensitive import Sensitive
from konverge_box._internal.expressions.syntax_tree import (
    find_path_root,
    find_single_expression,
    format_node_path,
    get_constant_key,
    list_loop_names,
    reject_node,
)
from konverge_box._internal.expressions.values import (
    MAX_INTEGER,
    OMIT,
    Absent,
    describe_value_type,
    format_hint,
    is_number,
)

__all__ = ["CompiledProgram", "Compiler"]

TextWriter: TypeAlias = Callable[[Evaluation, "TextBuffer"], None]

_CONSTANTS: dict[str, Any] = {"omit": OMIT, "null": None}
_MAX_DEPTH = 100


class CompiledProgram(NamedTuple):
    """The compiled form of a string.

    Args:
        evaluate: Computes the value, which may be absent.
        read_paths: The paths that it reads.
        needs: The inputs that its functions need: ``time``, ``randomness``.
        at: The offset of the expression if the string consists of one.
    """

    evaluate: Evaluator
    read_paths: frozenset[tuple[str, ...]]
    needs: frozenset[str]
    at: int


class Compiler:
    """Compiler of one syntax tree.

    Args:
        functions: The functions that expressions can call, by name.
    """

    def __init__(self, functions: Mapping[str, Function]) -> None:
        self._functions = functions
        self._locals: list[str] = []
        self._names: set[tuple[str, ...]] = set()
        self._needs: set[str] = set()
        self._depth = 0

    def compile(self, tree: nodes.Template) -> CompiledProgram:
        """Compile a template: a single expression keeps the type of its value, anything else renders a string.

        Raises:
            GrammarError: The template contains a construct that expressions do not support.
        """
        alone = find_single_expression(tree)
        evaluate = self.compile_node(alone) if alone is not None else self._compile_text(tree.body)
        at = find_path_root(alone).lineno if alone is not None else 0
        return CompiledProgram(evaluate, frozenset(self._names), frozenset(self._needs), at)

    def _compile_text(self, body: list[nodes.Node]) -> Evaluator:
        write = self._compile_body(body)

        def evaluate(run: Evaluation) -> str:
            text = TextBuffer()
            write(run, text)
            return "".join(text.parts)

        return evaluate

    # Statements: they write strings.

    def _compile_body(self, body: list[nodes.Node]) -> TextWriter:
        writes: list[TextWriter] = []
        for node in body:
            if isinstance(node, nodes.Output):
                writes += [self._compile_output(part) for part in node.nodes]
            elif isinstance(node, nodes.If):
                writes.append(self._compile_if(node))
            elif isinstance(node, nodes.For):
                writes.append(self._compile_for(node))
            else:
                reject_node(node)
        if len(writes) == 1:
            return writes[0]

        def write(run: Evaluation, text: TextBuffer) -> None:
            for each in writes:
                each(run, text)

        return write

    def _compile_output(self, node: nodes.Expr) -> TextWriter:
        at = find_path_root(node).lineno
        if isinstance(node, nodes.TemplateData):
            data = node.data
            return lambda run, text: text.add(run, data, at)
        step = self.compile_node(node)

        def write(run: Evaluation, text: TextBuffer) -> None:
            run.consume_step(at)
            text.add(run, to_text(run, step(run), at), at)

        return write

    def _compile_if(self, node: nodes.If) -> TextWriter:
        branches = [
            (self.compile_node(each.test), self._compile_body(each.body), each.lineno) for each in [node, *node.elif_]
        ]
        otherwise = self._compile_body(node.else_)

        def write(run: Evaluation, text: TextBuffer) -> None:
            for test, body, at in branches:
                if run.unwrap_value(test(run), at):
                    return body(run, text)
            return otherwise(run, text)

        return write

    def _compile_for(self, node: nodes.For) -> TextWriter:
        at = node.lineno
        if node.recursive:
            raise GrammarError(at, "recursive loops are not supported")
        names = list_loop_names(node.target)
        items = self.compile_node(node.iter)
        with self.local_names([*names, "loop"]):
            test = self.compile_node(node.test) if node.test is not None else None
            body = self._compile_body(node.body)
        otherwise = self._compile_body(node.else_)

        def write(run: Evaluation, text: TextBuffer) -> None:
            turns = list_iterations(run, items(run), names, test, at)
            outside = run.locals
            for number, turn in enumerate(turns):
                run.consume_step(at)
                loop = {
                    "index": number + 1,
                    "index0": number,
                    "first": number == 0,
                    "last": number == len(turns) - 1,
                    "length": len(turns),
                }
                run.locals = {**outside, **turn, "loop": loop}
                body(run, text)
            run.locals = outside
            if not turns:
                otherwise(run, text)

        return write

    # Expressions: they compute values.

    def compile_node(self, node: nodes.Node) -> Evaluator:
        """Compile an expression.

        Raises:
            GrammarError: It contains a construct that expressions do not support.
        """
        make = _EXPRESSIONS.get(type(node))
        if make is None:
            reject_node(node)
        self._depth += 1
        if self._depth > _MAX_DEPTH:
            raise GrammarError(node.lineno, f"nested deeper than {_MAX_DEPTH} levels")
        step = make(self, node)
        self._depth -= 1
        return step

    @contextmanager
    def local_names(self, names: list[str]) -> Iterator[None]:
        """Make the names of a loop visible to the nodes that are compiled in the block.

        Raises:
            GrammarError: Too many names: loops are nested too deeply.
        """
        if len(self._locals) > _MAX_DEPTH:
            raise GrammarError(0, f"loops are nested too deeply: expected at most {_MAX_DEPTH} names")
        self._locals += names
        yield
        del self._locals[len(self._locals) - len(names) :]

    def _compile_constant(self, node: nodes.Const) -> Evaluator:
        value = node.value
        if type(value) is int and not -MAX_INTEGER - 1 <= value <= MAX_INTEGER:
            raise GrammarError(node.lineno, "expected a number of 64 bits, found a larger one")
        return lambda run: value

    def _compile_path(self, node: nodes.Name | nodes.Getattr | nodes.Getitem) -> Evaluator:
        """Compile a path; its constant keys are looked up together."""
        keys: list[str | int] = []
        inner: nodes.Node = node
        while (key := get_constant_key(inner)) is not None and isinstance(inner, nodes.Getattr | nodes.Getitem):
            keys.insert(0, key)
            inner = inner.node
            if len(keys) > _MAX_DEPTH:
                raise GrammarError(node.lineno, f"nested deeper than {_MAX_DEPTH} levels")
        if not isinstance(inner, nodes.Name):
            start = self.compile_node(inner) if not isinstance(inner, nodes.Getitem) else self._compile_item(inner)
            return build_child_lookup(start, "…", keys, node.lineno) if keys else start
        name = inner.name
        if name in _CONSTANTS and name not in self._locals:
            value = _CONSTANTS[name]
            return build_child_lookup(lambda run: value, name, keys, node.lineno) if keys else lambda run: value
        if name in self._locals:
            return build_child_lookup(lambda run: run.locals[name], name, keys, inner.lineno)
        known: list[str] = [name]
        for key in keys:
            if not isinstance(key, str):
                break
            known.append(key)
        self._names.add(tuple(known))
        return build_path_lookup([name, *keys], inner.lineno)

    def _compile_item(self, node: nodes.Getitem) -> Evaluator:
        """Compile an item with a computed key, or a slice."""
        start, at = self.compile_node(node.node), node.lineno
        path = format_node_path(node.node)
        if isinstance(node.arg, nodes.Slice):
            bounds = [self.compile_node(each) if each is not None else None for each in (node.arg.start, node.arg.stop)]
            if node.arg.step is not None:
                raise GrammarError(at, "expected a slice [from:to], found one with a step")

            def slice_value(run: Evaluation) -> Any:
                value = run.unwrap_value(start(run), at)
                first, last = [None if each is None else run.unwrap_value(each(run), at) for each in bounds]
                if not isinstance(value, str | list):
                    raise EvaluationError(
                        at, f"expected a string or a list to slice, found {describe_value_type(value)}"
                    )
                if any(type(each) not in (int, type(None)) for each in (first, last)):
                    raise EvaluationError(at, "expected integers for the bounds of a slice")
                return value[first:last]

            return slice_value
        item = self.compile_node(node.arg)

        def find_item(run: Evaluation) -> Any:
            key = run.unwrap_value(item(run), at)
            if type(key) not in (str, int):
                raise EvaluationError(
                    at, f"expected a string or an integer in brackets, found {describe_value_type(key)}"
                )
            return get_child(run, start(run), key, f"{path}[{'…' if run.is_tainted else format_key(key)}]", at)

        return find_item

    def _compile_list(self, node: nodes.List | nodes.Tuple) -> Evaluator:
        if (loop := find_comprehension(node)) is not None:
            return compile_list_loop(self, loop)
        items = [self.compile_node(each) for each in node.items]
        return lambda run: [step(run) for step in items]

    def _compile_dict(self, node: nodes.Dict) -> Evaluator:
        if (loop := find_comprehension(node)) is not None:
            return compile_dict_loop(self, loop)
        pairs = [(self.compile_node(pair.key), self.compile_node(pair.value), pair.lineno) for pair in node.items]

        def build_dict(run: Evaluation) -> dict[str, Any]:
            mapping: dict[str, Any] = {}
            for key, value, at in pairs:
                name = run.unwrap_value(key(run), at)
                if type(name) is not str:
                    raise EvaluationError(at, f"expected a string for a key, found {describe_value_type(name)}")
                mapping[name] = value(run)
            return mapping

        return build_dict

    def _compile_operation(self, node: nodes.BinExpr) -> Evaluator:
        left, right, at = self.compile_node(node.left), self.compile_node(node.right), node.lineno
        sign, compute = _OPERATIONS[type(node)]

        def operate(run: Evaluation) -> Any:
            one, other = run.unwrap_value(left(run), at), run.unwrap_value(right(run), at)
            try:
                if is_number(one) and is_number(other):
                    return run.check_result(compute(one, other), at)
            except ZeroDivisionError:
                raise EvaluationError(at, f"{sign} by zero") from None
            except OverflowError:
                raise EvaluationError(at, "the number is not finite") from None
            if sign == "+" and type(one) is type(other) and isinstance(one, str | list):
                run.consume_step(at, len(one) + len(other))
                return run.check_result(one + other, at)
            raise EvaluationError(
                at,
                f"expected two numbers for {sign}, found {describe_value_type(one)} and {describe_value_type(other)}",
            )

        return operate

    def _compile_sign(self, node: nodes.UnaryExpr) -> Evaluator:
        step, at = self.compile_node(node.node), node.lineno
        factor = -1 if isinstance(node, nodes.Neg) else 1

        def operate(run: Evaluation) -> Any:
            value = run.unwrap_value(step(run), at)
            if not is_number(value):
                raise EvaluationError(at, f"expected a number behind the sign, found {describe_value_type(value)}")
            return run.check_result(factor * value, at)

        return operate

    def _compile_concat(self, node: nodes.Concat) -> Evaluator:
        steps = [(self.compile_node(each), each.lineno) for each in node.nodes]

        def join(run: Evaluation) -> str:
            text = TextBuffer()
            for step, at in steps:
                text.add(run, to_text(run, step(run), at), at)
            run.consume_step(steps[0][1], text.size)
            return "".join(text.parts)

        return join

    def _compile_not(self, node: nodes.Not) -> Evaluator:
        step, at = self.compile_node(node.node), node.lineno
        return lambda run: not run.unwrap_value(step(run), at)

    def _compile_and(self, node: nodes.And) -> Evaluator:
        left, right, at = self.compile_node(node.left), self.compile_node(node.right), node.lineno

        def evaluate_and(run: Evaluation) -> Any:
            value = run.unwrap_value(left(run), at)
            return run.unwrap_value(right(run), at) if value else value

        return evaluate_and

    def _compile_or(self, node: nodes.Or) -> Evaluator:
        left, right, at = self.compile_node(node.left), self.compile_node(node.right), node.lineno

        def evaluate_or(run: Evaluation) -> Any:
            value = run.unwrap_value(left(run), at)
            return value if value else run.unwrap_value(right(run), at)

        return evaluate_or

    def _compile_choice(self, node: nodes.CondExpr) -> Evaluator:
        test, yes, at = self.compile_node(node.test), self.compile_node(node.expr1), node.lineno
        if node.expr2 is None:
            raise GrammarError(at, "expected else after if; else omit leaves the field out")
        no = self.compile_node(node.expr2)
        return lambda run: yes(run) if run.unwrap_value(test(run), at) else no(run)

    def _compile_comparison(self, node: nodes.Compare) -> Evaluator:
        first, at = self.compile_node(node.expr), node.lineno
        rest = [(each.op, self.compile_node(each.expr)) for each in node.ops]

        def evaluate_comparison(run: Evaluation) -> bool:
            left = run.unwrap_value(first(run), at)
            for sign, step in rest:
                right = run.unwrap_value(step(run), at)
                if not compare(run, sign, left, right, at):
                    return False
                left = right
            return True

        return evaluate_comparison

    # Calls.

    def _compile_call(self, node: nodes.Call) -> Evaluator:
        if not isinstance(node.node, nodes.Name) or node.node.name in self._locals:
            raise GrammarError(node.lineno, "only the functions of the library can be called")
        return self._compile_application(node.node.name, node.args, node)

    def _compile_filter(self, node: nodes.Filter) -> Evaluator:
        if node.node is None:
            reject_node(node)
        arguments = [*node.args, node.node] if node.name == "default" else [node.node, *node.args]
        return self._compile_application(node.name, arguments, node)

    def _compile_application(
        self, name: str, written: list[nodes.Expr], node: nodes.Call | nodes.Filter | nodes.Test
    ) -> Evaluator:
        at = node.lineno
        if node.kwargs or node.dyn_args is not None or node.dyn_kwargs is not None:
            raise GrammarError(at, f"{name}: expected positional arguments, separated by commas")
        if name == "default":
            return self._compile_default(written, at)
        if name in LOOP_FUNCTIONS:
            return compile_loop_function(self, name, written, at)
        function = self._functions.get(name)
        if function is None:
            raise GrammarError(
                at, f"unknown function {name}{format_hint(name, [*self._functions, 'default', *LOOP_FUNCTIONS])}"
            )
        if problem := function.find_arity_problem(len(written)):
            raise GrammarError(at, problem)
        if function.needs:
            self._needs.add(function.needs)
        return call_function(function, [self.compile_node(each) for each in written], at)

    def _compile_default(self, written: list[nodes.Expr], at: int) -> Evaluator:
        if len(written) != 2:
            problem = f"default(fallback, value): expected 2 arguments, found {len(written)}"
            raise GrammarError(at, f"{problem}; piped: value | default(fallback)")
        fallback, value = self.compile_node(written[0]), self.compile_node(written[1])

        def choose(run: Evaluation) -> Any:
            result = value(run)
            kind = type(result)
            if kind is Absent or result is None:
                return fallback(run)
            if kind is Sensitive and run.unwrap_value(result, at) is None:
                return fallback(run)
            return result

        return choose

    def _compile_test(self, node: nodes.Test) -> Evaluator:
        at, name = node.lineno, node.name
        if name in ("defined", "undefined"):
            step, is_wanted = self.compile_node(node.node), name == "defined"
            return lambda run: (type(step(run)) is not Absent) is is_wanted
        if name not in _TESTS:
            return self._compile_application(name, [node.node, *(node.args or [])], node)
        value, fits = self.compile_node(node.node), _TESTS[name]
        return lambda run: fits(run.unwrap_value(value(run), at))


_TESTS: dict[str, Callable[[Any], bool]] = {
    "none": lambda value: value is None,
    "null": lambda value: value is None,
    "string": lambda value: isinstance(value, str),
    "number": is_number,
    "integer": lambda value: type(value) is int,
    "boolean": lambda value: isinstance(value, bool),
    "mapping": lambda value: isinstance(value, Mapping),
    "sequence": lambda value: isinstance(value, list),
}


_OPERATIONS: dict[type[nodes.Node], tuple[str, Callable[[Any, Any], Any]]] = {
    nodes.Add: ("+", operator.add),
    nodes.Sub: ("-", operator.sub),
    nodes.Mul: ("*", operator.mul),
    nodes.Div: ("/", divide),
    nodes.FloorDiv: ("//", operator.floordiv),
    nodes.Mod: ("%", operator.mod),
}
_EXPRESSIONS: dict[type[nodes.Node], Callable[[Compiler, Any], Evaluator]] = {
    nodes.Const: Compiler._compile_constant,
    nodes.Name: Compiler._compile_path,
    nodes.Getattr: Compiler._compile_path,
    nodes.Getitem: Compiler._compile_path,
    nodes.List: Compiler._compile_list,
    nodes.Tuple: Compiler._compile_list,
    nodes.Dict: Compiler._compile_dict,
    nodes.Add: Compiler._compile_operation,
    nodes.Sub: Compiler._compile_operation,
    nodes.Mul: Compiler._compile_operation,
    nodes.Div: Compiler._compile_operation,
    nodes.FloorDiv: Compiler._compile_operation,
    nodes.Mod: Compiler._compile_operation,
    nodes.Neg: Compiler._compile_sign,
    nodes.Pos: Compiler._compile_sign,
    nodes.Concat: Compiler._compile_concat,
    nodes.Not: Compiler._compile_not,
    nodes.And: Compiler._compile_and,
    nodes.Or: Compiler._compile_or,
    nodes.CondExpr: Compiler._compile_choice,
    nodes.Compare: Compiler._compile_comparison,
    nodes.Call: Compiler._compile_call,
    nodes.Filter: Compiler._compile_filter,
    nodes.Test: Compiler._compile_test,
}
