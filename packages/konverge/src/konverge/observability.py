"""Options and sources of metrics, probes and the debug page."""

from __future__ import annotations

from konverge._internal.runtime.log_formatters import (
    JsonFormatter,
    LogFormat,
    TextFormatter,
    install_formatter,
)
from konverge._internal.runtime.observability import (
    DEFAULT_FRESHNESS,
    AccessDecision,
    Authenticator,
    ClusterAuthorization,
    HealthCheck,
    Metrics,
    ObservabilityOptions,
    TokenFileAuthenticator,
)

__all__ = [
    "DEFAULT_FRESHNESS",
    "AccessDecision",
    "Authenticator",
    "ClusterAuthorization",
    "HealthCheck",
    "JsonFormatter",
    "LogFormat",
    "Metrics",
    "ObservabilityOptions",
    "TextFormatter",
    "TokenFileAuthenticator",
    "install_formatter",
]
