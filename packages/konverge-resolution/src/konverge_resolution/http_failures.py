"""Errors of HTTP sources for resolvers."""

from __future__ import annotations

from konverge_resolution._internal import http_failures as _http_failures
from konverge_resolution._internal.http_failures import *  # noqa: F403  # the names of `__all__` there

__all__: list[str] = []
__all__ += _http_failures.__all__
