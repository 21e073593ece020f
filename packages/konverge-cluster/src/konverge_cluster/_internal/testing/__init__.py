"""Tools that test operators: golden files without a cluster, and tests on the embedded cluster, the real one, or both.

`konverge_cluster.pytest_plugin` provides the fixture ``cluster``: a client, a namespace for the test, a clock,
waits for eventual states (`eventually`), and the recorded requests. Load it in the top ``conftest.py``::

    pytest_plugins = ["konverge_cluster.pytest_plugin"]

A test with this fixture runs twice. On the embedded cluster time is simulated, so a wait of a minute costs nothing; the
real cluster (`konverge_cluster.controlplane`) is the reference for correct behavior.

Without a cluster, `assert_golden` compares the rendered objects of a component with a file beside the test, and a
`VersionMatrix` does so for every version and mutation.
"""

from konverge_cluster._internal.testing.audit_requests import AuditedRequest
from konverge_cluster._internal.testing.cluster import Cluster, ClusterServer
from konverge_cluster._internal.testing.golden import assert_golden, compare_golden, serialize
from konverge_cluster._internal.testing.polling import eventually
from konverge_cluster._internal.testing.version_matrix import Fixture, MatrixCase, VersionMatrix, load_matrix

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
