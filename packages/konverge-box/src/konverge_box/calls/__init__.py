"""Calls to servers outside of the cluster's API: HTTP, Prometheus, Redis, PostgreSQL.

A call is compiled once. In each pass its expressions become a `Request`, which a `Caller` sends: with a limit for each
host, a time-out, further attempts, and answers that are kept where the file says so. What comes back is read up to a
limit and becomes the result that expressions know as ``external.<name>``.

Three things always hold. A connection is made only to an address that was judged after its name was resolved; private
ones need `allowedNetworks`. No message shows a credential, a path, a query or a header. What a call began is closed
when it ends, however it ends.

A result is sensitive, its status apart, if an expression of the request looked at a Secret, or if the answer repeats
the credential: servers quote what they were sent.
"""

from konverge_box.calls.call_errors import CallAttemptError, CallError
from konverge_box.calls.caller import Caller
from konverge_box.calls.external_calls import ExternalCalls
from konverge_box.calls.requests import CallRequest

__all__ = ["CallAttemptError", "CallError", "CallRequest", "Caller", "ExternalCalls"]
