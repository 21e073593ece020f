"""Expressions of box files: parsing, conditions and evaluation."""

from __future__ import annotations

from konverge_box._internal import expressions as _expressions
from konverge_box._internal.expressions import *  # noqa: F403  # the names of `__all__` there

__all__: list[str] = []
__all__ += _expressions.__all__
