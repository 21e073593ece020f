"""Errors of HTTP sources for resolvers."""

from __future__ import annotations

from konverge_resolution._internal.http_failures import (
    CA_CERTIFICATES_HINT,
    CONNECTION_SETTINGS,
    PLAIN_HTTP_HINT,
    build_http_client,
    build_status_error,
    check_status,
    parse_proxy,
    wrap_network_errors,
)

__all__ = [
    "CA_CERTIFICATES_HINT",
    "CONNECTION_SETTINGS",
    "PLAIN_HTTP_HINT",
    "build_http_client",
    "build_status_error",
    "check_status",
    "parse_proxy",
    "wrap_network_errors",
]
