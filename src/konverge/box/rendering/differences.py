"""Which fields of an object are others than before. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from konverge.box.expressions import masked
from konverge.box.file.mistakes import Path, format_path
from konverge.box.rendering.values import RenderedChange

__all__ = ["differences"]


def differences(before: Any, after: Any) -> tuple[RenderedChange, ...]:
    """The changed fields, by path; lists are compared as a whole."""
    return tuple(_differences(before, after, ()))


def _differences(before: Any, after: Any, path: Path) -> Iterator[RenderedChange]:
    if isinstance(before, dict) and isinstance(after, dict):
        for name in [*before, *(name for name in after if name not in before)]:
            at = (*path, name)
            if name not in after:
                yield RenderedChange(path=format_path(at), before=masked(before[name]))
            elif name not in before:
                yield RenderedChange(path=format_path(at), after=masked(after[name]))
            else:
                yield from _differences(before[name], after[name], at)
    elif before != after or type(before) is not type(after):
        yield RenderedChange(path=format_path(path), before=masked(before), after=masked(after))
