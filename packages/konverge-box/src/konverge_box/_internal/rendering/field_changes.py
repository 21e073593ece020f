"""Detection of the changed fields of an object. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from konverge_box._internal.expressions import mask_sensitive
from konverge_box._internal.file.validation_errors import Path, format_path
from konverge_box._internal.rendering.rendering_model import RenderedChange

__all__ = ["find_changes"]


def find_changes(before: Any, after: Any) -> tuple[RenderedChange, ...]:
    """Return the changed fields by path; lists are compared as a whole."""
    return tuple(_iter_changes(before, after, ()))


def _iter_changes(before: Any, after: Any, path: Path) -> Iterator[RenderedChange]:
    if isinstance(before, dict) and isinstance(after, dict):
        for name in [*before, *(name for name in after if name not in before)]:
            at = (*path, name)
            if name not in after:
                yield RenderedChange(path=format_path(at), before=mask_sensitive(before[name]))
            elif name not in before:
                yield RenderedChange(path=format_path(at), after=mask_sensitive(after[name]))
            else:
                yield from _iter_changes(before[name], after[name], at)
    elif before != after or type(before) is not type(after):
        yield RenderedChange(path=format_path(path), before=mask_sensitive(before), after=mask_sensitive(after))
