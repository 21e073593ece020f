"""Real time and real servers for what talks to them; the sample repositories, made once a process."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.resolution.git.sample_repositories import SampleRepositories, make_samples
from tests.resolution.servers.git import GitServer, git_server


@pytest.fixture
def anyio_backend(anyio_backend: Any) -> Any:
    # The event loop waits for processes here, whose time is real.
    return "asyncio", {}


@pytest.fixture(scope="session")
def samples(tmp_path_factory: pytest.TempPathFactory) -> SampleRepositories:
    return make_samples(tmp_path_factory.mktemp("git-samples"))


@pytest.fixture(scope="session")
def shared_server(samples: SampleRepositories) -> Iterator[GitServer]:
    with git_server(samples.root) as server:
        yield server


@pytest.fixture
def server(shared_server: GitServer) -> Iterator[GitServer]:
    """The server, with nothing said to it and nothing seen by it."""
    shared_server.reset_counters()
    yield shared_server
    shared_server.credentials.clear()
    shared_server.redirects.clear()
    shared_server.statuses.clear()
    shared_server.speaks_only_protocol_0 = False


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Where the resolver works."""
    return tmp_path / "work"
