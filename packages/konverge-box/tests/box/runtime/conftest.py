import pytest

from konverge_cluster.testing import Cluster
from tests.box.running.box_harness import BoxHarness


@pytest.fixture
def library(cluster: Cluster) -> BoxHarness:
    return BoxHarness(cluster)
