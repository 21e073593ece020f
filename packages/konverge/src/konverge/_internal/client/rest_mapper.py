"""The REST mapper: it finds the mapping of a kind through discovery, and repeats discovery for a missing kind."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

from konverge._internal.client.discovery import (
    AGGREGATED_ACCEPT,
    ServedKinds,
    is_aggregated,
    parse_aggregated,
    parse_group_versions,
    parse_legacy,
)
from konverge._internal.client.sender import Sender, decode_object
from konverge._internal.kube import GroupVersionKind, Object, RestMapping
from konverge.errors import ApiError, ConnectionFailedError, KindNotServedError, KindUnreachableError, NotFoundError

__all__ = ["RestMapper"]

# The maximum age of the result "not served". Aggregated discovery takes two small requests (304 if nothing changed);
# legacy discovery takes one for each group version.
_FRESH_SECONDS = 1.0
_FRESH_LEGACY_SECONDS = 10.0

# The number of concurrent requests in legacy discovery.
_MAX_PARALLEL = 8


@dataclass(slots=True)
class _DiscoveryCache:
    """The results of discovery. It belongs to one event loop."""

    served: ServedKinds = field(default_factory=ServedKinds)
    fetched_at: float | None = None
    forgot_at: float | None = None
    is_legacy: bool = False
    responses: dict[str, tuple[str, Object]] = field(default_factory=dict)
    refreshing: asyncio.Lock = field(default_factory=asyncio.Lock)

    def copy(self) -> _DiscoveryCache:
        """Return a copy for another event loop."""
        return _DiscoveryCache(self.served, self.fetched_at, self.forgot_at, self.is_legacy, dict(self.responses))


class RestMapper:
    """The mapper of one server's kinds; it runs discovery on first use, and again if a kind is missing.

    Args:
        sender: The sender of the requests.
        knowledge: The results of earlier discovery; for `with_sender` and `clone`.
    """

    def __init__(self, sender: Sender, *, knowledge: _DiscoveryCache | None = None) -> None:
        self._sender = sender
        self._discovery = knowledge or _DiscoveryCache()

    def with_sender(self, sender: Sender) -> RestMapper:
        """Return a mapper with another sender that shares the discovery cache."""
        return RestMapper(sender, knowledge=self._discovery)

    def clone(self, sender: Sender) -> RestMapper:
        """Return a mapper with a copy of the discovery cache, for another event loop."""
        return RestMapper(sender, knowledge=self._discovery.copy())

    async def mapping(self, gvk: GroupVersionKind) -> RestMapping:
        """Return the mapping of the kind.

        Raises:
            konverge.errors.KindNotServedError: The server does not serve the kind, by a result that is at most a
                second old (ten seconds without aggregated discovery). `konverge.errors.KindUnreachableError` if the
                result is unknown.
            konverge.errors.ApiError: Discovery failed.
        """
        mapping = self._discovery.served.by_kind.get(gvk)
        if mapping is None:
            await self._refresh()
            mapping = self._discovery.served.by_kind.get(gvk)
        if mapping is None and gvk.api_version in self._discovery.served.unreachable:
            raise KindUnreachableError(f"{gvk}: the aggregated API server of this kind does not respond now")
        if mapping is None:
            raise KindNotServedError(self._explain_missing(gvk))
        return mapping

    async def find_current(self, gvk: GroupVersionKind) -> RestMapping | None:
        """Return the mapping of the kind by a result that is at most a few seconds old; None if it is not served."""
        return (await self.fetch_served_kinds()).by_kind.get(gvk)

    async def fetch_served_kinds(self) -> ServedKinds:
        """Return all kinds that the server serves, by a result that is at most a few seconds old."""
        await self._refresh()
        return self._discovery.served

    def forget(self, gvk: GroupVersionKind) -> None:
        """Forget a kind whose path does not exist: the next use of the kind repeats discovery.

        The repetition has a minimum interval, because discovery may still list a removed kind.
        """
        if gvk in self._discovery.served.by_kind:
            remaining = tuple(mapping for mapping in self._discovery.served.mappings if mapping.gvk != gvk)
            self._discovery.served = ServedKinds(remaining, self._discovery.served.unreachable)
            now = self._sender.clock.monotonic()
            if self._discovery.forgot_at is None or now - self._discovery.forgot_at >= self._fresh_seconds:
                self._discovery.forgot_at, self._discovery.fetched_at = now, None

    def _explain_missing(self, gvk: GroupVersionKind) -> str:
        versions = self._discovery.served.list_versions(gvk.group, gvk.kind)
        if versions:
            return f"the server does not serve {gvk}; it serves {gvk.kind} as {', '.join(versions)}"
        if "." in gvk.group:
            return f"the server does not serve {gvk}: is its CustomResourceDefinition installed?"
        return f"the server does not serve {gvk}"

    @property
    def _fresh_seconds(self) -> float:
        return _FRESH_LEGACY_SECONDS if self._discovery.is_legacy else _FRESH_SECONDS

    async def _refresh(self) -> None:
        """Run discovery, unless the last result is fresh. Concurrent callers share one result."""
        called_at = self._sender.clock.monotonic()
        async with self._discovery.refreshing:
            if self._discovery.fetched_at is not None and called_at - self._discovery.fetched_at < self._fresh_seconds:
                return
            now = self._sender.clock.monotonic()
            core, groups = await self._fetch_document("/api"), await self._fetch_document("/apis")
            self._discovery.is_legacy = not (is_aggregated(core) and is_aggregated(groups))
            if self._discovery.is_legacy:
                self._discovery.served = await self._fetch_legacy_kinds(
                    parse_group_versions(core) + parse_group_versions(groups)
                )
            else:
                self._discovery.served = parse_aggregated(core).merge(parse_aggregated(groups))
            # The time of the request: kinds that were installed later are not in the result.
            self._discovery.fetched_at = now

    async def _fetch_document(self, path: str) -> Object:
        headers = {"accept": AGGREGATED_ACCEPT}
        etag, cached = self._discovery.responses.get(path, ("", {}))
        if etag:
            headers["if-none-match"] = etag
        try:
            response = await self._sender.send("GET", path, headers=headers)
        except NotFoundError:
            return {}  # a server without a core API (or without any other) is unusual, but valid
        if response.status == 304:
            return cached
        document = decode_object(response, "GET", path)
        self._discovery.responses[path] = (response.headers.get("etag", ""), document)
        return document

    async def _fetch_legacy_kinds(self, group_versions: tuple[str, ...]) -> ServedKinds:
        slots = asyncio.Semaphore(_MAX_PARALLEL)

        async def fetch_kinds(group_version: str) -> ServedKinds:
            path = f"/apis/{group_version}" if "/" in group_version else f"/api/{group_version}"
            async with slots:
                try:
                    return parse_legacy(decode_object(await self._sender.send("GET", path), "GET", path))
                except (ApiError, ConnectionFailedError):
                    # One aggregated API that is down must not hide the kinds of all others.
                    return ServedKinds(unreachable=frozenset({group_version}))

        async with asyncio.TaskGroup() as tasks:
            fetches = [tasks.create_task(fetch_kinds(name)) for name in group_versions]
        served = ServedKinds()
        for task in fetches:
            served = served.merge(task.result())
        return served
