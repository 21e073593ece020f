"""A client of the Kubernetes API and its configuration."""

from typing import TYPE_CHECKING

from konverge._internal.client import (
    ApplyResponse,
    Client,
    ClusterConfig,
    FieldValidation,
    ListPage,
    ObjectList,
    PatchType,
    PodLog,
    Propagation,
    RequestObserver,
    Response,
    ServerWarning,
    StreamingResponse,
    TlsConfig,
    Transport,
    Watch,
    WatchEvent,
    WritePermit,
    connect,
    load_cluster_config,
    load_in_cluster,
    load_kubeconfig,
)

if TYPE_CHECKING:
    from konverge._internal.client import HttpTransport
else:

    def __getattr__(name: str) -> object:
        """Import the HTTP library on first use: it takes a quarter of a second."""
        if name != "HttpTransport":
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from konverge._internal.client import HttpTransport

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
