"""The conformance tests of resolvers."""

from __future__ import annotations

from konverge_resolution._internal import resolver_conformance as _resolver_conformance
from konverge_resolution._internal.resolver_conformance import *  # noqa: F403  # the names of `__all__` there

__all__: list[str] = []
__all__ += _resolver_conformance.__all__
