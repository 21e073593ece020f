"""Testing operators: what they render without a cluster, what they do on the embedded one, the real one, or both.

`konverge_cluster.testing.pytest_plugin` has the fixture ``cluster``: a client, a namespace of the test's own, a clock,
waiting for what a cluster does in its own time (`eventually`), and the record of what was asked of the server. Load it
in the top ``conftest.py``::

    pytest_plugins = ["konverge_cluster.testing.pytest_plugin"]

A test that takes the fixture runs twice. On the embedded cluster time is simulated, so a minute's wait costs nothing;
the real one (`konverge_cluster.controlplane`) says what is true.

Without a cluster, `assert_golden` compares what a component renders with a file beside the test, and a `VersionMatrix`
does so for every version and mutation.
"""

from konverge_cluster.testing.audit_requests import AuditedRequest
from konverge_cluster.testing.cluster import Cluster, ClusterServer
from konverge_cluster.testing.golden import assert_golden, compare_golden, serialize
from konverge_cluster.testing.polling import eventually
from konverge_cluster.testing.version_matrix import Fixture, MatrixCase, VersionMatrix, load_matrix

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
