"""Access to one cluster: verbs, watches and discovery over a transport, and credentials to open it with.

What comes in is a kind, a key, an object; what goes out are requests through a `Transport`, and what comes back are
plain objects or typed errors. `Client` holds no objects: reading from memory is `konverge.cache`'s business. Every wait
has a deadline, everything that a server sends is bounded, and a request is repeated only where that is safe.
"""

from konverge.client.client import Applied, Client, ListPage, ObjectList, PatchType, Propagation
from konverge.client.transport import Response, StreamingResponse, Transport
from konverge.client.watch import Watch, WatchEvent

__all__ = [
    "Applied",
    "Client",
    "ListPage",
    "ObjectList",
    "PatchType",
    "Propagation",
    "Response",
    "StreamingResponse",
    "Transport",
    "Watch",
    "WatchEvent",
]
