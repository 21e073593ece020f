"""Answers that are written down: calls without servers, where a box is rendered or simulated.

An answer is read as that of a server: `expectedStatus`, JSON, retries and `continueOnError` mean what they always mean.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import UNSET, Struct, UnsetType

from konverge.box.calls.answers import Answer
from konverge.box.calls.caller import Caller
from konverge.box.calls.failures import CallFailure
from konverge.box.calls.http import Received, answer_from
from konverge.box.calls.requests import Request
from konverge.clock import Clock, Entropy

__all__ = ["KnownAnswer", "ScriptedCaller", "UnaskedCaller"]


class KnownAnswer(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a call is answered. ``status``, ``json`` and ``body`` are for HTTP, ``result`` and ``raw`` for the others.

    With ``error`` there is no answer, as of a server that cannot be reached.
    """

    status: int = 200
    json: Any | UnsetType = UNSET
    body: str = ""
    result: Any = None
    raw: Any | UnsetType = UNSET
    error: str = ""

    def to(self, request: Request, clock: Clock) -> Answer:
        """What this is to a call.

        Raises:
            CallFailure: There is no answer, or it cannot be read.
        """
        if self.error:
            raise CallFailure(self.error, is_passing=True)
        if request.protocol == "http":
            body = self.body.encode() if self.json is UNSET else msgspec.json.encode(self.json)
            kind = "text/plain" if self.json is UNSET else "application/json"
            return answer_from(request, Received(self.status, {}, body, kind, None), clock.now())
        raw = self.raw if self.raw is not UNSET else self.result if request.protocol == "redis" else {}
        status = {"status": self.status} if request.protocol == "prometheus" else {}
        return Answer(fields={**status, "result": self.result, "raw": raw}, is_sensitive=request.is_sensitive)


class ScriptedCaller(Caller):
    """Sends nothing: each call gets the answer that is written down for it, through all that surrounds a real one.

    Args:
        answers: By the calls' names; looked up for each attempt, so they may change meanwhile.
        clock: Waits between attempts, and tells how old an answer is.
        entropy: Draws the pauses.
    """

    def __init__(self, answers: Mapping[str, KnownAnswer], *, clock: Clock, entropy: Entropy) -> None:
        super().__init__(clock=clock, entropy=entropy, lookup=_nowhere, environment=None)
        self._answers = answers

    async def _asked(self, request: Request) -> Answer:
        known = self._answers.get(request.name)
        if known is None:
            raise CallFailure(f"nobody has said what {request.name} is answered: put it under answers")
        return known.to(request, self._clock)


class UnaskedCaller(Caller):
    """Sends nothing, and takes calls without an answer for calls that are not made.

    Args:
        answers: By the calls' names.
        clock: The time.
        entropy: Not drawn from: nothing is tried twice.

    Attributes:
        asked: What each call would have asked, in order: its name, its method or protocol, and whom.
    """

    def __init__(self, answers: Mapping[str, KnownAnswer], *, clock: Clock, entropy: Entropy) -> None:
        super().__init__(clock=clock, entropy=entropy, lookup=_nowhere, environment=None)
        self._answers = answers
        self.asked: dict[str, str] = {}

    async def answer(self, request: Request) -> Answer:
        """The answer that is known."""
        what = request.method if request.protocol == "http" else request.protocol
        self.asked[request.name] = f"{what} {request.shown}"
        known = self._answers.get(request.name)
        if known is None:
            return Answer(is_made=False)
        try:
            return known.to(request, self._clock)
        except CallFailure as failure:
            return Answer(error=failure.problem, is_sensitive=request.is_sensitive)


async def _nowhere(host: str, port: int) -> tuple[str, ...]:
    raise CallFailure(f"{host} is not looked up: nothing is sent")
