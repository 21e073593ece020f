"""The conformance tests of providers."""

from __future__ import annotations

from konverge_box._internal import testing as _testing
from konverge_box._internal.testing import *  # noqa: F403  # the names of `__all__` there

__all__: list[str] = []
__all__ += _testing.__all__
