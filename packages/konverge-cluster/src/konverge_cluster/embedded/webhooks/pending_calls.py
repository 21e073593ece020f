"""Asking others in the middle of a request: the webhooks of admission and of conversion.

What consults is a generator: it yields the calls that are to be made, at once if there are several, and goes on with
the replies. So the server still decides without I/O, and whoever drives it (`run_with_calls`, or a test) makes the
calls. A
generator that never yields is a plain call: `at_once`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator
from dataclasses import dataclass
from typing import TypeAlias, TypeVar

from konverge.errors import KonvergeError

__all__ = [
    "CallFunction",
    "CallGenerator",
    "WebhookCall",
    "WebhookCallNeededError",
    "WebhookReply",
    "run_with_calls",
    "run_without_calls",
]

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class WebhookCall:
    """One webhook to call: a POST of JSON over HTTPS.

    Attributes:
        url: Where, with the query.
        body: What is sent.
        authority: The PEM text of the authorities that the server's certificate must come from; empty for those of
            the system.
        timeout_seconds: How long the answer may take.
        problem: Why it cannot be called; empty when it can.
    """

    url: str
    body: bytes
    authority: bytes
    timeout_seconds: float
    problem: str = ""


@dataclass(frozen=True, slots=True)
class WebhookReply:
    """What came of a call.

    Attributes:
        status: The HTTP status code; zero when there was no answer.
        body: The body of the answer.
        problem: Why there was no answer; empty when there was one.
    """

    status: int = 0
    body: bytes = b""
    problem: str = ""


CallGenerator: TypeAlias = Generator[tuple[WebhookCall, ...], tuple[WebhookReply, ...], T]
"""What decides, and may have to ask: yields calls, takes their replies in the same order, returns its result."""

CallFunction: TypeAlias = Callable[[tuple[WebhookCall, ...]], Awaitable[tuple[WebhookReply, ...]]]
"""Makes calls."""


class WebhookCallNeededError(KonvergeError):
    """A webhook has to be asked, and the one who asks for the verb cannot wait.

    Args:
        rest: What is left to do.
        calls: What is to be asked first.
    """

    def __init__(self, rest: CallGenerator[object], calls: tuple[WebhookCall, ...]) -> None:
        self._rest = rest
        self._calls = calls
        asked = ", ".join(call.url for call in calls)
        super().__init__(f"webhooks have to be called first ({asked}): ask over a transport, which can wait for them")

    async def finish(self, caller: CallFunction) -> object:
        """Make the calls, go on to the end, and answer the result.

        Raises:
            ApiError: The verb failed.
        """
        return await _resume(self._rest, self._calls, caller)


def run_without_calls(consulting: CallGenerator[T]) -> T:
    """The result of what has nothing to ask.

    Raises:
        WebhookCallNeededError: It has.
    """
    try:
        calls = next(consulting)
    except StopIteration as done:
        result: T = done.value
        return result
    raise WebhookCallNeededError(consulting, calls)


async def run_with_calls(consulting: CallGenerator[T], caller: CallFunction) -> T:
    """The result, with all that is asked on the way. Cancelled, it does nothing further."""
    try:
        calls = next(consulting)
    except StopIteration as done:
        result: T = done.value
        return result
    return await _resume(consulting, calls, caller)


async def _resume(consulting: CallGenerator[T], calls: tuple[WebhookCall, ...], caller: CallFunction) -> T:
    try:
        while True:
            calls = consulting.send(await caller(calls))
    except StopIteration as done:
        result: T = done.value
        return result
    finally:
        consulting.close()
