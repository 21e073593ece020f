import pytest

from konverge.testing import Cluster
from tests.box.running.boxes import Library


@pytest.fixture
def library(cluster: Cluster) -> Library:
    return Library(cluster)
