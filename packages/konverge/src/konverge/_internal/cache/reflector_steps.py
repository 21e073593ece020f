"""The steps that a `cache.reflector.Reflector` requests from its driver."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

__all__ = ["HistoryComparison", "OpenWatch", "ReadPage", "Step", "WaitStep"]


@dataclass(frozen=True, slots=True)
class ReadPage:
    """A page of the list to read; report it with `Reflector.add_items` and `Reflector.finish_page`.

    A limit of 0 requests all objects at once.
    """

    continue_token: str
    limit: int


@dataclass(frozen=True, slots=True)
class OpenWatch:
    """A watch to open; report it with `Reflector.on_watch_opened`, `process_lines` and `on_watch_ended`."""

    resource_version: str
    initial_events: bool
    timeout_seconds: float
    idle_timeout_seconds: float


@dataclass(frozen=True, slots=True)
class HistoryComparison:
    """An object to read in a list of its own; report it with `Reflector.on_comparison`.

    Without a name, any object of the collection will do.
    """

    namespace: str
    name: str


@dataclass(frozen=True, slots=True)
class WaitStep:
    """A delay before the driver requests the next step."""

    seconds: float


Step: TypeAlias = ReadPage | OpenWatch | WaitStep
