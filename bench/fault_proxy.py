"""A proxy that injects faults in front of an API server, for the soak and for tests of an operator's resilience.

It accepts HTTP on loopback and connects to the server over TLS, with the credentials of the client. Its faults are:

- it ends watches, alternately by a broken connection (as a load balancer does) and in good order (as the server does);
- it answers watches with 410, alternately as an error event in an open watch and as the response to a request;
- it delays watch events;
- it answers 429 and 503 with ``Retry-After``;
- it cuts connections before the server has received a write, and after the server has applied it.

It counts all injected faults.
"""

from __future__ import annotations

import asyncio
import base64
import itertools
import json
import ssl
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Self

import aiohttp
from aiohttp import web
from yarl import URL

__all__ = ["FaultProxy", "FaultRates"]

_WRITES = frozenset({"POST", "PUT", "PATCH", "DELETE"})
_NOT_PASSED_ON = frozenset({"host", "connection", "keep-alive", "transfer-encoding", "content-length", "upgrade"})
_MAX_WAITING = 10_000


@dataclass(frozen=True)
class FaultRates:
    """The kinds of faults and their rates.

    Args:
        drop_watches_seconds: The interval at which all watches end; None for never.
        expire_watches_seconds: The interval at which each watched collection gets a 410; None for never.
        delay_events_seconds: The delay of watch events.
        delay_events_of: The plural of the only kind with delayed events; empty for all.
        busy_every: One out of this number of requests, without watches, is answered 429 or 503; 0 for none.
        retry_after_seconds: The ``Retry-After`` of these responses.
        cut_every: One out of this number of writes loses its connection, alternately before and after the server has
            acted; 0 for none.
        leases_too: True to inject faults into requests for Leases too.
    """

    drop_watches_seconds: float | None = None
    expire_watches_seconds: float | None = None
    delay_events_seconds: float = 0.0
    delay_events_of: str = ""
    busy_every: int = 0
    retry_after_seconds: int = 1
    cut_every: int = 0
    leases_too: bool = False


@dataclass(eq=False)
class _Watch:
    """An open watch of a client."""

    path: str
    cut: Literal["", "broken", "ended", "expired"] = ""
    ended: asyncio.Event = field(default_factory=asyncio.Event)

    def end(self, how: Literal["broken", "ended", "expired"]) -> None:
        self.cut = how
        self.ended.set()


class _CutError(Exception):
    """The connection to the client must be cut."""


class FaultProxy:
    """The proxy, as an async context manager; it listens on a free port of loopback.

    Args:
        kubeconfig: The kubeconfig of the server.
        faults: The faults; they can change at any time.

    Attributes:
        faults: The current faults.
        done: The number of injected faults by name since the start.
    """

    def __init__(self, kubeconfig: Path, faults: FaultRates | None = None) -> None:
        self._document: dict[str, Any] = json.loads(kubeconfig.read_text())
        self.faults = faults or FaultRates()
        self.done: Counter[str] = Counter()
        self._closing = AsyncExitStack()
        self._watches: set[_Watch] = set()
        self._expired: set[str] = set()
        self._requests = itertools.count(1)
        self._writes = itertools.count(1)
        self._turns: dict[str, itertools.cycle[Any]] = {
            "drop": itertools.cycle(["broken", "ended"]),
            "expire": itertools.cycle(["event", "status"]),
            "busy": itertools.cycle([429, 503]),
            "cut": itertools.cycle(["before", "after"]),
        }
        self._session: aiohttp.ClientSession
        self.url = ""

    async def __aenter__(self) -> Self:
        cluster = self._document["clusters"][0]["cluster"]
        trusted = ssl.create_default_context(cadata=base64.b64decode(cluster["certificate-authority-data"]).decode())
        connector = aiohttp.TCPConnector(ssl=trusted, limit=0)
        self._session = await self._closing.enter_async_context(
            aiohttp.ClientSession(
                cluster["server"],
                connector=connector,
                auto_decompress=False,
                timeout=aiohttp.ClientTimeout(total=None),
                skip_auto_headers=("User-Agent", "Accept-Encoding", "Content-Type"),
            )
        )
        runner = web.ServerRunner(web.Server(self._serve, access_log=None), shutdown_timeout=0.1)
        await runner.setup()
        self._closing.push_async_callback(runner.cleanup)
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        self.url = "http://{}:{}".format(*runner.addresses[0][:2])
        tasks = [asyncio.create_task(self._drop_watches()), asyncio.create_task(self._expire_watches())]
        self._closing.push_async_callback(_cancel, tasks)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._closing.aclose()

    def write_kubeconfig(self, path: Path) -> Path:
        """Write a kubeconfig of the same user with the address of the proxy."""
        document = json.loads(json.dumps(self._document))
        document["clusters"][0]["cluster"] = {"server": self.url}
        path.touch(mode=0o600)
        path.write_text(json.dumps(document))
        return path

    @property
    def open_watches(self) -> list[str]:
        """The paths of the open watches."""
        return sorted(watch.path for watch in self._watches)

    def drop_watches(self, how: Literal["broken", "ended"]) -> None:
        """End all open watches now."""
        for watch in self._watches:
            watch.end(how)
            self.done[f"watches {how}"] += 1

    def expire_watches(self, how: Literal["event", "status"]) -> None:
        """Expire each watched collection with 410: in the open watch, or in the response to the next request."""
        for watch in list(self._watches):
            if how == "event":
                watch.end("expired")
                self.done["410 as an event"] += 1
            else:
                self._expired.add(watch.path)
                watch.end("ended")

    async def _drop_watches(self) -> None:
        while True:
            await asyncio.sleep(self.faults.drop_watches_seconds or 0.2)
            if self.faults.drop_watches_seconds is not None:
                self.drop_watches(next(self._turns["drop"]))

    async def _expire_watches(self) -> None:
        while True:
            await asyncio.sleep(self.faults.expire_watches_seconds or 0.2)
            if self.faults.expire_watches_seconds is not None:
                self.expire_watches(next(self._turns["expire"]))

    async def _serve(self, request: web.BaseRequest) -> web.StreamResponse:
        body = await request.content.read()  # the server limits the size of objects
        try:
            if request.query.get("watch") in ("1", "true"):
                return await self._serve_watch(request)
            return await self._serve_request(request, body)
        except _CutError:
            return _cut(request)
        except (aiohttp.ClientError, OSError):
            self.done["the server was away"] += 1
            return _cut(request)

    async def _serve_request(self, request: web.BaseRequest, body: bytes) -> web.StreamResponse:
        faults = self.faults
        is_spared = "/leases" in request.path and not faults.leases_too
        if faults.busy_every and not is_spared and next(self._requests) % faults.busy_every == 0:
            code = next(self._turns["busy"])
            self.done[f"{code} answered"] += 1
            return _status(code, "the proxy is busy", retry_after=faults.retry_after_seconds)
        cut = ""
        if faults.cut_every and not is_spared and request.method in _WRITES and self._is_turn(faults.cut_every):
            cut = next(self._turns["cut"])
            self.done[f"writes cut {cut} the server has acted"] += 1
        if cut == "before":
            raise _CutError
        async with self._session.request(
            request.method, _target(request), headers=_filter_headers(request.headers), data=body or None
        ) as answer:
            content = await answer.read()
            if cut == "after":
                raise _CutError
            headers = _filter_headers(answer.headers)
            return web.Response(status=answer.status, headers=headers, body=content)

    def _is_turn(self, every: int) -> bool:
        return next(self._writes) % every == 0

    async def _serve_watch(self, request: web.BaseRequest) -> web.StreamResponse:
        # A streamed list has no version yet that could be too old.
        if request.path in self._expired and not request.query.get("sendInitialEvents"):
            self._expired.discard(request.path)
            self.done["410 as a status"] += 1
            return _status(410, "the proxy says that this resource version is too old", reason="Expired")
        watch = _Watch(request.path)
        async with self._session.get(_target(request), headers=_filter_headers(request.headers)) as answer:
            if answer.status != 200:
                return web.Response(
                    status=answer.status, headers=_filter_headers(answer.headers), body=await answer.content.read()
                )
            response = web.StreamResponse(headers=_filter_headers(answer.headers))
            response.enable_chunked_encoding()
            await response.prepare(request)
            self._watches.add(watch)
            self.done["watches opened"] += 1
            pumping = asyncio.create_task(self._pump(answer, response, request.path))
            ended = asyncio.create_task(watch.ended.wait())
            try:
                await asyncio.wait({pumping, ended}, return_when=asyncio.FIRST_COMPLETED)
            finally:
                self._watches.discard(watch)
                if answer.connection is not None and answer.connection.transport is not None:
                    answer.connection.transport.abort()  # a TLS close handshake would outlive the proxy
                ended.cancel()
                pumping.cancel()
                (problem,) = await asyncio.gather(pumping, return_exceptions=True)
            if watch.cut == "broken":
                raise _CutError
            if watch.cut == "expired":
                with suppress(OSError):
                    await response.write(
                        json.dumps({"type": "ERROR", "object": _build_expired_status()}).encode() + b"\n"
                    )
            elif not watch.cut and isinstance(problem, Exception):
                raise _CutError  # one side broke the connection without an injected fault
            with suppress(OSError):
                await response.write_eof()
            return response

    async def _pump(self, answer: aiohttp.ClientResponse, response: web.StreamResponse, path: str) -> None:
        """Forward whole lines, each with its delay."""
        waiting: asyncio.Queue[tuple[float, bytes] | None] = asyncio.Queue(_MAX_WAITING)
        loop = asyncio.get_running_loop()

        async def read() -> None:
            async for lines in _whole_lines(answer.content):
                await waiting.put((loop.time() + self._delay_seconds(path), lines))
            await waiting.put(None)

        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(read())
            while (found := await waiting.get()) is not None:
                due, lines = found
                if (pause := due - loop.time()) > 0:
                    await asyncio.sleep(pause)
                await response.write(lines)

    def _delay_seconds(self, path: str) -> float:
        plural = self.faults.delay_events_of
        return self.faults.delay_events_seconds if plural in ("", path.rpartition("/")[2]) else 0.0


async def _whole_lines(content: aiohttp.StreamReader) -> AsyncIterator[bytes]:
    unfinished = b""
    async for piece in content.iter_any():
        lines, newline, rest = piece.rpartition(b"\n")
        if newline:
            yield unfinished + lines + newline
            unfinished = rest
        else:
            unfinished += piece
    if unfinished:
        yield unfinished


async def _cancel(tasks: list[asyncio.Task[None]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def _cut(request: web.BaseRequest) -> web.StreamResponse:
    if request.transport is not None:
        request.transport.abort()
    return web.Response(status=502)  # the client never receives it


def _target(request: web.BaseRequest) -> URL:
    return URL(request.raw_path, encoded=True)


def _filter_headers(headers: Any) -> dict[str, str]:
    return {name: value for name, value in headers.items() if name.lower() not in _NOT_PASSED_ON}


def _build_expired_status() -> dict[str, Any]:
    return _status_object(410, "the proxy says that this resource version is too old", "Expired")


def _status_object(code: int, message: str, reason: str) -> dict[str, Any]:
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": message,
        "reason": reason,
        "code": code,
    }


def _status(code: int, message: str, *, reason: str = "", retry_after: int | None = None) -> web.Response:
    reason = reason or {429: "TooManyRequests", 503: "ServiceUnavailable"}[code]
    headers = {} if retry_after is None else {"Retry-After": str(retry_after)}
    return web.json_response(_status_object(code, message, reason), status=code, headers=headers)
