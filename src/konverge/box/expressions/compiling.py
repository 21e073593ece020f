"""A tree as closures: each node becomes a function of a `Run`, once; an evaluation calls them.

Jinja2 would compile the tree to Python and guard what that may reach. Here nothing can be reached: a dot looks into
mappings and lists and nowhere else, a call calls a function of the library and nothing else, there is no assignment,
and every other node is refused by name. It also costs a tenth of what compiling to Python does, a file's load being
mostly that.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeAlias

from jinja2 import nodes

from konverge.box.expressions.functions.function import Function
from konverge.box.expressions.grammar import GrammarError
from konverge.box.expressions.operations import (
    Step,
    Text,
    called,
    child_of,
    compared,
    divided,
    read_path,
    shown_key,
    turns_of,
    walk_path,
    worded,
)
from konverge.box.expressions.run import Failure, Run
from konverge.box.expressions.sensitive import Sensitive
from konverge.box.expressions.tree import alone_in, begin_of, key_of, refuse, shown, targets_of
from konverge.box.expressions.values import GREATEST_INTEGER, OMIT, Absent, hint, is_number, kind_of

__all__ = ["Compiler", "Program"]

Write: TypeAlias = Callable[[Run, "Text"], None]

_CONSTANTS: dict[str, Any] = {"omit": OMIT, "null": None}
_MAXIMUM_DEPTH = 100


class Program(NamedTuple):
    """What a text compiles to.

    Args:
        evaluate: Comes to the value; it may be absent.
        names: The paths that it reads.
        needs: ``time``, ``randomness``.
        at: Where the expression is, when it is one alone.
    """

    evaluate: Step
    names: frozenset[tuple[str, ...]]
    needs: frozenset[str]
    at: int


class Compiler:
    """Compiles one tree.

    Args:
        functions: What can be called, by name.
    """

    def __init__(self, functions: Mapping[str, Function]) -> None:
        self._functions = functions
        self._locals: list[str] = []
        self._names: set[tuple[str, ...]] = set()
        self._needs: set[str] = set()
        self._depth = 0

    def compile(self, tree: nodes.Template) -> Program:
        """The program of a template: one expression alone keeps the type of its value, everything else makes text.

        Raises:
            GrammarError: It has what expressions cannot have.
        """
        alone = alone_in(tree)
        evaluate = self._step(alone) if alone is not None else self._text(tree.body)
        at = begin_of(alone).lineno if alone is not None else 0
        return Program(evaluate, frozenset(self._names), frozenset(self._needs), at)

    def _text(self, body: list[nodes.Node]) -> Step:
        write = self._body(body)

        def evaluate(run: Run) -> str:
            text = Text()
            write(run, text)
            return "".join(text.parts)

        return evaluate

    # Statements: they write text.

    def _body(self, body: list[nodes.Node]) -> Write:
        writes: list[Write] = []
        for node in body:
            if isinstance(node, nodes.Output):
                writes += [self._output(part) for part in node.nodes]
            elif isinstance(node, nodes.If):
                writes.append(self._if(node))
            elif isinstance(node, nodes.For):
                writes.append(self._for(node))
            else:
                refuse(node)
        if len(writes) == 1:
            return writes[0]

        def write(run: Run, text: Text) -> None:
            for each in writes:
                each(run, text)

        return write

    def _output(self, node: nodes.Expr) -> Write:
        at = begin_of(node).lineno
        if isinstance(node, nodes.TemplateData):
            data = node.data
            return lambda run, text: text.add(run, data, at)
        step = self._step(node)

        def write(run: Run, text: Text) -> None:
            run.spend(at)
            text.add(run, worded(run, step(run), at), at)

        return write

    def _if(self, node: nodes.If) -> Write:
        branches = [(self._step(each.test), self._body(each.body), each.lineno) for each in [node, *node.elif_]]
        otherwise = self._body(node.else_)

        def write(run: Run, text: Text) -> None:
            for test, body, at in branches:
                if run.seen(test(run), at):
                    return body(run, text)
            return otherwise(run, text)

        return write

    def _for(self, node: nodes.For) -> Write:
        at = node.lineno
        if node.recursive:
            raise GrammarError(at, "a loop cannot be recursive")
        names = targets_of(node.target)
        items = self._step(node.iter)
        self._locals += [*names, "loop"]
        test = self._step(node.test) if node.test is not None else None
        body = self._body(node.body)
        del self._locals[len(self._locals) - len(names) - 1 :]
        otherwise = self._body(node.else_)

        def write(run: Run, text: Text) -> None:
            turns = turns_of(run, items(run), names, test, at)
            outside = run.locals
            for number, turn in enumerate(turns):
                run.spend(at)
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

    # Expressions: they come to values.

    def _step(self, node: nodes.Node) -> Step:
        make = _EXPRESSIONS.get(type(node))
        if make is None:
            refuse(node)
        self._depth += 1
        if self._depth > _MAXIMUM_DEPTH:
            raise GrammarError(node.lineno, f"nests deeper than {_MAXIMUM_DEPTH} levels")
        step = make(self, node)
        self._depth -= 1
        return step

    def _constant(self, node: nodes.Const) -> Step:
        value = node.value
        if type(value) is int and not -GREATEST_INTEGER - 1 <= value <= GREATEST_INTEGER:
            raise GrammarError(node.lineno, "the number does not fit into 64 bits")
        return lambda run: value

    def _path(self, node: nodes.Name | nodes.Getattr | nodes.Getitem) -> Step:
        """A path; what is known of it beforehand is looked up in one go."""
        keys: list[str | int] = []
        inner: nodes.Node = node
        while (key := key_of(inner)) is not None and isinstance(inner, nodes.Getattr | nodes.Getitem):
            keys.insert(0, key)
            inner = inner.node
            if len(keys) > _MAXIMUM_DEPTH:
                raise GrammarError(node.lineno, f"nests deeper than {_MAXIMUM_DEPTH} levels")
        if not isinstance(inner, nodes.Name):
            start = self._step(inner) if not isinstance(inner, nodes.Getitem) else self._item(inner)
            return walk_path(start, "…", keys, node.lineno) if keys else start
        name = inner.name
        if name in _CONSTANTS and name not in self._locals:
            value = _CONSTANTS[name]
            return walk_path(lambda run: value, name, keys, node.lineno) if keys else lambda run: value
        if name in self._locals:
            return walk_path(lambda run: run.locals[name], name, keys, inner.lineno)
        known: list[str] = [name]
        for key in keys:
            if not isinstance(key, str):
                break
            known.append(key)
        self._names.add(tuple(known))
        return read_path([name, *keys], inner.lineno)

    def _item(self, node: nodes.Getitem) -> Step:
        """An item whose key is computed, or a slice."""
        start, at = self._step(node.node), node.lineno
        path = shown(node.node)
        if isinstance(node.arg, nodes.Slice):
            bounds = [self._step(each) if each is not None else None for each in (node.arg.start, node.arg.stop)]
            if node.arg.step is not None:
                raise GrammarError(at, "a slice has no step: expected [from:to]")

            def cut(run: Run) -> Any:
                value = run.seen(start(run), at)
                first, last = [None if each is None else run.seen(each(run), at) for each in bounds]
                if not isinstance(value, str | list):
                    raise Failure(at, f"only text and lists have slices, found {kind_of(value)}")
                if any(type(each) not in (int, type(None)) for each in (first, last)):
                    raise Failure(at, "expected integers for the bounds of a slice")
                return value[first:last]

            return cut
        item = self._step(node.arg)

        def look(run: Run) -> Any:
            key = run.seen(item(run), at)
            if type(key) not in (str, int):
                raise Failure(at, f"expected text or an integer in brackets, found {kind_of(key)}")
            return child_of(run, start(run), key, f"{path}[{'…' if run.is_tainted else shown_key(key)}]", at)

        return look

    def _list(self, node: nodes.List | nodes.Tuple) -> Step:
        items = [self._step(each) for each in node.items]
        return lambda run: [step(run) for step in items]

    def _dict(self, node: nodes.Dict) -> Step:
        pairs = [(self._step(pair.key), self._step(pair.value), pair.lineno) for pair in node.items]

        def make(run: Run) -> dict[str, Any]:
            made: dict[str, Any] = {}
            for key, value, at in pairs:
                name = run.seen(key(run), at)
                if type(name) is not str:
                    raise Failure(at, f"expected text for a key, found {kind_of(name)}")
                made[name] = value(run)
            return made

        return make

    def _operation(self, node: nodes.BinExpr) -> Step:
        left, right, at = self._step(node.left), self._step(node.right), node.lineno
        sign, compute = _OPERATIONS[type(node)]

        def operate(run: Run) -> Any:
            one, other = run.seen(left(run), at), run.seen(right(run), at)
            try:
                if is_number(one) and is_number(other):
                    return run.made(compute(one, other), at)
            except ZeroDivisionError:
                raise Failure(at, f"{sign} by zero") from None
            except OverflowError:
                raise Failure(at, "the number is not finite") from None
            if sign == "+" and type(one) is type(other) and isinstance(one, str | list):
                run.spend(at, len(one) + len(other))
                return run.made(one + other, at)
            raise Failure(at, f"expected two numbers for {sign}, found {kind_of(one)} and {kind_of(other)}")

        return operate

    def _sign(self, node: nodes.UnaryExpr) -> Step:
        step, at = self._step(node.node), node.lineno
        factor = -1 if isinstance(node, nodes.Neg) else 1

        def operate(run: Run) -> Any:
            value = run.seen(step(run), at)
            if not is_number(value):
                raise Failure(at, f"expected a number behind the sign, found {kind_of(value)}")
            return run.made(factor * value, at)

        return operate

    def _concat(self, node: nodes.Concat) -> Step:
        steps = [(self._step(each), each.lineno) for each in node.nodes]

        def join(run: Run) -> str:
            text = Text()
            for step, at in steps:
                text.add(run, worded(run, step(run), at), at)
            run.spend(steps[0][1], text.size)
            return "".join(text.parts)

        return join

    def _not(self, node: nodes.Not) -> Step:
        step, at = self._step(node.node), node.lineno
        return lambda run: not run.seen(step(run), at)

    def _and(self, node: nodes.And) -> Step:
        left, right, at = self._step(node.left), self._step(node.right), node.lineno

        def both(run: Run) -> Any:
            value = run.seen(left(run), at)
            return run.seen(right(run), at) if value else value

        return both

    def _or(self, node: nodes.Or) -> Step:
        left, right, at = self._step(node.left), self._step(node.right), node.lineno

        def either(run: Run) -> Any:
            value = run.seen(left(run), at)
            return value if value else run.seen(right(run), at)

        return either

    def _choice(self, node: nodes.CondExpr) -> Step:
        test, yes, at = self._step(node.test), self._step(node.expr1), node.lineno
        if node.expr2 is None:
            raise GrammarError(at, "expected else: what is it otherwise? (else omit leaves the field out)")
        no = self._step(node.expr2)
        return lambda run: yes(run) if run.seen(test(run), at) else no(run)

    def _comparison(self, node: nodes.Compare) -> Step:
        first, at = self._step(node.expr), node.lineno
        rest = [(each.op, self._step(each.expr)) for each in node.ops]

        def compare(run: Run) -> bool:
            left = run.seen(first(run), at)
            for sign, step in rest:
                right = run.seen(step(run), at)
                if not compared(run, sign, left, right, at):
                    return False
                left = right
            return True

        return compare

    # Calls.

    def _call(self, node: nodes.Call) -> Step:
        if not isinstance(node.node, nodes.Name) or node.node.name in self._locals:
            raise GrammarError(node.lineno, "only the functions of the library can be called")
        return self._application(node.node.name, node.args, node)

    def _filter(self, node: nodes.Filter) -> Step:
        if node.node is None:
            refuse(node)
        arguments = [*node.args, node.node] if node.name == "default" else [node.node, *node.args]
        return self._application(node.name, arguments, node)

    def _application(self, name: str, written: list[nodes.Expr], node: nodes.Call | nodes.Filter | nodes.Test) -> Step:
        at = node.lineno
        if node.kwargs or node.dyn_args is not None or node.dyn_kwargs is not None:
            raise GrammarError(at, f"{name}: expected arguments by position, separated by commas")
        if name == "default":
            return self._default(written, at)
        function = self._functions.get(name)
        if function is None:
            raise GrammarError(at, f"there is no function {name}{hint(name, [*self._functions, 'default'])}")
        if problem := function.arity_problem(len(written)):
            raise GrammarError(at, problem)
        if function.needs:
            self._needs.add(function.needs)
        return called(function, [self._step(each) for each in written], at)

    def _default(self, written: list[nodes.Expr], at: int) -> Step:
        if len(written) != 2:
            problem = f"default(fallback, value) takes 2 arguments, found {len(written)}"
            raise GrammarError(at, f"{problem}; piped: value | default(fallback)")
        fallback, value = self._step(written[0]), self._step(written[1])

        def choose(run: Run) -> Any:
            found = value(run)
            kind = type(found)
            if kind is Absent or found is None:
                return fallback(run)
            if kind is Sensitive and run.seen(found, at) is None:
                return fallback(run)
            return found

        return choose

    def _test(self, node: nodes.Test) -> Step:
        at, name = node.lineno, node.name
        if name in ("defined", "undefined"):
            step, is_wanted = self._step(node.node), name == "defined"
            return lambda run: (type(step(run)) is not Absent) is is_wanted
        if name not in _TESTS:
            return self._application(name, [node.node, *(node.args or [])], node)
        value, fits = self._step(node.node), _TESTS[name]
        return lambda run: fits(run.seen(value(run), at))


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
    nodes.Div: ("/", divided),
    nodes.FloorDiv: ("//", operator.floordiv),
    nodes.Mod: ("%", operator.mod),
}
_EXPRESSIONS: dict[type[nodes.Node], Callable[[Compiler, Any], Step]] = {
    nodes.Const: Compiler._constant,
    nodes.Name: Compiler._path,
    nodes.Getattr: Compiler._path,
    nodes.Getitem: Compiler._path,
    nodes.List: Compiler._list,
    nodes.Tuple: Compiler._list,
    nodes.Dict: Compiler._dict,
    nodes.Add: Compiler._operation,
    nodes.Sub: Compiler._operation,
    nodes.Mul: Compiler._operation,
    nodes.Div: Compiler._operation,
    nodes.FloorDiv: Compiler._operation,
    nodes.Mod: Compiler._operation,
    nodes.Neg: Compiler._sign,
    nodes.Pos: Compiler._sign,
    nodes.Concat: Compiler._concat,
    nodes.Not: Compiler._not,
    nodes.And: Compiler._and,
    nodes.Or: Compiler._or,
    nodes.CondExpr: Compiler._choice,
    nodes.Compare: Compiler._comparison,
    nodes.Call: Compiler._call,
    nodes.Filter: Compiler._filter,
    nodes.Test: Compiler._test,
}
