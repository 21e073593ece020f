"""Keys and signatures for remote definitions."""

from __future__ import annotations

from konverge_resolution._internal import signatures as _signatures
from konverge_resolution._internal.signatures import *  # noqa: F403  # the names of `__all__` there

__all__: list[str] = []
__all__ += _signatures.__all__
