"""Requests and answers without a network: what the HTTP adapter and the in-process transport have in common."""

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

# Of all warnings of an answer together, and of each when they are longer than that; as on the real server.
_WARNINGS_LIMIT = 4096
_WARNING_LIMIT = 256


@dataclass(frozen=True, slots=True)
class ServerRequest:
    """One request.

    Attributes:
        method: The HTTP method, in capitals.
        path: The path, still percent-encoded.
        query: The query, decoded; of a parameter that stands twice, one.
        headers: The headers; names are in lower case.
        body: The body, empty for none.
        trusted: Whether it comes from within this process, and not over a network.
    """

    method: str
    path: str
    query: Mapping[str, str] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    trusted: bool = False


@dataclass(frozen=True, slots=True)
class ServerResponse:
    """A whole answer.

    Attributes:
        status: The HTTP status code.
        body: The body.
        headers: The headers but for ``warning``; names are in lower case.
        warnings: What the server warns of, each a header of its own.
    """

    status: int
    body: bytes
    headers: Mapping[str, str] = field(default_factory=lambda: {"content-type": _JSON})
    warnings: tuple[str, ...] = ()

    def format_warning_headers(self) -> list[str]:
        """The values of the ``warning`` headers."""
        texts = list(self.warnings)
        if sum(map(len, texts)) > _WARNINGS_LIMIT:
            # What comes from the body can be as long as that, and no client takes such headers.
            texts = [text[:_WARNING_LIMIT] for text in texts[: _WARNINGS_LIMIT // _WARNING_LIMIT]]
        return [f"299 - {msgspec.json.encode(text).decode()}" for text in texts]


class ResponseChunks(Protocol):
    """A body that comes bit by bit, and can be ended from outside."""

    def __aiter__(self) -> AsyncIterator[bytes]:
        """The pieces."""

    def aclose(self) -> Awaitable[None]:
        """End it."""


@dataclass(frozen=True, slots=True)
class StreamingResponse:
    """An answer whose body comes bit by bit.

    Attributes:
        chunks: The body. Whoever takes the answer must iterate it or close it.
        status: The HTTP status code.
        headers: The headers; names are in lower case.
    """

    chunks: ResponseChunks
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=lambda: {"content-type": _JSON})

    async def close(self) -> None:
        """End the body, wherever it is; safe to call twice."""
        await self.chunks.aclose()


def build_json_response(value: Any, status: int = 200, *, content_type: str = _JSON) -> ServerResponse:
    """An answer that is a JSON value."""
    return ServerResponse(status, msgspec.json.encode(value), {"content-type": content_type})


def build_error_response(error: ApiError) -> ServerResponse:
    """The answer to a request that failed."""
    answer = build_json_response(error.to_status(), error.code)
    if error.retry_after_seconds is None:
        return answer
    return ServerResponse(
        answer.status, answer.body, {**answer.headers, "retry-after": str(int(error.retry_after_seconds))}
    )
