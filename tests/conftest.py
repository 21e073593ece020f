"""For all tests: the ``cluster`` fixture, and simulated time unless a test talks to the real cluster."""

from __future__ import annotations

from typing import Any

import pytest

from konverge.clock import SimulatedLoop

pytest_plugins = ["konverge.testing.pytest_plugin", "pytester"]


@pytest.fixture
def anyio_backend(request: pytest.FixtureRequest, anyio_backend: tuple[str, dict[str, Any]]) -> Any:
    if "cluster" in request.fixturenames:
        return anyio_backend
    return "asyncio", {"loop_factory": SimulatedLoop}
