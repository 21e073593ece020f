"""The version matrix: golden files at every version where something changes, and proof that no mutation is forgotten.

Golden files at hand-picked versions miss the boundary that lies between two of them. A matrix builds every version,
puts those that fire alike into one regime (`regimes`), and keeps one golden file a regime, named after its first
version::

    golden/web/manifest.yaml          which versions belong to which regime, and what fires there
    golden/web/default/8.4.0.yaml     fixture "default", from 8.4.0 on
    golden/web/default/8.6.0.yaml     and from 8.6.0 on

A version that leaves its regime fails the test, which says what fires there and what does not. Fixtures say besides
which mutations must fire where (`fixtures`), and each registered mutation must be required by one, or excluded.
"""

from konverge_cluster.testing.version_matrix.fixtures import Expectation, Fixture
from konverge_cluster.testing.version_matrix.matrix_file import load_matrix
from konverge_cluster.testing.version_matrix.version_matrix import MatrixCase, VersionMatrix

__all__ = ["Expectation", "Fixture", "MatrixCase", "VersionMatrix", "load_matrix"]
