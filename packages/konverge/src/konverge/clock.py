"""Time, sleeping, randomness and identifiers as ports: the real ones, and the ones that a test can replay.

Nothing else in konverge reads the clock, sleeps or draws a random number (invariant 8; a lint rule enforces it).
Deadlines are `asyncio.timeout`, which asks the running loop for the time; on a `SimulatedLoop` that is simulated time
too, so one clock governs sleeps, deadlines and timestamps alike.
"""

from __future__ import annotations

import asyncio
import random
import selectors
import time
import uuid
from datetime import UTC, datetime, timedelta
from typing import Any, Protocol

__all__ = ["Clock", "Entropy", "SeededEntropy", "SimulatedClock", "SimulatedLoop", "SystemClock", "SystemEntropy"]

# The letters of generated Kubernetes names: no vowels and no look-alikes, so that no word and no misreading comes out.
_NAME_LETTERS = "bcdfghjklmnpqrstvwxz2456789"


class Clock(Protocol):
    """What reads the time and waits."""

    def now(self) -> datetime:
        """The wall clock, in UTC and aware of it."""

    def monotonic(self) -> float:
        """Seconds since some fixed moment; never goes backwards. For measuring, never for timestamps."""

    async def sleep(self, seconds: float) -> None:
        """Wait for so many seconds; zero or less gives other tasks one turn."""


class Entropy(Protocol):
    """What draws random numbers and makes identifiers."""

    def uniform(self, low: float, high: float) -> float:
        """A number between the two."""

    def uid(self) -> str:
        """A fresh UUID (version 4) in its usual spelling."""

    def name_suffix(self, length: int = 5) -> str:
        """So many letters as Kubernetes appends them to a ``generateName``."""


class SystemClock:
    """The machine's clock."""

    def now(self) -> datetime:
        """The wall clock in UTC."""
        return datetime.now(UTC)

    def monotonic(self) -> float:
        """Seconds of the machine's monotonic clock."""
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        """Wait in real time."""
        await asyncio.sleep(max(0.0, seconds))


class SimulatedClock:
    """The clock of the running `SimulatedLoop`, with a calendar.

    Args:
        start: The wall-clock moment at which the loop's time is zero.
    """

    def __init__(self, start: datetime = datetime(2026, 1, 1, tzinfo=UTC)) -> None:
        self._start = start

    def now(self) -> datetime:
        """The start plus the loop's time."""
        return self._start + timedelta(seconds=self.monotonic())

    def monotonic(self) -> float:
        """The loop's time in seconds."""
        return asyncio.get_running_loop().time()

    async def sleep(self, seconds: float) -> None:
        """Wait in simulated time: returns as soon as nothing else can run."""
        await asyncio.sleep(max(0.0, seconds))


class SystemEntropy:
    """The machine's randomness."""

    def __init__(self) -> None:
        self._random: random.Random = random.SystemRandom()

    def uniform(self, low: float, high: float) -> float:
        """A number between the two."""
        return self._random.uniform(low, high)

    def uid(self) -> str:
        """A fresh UUID."""
        return str(uuid.UUID(int=self._random.getrandbits(128), version=4))

    def name_suffix(self, length: int = 5) -> str:
        """So many letters of a generated name."""
        return "".join(self._random.choices(_NAME_LETTERS, k=length))


class SeededEntropy(SystemEntropy):
    """The same draws each time, for a run that can be repeated.

    Args:
        seed: What decides the draws.
    """

    def __init__(self, seed: int = 0) -> None:
        self._random = random.Random(seed)


class SimulatedLoop(asyncio.SelectorEventLoop):
    """An event loop in which waiting takes no time.

    When every task waits for a timer, the clock jumps to the earliest one. Order is kept: what was to happen first
    happens first. It is for code that does no network I/O (the embedded cluster in process): a socket's answer, or a
    thread's, would arrive "hours" late if a timer is pending. A run in which nothing can ever happen again ends in
    `TimeoutError` instead of hanging.
    """

    def __init__(self) -> None:
        self._simulated_now = 0.0
        super().__init__(_JumpingSelector(self))

    def time(self) -> float:
        """Simulated seconds since the loop was made."""
        return self._simulated_now

    def jump(self, seconds: float) -> None:
        """Move the clock forward (called by the loop's own selector)."""
        self._simulated_now += seconds

    async def shutdown_default_executor(self, timeout: float | None = None) -> None:
        """Wait for the threads as long as they take: their time is real, and a deadline in ours would pass at once."""
        await super().shutdown_default_executor()


class _JumpingSelector(selectors.DefaultSelector):  # the class is chosen per platform
    """Never waits for a timer: takes what is ready, else moves the loop's clock to the next timer."""

    # How long, in real time, a loop without timers may wait for a thread before it counts as stuck.
    _STUCK_AFTER_SECONDS = 30.0

    def __init__(self, loop: SimulatedLoop) -> None:
        super().__init__()
        self._loop = loop

    def select(self, timeout: float | None = None) -> list[Any]:
        ready: list[Any] = super().select(0)
        if ready or timeout == 0:
            return ready
        if timeout is None:
            ready = super().select(self._STUCK_AFTER_SECONDS)
            if not ready:
                raise TimeoutError("simulated time: every task waits, and neither a timer nor a thread will wake one")
            return ready
        self._loop.jump(timeout)
        return []
