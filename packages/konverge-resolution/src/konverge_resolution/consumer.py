"""Remote definitions in an operator."""

from __future__ import annotations

from konverge_resolution._internal import consumer as _consumer
from konverge_resolution._internal.consumer import *  # noqa: F403  # the names of `__all__` there

__all__: list[str] = []
__all__ += _consumer.__all__
