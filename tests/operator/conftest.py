import pytest

from konverge.testing import Cluster
from tests.operator.shops import Town, a_town


@pytest.fixture
async def town(cluster: Cluster) -> Town:
    return await a_town(cluster)
