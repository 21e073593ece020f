"""External calls where nothing may be changed: what only reads is asked, anything else is not."""

from __future__ import annotations

from konverge.box.calls import Caller, Request
from konverge.box.calls.answers import Answer

__all__ = ["RehearsingCaller"]

_READING = frozenset({"GET", "HEAD"})


class RehearsingCaller(Caller):
    """Makes the calls of a rehearsal."""

    async def answer(self, request: Request) -> Answer:
        """The answer to a request that reads; a failure for any that may change something."""
        if request.protocol == "prometheus" or (request.protocol == "http" and request.method in _READING):
            return await super().answer(request)
        what = request.method if request.protocol == "http" else request.protocol
        return Answer(error=f"a rehearsal makes no such call ({what}): it might change something")
