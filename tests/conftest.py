"""For all tests: the ``cluster`` fixture, simulated time unless a test talks to the real cluster, and Hypothesis."""

from __future__ import annotations

import os
from typing import Any

import hypothesis
import nodesemver  # noqa: F401  # konverge imports it late, and pytester would take away what a test of its own imported
import pytest

from konverge.clock import SimulatedLoop

pytest_plugins = ["konverge.testing.pytest_plugin", "pytester"]

# A shared machine is slow at times, which says nothing about the code. Where everybody's work is checked, the examples
# are the same each time; on a developer's machine they are new ones.
hypothesis.settings.register_profile(
    "konverge",
    deadline=None,
    suppress_health_check=[hypothesis.HealthCheck.too_slow],
    derandomize=os.environ.get("CI") == "true",
)
hypothesis.settings.load_profile("konverge")


@pytest.fixture
def anyio_backend(request: pytest.FixtureRequest, anyio_backend: tuple[str, dict[str, Any]]) -> Any:
    if "cluster" in request.fixturenames:
        return anyio_backend
    return "asyncio", {"loop_factory": SimulatedLoop}
