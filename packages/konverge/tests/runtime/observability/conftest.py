"""Return an event loop in real time for tests over sockets."""

from __future__ import annotations

from typing import Any

import pytest


@pytest.fixture
def anyio_backend(request: pytest.FixtureRequest, anyio_backend: Any) -> Any:
    if "cluster" not in request.fixturenames and request.node.get_closest_marker("real_time") is not None:
        return "asyncio", {}
    return anyio_backend
