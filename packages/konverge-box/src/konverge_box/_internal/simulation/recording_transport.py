"""A transport that records the operator's writes."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from typing import Any

import msgspec

from konverge._internal.client import Response, StreamingResponse, Transport
from konverge._internal.client.json_decoding import DECODE_ERRORS
from konverge_box._internal.simulation.step_report import RecordedOperation

__all__ = ["RecordingTransport"]

_WRITES = ("POST", "PUT", "PATCH", "DELETE")
# Objects that an operator writes for itself, and reviews, which are requests by POST without an effect.
_ASIDE = frozenset({"events", "leases", "selfsubjectaccessreviews", "selfsubjectrulesreviews", "tokenreviews"})


class RecordingTransport:
    """Forwards requests and records those that change an object.

    Args:
        transport: The transport for the requests.
        namespace: The namespace of the simulation; it is left out of the records.

    Attributes:
        operations: The recorded changes, in order.
    """

    def __init__(self, transport: Transport, namespace: str) -> None:
        self.operations: list[RecordedOperation] = []
        self._transport = transport
        self._kinds: dict[str, str] = {}
        self._namespace = namespace
        self._versions: dict[str, str] = {}

    def register_kind(self, plural: str, kind: str) -> None:
        """Register the kind of a plural in paths: responses to deletions do not contain the kind."""
        self._kinds[plural] = kind

    async def request(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] = {},
        headers: Mapping[str, str] = {},
        body: bytes | None = None,
        timeout_seconds: float,
    ) -> Response:
        """Send one request and record its change (`konverge.client.Transport.request`)."""
        response = await self._transport.request(
            method, path, query=query, headers=headers, body=body, timeout_seconds=timeout_seconds
        )
        if method in _WRITES and response.status < 300 and "dryRun" not in query:
            self._record_operation(method, path, response)
        return response

    def stream(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] = {},
        headers: Mapping[str, str] = {},
        connect_timeout_seconds: float,
    ) -> AbstractAsyncContextManager[StreamingResponse]:
        """Open a stream without recording (`konverge.client.Transport.stream`)."""
        return self._transport.stream(
            method, path, query=query, headers=headers, connect_timeout_seconds=connect_timeout_seconds
        )

    async def close(self) -> None:
        """Close all connections of the transport."""
        await self._transport.close()

    def _record_operation(self, method: str, path: str, response: Response) -> None:
        namespace, resource, name, subresource = _parse_path(path)
        if resource in _ASIDE:
            return
        try:
            obj: Any = msgspec.json.decode(response.body)
        except DECODE_ERRORS:
            obj = {}
        metadata = obj.get("metadata") if isinstance(obj, dict) else None
        metadata = metadata if isinstance(metadata, dict) else {}
        is_object = isinstance(metadata.get("uid"), str) and obj.get("kind") != "Status"
        verb = "deleted" if method == "DELETE" else "created" if response.status == 201 else "updated"
        if is_object:
            version = str(metadata.get("resourceVersion"))
            if self._versions.get(metadata["uid"]) == version and verb == "updated":
                return
            self._versions[metadata["uid"]] = version
        self.operations.append(
            RecordedOperation(
                verb=verb,
                kind=str(obj["kind"]) if is_object else self._kinds.get(resource, resource),
                namespace="" if namespace == self._namespace else namespace,
                name=str(metadata.get("name") or name),
                is_status=subresource == "status",
            )
        )


def _parse_path(path: str) -> tuple[str, str, str, str]:
    """Return namespace, resource, name and subresource of an API path."""
    parts = path.strip("/").split("/")
    rest = parts[2:] if parts[0] == "api" else parts[3:]
    namespace = ""
    if len(rest) > 2 and rest[0] == "namespaces":
        namespace, rest = rest[1], rest[2:]
    resource, name, subresource = (*rest, "", "", "")[:3]
    return namespace, resource, name, subresource
