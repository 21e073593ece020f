"""Real time, and registries."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.resolution.servers.docker_registry import DockerRegistry, docker_registry
from tests.resolution.servers.fake_registry import FakeRegistry, fake_registry


@pytest.fixture
def anyio_backend(anyio_backend: Any) -> Any:
    # The event loop waits for sockets here, whose time is real.
    return "asyncio", {}


@pytest.fixture
def fake() -> Iterator[FakeRegistry]:
    with fake_registry() as registry:
        yield registry


@pytest.fixture(scope="session")
def real_registry() -> Iterator[DockerRegistry]:
    """One for all cases of this process: each has repositories of its own."""
    with docker_registry() as registry:
        yield registry
