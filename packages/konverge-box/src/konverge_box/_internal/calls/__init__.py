"""Calls to external servers: HTTP, Prometheus, Redis, PostgreSQL.

A call is compiled once. In each reconcile its expressions produce a `CallRequest`, which a `Caller` sends: with a limit
for each host, a timeout, retries, and a cache where the file declares one. The response is read up to a size limit and
becomes ``external.<name>`` in expressions.

Three invariants hold. A connection is only opened to an address that was checked after its name was resolved; private
addresses require `allowedNetworks`. No message contains a credential, a path, a query or a header. A call closes its
connections, also after an error or a cancellation.

A result is sensitive, except for its status, if an expression of the request read a Secret, or if the response
contains the credential: servers quote requests.
"""

from konverge_box._internal.calls.call_errors import CallAttemptError, CallError
from konverge_box._internal.calls.caller import Caller
from konverge_box._internal.calls.external_calls import ExternalCalls
from konverge_box._internal.calls.requests import CallRequest

__all__ = ["CallAttemptError", "CallError", "CallRequest", "Caller", "ExternalCalls"]
