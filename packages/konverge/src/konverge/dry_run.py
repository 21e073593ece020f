"""Reports of reconciles that write nothing."""

from __future__ import annotations

from konverge._internal.component import dry_run as _dry_run
from konverge._internal.component.dry_run import *  # noqa: F403  # the names of `__all__` there

__all__: list[str] = []
__all__ += _dry_run.__all__
