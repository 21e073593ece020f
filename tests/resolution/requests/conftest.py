import pytest

from konverge.testing import Cluster
from tests.resolution.requests.desk import Desk, a_desk


@pytest.fixture
async def desk(cluster: Cluster) -> Desk:
    return await a_desk(cluster)
