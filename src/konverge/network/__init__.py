"""Connections to places that somebody else names: which addresses may be reached, and how that is made sure of.

A name is resolved here, the address is judged, and the connection goes to exactly that address. By themselves only
addresses of the public internet may be reached; whoever runs a program says which other networks may. `GuardedHttp`
asks over HTTP in that way. Whatever comes of it that is no answer is a `NetworkError`.
"""

from konverge.network.addresses import Networks, parse_network
from konverge.network.bounds import Bounds
from konverge.network.connecting import Lookup, Names, connected, permitted
from konverge.network.credentials import Credential
from konverge.network.failures import (
    BrokenConnectionError,
    InvalidRequestError,
    MalformedAnswerError,
    NetworkError,
    NoTlsError,
    RefusedAddressError,
    RefusedRedirectError,
    TooLargeError,
    UnreachableError,
    UntrustedError,
)
from konverge.network.http import GuardedHttp, HopCheck, HttpAnswer, HttpSession, HttpStream, NameAddress
from konverge.network.pauses import wanted_pause
from konverge.network.proxies import Proxy
from konverge.network.trust import Trust
from konverge.network.urls import parsed_url

__all__ = [
    "Bounds",
    "BrokenConnectionError",
    "Credential",
    "GuardedHttp",
    "HopCheck",
    "HttpAnswer",
    "HttpSession",
    "HttpStream",
    "InvalidRequestError",
    "Lookup",
    "MalformedAnswerError",
    "NameAddress",
    "Names",
    "NetworkError",
    "Networks",
    "NoTlsError",
    "Proxy",
    "RefusedAddressError",
    "RefusedRedirectError",
    "TooLargeError",
    "Trust",
    "UnreachableError",
    "UntrustedError",
    "connected",
    "parse_network",
    "parsed_url",
    "permitted",
    "wanted_pause",
]
