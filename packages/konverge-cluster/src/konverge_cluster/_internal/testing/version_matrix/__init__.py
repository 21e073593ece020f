"""The version matrix: golden files for all versions with different output, and a check that tests cover every mutation.

Golden files at hand-picked versions miss a boundary between two of them. A matrix builds every version, groups versions
with the same firing mutations into one regime (`regimes`), and keeps one golden file per regime, named after its first
version::

    golden/web/manifest.yaml          the versions of each regime and its firing mutations
    golden/web/default/8.4.0.yaml     fixture "default", from 8.4.0 on
    golden/web/default/8.6.0.yaml     and from 8.6.0 on

A version that leaves its regime fails the test, which reports the mutations that fire and those that do not. Fixtures
also declare where mutations must fire (`fixtures`). A fixture must require each registered mutation, or the matrix must
exclude it.
"""

from konverge_cluster._internal.testing.version_matrix.fixtures import Expectation, Fixture
from konverge_cluster._internal.testing.version_matrix.matrix_file import load_matrix
from konverge_cluster._internal.testing.version_matrix.version_matrix import MatrixCase, VersionMatrix

__all__ = ["Expectation", "Fixture", "MatrixCase", "VersionMatrix", "load_matrix"]
