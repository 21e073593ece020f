"""Lock files for resolvers: pins, their checks and the provenance that follows from them."""

from __future__ import annotations

from konverge_resolution._internal import lock_validation as _lock_validation
from konverge_resolution._internal.lock_validation import *  # noqa: F403  # the names of `__all__` there

__all__: list[str] = []
__all__ += _lock_validation.__all__
