"""A transport that responds from a script and records the requests."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import msgspec

from konverge.errors import KonvergeError, NotConnectedError
from konverge.kube import Object

DISCOVERY: dict[str, Object] = {
    "/api": {
        "kind": "APIGroupDiscoveryList",
        "items": [
            {
                "metadata": {},
                "versions": [
                    {
                        "version": "v1",
                        "resources": [
                            {
                                "resource": "configmaps",
                                "responseKind": {"group": "", "version": "v1", "kind": "ConfigMap"},
                                "scope": "Namespaced",
                                "verbs": ["get", "list", "watch"],
                            }
                        ],
                    }
                ],
            }
        ],
    },
    "/apis": {"kind": "APIGroupDiscoveryList", "items": []},
}


@dataclass(frozen=True)
class ScriptedRequest:
    """One recorded request."""

    method: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: Any
    timeout_seconds: float


@dataclass(frozen=True)
class ScriptedResponse:
    """One response; `body` is sent as JSON unless it is bytes."""

    status: int = 200
    json: Any = None
    headers: Mapping[str, str] = field(default_factory=dict)

    @property
    def body(self) -> bytes:
        return self.json if isinstance(self.json, bytes) else msgspec.json.encode(self.json)


def build_failure(code: int, reason: str = "", message: str = "no", **details: Any) -> ScriptedResponse:
    """Build a response with a Status; ``retry_after`` becomes the header."""
    retry_after = details.pop("retry_after", None)
    headers = {} if retry_after is None else {"retry-after": str(retry_after)}
    status = {"kind": "Status", "status": "Failure", "code": code, "reason": reason, "message": message}
    return ScriptedResponse(code, status | ({"details": details} if details else {}), headers)


class ScriptedStream:
    """A stream under the test's control: `send` chunks, `end` it, or `fail` it."""

    def __init__(self, status: int = 200, body: Any = None) -> None:
        self.status = status
        self.headers: Mapping[str, str] = {}
        self.closed = False
        self._body = ScriptedResponse(status, body).body
        self._chunks: asyncio.Queue[bytes | KonvergeError | None] = asyncio.Queue()

    def send(self, *lines: bytes) -> ScriptedStream:
        for line in lines:
            self._chunks.put_nowait(line + b"\n")
        return self

    def send_chunk(self, chunk: bytes) -> ScriptedStream:
        self._chunks.put_nowait(chunk)
        return self

    def end(self) -> ScriptedStream:
        self._chunks.put_nowait(None)
        return self

    def fail(self, error: KonvergeError) -> ScriptedStream:
        self._chunks.put_nowait(error)
        return self

    async def chunks(self) -> AsyncIterator[bytes]:
        while (chunk := await self._chunks.get()) is not None:
            if isinstance(chunk, KonvergeError):
                raise chunk
            yield chunk

    async def body(self) -> bytes:
        return self._body


Script = (
    ScriptedResponse | ScriptedStream | KonvergeError | Callable[[ScriptedRequest], ScriptedResponse | KonvergeError]
)


class ScriptedTransport:
    """A transport that responds to discovery by itself, and to everything else from a script, in order.

    Args:
        script: The responses: each a response, an error to raise, or a function of the request. After the last one,
            each request fails.
        discovery: The responses of ``/api`` and ``/apis``; None to use the script for them as well.
    """

    def __init__(self, *script: Script, discovery: Mapping[str, Object] | None = DISCOVERY) -> None:
        self.script: deque[Script] = deque(script)
        self.discovery = discovery
        self.asked: list[ScriptedRequest] = []
        self.closed = False

    @property
    def paths(self) -> list[str]:
        return [asked.path for asked in self.asked]

    def extend_script(self, script: Iterable[Script]) -> None:
        self.script.extend(script)

    async def request(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] = {},
        headers: Mapping[str, str] = {},
        body: bytes | None = None,
        timeout_seconds: float,
    ) -> ScriptedResponse:
        if self.discovery is not None and path in self.discovery:
            return ScriptedResponse(json=self.discovery[path])
        decoded = None if body is None else msgspec.json.decode(body)
        asked = ScriptedRequest(method, path, query, headers, decoded, timeout_seconds)
        answer = self._next(asked)
        assert isinstance(answer, ScriptedResponse), f"the script has a stream for {method} {path}"
        return answer

    @asynccontextmanager
    async def stream(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] = {},
        headers: Mapping[str, str] = {},
        connect_timeout_seconds: float,
    ) -> AsyncIterator[ScriptedStream]:
        answer = self._next(ScriptedRequest(method, path, query, headers, None, connect_timeout_seconds))
        stream = answer if isinstance(answer, ScriptedStream) else ScriptedStream(answer.status, answer.json)
        try:
            yield stream
        finally:
            stream.closed = True

    async def close(self) -> None:
        self.closed = True

    def _next(self, asked: ScriptedRequest) -> ScriptedResponse | ScriptedStream:
        self.asked.append(asked)
        if not self.script:
            raise NotConnectedError("the script is used up")
        answer = self.script.popleft()
        if callable(answer):
            answer = answer(asked)
        if isinstance(answer, KonvergeError):
            raise answer
        return answer
