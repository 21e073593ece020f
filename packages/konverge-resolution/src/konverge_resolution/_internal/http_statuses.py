"""Meanings of HTTP status codes of client errors (4xx), for resolvers over HTTP and for git. Pure."""

from __future__ import annotations

from konverge_resolution._internal.reasons import Reason

__all__ = ["CLIENT_ERRORS", "OTHER_CLIENT_ERROR"]

_INVALID_REQUEST = (Reason.INVALID_PARAMETERS, "rejects the request as invalid")
CLIENT_ERRORS: dict[int, tuple[Reason, str]] = {
    400: _INVALID_REQUEST,
    404: (Reason.NOT_FOUND, "does not exist or is hidden"),
    406: (Reason.UNSUPPORTED_CONTENT, "has no content of a supported media type"),
    407: (Reason.UNREACHABLE, "is behind a proxy that requires a credential"),
    408: (Reason.UNREACHABLE, "reports a request timeout"),
    410: (Reason.NOT_FOUND, "does not exist any more"),
    414: _INVALID_REQUEST,
    421: (Reason.UNREACHABLE, "cannot answer on this connection"),
    422: _INVALID_REQUEST,
    425: (Reason.UNREACHABLE, "requests a later attempt"),
    429: (Reason.RATE_LIMITED, "limits the rate of requests"),
    431: _INVALID_REQUEST,
    451: (Reason.DENIED, "refuses the content for legal reasons"),
}
"""Reason and message by status code (4xx), besides 401 and 403, which depend on the credential."""

OTHER_CLIENT_ERROR = (Reason.DENIED, "refuses the request")
"""Reason and message of all others. Not ``NotFound``: a refusal must not lead to the next source of a list."""
