"""Real time and real sockets, except for pure code; the servers of the tests."""

from __future__ import annotations

from typing import Any

import pytest

from tests.database_servers import postgres_server, redis_server

__all__ = ["postgres_server", "redis_server"]


@pytest.fixture
def anyio_backend(request: pytest.FixtureRequest, anyio_backend: Any) -> Any:
    if request.node.get_closest_marker("real_time") is not None:
        return "asyncio", {}
    return anyio_backend
