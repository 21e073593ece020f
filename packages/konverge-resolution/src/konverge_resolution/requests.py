"""Requests for definitions as custom resources, and the operator that serves them."""

from __future__ import annotations

from konverge_resolution._internal import requests as _requests
from konverge_resolution._internal.requests import *  # noqa: F403  # the names of `__all__` there

__all__: list[str] = []
__all__ += _requests.__all__
