"""The operator, its registrations and the options of a run."""

from __future__ import annotations

from konverge._internal import operator as _operator
from konverge._internal.operator import *  # noqa: F403  # the names of `__all__` there

__all__: list[str] = []
__all__ += _operator.__all__
