"""Finding where a kind is served, and looking again when it was not."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

from konverge.client.discovery import (
    AGGREGATED_ACCEPT,
    ServedKinds,
    group_versions_of,
    is_aggregated,
    parse_aggregated,
    parse_legacy,
)
from konverge.client.sending import Sender, decode_object
from konverge.errors import ApiError, ConnectionFailedError, KindNotServedError, KindUnreachableError, NotFoundError
from konverge.kube import GroupVersionKind, Object, ResourceMapping

__all__ = ["RestMapper"]

# How old an answer of "not served" may be. Aggregated discovery is two small requests (a 304 each when nothing
# changed); legacy discovery is one a group version.
_FRESH_SECONDS = 1.0
_FRESH_LEGACY_SECONDS = 10.0

# So many group versions are asked for at a time in legacy discovery.
_PARALLEL = 8


@dataclass(slots=True)
class _Knowledge:
    """What the server has said of its kinds. It belongs to one event loop."""

    served: ServedKinds = field(default_factory=ServedKinds)
    asked_at: float | None = None
    forgot_at: float | None = None
    is_legacy: bool = False
    answers: dict[str, tuple[str, Object]] = field(default_factory=dict)
    asking: asyncio.Lock = field(default_factory=asyncio.Lock)

    def copy(self) -> _Knowledge:
        """The same for another event loop."""
        return _Knowledge(self.served, self.asked_at, self.forgot_at, self.is_legacy, dict(self.answers))


class RestMapper:
    """Knows the kinds of one server; asks on first need, and again when a kind is missing.

    Args:
        sender: Asks the server.
        knowledge: What is known already; for `through` and `copied`.
    """

    def __init__(self, sender: Sender, *, knowledge: _Knowledge | None = None) -> None:
        self._sender = sender
        self._known = knowledge or _Knowledge()

    def through(self, sender: Sender) -> RestMapper:
        """One that asks through another sender and shares what both know."""
        return RestMapper(sender, knowledge=self._known)

    def copied(self, sender: Sender) -> RestMapper:
        """One that knows as much now, and shares nothing: for another event loop."""
        return RestMapper(sender, knowledge=self._known.copy())

    async def mapping(self, gvk: GroupVersionKind) -> ResourceMapping:
        """Where the kind is served.

        Raises:
            konverge.errors.KindNotServedError: It is not, by an answer that is at most a second old (ten seconds from
                a server without aggregated discovery). `konverge.errors.KindUnreachableError` if that cannot be told.
            konverge.errors.ApiError: Discovery failed.
        """
        found = self._known.served.by_kind.get(gvk)
        if found is None:
            await self._refresh()
            found = self._known.served.by_kind.get(gvk)
        if found is None and gvk.api_version in self._known.served.unreachable:
            raise KindUnreachableError(f"{gvk} is served by an aggregated API server that does not answer now")
        if found is None:
            raise KindNotServedError(self._explain(gvk))
        return found

    async def current(self, gvk: GroupVersionKind) -> ResourceMapping | None:
        """Where the kind is served by an answer that is at most a few seconds old; None when it is not."""
        return (await self.served()).by_kind.get(gvk)

    async def served(self) -> ServedKinds:
        """Everything that the server serves, by an answer that is at most a few seconds old."""
        await self._refresh()
        return self._known.served

    def forget(self, gvk: GroupVersionKind) -> None:
        """The server answered that there is no such path: the next question about the kind asks anew.

        Once in a while only: discovery may go on naming what is gone.
        """
        if gvk in self._known.served.by_kind:
            remaining = tuple(found for found in self._known.served.mappings if found.gvk != gvk)
            self._known.served = ServedKinds(remaining, self._known.served.unreachable)
            now = self._sender.clock.monotonic()
            if self._known.forgot_at is None or now - self._known.forgot_at >= self._fresh_seconds:
                self._known.forgot_at, self._known.asked_at = now, None

    def _explain(self, gvk: GroupVersionKind) -> str:
        versions = self._known.served.versions_of(gvk.group, gvk.kind)
        if versions:
            return f"the server does not serve {gvk}; it serves {gvk.kind} as {', '.join(versions)}"
        if "." in gvk.group:
            return f"the server does not serve {gvk}: is its CustomResourceDefinition installed?"
        return f"the server does not serve {gvk}"

    @property
    def _fresh_seconds(self) -> float:
        return _FRESH_LEGACY_SECONDS if self._known.is_legacy else _FRESH_SECONDS

    async def _refresh(self) -> None:
        """Ask the server, unless the last answer is fresh. Callers that come together share one answer."""
        came_at = self._sender.clock.monotonic()
        async with self._known.asking:
            if self._known.asked_at is not None and came_at - self._known.asked_at < self._fresh_seconds:
                return
            now = self._sender.clock.monotonic()
            core, groups = await self._document("/api"), await self._document("/apis")
            self._known.is_legacy = not (is_aggregated(core) and is_aggregated(groups))
            if self._known.is_legacy:
                self._known.served = await self._legacy_kinds(group_versions_of(core) + group_versions_of(groups))
            else:
                self._known.served = parse_aggregated(core).joined(parse_aggregated(groups))
            # The moment of asking: what was installed since is not in the answer.
            self._known.asked_at = now

    async def _document(self, path: str) -> Object:
        headers = {"accept": AGGREGATED_ACCEPT}
        etag, known = self._known.answers.get(path, ("", {}))
        if etag:
            headers["if-none-match"] = etag
        try:
            answer = await self._sender.send("GET", path, headers=headers)
        except NotFoundError:
            return {}  # a server without a core API (or without any other) is odd, not wrong
        if answer.status == 304:
            return known
        document = decode_object(answer, "GET", path)
        self._known.answers[path] = (answer.headers.get("etag", ""), document)
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
