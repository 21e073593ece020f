"""What a `konverge.cache.reflector.Reflector` asks its driver to do."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

__all__ = ["HistoryComparison", "OpenWatch", "ReadPage", "Step", "WaitStep"]


@dataclass(frozen=True, slots=True)
class ReadPage:
    """Read a page of the list, then call `Reflector.items` and `Reflector.page`. A limit of 0 asks for all at once."""

    continue_token: str
    limit: int


@dataclass(frozen=True, slots=True)
class OpenWatch:
    """Open a watch, then call `Reflector.opened`, `Reflector.lines` for what it brings, and `Reflector.ended`."""

    resource_version: str
    initial_events: bool
    timeout_seconds: float
    idle_timeout_seconds: float


@dataclass(frozen=True, slots=True)
class HistoryComparison:
    """Read this object, or any one of the collection, in a list of its own, then call `Reflector.compared`."""

    namespace: str
    name: str


@dataclass(frozen=True, slots=True)
class WaitStep:
    """Wait so long, then ask for the next step again."""

    seconds: float


Step: TypeAlias = ReadPage | OpenWatch | WaitStep
