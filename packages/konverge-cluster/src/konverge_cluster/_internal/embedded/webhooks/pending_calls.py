"""Webhook calls in the middle of a request, for admission and conversion.

Code that needs webhooks is a generator: it yields the calls, several at once if possible, and continues with the
replies. So the server decides without I/O, and its driver (`run_with_calls`, or a test) makes the calls.
`run_without_calls` runs a generator that never yields.
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
    """One webhook call: a POST of JSON over HTTPS.

    Attributes:
        url: The URL with the query.
        body: The request body.
        authority: The authorities of the server's certificate as PEM text; empty for those of the system.
        timeout_seconds: The time limit in seconds.
        problem: The reason why the webhook cannot be called; empty if it can.
    """

    url: str
    body: bytes
    authority: bytes
    timeout_seconds: float
    problem: str = ""


@dataclass(frozen=True, slots=True)
class WebhookReply:
    """The result of a call.

    Attributes:
        status: The HTTP status code; zero without a response.
        body: The body of the response.
        problem: The reason for a missing response; empty if there is one.
    """

    status: int = 0
    body: bytes = b""
    problem: str = ""


CallGenerator: TypeAlias = Generator[tuple[WebhookCall, ...], tuple[WebhookReply, ...], T]
"""A generator that yields calls, receives their replies in the same order, and returns its result."""

CallFunction: TypeAlias = Callable[[tuple[WebhookCall, ...]], Awaitable[tuple[WebhookReply, ...]]]
"""Makes calls and returns their replies."""


class WebhookCallNeededError(KonvergeError):
    """A verb must call a webhook, and its caller cannot wait.

    Args:
        rest: The rest of the verb.
        calls: The calls that it needs first.
    """

    def __init__(self, rest: CallGenerator[object], calls: tuple[WebhookCall, ...]) -> None:
        self._rest = rest
        self._calls = calls
        urls = ", ".join(call.url for call in calls)
        super().__init__(f"webhooks must be called first ({urls}): send the request over a transport, which can wait")

    async def finish(self, caller: CallFunction) -> object:
        """Make the calls, run the rest of the verb, and return its result.

        Raises:
            ApiError: The verb failed.
        """
        return await _resume(self._rest, self._calls, caller)


def run_without_calls(consulting: CallGenerator[T]) -> T:
    """Run a generator that makes no calls, and return its result.

    Raises:
        WebhookCallNeededError: The generator needs a call.
    """
    try:
        calls = next(consulting)
    except StopIteration as done:
        result: T = done.value
        return result
    raise WebhookCallNeededError(consulting, calls)


async def run_with_calls(consulting: CallGenerator[T], caller: CallFunction) -> T:
    """Run a generator with its calls, and return its result. After a cancellation it does nothing more."""
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
