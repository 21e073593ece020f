"""External calls where nothing may be changed: what only reads is asked, anything else is not."""

from __future__ import annotations

from konverge_box.calls import Caller, CallRequest
from konverge_box.calls.call_result import CallResult

__all__ = ["DryRunCaller"]

_READING = frozenset({"GET", "HEAD"})


class DryRunCaller(Caller):
    """Makes the calls of a rehearsal."""

    async def call(self, request: CallRequest) -> CallResult:
        """The answer to a request that reads; a failure for any that may change something."""
        if request.protocol == "prometheus" or (request.protocol == "http" and request.method in _READING):
            return await super().call(request)
        what = request.method if request.protocol == "http" else request.protocol
        return CallResult(error=f"a rehearsal makes no such call ({what}): it might change something")
