import pytest

from konverge.testing import Cluster
from tests.resolution.consuming.readers import Readers, readers_at
from tests.resolution.requests.desk import a_desk


@pytest.fixture(params=["by request", "in process"])
async def readers(cluster: Cluster, request: pytest.FixtureRequest) -> Readers:
    return await readers_at(await a_desk(cluster), in_process=request.param == "in process")


@pytest.fixture
async def requesting(cluster: Cluster) -> Readers:
    return await readers_at(await a_desk(cluster))
