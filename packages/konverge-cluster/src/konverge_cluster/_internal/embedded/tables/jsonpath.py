r"""Simple JSONPath, as the columns of custom resources use it.

Names (``.spec.replicas``, ``['a.b']``, ``.a\.b``), positions (``[0]``, ``[-1]``), wildcards (``[*]``) and filters
that compare one field with a value (``[?(@.type=="Ready")]``).
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from typing import Any, TypeAlias

import msgspec

__all__ = ["find_value"]

Step: TypeAlias = Callable[[Any], Iterator[Any]]

_TOKEN = re.compile(
    r"""\.(?P<name>(?:[^.\[\]\\]|\\.)+)
      | \[(?P<index>-?\d+)\]
      | (?P<any>\[\*\]|\.\*)
      | \[\?\(\s*@(?P<field>(?:\.[^\s=!<>.]+)+)\s*(?P<test>==|!=|<=|>=|<|>)\s*(?P<value>'[^']*'|"[^"]*"|[^)\s]+)\s*\)\]
      | \[(?P<quoted>'[^']*'|"[^"]*")\]
    """,
    re.VERBOSE,
)
_TESTS: Mapping[str, Callable[[Any, Any], bool]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def find_value(value: Any, path: str) -> Any:
    """Return the first value at the path; None if there is none or the path is invalid."""
    values = [value]
    for step in _compile_path(path):
        values = [child for parent in values for child in step(parent)]
    return values[0] if values else None


@lru_cache(maxsize=1024)
def _compile_path(path: str) -> tuple[Step, ...]:
    text = path.strip().removeprefix("{").removesuffix("}").removeprefix("$")
    steps, at = [], 0
    while at < len(text):
        token = _TOKEN.match(text, at)
        if token is None:
            return (_select_nothing,)
        steps.append(_compile_step(token))
        at = token.end()
    return tuple(steps)


def _compile_step(token: re.Match[str]) -> Step:
    if token["name"] is not None:
        return _build_name_step(re.sub(r"\\(.)", r"\1", token["name"]))
    if token["quoted"] is not None:
        return _build_name_step(token["quoted"][1:-1])
    if token["index"] is not None:
        return _build_index_step(int(token["index"]))
    if token["any"] is not None:
        return _select_every
    return _build_filter_step(token["field"], _TESTS[token["test"]], _parse_literal(token["value"]))


def _select_nothing(value: Any) -> Iterator[Any]:
    return iter(())


def _build_name_step(name: str) -> Step:
    def step(value: Any) -> Iterator[Any]:
        if isinstance(value, Mapping) and name in value:
            yield value[name]

    return step


def _build_index_step(index: int) -> Step:
    def step(value: Any) -> Iterator[Any]:
        if isinstance(value, list) and -len(value) <= index < len(value):
            yield value[index]

    return step


def _select_every(value: Any) -> Iterator[Any]:
    if isinstance(value, Mapping):
        yield from value.values()
    elif isinstance(value, list):
        yield from value


def _build_filter_step(path: str, test: Callable[[Any, Any], bool], expected: Any) -> Step:
    def step(value: Any) -> Iterator[Any]:
        for item in value if isinstance(value, list) else ():
            values = find_value(item, path)
            if type(values) is type(expected) and test(values, expected):
                yield item

    return step


def _parse_literal(text: str) -> Any:
    if text[0] in "'\"":
        return text[1:-1]
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError:
        return text
