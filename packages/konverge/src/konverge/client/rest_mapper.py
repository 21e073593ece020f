"""Finding where a kind is served, and looking again when it was not."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

from konverge.client.discovery import (
    AGGREGATED_ACCEPT,
    ServedKinds,
    is_aggregated,
    parse_aggregated,
    parse_group_versions,
    parse_legacy,
)
from konverge.client.sender import Sender, decode_object
from konverge.errors import ApiError, ConnectionFailedError, KindNotServedError, KindUnreachableError, NotFoundError
from konverge.kube import GroupVersionKind, Object, RestMapping

__all__ = ["RestMapper"]

# How old an answer of "not served" may be. Aggregated discovery is two small requests (a 304 each when nothing
# changed); legacy discovery is one a group version.
_FRESH_SECONDS = 1.0
_FRESH_LEGACY_SECONDS = 10.0

# So many group versions are asked for at a time in legacy discovery.
_MAX_PARALLEL = 8


@dataclass(slots=True)
class _DiscoveryCache:
    """What the server has said of its kinds. It belongs to one event loop."""

    served: ServedKinds = field(default_factory=ServedKinds)
    fetched_at: float | None = None
    forgot_at: float | None = None
    is_legacy: bool = False
    responses: dict[str, tuple[str, Object]] = field(default_factory=dict)
    asking: asyncio.Lock = field(default_factory=asyncio.Lock)

    def copy(self) -> _DiscoveryCache:
        """The same for another event loop."""
        return _DiscoveryCache(self.served, self.fetched_at, self.forgot_at, self.is_legacy, dict(self.responses))


class RestMapper:
    """Knows the kinds of one server; asks on first need, and again when a kind is missing.

    Args:
        sender: Asks the server.
        knowledge: What is known already; for `with_sender` and `copied`.
    """

    def __init__(self, sender: Sender, *, knowledge: _DiscoveryCache | None = None) -> None:
        self._sender = sender
        self._discovery = knowledge or _DiscoveryCache()

    def with_sender(self, sender: Sender) -> RestMapper:
        """One that asks through another sender and shares what both know."""
        return RestMapper(sender, knowledge=self._discovery)

    def clone(self, sender: Sender) -> RestMapper:
        """One that knows as much now, and shares nothing: for another event loop."""
        return RestMapper(sender, knowledge=self._discovery.copy())

    async def mapping(self, gvk: GroupVersionKind) -> RestMapping:
        """Where the kind is served.

        Raises:
            konverge.errors.KindNotServedError: It is not, by an answer that is at most a second old (ten seconds from
                a server without aggregated discovery). `konverge.errors.KindUnreachableError` if that cannot be told.
            konverge.errors.ApiError: Discovery failed.
        """
        found = self._discovery.served.by_kind.get(gvk)
        if found is None:
            await self._refresh()
            found = self._discovery.served.by_kind.get(gvk)
        if found is None and gvk.api_version in self._discovery.served.unreachable:
            raise KindUnreachableError(f"{gvk} is served by an aggregated API server that does not answer now")
        if found is None:
            raise KindNotServedError(self._explain_missing(gvk))
        return found

    async def find_current(self, gvk: GroupVersionKind) -> RestMapping | None:
        """Where the kind is served by an answer that is at most a few seconds old; None when it is not."""
        return (await self.fetch_served_kinds()).by_kind.get(gvk)

    async def fetch_served_kinds(self) -> ServedKinds:
        """Everything that the server serves, by an answer that is at most a few seconds old."""
        await self._refresh()
        return self._discovery.served

    def forget(self, gvk: GroupVersionKind) -> None:
        """The server answered that there is no such path: the next question about the kind asks anew.

        Once in a while only: discovery may go on naming what is gone.
        """
        if gvk in self._discovery.served.by_kind:
            remaining = tuple(found for found in self._discovery.served.mappings if found.gvk != gvk)
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
        """Ask the server, unless the last answer is fresh. Callers that come together share one answer."""
        came_at = self._sender.clock.monotonic()
        async with self._discovery.asking:
            if self._discovery.fetched_at is not None and came_at - self._discovery.fetched_at < self._fresh_seconds:
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
            # The moment of asking: what was installed since is not in the answer.
            self._discovery.fetched_at = now

    async def _fetch_document(self, path: str) -> Object:
        headers = {"accept": AGGREGATED_ACCEPT}
        etag, known = self._discovery.responses.get(path, ("", {}))
        if etag:
            headers["if-none-match"] = etag
        try:
            answer = await self._sender.send("GET", path, headers=headers)
        except NotFoundError:
            return {}  # a server without a core API (or without any other) is odd, not wrong
        if answer.status == 304:
            return known
        document = decode_object(answer, "GET", path)
        self._discovery.responses[path] = (answer.headers.get("etag", ""), document)
        return document

    async def _fetch_legacy_kinds(self, group_versions: tuple[str, ...]) -> ServedKinds:
        room = asyncio.Semaphore(_MAX_PARALLEL)

        async def fetch_kinds(group_version: str) -> ServedKinds:
            path = f"/apis/{group_version}" if "/" in group_version else f"/api/{group_version}"
            async with room:
                try:
                    return parse_legacy(decode_object(await self._sender.send("GET", path), "GET", path))
                except (ApiError, ConnectionFailedError):
                    # One aggregated API that is down must not hide the kinds of all others.
                    return ServedKinds(unreachable=frozenset({group_version}))

        async with asyncio.TaskGroup() as tasks:
            asked = [tasks.create_task(fetch_kinds(name)) for name in group_versions]
        served = ServedKinds()
        for task in asked:
            served = served.merge(task.result())
        return served
