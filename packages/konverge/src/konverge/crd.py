"""Custom resource classes, their rules and their CustomResourceDefinition."""

from __future__ import annotations

from konverge._internal import crd as _crd
from konverge._internal.crd import *  # noqa: F403  # the names of `__all__` there

__all__: list[str] = []
__all__ += _crd.__all__
