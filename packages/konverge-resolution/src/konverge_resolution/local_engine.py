"""An engine that resolves in the own process."""

from __future__ import annotations

from konverge_resolution._internal import local_engine as _local_engine
from konverge_resolution._internal.local_engine import *  # noqa: F403  # the names of `__all__` there

__all__: list[str] = []
__all__ += _local_engine.__all__
