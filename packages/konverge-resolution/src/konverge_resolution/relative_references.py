"""References that are relative to another definition."""

from __future__ import annotations

from konverge_resolution._internal import relative_references as _relative_references
from konverge_resolution._internal.relative_references import *  # noqa: F403  # the names of `__all__` there

__all__: list[str] = []
__all__ += _relative_references.__all__
