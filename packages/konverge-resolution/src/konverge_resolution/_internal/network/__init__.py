"""Connections to addresses that others name: the permitted networks, and their enforcement.

This package resolves a name, checks the address, and connects to exactly that address. By default only addresses of the
public internet are permitted; the configuration of a program can permit others. `GuardedHttp` sends HTTP requests under
these rules. Every failure is a `NetworkError`.
"""

from konverge_resolution._internal.network.allowed_networks import AllowedNetworks, parse_network
from konverge_resolution._internal.network.concurrency import ConcurrencyLimiter
from konverge_resolution._internal.network.connection_pools import ConnectionPools
from konverge_resolution._internal.network.dialer import DnsResolver, Lookup, open_connection, resolve_permitted
from konverge_resolution._internal.network.environment_proxies import EnvironmentProxies
from konverge_resolution._internal.network.errors import (
    BrokenConnectionError,
    HostUnreachableError,
    InvalidRequestError,
    MalformedResponseError,
    NetworkError,
    NoTlsError,
    RefusedAddressError,
    RefusedRedirectError,
    ResponseTooLargeError,
    UntrustedCertificateError,
)
from konverge_resolution._internal.network.guarded_http import (
    AddressNamer,
    GuardedHttp,
    HopCheck,
    HttpResponse,
    HttpSession,
    HttpStream,
)
from konverge_resolution._internal.network.origin_credential import OriginCredential
from konverge_resolution._internal.network.proxy import Proxy
from konverge_resolution._internal.network.retry_after import parse_retry_after
from konverge_resolution._internal.network.trust_store import TrustStore
from konverge_resolution._internal.network.url_parsing import parse_url

__all__ = [
    "AddressNamer",
    "AllowedNetworks",
    "BrokenConnectionError",
    "ConcurrencyLimiter",
    "ConnectionPools",
    "DnsResolver",
    "EnvironmentProxies",
    "GuardedHttp",
    "HopCheck",
    "HostUnreachableError",
    "HttpResponse",
    "HttpSession",
    "HttpStream",
    "InvalidRequestError",
    "Lookup",
    "MalformedResponseError",
    "NetworkError",
    "NoTlsError",
    "OriginCredential",
    "Proxy",
    "RefusedAddressError",
    "RefusedRedirectError",
    "ResponseTooLargeError",
    "TrustStore",
    "UntrustedCertificateError",
    "open_connection",
    "parse_network",
    "parse_retry_after",
    "parse_url",
    "resolve_permitted",
]
