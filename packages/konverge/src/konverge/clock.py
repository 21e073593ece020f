"""Protocols for time, sleep, randomness and identifiers, with system implementations and reproducible ones for tests.

No other module of konverge reads the clock, sleeps or draws a random number (invariant 8; a lint rule enforces it).
Deadlines are `asyncio.timeout`, which reads the time of the running loop. On a `SimulatedLoop` this is simulated time
too, so that one clock controls sleeps, deadlines and timestamps.
"""

from __future__ import annotations

import asyncio
import random
import selectors
import time
import uuid
from collections.abc import Callable
from concurrent.futures import Executor
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, Protocol, TypeVar, TypeVarTuple

__all__ = ["Clock", "Entropy", "SeededEntropy", "SimulatedClock", "SimulatedLoop", "SystemClock", "SystemEntropy"]

_T = TypeVar("_T")
_Arguments = TypeVarTuple("_Arguments")

# The characters of generated Kubernetes names: without vowels and similar characters, to avoid words and misreading.
_NAME_LETTERS = "bcdfghjklmnpqrstvwxz2456789"


class Clock(Protocol):
    """A source of the time, and of waits."""

    def now(self) -> datetime:
        """Return the wall clock as an aware datetime in UTC."""

    def monotonic(self) -> float:
        """Return the seconds since a fixed moment, which never decrease; for durations, not for timestamps."""

    async def sleep(self, seconds: float) -> None:
        """Wait for a number of seconds; zero or less gives other tasks one turn."""


class Entropy(Protocol):
    """A source of random numbers and identifiers."""

    def uniform(self, low: float, high: float) -> float:
        """Return a random number between the two."""

    def uid(self) -> str:
        """Return a new UUID (version 4) in its usual spelling."""

    def name_suffix(self, length: int = 5) -> str:
        """Return random characters, as Kubernetes appends them to a ``generateName``."""


class SystemClock:
    """The clock of the system."""

    def now(self) -> datetime:
        """Return the wall clock in UTC."""
        return datetime.now(UTC)

    def monotonic(self) -> float:
        """Return the seconds of the system's monotonic clock."""
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        """Wait in the real time of the system."""
        await asyncio.sleep(max(0.0, seconds))


class SimulatedClock:
    """The clock of the running `SimulatedLoop`, with a calendar.

    Args:
        start: The wall-clock moment at which the loop's time is zero.
    """

    def __init__(self, start: datetime = datetime(2026, 1, 1, tzinfo=UTC)) -> None:
        self._start = start

    def now(self) -> datetime:
        """Return the start plus the loop's time."""
        return self._start + timedelta(seconds=self.monotonic())

    def monotonic(self) -> float:
        """Return the loop's time in seconds."""
        return asyncio.get_running_loop().time()

    async def sleep(self, seconds: float) -> None:
        """Wait in simulated time: return as soon as no other task can run."""
        await asyncio.sleep(max(0.0, seconds))


class SystemEntropy:
    """The randomness of the system."""

    def __init__(self) -> None:
        self._random: random.Random = random.SystemRandom()

    def uniform(self, low: float, high: float) -> float:
        """Return a random number between the two."""
        return self._random.uniform(low, high)

    def uid(self) -> str:
        """Return a new random UUID."""
        return str(uuid.UUID(int=self._random.getrandbits(128), version=4))

    def name_suffix(self, length: int = 5) -> str:
        """Return random characters for a generated name."""
        return "".join(self._random.choices(_NAME_LETTERS, k=length))


class SeededEntropy(SystemEntropy):
    """Reproducible randomness, for a run that can be repeated.

    Args:
        seed: The seed of the generator.
    """

    def __init__(self, seed: int = 0) -> None:
        self._random = random.Random(seed)


class SimulatedLoop(asyncio.SelectorEventLoop):
    """An event loop in which waits take no real time.

    When every task waits for a timer, the clock jumps to the earliest one; the order of timers is kept. While a thread
    of `run_in_executor` works (a file, the resolution of a host name), the clock stands still, for at most 30 seconds
    of real time. The loop is for code without network I/O (the embedded cluster in process): with a pending timer, the
    response of a socket would arrive "hours" late. A run in which every task waits forever ends in `TimeoutError`.
    """

    def __init__(self) -> None:
        self._simulated_now = 0.0
        self._awaited: set[asyncio.Future[Any]] = set()
        super().__init__(_JumpingSelector(self))

    def time(self) -> float:
        """Return the simulated seconds since the creation of the loop."""
        return self._simulated_now

    def jump(self, seconds: float) -> None:
        """Move the clock forward (called by the loop's own selector)."""
        self._simulated_now += seconds

    def run_in_executor(
        self, executor: Executor | None, func: Callable[[*_Arguments], _T], *args: *_Arguments
    ) -> asyncio.Future[_T]:
        """Call a function in a thread; the clock stands still until it returns."""
        future = super().run_in_executor(executor, func, *args)
        self._awaited.add(future)
        future.add_done_callback(self._awaited.discard)
        return future

    def wait_for_threads(self, select: Callable[[], list[Any]]) -> list[Any]:
        """Return the events of a thread that ends; none without a thread (called by the loop's own selector)."""
        if not self._awaited:
            return []
        ready = select()
        if not ready:  # a thread that never ends must not delay each timer
            self._awaited.clear()
        return ready

    async def shutdown_default_executor(self, timeout: float | None = None) -> None:
        """Wait for the threads without a deadline: they run in real time; a simulated deadline would pass at once."""
        await super().shutdown_default_executor()


class _JumpingSelector(selectors.DefaultSelector):  # the class is chosen per platform
    """A selector that never waits for a timer, but moves the loop's clock to the next timer."""

    # The real time that a loop waits for a thread before it counts as stuck; longer than some lost DNS requests.
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
        if ready := self._loop.wait_for_threads(partial(super().select, self._STUCK_AFTER_SECONDS)):
            return ready
        self._loop.jump(timeout)
        return []
