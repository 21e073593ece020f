"""A custom resource for the tests that need one, and the known differences of the embedded cluster."""

from __future__ import annotations

import pytest

from konverge_cluster.testing import Cluster
from tests.cluster.conformance.widgets import Widgets


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "embedded_gap(what): here the embedded cluster is known not to be like the real")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Fail when a known gap is closed, so that its mark is removed."""
    for item in items:
        gap = item.get_closest_marker("embedded_gap")
        if gap is not None and item.get_closest_marker("embedded"):
            item.add_marker(pytest.mark.xfail(reason=gap.args[0], strict=True))


@pytest.fixture
async def widgets(cluster: Cluster) -> Widgets:
    """Return the served kind ``Widget``, which the real cluster installs only once: the first use takes two seconds."""
    kind = Widgets(cluster, "conformance.konverge.test")
    await cluster.install(kind.definition())
    return kind
