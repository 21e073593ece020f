"""A custom resource for the cases that need one, and the cases in which the embedded cluster is known to differ."""

from __future__ import annotations

import pytest

from konverge_cluster.testing import Cluster
from tests.cluster.conformance.widgets import Widgets


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "embedded_gap(what): here the embedded cluster is known not to be like the real")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """A known gap fails the run as soon as it is closed, so that its mark goes away."""
    for item in items:
        gap = item.get_closest_marker("embedded_gap")
        if gap is not None and item.get_closest_marker("embedded"):
            item.add_marker(pytest.mark.xfail(reason=gap.args[0], strict=True))


@pytest.fixture
async def widgets(cluster: Cluster) -> Widgets:
    """The kind ``Widget``, served. The real cluster gets it once: it makes whoever is first wait for two seconds."""
    kind = Widgets(cluster, "conformance.konverge.test")
    await cluster.install(kind.definition())
    return kind
