"""The lines of an author's functions that await something, and which of them a run has reached.

Every request is awaited. So a line without an ``await`` needs no permission, and a line with one may need another
permission if no sample owner has reached it.
"""

from __future__ import annotations

import ast
import sys
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

__all__ = ["AwaitingLine", "LineRecorder", "find_unreached"]

_MAX_TEXT = 80
# Waits that send no requests.
_WITHOUT_REQUESTS = ("asyncio.sleep(",)


@dataclass(frozen=True, slots=True, order=True)
class AwaitingLine:
    """A line that awaits something.

    Args:
        file: The path of the file.
        line: The number of the line.
        function: The name of the innermost function.
        text: The code, shortened.
    """

    file: str
    line: int
    function: str
    text: str


class LineRecorder:
    """Records the lines of some files that the thread runs.

    Args:
        files: The paths of the files.
    """

    def __init__(self, files: Collection[str]) -> None:
        self.reached: defaultdict[str, set[int]] = defaultdict(set)
        self._files = frozenset(files)
        self._recorded: dict[CodeType, bool] = {}

    @contextmanager
    def record(self) -> Iterator[None]:
        """Record the lines that run in the block."""
        previous = sys.gettrace()
        sys.settrace(self._trace_call)
        try:
            yield
        finally:
            sys.settrace(previous)

    def _trace_call(self, frame: FrameType, event: str, argument: Any) -> Callable[..., Any] | None:
        code = frame.f_code
        is_recorded = self._recorded.get(code)
        if is_recorded is None:
            is_recorded = self._recorded[code] = code.co_filename in self._files
        if not is_recorded:
            frame.f_trace_lines = False
            return None
        return self._trace_line

    def _trace_line(self, frame: FrameType, event: str, argument: Any) -> Callable[..., Any]:
        if event == "line":
            self.reached[frame.f_code.co_filename].add(frame.f_lineno)
        return self._trace_line


def find_unreached(recorder: LineRecorder) -> Iterator[AwaitingLine]:
    """Yield the awaiting lines of entered functions that the run has not reached, in the order of files and lines."""
    for file, reached in sorted(recorder.reached.items()):
        try:
            source = Path(file).read_text(encoding="utf-8")
            tree = ast.parse(source)
        except (OSError, SyntaxError, ValueError):  # generated code, or changed since
            continue
        for function, bodies in _iter_functions(tree):
            awaits = list(_iter_awaits(bodies))
            own_lines = {line for node in bodies for line in range(node.lineno, (node.end_lineno or node.lineno) + 1)}
            if not own_lines & reached:
                continue
            for node in awaits:
                lines = range(node.lineno, (node.end_lineno or node.lineno) + 1)
                text = " ".join((ast.get_source_segment(source, node) or "").split())
                if reached.isdisjoint(lines) and not text.removeprefix("await ").startswith(_WITHOUT_REQUESTS):
                    shortened = text if len(text) <= _MAX_TEXT else f"{text[: _MAX_TEXT - 3]}..."
                    yield AwaitingLine(file, node.lineno, function, shortened)


def _iter_functions(tree: ast.AST) -> Iterator[tuple[str, list[ast.stmt]]]:
    """Yield each async function with its statements."""
    for node in ast.walk(tree):
        if isinstance(node, ast.AsyncFunctionDef):
            yield node.name, node.body


def _iter_awaits(statements: list[ast.stmt]) -> Iterator[ast.Await]:
    """Yield what awaits in the statements, without functions inside of them."""
    waiting: list[ast.AST] = list(reversed(statements))
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.ClassDef):
            continue
        if isinstance(node, ast.Await):
            yield node
        elif isinstance(node, ast.AsyncFor):
            yield from _wrap(node.iter)
        elif isinstance(node, ast.AsyncWith):
            for item in node.items:
                yield from _wrap(item.context_expr)
        waiting += reversed(list(ast.iter_child_nodes(node)))


def _wrap(expression: ast.expr) -> Iterator[ast.Await]:
    """Yield the expression that ``async for`` or ``async with`` awaits, unless it is an await already."""
    if not isinstance(expression, ast.Await):
        yield ast.copy_location(ast.Await(expression), expression)
