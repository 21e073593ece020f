"""A real Kubernetes control plane on this machine."""

from __future__ import annotations

from konverge_cluster._internal import controlplane as _controlplane
from konverge_cluster._internal.controlplane import *  # noqa: F403  # the names of `__all__` there

__all__: list[str] = []
__all__ += _controlplane.__all__
