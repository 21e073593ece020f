"""A custom resource for the cases that need one."""

from __future__ import annotations

from contextlib import suppress

import pytest

from konverge.errors import AlreadyExistsError
from konverge.testing import Cluster
from tests.conformance.widgets import Widgets


@pytest.fixture
async def widgets(cluster: Cluster) -> Widgets:
    """The kind ``Widget``, served. The real cluster gets it once: it makes whoever is first wait for two seconds."""
    kind = Widgets(cluster, "conformance.konverge.test")
    with suppress(AlreadyExistsError):
        await cluster.client.create(kind.definition())
    await cluster.eventually(kind.is_served, describe="the kind Widget is served")
    return kind
