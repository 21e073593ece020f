"""Real time for what talks to real servers."""

from __future__ import annotations

from typing import Any

import pytest


@pytest.fixture
def anyio_backend(anyio_backend: Any) -> Any:
    return "asyncio", {}
