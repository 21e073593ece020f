"""Providers: external resources of boxes."""

from __future__ import annotations

from konverge_box._internal import providers as _providers
from konverge_box._internal.providers import *  # noqa: F403  # the names of `__all__` there

__all__: list[str] = []
__all__ += _providers.__all__
