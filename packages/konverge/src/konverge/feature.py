"""Feature gates and version ranges."""

from __future__ import annotations

from konverge._internal import feature as _feature
from konverge._internal.feature import *  # noqa: F403  # the names of `__all__` there

__all__: list[str] = []
__all__ += _feature.__all__
