"""A real Kubernetes control plane on this machine."""

from __future__ import annotations

from konverge_cluster._internal.controlplane import (
    KUBERNETES_VERSION,
    PROGRAMS,
    BinariesNotFoundError,
    ControlPlaneError,
    RealCluster,
    find_binaries,
    get_cache_folder,
)

__all__ = [
    "KUBERNETES_VERSION",
    "PROGRAMS",
    "BinariesNotFoundError",
    "ControlPlaneError",
    "RealCluster",
    "find_binaries",
    "get_cache_folder",
]
