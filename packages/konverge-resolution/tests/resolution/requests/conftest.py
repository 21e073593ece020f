import pytest

from konverge_cluster.testing import Cluster
from tests.resolution.requests.request_namespace import RequestNamespace, create_request_namespace


@pytest.fixture
async def desk(cluster: Cluster) -> RequestNamespace:
    return await create_request_namespace(cluster)
