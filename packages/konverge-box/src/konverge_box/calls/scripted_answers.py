"""Answers that are written down: calls without servers, where a box is rendered or simulated.

An answer is read as that of a server: `expectedStatus`, JSON, retries and `continueOnError` mean what they always mean.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import UNSET, Struct, UnsetType

from konverge.clock import Clock, Entropy
from konverge_box.calls.call_errors import CallAttemptError
from konverge_box.calls.call_result import CallResult
from konverge_box.calls.caller import Caller
from konverge_box.calls.http_calls import HttpReply, build_call_result
from konverge_box.calls.requests import CallRequest

__all__ = ["OfflineCaller", "ScriptedAnswer", "ScriptedCaller"]


class ScriptedAnswer(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a call is answered. ``status``, ``json`` and ``body`` are for HTTP, ``result`` and ``raw`` for the others.

    With ``error`` there is no answer, as of a server that cannot be reached.
    """

    status: int = 200
    json: Any | UnsetType = UNSET
    body: str = ""
    result: Any = None
    raw: Any | UnsetType = UNSET
    error: str = ""

    def to_result(self, request: CallRequest, clock: Clock) -> CallResult:
        """What this is to a call.

        Raises:
            CallAttemptError: There is no answer, or it cannot be read.
        """
        if self.error:
            raise CallAttemptError(self.error, is_transient=True)
        if request.protocol == "http":
            body = self.body.encode() if self.json is UNSET else msgspec.json.encode(self.json)
            kind = "text/plain" if self.json is UNSET else "application/json"
            return build_call_result(request, HttpReply(self.status, {}, body, kind, None), clock.now())
        raw = self.raw if self.raw is not UNSET else self.result if request.protocol == "redis" else {}
        status = {"status": self.status} if request.protocol == "prometheus" else {}
        return CallResult(fields={**status, "result": self.result, "raw": raw}, is_sensitive=request.is_sensitive)


class ScriptedCaller(Caller):
    """Sends nothing: each call gets the answer that is written down for it, through all that surrounds a real one.

    Args:
        answers: By the calls' names; looked up for each attempt, so they may change meanwhile.
        clock: Waits between attempts, and tells how old an answer is.
        entropy: Draws the pauses.
    """

    def __init__(self, answers: Mapping[str, ScriptedAnswer], *, clock: Clock, entropy: Entropy) -> None:
        super().__init__(clock=clock, entropy=entropy, lookup=_resolve_nothing, environment=None)
        self._answers = answers

    async def _send_request(self, request: CallRequest) -> CallResult:
        known = self._answers.get(request.name)
        if known is None:
            raise CallAttemptError(f"nobody has said what {request.name} is answered: put it under answers")
        return known.to_result(request, self._clock)


class OfflineCaller(Caller):
    """Sends nothing, and takes calls without an answer for calls that are not made.

    Args:
        answers: By the calls' names.
        clock: The time.
        entropy: Not drawn from: nothing is tried twice.

    Attributes:
        requests: What each call would have asked, in order: its name, its method or protocol, and whom.
    """

    def __init__(self, answers: Mapping[str, ScriptedAnswer], *, clock: Clock, entropy: Entropy) -> None:
        super().__init__(clock=clock, entropy=entropy, lookup=_resolve_nothing, environment=None)
        self._answers = answers
        self.requests: dict[str, str] = {}

    async def call(self, request: CallRequest) -> CallResult:
        """The answer that is known."""
        what = request.method if request.protocol == "http" else request.protocol
        self.requests[request.name] = f"{what} {request.display_origin}"
        known = self._answers.get(request.name)
        if known is None:
            return CallResult(is_sent=False)
        try:
            return known.to_result(request, self._clock)
        except CallAttemptError as failure:
            return CallResult(error=failure.problem, is_sensitive=request.is_sensitive)


async def _resolve_nothing(host: str, port: int) -> tuple[str, ...]:
    raise CallAttemptError(f"{host} is not looked up: nothing is sent")
