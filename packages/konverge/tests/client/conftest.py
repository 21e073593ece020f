"""Servers for the tests of the client."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.client.servers import Servers


@pytest.fixture
async def servers(tmp_path: Path) -> AsyncIterator[Servers]:
    found = Servers(tmp_path)
    yield found
    await found.stop()
