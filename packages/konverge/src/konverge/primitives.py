"""Builders of Kubernetes objects, one class for each kind, and data cells between them."""

from __future__ import annotations

from konverge._internal import primitives as _primitives
from konverge._internal.primitives import *  # noqa: F403  # the names of `__all__` there

__all__: list[str] = []
__all__ += _primitives.__all__
