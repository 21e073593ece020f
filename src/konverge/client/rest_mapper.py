"""Finding where a kind is served, and looking again when it was not."""

from __future__ import annotations

import asyncio

from konverge.client.discovery import (
    AGGREGATED_ACCEPT,
    ServedKinds,
    group_versions_of,
    is_aggregated,
    parse_aggregated,
    parse_legacy,
)
from konverge.client.sending import Sender, decode_object
from konverge.clock import Clock
from konverge.errors import ApiError, ConnectionFailedError, KindNotServedError, NotFoundError
from konverge.kube import GroupVersionKind, Object, ResourceMapping

__all__ = ["RestMapper"]

# How old an answer of "not served" may be. Aggregated discovery is two small requests (a 304 each when nothing
# changed); legacy discovery is one a group version.
_FRESH_SECONDS = 1.0
_FRESH_LEGACY_SECONDS = 10.0

# So many group versions are asked for at a time in legacy discovery.
_PARALLEL = 8


class RestMapper:
    """Knows the kinds of one server; asks on first need, and again when a kind is missing.

    Args:
        sender: Asks the server.
        clock: Says how old the knowledge is.
    """

    def __init__(self, sender: Sender, clock: Clock) -> None:
        self._sender = sender
        self._clock = clock
        self._served = ServedKinds()
        self._asked_at: float | None = None
        self._legacy = False
        self._answers: dict[str, tuple[str, Object]] = {}
        self._lock = asyncio.Lock()

    async def mapping(self, gvk: GroupVersionKind) -> ResourceMapping:
        """Where the kind is served.

        Raises:
            konverge.errors.KindNotServedError: It is not, by an answer that is at most a second old (ten seconds from
                a server without aggregated discovery).
            konverge.errors.ApiError: Discovery failed.
        """
        found = self._served.by_kind.get(gvk)
        if found is None:
            await self._refresh(_FRESH_LEGACY_SECONDS if self._legacy else _FRESH_SECONDS)
            found = self._served.by_kind.get(gvk)
        if found is None:
            raise KindNotServedError(self._explain(gvk))
        return found

    async def served(self) -> ServedKinds:
        """Everything that the server serves, by an answer that is at most a few seconds old."""
        await self._refresh(_FRESH_LEGACY_SECONDS if self._legacy else _FRESH_SECONDS)
        return self._served

    def forget(self, gvk: GroupVersionKind) -> None:
        """The server answered that there is no such path: the next question about the kind asks anew."""
        if gvk in self._served.by_kind:
            remaining = tuple(found for found in self._served.mappings if found.gvk != gvk)
            self._served = ServedKinds(remaining, self._served.unreachable)
            self._asked_at = None

    def _explain(self, gvk: GroupVersionKind) -> str:
        if gvk.api_version in self._served.unreachable:
            return f"{gvk} is served by an aggregated API server that does not answer now"
        versions = self._served.versions_of(gvk.group, gvk.kind)
        if versions:
            return f"the server does not serve {gvk}; it serves {gvk.kind} as {', '.join(versions)}"
        if "." in gvk.group:
            return f"the server does not serve {gvk}: is its CustomResourceDefinition installed?"
        return f"the server does not serve {gvk}"

    async def _refresh(self, fresh_seconds: float) -> None:
        """Ask the server, unless the last answer is that fresh. Callers that come together share one answer."""
        came_at = self._clock.monotonic()
        async with self._lock:
            if self._asked_at is not None and came_at - self._asked_at < fresh_seconds:
                return
            now = self._clock.monotonic()
            core, groups = await self._document("/api"), await self._document("/apis")
            self._legacy = not (is_aggregated(core) and is_aggregated(groups))
            if self._legacy:
                self._served = await self._legacy_kinds(group_versions_of(core) + group_versions_of(groups))
            else:
                self._served = parse_aggregated(core).joined(parse_aggregated(groups))
            # The moment of asking: what was installed since is not in the answer.
            self._asked_at = now

    async def _document(self, path: str) -> Object:
        headers = {"accept": AGGREGATED_ACCEPT}
        etag, known = self._answers.get(path, ("", {}))
        if etag:
            headers["if-none-match"] = etag
        try:
            answer = await self._sender.send("GET", path, headers=headers)
        except NotFoundError:
            return {}  # a server without a core API (or without any other) is odd, not wrong
        if answer.status == 304:
            return known
        document = decode_object(answer, "GET", path)
        self._answers[path] = (answer.headers.get("etag", ""), document)
        return document

    async def _legacy_kinds(self, group_versions: tuple[str, ...]) -> ServedKinds:
        room = asyncio.Semaphore(_PARALLEL)

        async def ask(group_version: str) -> ServedKinds:
            path = f"/apis/{group_version}" if "/" in group_version else f"/api/{group_version}"
            async with room:
                try:
                    return parse_legacy(decode_object(await self._sender.send("GET", path), "GET", path))
                except (ApiError, ConnectionFailedError):
                    # One aggregated API that is down must not hide the kinds of all others.
                    return ServedKinds(unreachable=frozenset({group_version}))

        async with asyncio.TaskGroup() as tasks:
            asked = [tasks.create_task(ask(name)) for name in group_versions]
        served = ServedKinds()
        for task in asked:
            served = served.joined(task.result())
        return served
