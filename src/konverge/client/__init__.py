"""Access to one cluster: verbs, watches and discovery over a transport, and credentials to open it with.

What comes in is a kind, a key, an object; what goes out are requests through a `Transport`, and what comes back are
plain objects or typed errors. `Client` holds no objects: reading from memory is `konverge.cache`'s business. Every wait
has a deadline, everything that a server sends is bounded, and a request is repeated only where that is safe.
"""

from konverge.client.client import Applied, Client, ListPage, ObjectList, PatchType, Propagation
from konverge.client.cluster import ClusterConfig, Tls
from konverge.client.connect import cluster_config, connect
from konverge.client.http import HttpTransport
from konverge.client.in_cluster import load_in_cluster
from konverge.client.kubeconfig import load_kubeconfig
from konverge.client.transport import Response, StreamingResponse, Transport
from konverge.client.watch import Watch, WatchEvent

__all__ = [
    "Applied",
    "Client",
    "ClusterConfig",
    "HttpTransport",
    "ListPage",
    "ObjectList",
    "PatchType",
    "Propagation",
    "Response",
    "StreamingResponse",
    "Tls",
    "Transport",
    "Watch",
    "WatchEvent",
    "cluster_config",
    "connect",
    "load_in_cluster",
    "load_kubeconfig",
]
