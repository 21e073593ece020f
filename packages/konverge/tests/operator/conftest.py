import pytest

from konverge_cluster.testing import Cluster
from tests.operator.sample_operator import OperatorHarness, start_harness


@pytest.fixture
async def town(cluster: Cluster) -> OperatorHarness:
    return await start_harness(cluster)
