import pytest

from konverge_cluster.testing import Cluster
from tests.resolution.consumer.consumer_harness import ConsumerHarness, build_consumer_harness
from tests.resolution.requests.request_namespace import create_request_namespace


@pytest.fixture(params=["by request", "in process"])
async def readers(cluster: Cluster, request: pytest.FixtureRequest) -> ConsumerHarness:
    return await build_consumer_harness(
        await create_request_namespace(cluster), in_process=request.param == "in process"
    )


@pytest.fixture
async def requesting(cluster: Cluster) -> ConsumerHarness:
    return await build_consumer_harness(await create_request_namespace(cluster))
