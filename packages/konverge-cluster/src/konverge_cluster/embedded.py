"""The embedded cluster: a Kubernetes API server in the process of a test."""

from __future__ import annotations

from konverge_cluster._internal import embedded as _embedded
from konverge_cluster._internal.embedded import *  # noqa: F403  # the names of `__all__` there

__all__: list[str] = []
__all__ += _embedded.__all__
