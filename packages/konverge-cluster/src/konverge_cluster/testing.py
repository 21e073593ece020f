"""The pytest plug-in, golden files, version matrices and waits for tests of operators."""

from __future__ import annotations

from konverge_cluster._internal import testing as _testing
from konverge_cluster._internal.testing import *  # noqa: F403  # the names of `__all__` there

__all__: list[str] = []
__all__ += _testing.__all__
