"""Guarded connections for resolvers: allowed networks, HTTP, TLS."""

from __future__ import annotations

from konverge_resolution._internal import network as _network
from konverge_resolution._internal.network import *  # noqa: F403  # the names of `__all__` there

__all__: list[str] = []
__all__ += _network.__all__
