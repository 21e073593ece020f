"""Requests and responses without a network, shared by the HTTP adapter and the in-process transport."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import msgspec

from konverge.errors import ApiError

__all__ = [
    "ResponseChunks",
    "ServerRequest",
    "ServerResponse",
    "StreamingResponse",
    "build_error_response",
    "build_json_response",
]

_JSON = "application/json"

# The size limit of all warnings together, and of each warning beyond that; as on the real server.
_WARNINGS_LIMIT = 4096
_WARNING_LIMIT = 256


@dataclass(frozen=True, slots=True)
class ServerRequest:
    """One request to the server.

    Attributes:
        method: The HTTP method in upper case.
        path: The percent-encoded path.
        query: The decoded query parameters; one value for a repeated parameter.
        headers: The headers with names in lower case. The values of a repeated header are joined: with line feeds,
            which no value contains, for impersonation, and otherwise with commas.
        body: The body; empty for none.
        trusted: True if the request comes from this process and not from a network.
    """

    method: str
    path: str
    query: Mapping[str, str] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    trusted: bool = False


@dataclass(frozen=True, slots=True)
class ServerResponse:
    """A complete response.

    Attributes:
        status: The HTTP status code.
        body: The body.
        headers: The headers without ``warning``; names are in lower case.
        warnings: The warnings of the server, each for its own header.
    """

    status: int
    body: bytes
    headers: Mapping[str, str] = field(default_factory=lambda: {"content-type": _JSON})
    warnings: tuple[str, ...] = ()

    def format_warning_headers(self) -> list[str]:
        """Return the values of the ``warning`` headers."""
        texts = list(self.warnings)
        if sum(map(len, texts)) > _WARNINGS_LIMIT:
            # Warnings can quote long values from the body, and no client accepts headers of that size.
            texts = [text[:_WARNING_LIMIT] for text in texts[: _WARNINGS_LIMIT // _WARNING_LIMIT]]
        return [f"299 - {msgspec.json.encode(text).decode()}" for text in texts]


class ResponseChunks(Protocol):
    """A streamed body, which the server can also end."""

    def __aiter__(self) -> AsyncIterator[bytes]:
        """Iterate over the parts of the body."""

    def aclose(self) -> Awaitable[None]:
        """End the body before its regular end."""


@dataclass(frozen=True, slots=True)
class StreamingResponse:
    """A response with a streamed body.

    Attributes:
        chunks: The body. The consumer must iterate or close it.
        status: The HTTP status code.
        headers: The headers with names in lower case.
    """

    chunks: ResponseChunks
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=lambda: {"content-type": _JSON})

    async def close(self) -> None:
        """End the body at any point; a second call does nothing."""
        await self.chunks.aclose()


def build_json_response(value: Any, status: int = 200, *, content_type: str = _JSON) -> ServerResponse:
    """Return a response with a JSON value."""
    return ServerResponse(status, msgspec.json.encode(value), {"content-type": content_type})


def build_error_response(error: ApiError) -> ServerResponse:
    """Return the response to a failed request."""
    answer = build_json_response(error.to_status(), error.code)
    if error.retry_after_seconds is None:
        return answer
    return ServerResponse(
        answer.status, answer.body, {**answer.headers, "retry-after": str(int(error.retry_after_seconds))}
    )
