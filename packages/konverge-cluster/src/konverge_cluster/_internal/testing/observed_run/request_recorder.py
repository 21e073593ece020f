"""The requests of a client as RBAC sees them: verb, resource and namespace."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import AsyncIterator, Collection, Iterable, Mapping
from contextlib import asynccontextmanager
from types import MappingProxyType
from typing import NamedTuple

from konverge._internal.client import Transport
from konverge._internal.client.transport import Response, StreamingResponse
from konverge._internal.kube import RestMapping
from konverge._internal.operator.observed_access import ObservedAccess
from konverge._internal.operator.rbac_rules import READ, WRITE, AccessScope

__all__ = ["RecordedRequest", "RecordingTransport", "build_accesses", "parse_request"]

_NOTHING: Mapping[str, str] = MappingProxyType({})
_PATH = re.compile(r"/(?:api/(?P<core>[^/]+)|apis/(?P<group>[^/]+)/(?P<version>[^/]+))/(?P<rest>.+)")
_SUBRESOURCES_OF_NAMESPACES = ("status", "finalize")
_VERBS = {"POST": "create", "PUT": "update", "PATCH": "patch"}


class RecordedRequest(NamedTuple):
    """One request for a resource.

    Args:
        group: The API group.
        version: The version.
        resource: The plural, and after a slash the subresource.
        namespace: The namespace; empty for none or all.
        verbs: The verbs that the request requires.
    """

    group: str
    version: str
    resource: str
    namespace: str
    verbs: tuple[str, ...]


def parse_request(method: str, path: str, query: Mapping[str, str], content_type: str) -> RecordedRequest | None:
    """Return the request as an authorizer sees it; None for a path without a resource, such as discovery.

    Args:
        method: The HTTP method.
        path: The path, without the query.
        query: The query.
        content_type: The type of the body.
    """
    match = _PATH.fullmatch(path)
    if match is None:
        return None
    parts, namespace = match["rest"].split("/"), ""
    if parts[0] == "namespaces" and len(parts) > 2 and parts[2] not in _SUBRESOURCES_OF_NAMESPACES:
        namespace, parts = parts[1], parts[2:]
    has_name = len(parts) > 1
    verbs: tuple[str, ...]
    if method == "PATCH" and content_type.startswith("application/apply-patch"):
        verbs = WRITE  # the API server requires both if the object does not exist
    elif method == "DELETE":
        verbs = ("delete",) if has_name else ("deletecollection",)
    elif method in _VERBS:
        verbs = (_VERBS[method],)
    elif query.get("watch", "") in ("1", "true"):
        verbs = READ  # of a cache: it lists, watches, and gets what it is not certain of
    else:
        verbs = ("get",) if has_name else ("list",)
    resource = "/".join((parts[0], *parts[2:3]))
    return RecordedRequest(match["group"] or "", match["version"] or match["core"], resource, namespace, verbs)


def build_accesses(
    requests: Iterable[RecordedRequest], mappings: Iterable[RestMapping], owner_namespaces: Collection[str] | None
) -> list[ObservedAccess]:
    """Return the access of the requests, sorted; requests for unknown resources are left out.

    Args:
        requests: The requests.
        mappings: The kinds that the server serves.
        owner_namespaces: The namespaces with roles of their own; None if a ClusterRole grants everything.
    """
    kinds = {(mapping.gvk.group, mapping.gvk.version, mapping.plural): mapping for mapping in mappings}
    verbs: defaultdict[tuple[str, str, str, str, str], set[str]] = defaultdict(set)
    for request in requests:
        mapping = kinds.get((request.group, request.version, request.resource.partition("/")[0]))
        if mapping is None:
            continue
        scope, namespace = AccessScope.OWNERS, ""
        if not mapping.namespaced or (owner_namespaces is not None and not request.namespace):
            scope = AccessScope.CLUSTER
        elif owner_namespaces is not None and request.namespace not in owner_namespaces:
            scope, namespace = AccessScope.NAMESPACE, request.namespace
        kind = f"{mapping.gvk.api_version}/{mapping.gvk.kind}"
        verbs[request.group, request.resource, kind, scope.name, namespace].update(request.verbs)
    return sorted(
        ObservedAccess(group, resource, kind, tuple(sorted(used)), scope, namespace)
        for (group, resource, kind, scope, namespace), used in verbs.items()
    )


class RecordingTransport:
    """A transport that records each request.

    Args:
        transport: Sends the requests.
    """

    def __init__(self, transport: Transport) -> None:
        self.requests: set[RecordedRequest] = set()
        self._transport = transport

    async def request(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] = _NOTHING,
        headers: Mapping[str, str] = _NOTHING,
        body: bytes | None = None,
        timeout_seconds: float,
    ) -> Response:
        """Record and send one request (`konverge.client.Transport.request`)."""
        self._record(method, path, query, headers)
        return await self._transport.request(
            method, path, query=query, headers=headers, body=body, timeout_seconds=timeout_seconds
        )

    @asynccontextmanager
    async def stream(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] = _NOTHING,
        headers: Mapping[str, str] = _NOTHING,
        connect_timeout_seconds: float,
    ) -> AsyncIterator[StreamingResponse]:
        """Record and open one stream (`konverge.client.Transport.stream`)."""
        self._record(method, path, query, headers)
        async with self._transport.stream(
            method, path, query=query, headers=headers, connect_timeout_seconds=connect_timeout_seconds
        ) as response:
            yield response

    async def close(self) -> None:
        """Close the transport that sends the requests."""
        await self._transport.close()

    def _record(self, method: str, path: str, query: Mapping[str, str], headers: Mapping[str, str]) -> None:
        content_type = next((value for name, value in headers.items() if name.lower() == "content-type"), "")
        request = parse_request(method, path, query, content_type)
        if request is not None:
            self.requests.add(request)
