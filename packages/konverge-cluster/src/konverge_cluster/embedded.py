"""The embedded cluster: a Kubernetes API server in the process of a test."""

from __future__ import annotations

from konverge_cluster._internal.embedded import (
    ApiServer,
    ImageRules,
    LocalCluster,
    StorageChange,
    User,
)

__all__ = [
    "ApiServer",
    "ImageRules",
    "LocalCluster",
    "StorageChange",
    "User",
]
