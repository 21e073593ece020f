"""The pytest plug-in, golden files, version matrices and waits for tests of operators."""

from __future__ import annotations

from konverge_cluster._internal.testing import (
    AuditedRequest,
    Cluster,
    ClusterServer,
    Fixture,
    MatrixCase,
    VersionMatrix,
    assert_golden,
    compare_golden,
    eventually,
    load_matrix,
    serialize,
)

__all__ = [
    "AuditedRequest",
    "Cluster",
    "ClusterServer",
    "Fixture",
    "MatrixCase",
    "VersionMatrix",
    "assert_golden",
    "compare_golden",
    "eventually",
    "load_matrix",
    "serialize",
]
