"""A client of the server with the terms of HTTP, but without HTTP."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl

from konverge_cluster._internal.embedded.apiserver import ApiServer
from konverge_cluster._internal.embedded.messages import ServerRequest, ServerResponse, StreamingResponse
from konverge_cluster._internal.embedded.request_handler import RequestHandler

TABLE = {"accept": "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"}
METADATA = {"accept": "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"}
ONE_METADATA = {"accept": "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"}
APPLY = "application/apply-patch+yaml"
MERGE = "application/merge-patch+json"
JSON_PATCH = "application/json-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"


@dataclass(frozen=True)
class ParsedResponse:
    """A response with a decoded body."""

    status: int
    body: Any
    headers: Mapping[str, str]
    warnings: tuple[str, ...]


class RequestClient:
    """Calls a request handler; `api` is its server."""

    def __init__(self, handler: RequestHandler, api: ApiServer) -> None:
        self.handler = handler
        self.api = api

    def __call__(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        content_type: str = "application/json",
        headers: Mapping[str, str] = {},
    ) -> ParsedResponse:
        answer = self._handle(method, path, body, content_type, headers)
        assert isinstance(answer, ServerResponse), f"{method} {path} is answered by a stream"
        decoded: Any = answer.body or None
        if answer.body and answer.headers["content-type"].startswith("application/json"):
            decoded = json.loads(answer.body)
        return ParsedResponse(answer.status, decoded, answer.headers, answer.warnings)

    def stream(self, path: str, *, headers: Mapping[str, str] = {}) -> StreamingResponse:
        answer = self._handle("GET", path, None, "", headers)
        assert isinstance(answer, StreamingResponse), f"GET {path} is answered at once: {answer}"
        return answer

    def _handle(
        self, method: str, path: str, body: Any, content_type: str, headers: Mapping[str, str]
    ) -> ServerResponse | StreamingResponse:
        where, _, query = path.partition("?")
        sent = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
        named = {"user-agent": "tester/1.0", "content-type": content_type, **headers}
        return self.handler.handle_without_webhooks(
            ServerRequest(method, where, dict(parse_qsl(query, keep_blank_values=True)), named, sent)
        )


async def read_all_events(stream: StreamingResponse) -> list[dict[str, Any]]:
    """Return all events of a watch until it ends."""
    lines = [line async for chunk in stream.chunks for line in chunk.splitlines()]
    return [json.loads(line) for line in lines]


async def read_next_events(stream: StreamingResponse) -> list[dict[str, Any]]:
    """Return the events of the next chunk."""
    chunk = await anext(aiter(stream.chunks))
    return [json.loads(line) for line in chunk.splitlines()]
