"""Access to one cluster: verbs, watches and discovery over a transport, and the credentials for it.

The inputs are kinds, keys and objects. They become requests through a `Transport`; the results are plain objects or
typed errors. `Client` stores no objects: `konverge.cache` serves reads from memory. Every wait has a deadline,
everything that a server sends has a limit, and a request is repeated only if that is safe.
"""

from typing import TYPE_CHECKING

from konverge.client.client import Client
from konverge.client.config import ClusterConfig, TlsConfig
from konverge.client.connect import connect, load_cluster_config
from konverge.client.in_cluster import load_in_cluster
from konverge.client.kubeconfig import load_kubeconfig
from konverge.client.object_list import ListPage, ObjectList
from konverge.client.pod_logs import PodLog
from konverge.client.request_bodies import FieldValidation, PatchType, Propagation
from konverge.client.request_observer import RequestObserver
from konverge.client.server_warnings import ServerWarning
from konverge.client.transport import Response, StreamingResponse, Transport
from konverge.client.watch import Watch, WatchEvent
from konverge.client.write_permit import WritePermit
from konverge.client.write_verbs import ApplyResponse

if TYPE_CHECKING:
    from konverge.client.http_transport import HttpTransport
else:

    def __getattr__(name: str) -> object:
        """Import the HTTP library on first use: it takes a quarter of a second, and the engine does not need it."""
        if name != "HttpTransport":
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from konverge.client.http_transport import HttpTransport

        return HttpTransport


__all__ = [
    "ApplyResponse",
    "Client",
    "ClusterConfig",
    "FieldValidation",
    "HttpTransport",
    "ListPage",
    "ObjectList",
    "PatchType",
    "PodLog",
    "Propagation",
    "RequestObserver",
    "Response",
    "ServerWarning",
    "StreamingResponse",
    "TlsConfig",
    "Transport",
    "Watch",
    "WatchEvent",
    "WritePermit",
    "connect",
    "load_cluster_config",
    "load_in_cluster",
    "load_kubeconfig",
]
