"""Scripted answers: calls without servers, where a box is rendered or simulated.

An answer is processed like the response of a server: `expectedStatus`, JSON, retries and `continueOnError` apply.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import UNSET, Struct, UnsetType

from konverge.clock import Clock, Entropy
from konverge_box._internal.calls.call_errors import CallAttemptError
from konverge_box._internal.calls.call_result import CallResult
from konverge_box._internal.calls.caller import Caller
from konverge_box._internal.calls.http_calls import HttpReply, build_call_result
from konverge_box._internal.calls.requests import CallRequest

__all__ = ["OfflineCaller", "ScriptedAnswer", "ScriptedCaller"]


class ScriptedAnswer(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The answer to a call. ``status``, ``json`` and ``body`` are for HTTP, ``result`` and ``raw`` for other protocols.

    With ``error`` there is no response, like from an unreachable server.
    """

    status: int = 200
    json: Any | UnsetType = UNSET
    body: str = ""
    result: Any = None
    raw: Any | UnsetType = UNSET
    error: str = ""

    def to_result(self, request: CallRequest, clock: Clock) -> CallResult:
        """Convert the answer to the result of a call.

        Raises:
            CallAttemptError: The answer has an ``error``, or it is not valid.
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
    """A caller that sends nothing. Each call gets its scripted answer, with caching and retries like a real call.

    Args:
        answers: The answers by the names of the calls. Each attempt looks them up, so they can change.
        clock: Waits between attempts, and determines the age of answers.
        entropy: The source of random retry delays.
    """

    def __init__(self, answers: Mapping[str, ScriptedAnswer], *, clock: Clock, entropy: Entropy) -> None:
        super().__init__(clock=clock, entropy=entropy, lookup=_resolve_nothing, environment=None)
        self._answers = answers

    async def _send_request(self, request: CallRequest) -> CallResult:
        scripted = self._answers.get(request.name)
        if scripted is None:
            raise CallAttemptError(f"expected an answer for the call {request.name}, found none; add it under answers")
        return scripted.to_result(request, self._clock)


class OfflineCaller(Caller):
    """A caller that sends nothing. A call without an answer counts as not sent.

    Args:
        answers: The answers by the names of the calls.
        clock: The current time.
        entropy: The source of random values, which is not used: there are no retries.

    Attributes:
        requests: The method or protocol and the server of each call, by its name.
    """

    def __init__(self, answers: Mapping[str, ScriptedAnswer], *, clock: Clock, entropy: Entropy) -> None:
        super().__init__(clock=clock, entropy=entropy, lookup=_resolve_nothing, environment=None)
        self._answers = answers
        self.requests: dict[str, str] = {}

    async def call(self, request: CallRequest) -> CallResult:
        """Return the scripted answer of a call."""
        kind = request.method if request.protocol == "http" else request.protocol
        self.requests[request.name] = f"{kind} {request.display_origin}"
        scripted = self._answers.get(request.name)
        if scripted is None:
            return CallResult(is_sent=False)
        try:
            return scripted.to_result(request, self._clock)
        except CallAttemptError as failure:
            return CallResult(error=failure.problem, is_sensitive=request.is_sensitive)


async def _resolve_nothing(host: str, port: int) -> tuple[str, ...]:
    raise CallAttemptError(f"{host} is not resolved: no call is sent")
