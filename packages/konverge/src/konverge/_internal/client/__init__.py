"""Access to one cluster: verbs, watches and discovery over a transport, and the credentials for it.

The inputs are kinds, keys and objects. They become requests through a `Transport`; the results are plain objects or
typed errors. `Client` stores no objects: `konverge.cache` serves reads from memory. Every wait has a deadline,
everything that a server sends has a limit, and a request is repeated only if that is safe.
"""

from typing import TYPE_CHECKING

from konverge._internal.client.client import Client
from konverge._internal.client.config import ClusterConfig, TlsConfig
from konverge._internal.client.connect import connect, load_cluster_config
from konverge._internal.client.in_cluster import load_in_cluster
from konverge._internal.client.kubeconfig import load_kubeconfig
from konverge._internal.client.object_list import ListPage, ObjectList
from konverge._internal.client.pod_logs import PodLog
from konverge._internal.client.request_bodies import FieldValidation, PatchType, Propagation
from konverge._internal.client.request_observer import RequestObserver
from konverge._internal.client.server_warnings import ServerWarning
from konverge._internal.client.transport import Response, StreamingResponse, Transport
from konverge._internal.client.watch import Watch, WatchEvent
from konverge._internal.client.write_permit import WritePermit
from konverge._internal.client.write_verbs import ApplyResponse

if TYPE_CHECKING:
    from konverge._internal.client.http_transport import HttpTransport
else:

    def __getattr__(name: str) -> object:
        """Import the HTTP library on first use: it takes a quarter of a second, and the engine does not need it."""
        if name != "HttpTransport":
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from konverge._internal.client.http_transport import HttpTransport

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
